"""Before anything is timed: does each version run its own code, and do both run at all?"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from profkit.core.errors import UsageError, WorkloadError
from profkit.core.progress import Silent
from profkit.regression.paired import (
    PairedOptions,
    RunOptions,
    VersionsRequest,
    compare_versions,
)
from tests.git_repository import commit, repository

QUICK = PairedOptions(budget=20.0, seed=1, run=RunOptions(sampling=0.1))


def between(place: Path, *command: str) -> VersionsRequest:
    """The command at two commits, neither of which is the working tree."""
    return VersionsRequest(command, "HEAD~1", "HEAD", cwd=place, pairs=QUICK, causes=False)


@pytest.fixture
def installed(tmp_path: Path) -> tuple[Path, str]:
    """A project whose code lies in `lib/`, installed in place into an environment as `pip install -e` does it."""
    place = repository(tmp_path / "repo")
    (place / "lib" / "tool").mkdir(parents=True)
    for milliseconds in (50, 100):
        (place / "lib" / "tool" / "__init__.py").write_text(
            f"import time\nend = time.process_time() + {milliseconds}e-3\nwhile time.process_time() < end: pass\n"
        )
        (place / "bench.py").write_text("import tool\n")
        commit(place, milliseconds)
    environment = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(environment)], check=True)
    (packages,) = environment.glob("lib/python*/site-packages")
    (packages / "__editable__.tool.pth").write_text(f"{place / 'lib'}\n")
    return place, str(environment / "bin" / "python")


def test_two_commits_that_both_load_the_working_tree_are_refused_with_the_folder_that_mends_it(
    installed: tuple[Path, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    place, python = installed
    with pytest.raises(
        UsageError, match=r"runs the code of the working tree .*lib/tool/__init__\.py"
    ) as found:
        compare_versions(between(place, python, "bench.py"), Silent())
    assert "--setup" in (found.value.fix or "")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([*sys.path, "lib"]))
    mended = compare_versions(between(place, python, "bench.py"), Silent()).comparison
    assert mended.outcome == "regressed"


def test_one_program_for_both_versions_is_refused(tmp_path: Path) -> None:
    """What was built in the working tree is in no commit: both would run it."""
    place = repository(tmp_path / "repo")
    commit(place, 2)
    shutil.copy("/bin/true", place / "bench")
    with pytest.raises(UsageError, match="both versions would run the same program") as found:
        compare_versions(between(place, "./bench"), Silent())
    assert found.value.fix == "--setup make"


def test_a_command_that_fails_in_both_versions_is_told_of_the_candidate(tmp_path: Path) -> None:
    place = repository(tmp_path / "repo")
    commit(place, 2)
    with pytest.raises(WorkloadError) as found:
        compare_versions(between(place, sys.executable, "absent.py"), Silent())
    assert "HEAD" in found.value.message
    assert found.value.message.count("can't open file") == 1
    with pytest.raises(UsageError, match="cannot start absent-program"):
        compare_versions(between(place, "absent-program"), Silent())
