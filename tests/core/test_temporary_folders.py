"""What a process that was killed left in the temporary folder is taken away by the next one."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from profkit.core.files.temporary import TemporaryFolder

KILLED = """
import os, pathlib, signal
from profkit.core.files.temporary import TemporaryFolder
with TemporaryFolder("versions") as folder:
    pathlib.Path(folder, "records").mkdir()
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_the_folder_of_a_killed_process_is_taken_away_and_those_in_use_or_of_others_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    subprocess.run([sys.executable, "-c", KILLED], env={**os.environ, "TMPDIR": str(tmp_path)}, check=False)
    (left,) = tmp_path.iterdir()
    (foreign := tmp_path / "profkit-versions").mkdir()  # a name that somebody may have chosen
    (link := tmp_path / "profkit-git~abcdefgh").symlink_to(foreign)
    with TemporaryFolder("git") as used:
        assert left.is_dir()  # young: its process may not have locked it yet
        long_ago = time.time() - 3600
        for folder in (left, foreign, Path(used)):
            os.utime(folder, (long_ago, long_ago))
        with TemporaryFolder() as own:
            assert set(tmp_path.iterdir()) == {foreign, link, Path(used), Path(own)}
    assert set(tmp_path.iterdir()) == {foreign, link}
