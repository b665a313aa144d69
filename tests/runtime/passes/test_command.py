"""How a workload's command is rewritten for a host, as a table."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from profkit.runtime.passes.command import HOST_PROGRAM, find_interpreter, host_command, python_version

OUT = Path("/out.prof")


@pytest.mark.parametrize(
    ("command", "before", "program"),
    [
        ("python x.py 1 -m", "python", "x.py 1 -m"),
        ("/venv/bin/python3.12 x.py", "/venv/bin/python3.12", "x.py"),
        ("python3.13t x.py", "python3.13t", "x.py"),
        ("python -mpkg.mod a", "python", "-m pkg.mod a"),
        ("python -cpass a", "python", "-c pass a"),
        ("python -Xdev -Werror -OO x.py -X", "python -Xdev -Werror -OO", "x.py -X"),
        ("python -BuW error x.py", "python -BuW error", "x.py"),
        ("python -- x.py a", "python", "x.py a"),
        ("env -u HOME -i python -u x.py", "env -u HOME -i python -u", "x.py"),
        ("taskset -c 0 nice -n 5 python x.py", "taskset -c 0 nice -n 5 python", "x.py"),
        ("uv run --with numpy python -m mod", "uv run --with numpy python", "-m mod"),
    ],
)
def test_a_python_command_runs_under_the_host(command: str, before: str, program: str) -> None:
    found = host_command(command.split(), "cprofile", OUT)
    assert found == ([*before.split(), str(HOST_PROGRAM), "cprofile", str(OUT), "--", *program.split()], None)


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("", "no-command"),
        ("ls -l", "no-python-program"),
        ("bash -c python", "no-python-program"),
        ("python", "interactive-python"),
        ("python --version", "python-runs-nothing"),
        ("python -m", "python-runs-nothing"),
        ("python -i x.py", "python-runs-nothing"),
        ("env A=1 ls", "unnamed-python"),
        ("uv run x.py", "unnamed-python"),
    ],
)
def test_what_cannot_be_hosted_says_why(command: str, reason: str) -> None:
    argv, why = host_command(command.split(), "cprofile", OUT)
    assert argv is None
    assert reason in str(why)


@pytest.mark.parametrize(
    ("first_lines", "launcher"),
    [
        ("#!/usr/bin/python3\n", "/usr/bin/python3"),
        ("#!/usr/bin/env python3\n", "/usr/bin/env python3"),
        ("#!/usr/bin/env -S python3 -u\n", "/usr/bin/env python3"),
        ("#!/opt/v/bin/python -I\n", "/opt/v/bin/python"),
    ],
)
def test_a_console_script_is_run_by_the_interpreter_of_its_first_line(
    tmp_path: Path, first_lines: str, launcher: str
) -> None:
    script = tmp_path / "tool"
    script.write_text(first_lines + "pass\n")
    script.chmod(0o755)
    argv, _ = host_command([str(script), "a"], "cprofile", OUT)
    assert argv is not None
    at = argv.index(str(HOST_PROGRAM))
    assert " ".join(argv[:at]).startswith(launcher)
    assert argv[at + 3 :] == ["--", str(script), "a"]
    assert ("-u" in argv[:at]) == ("-u" in first_lines)
    assert ("-I" in argv[:at]) == ("-I" in first_lines)


def test_the_interpreter_is_known_by_path_and_by_how_it_is_started() -> None:
    assert find_interpreter([sys.executable, "x.py"]) == sys.executable
    assert find_interpreter(["env", "A=1", "python3", "x.py"]) == shutil.which("python3")
    assert find_interpreter(["uv", "run", "python", "x.py"]) is None
    assert find_interpreter(["ls"]) is None


def test_an_interpreter_tells_its_version_and_other_programs_none(tmp_path: Path) -> None:
    assert python_version(sys.executable) == sys.version_info[:3]
    assert python_version(["env", "A=1", sys.executable]) == sys.version_info[:3]
    assert python_version("/bin/ls") is None
    assert python_version(str(tmp_path / "absent")) is None
