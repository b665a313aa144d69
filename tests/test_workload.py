"""What is guessed of a command before it runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from profkit.model import Workload
from profkit.workload import seems_marked


@pytest.mark.parametrize(
    ("command", "marked"),
    [
        (("python", "-c", "import profkit; profkit.region('a')"), True),
        (("python", "-c", "from profkit import region"), True),
        (("python", "marked.py"), True),
        (("python", "plain.py"), False),
        (("/home/me/profkit/.venv/bin/python", "plain.py"), False),
        (("python", "plain.py", "--cache", "/data/profkit"), False),
    ],
)
def test_a_workload_seems_marked_by_what_it_imports_and_not_by_where_it_lies(
    tmp_path: Path, command: tuple[str, ...], marked: bool
) -> None:
    (tmp_path / "marked.py").write_text("import profkit\n")
    (tmp_path / "plain.py").write_text("print(1)\n")
    assert seems_marked(Workload(command, "w", str(tmp_path))) is marked
