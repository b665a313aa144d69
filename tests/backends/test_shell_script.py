"""Lines of a shell's script that start programs: named where one line alone can have started them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from profkit.backends.shell_script import script_of, with_lines
from profkit.backends.source_lines import program_file
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


@pytest.mark.parametrize(
    ("head", "program"),
    [
        ("#!{shell}", "shell"),
        ("#! {shell} -e", "shell"),
        ("#!/usr/bin/env shell", "shell"),
        ("#!/usr/bin/env -S LANG=C shell -e", "shell"),
        ("#!/usr/bin/env other", None),
        ("#!{script}", None),  # its interpreter is a script itself
        ("#!", None),
        ("echo", None),
    ],
)
def test_the_program_of_a_script_is_its_interpreter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, head: str, program: str | None
) -> None:
    shell, script = tmp_path / "shell", tmp_path / "report.sh"
    shell.write_bytes(b"\x7fELF")
    shell.chmod(0o755)
    script.write_text(f"{head.format(shell=shell, script=script)}\nsort words.txt\n")
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.defpath}")
    found = program_file(Workload(("./report.sh",), "report", str(tmp_path)))
    assert found == (tmp_path / program if program else None)
