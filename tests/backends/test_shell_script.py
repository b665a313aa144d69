"""Lines of a shell's script that start programs: named where one line alone can have started them."""

from __future__ import annotations

from pathlib import Path

import pytest

from profkit.backends.shell_script import script_of, with_lines
from profkit.core.types import StartedProgram, Workload

SCRIPT = """\
#!/bin/bash
# python makes the report
for depot in a b; do
    python depot/stock.py "$depot" >> out.txt  # sort later
done
cut -f1 out.txt
cut -f2 out.txt
sort out.txt
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "report.sh"
    path.write_text(SCRIPT)
    return path


@pytest.mark.parametrize(
    ("name", "command", "line"),
    [
        ("stock.py", "python", 4),
        ("python3.11", "python", 4),
        ("sort", "sort", 8),
        ("cut", "cut", None),  # two lines have it
        ("awk", "awk", None),
        ("copies of bash", "", None),
    ],
)
def test_a_program_has_the_only_line_that_names_it(
    script: Path, name: str, command: str, line: int | None
) -> None:
    (found,) = with_lines((StartedProgram(name, command, 5, 1.0, 0.5),), script)
    assert (found.line, found.file) == (line, str(script) if line else None)


@pytest.mark.parametrize(
    ("command", "found"),
    [
        (("bash", "report.sh"), True),
        (("bash", "-e", "report.sh"), True),
        (("./report.sh",), True),
        (("bash", "-c", "report.sh"), False),
        (("python", "report.sh"), False),
    ],
)
def test_the_script_of_a_shell_is_known(script: Path, command: tuple[str, ...], found: bool) -> None:
    workload = Workload(command, "report", str(script.parent))
    assert (script_of(workload) == script) == found
