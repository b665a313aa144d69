"""What a command's help costs: nothing but the command line's own modules is imported for it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import profkit.cli
from profkit.cli.app import COMMANDS, HIDDEN, LOADERS, load_command

SHARED = {"app", "options"}  # of all commands


def modules_after(*arguments: str) -> set[str]:
    """What is loaded when a call ends."""
    code = "import atexit, sys; atexit.register(lambda: print(*sys.modules)); from profkit.cli import main; main()"
    argv = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split())


@pytest.mark.parametrize(
    ("arguments", "module"),
    [
        (["--help"], None),
        (["profile", "--help"], "profile"),
        (["summarize", "--help"], "reports"),
        (["history", "--help"], "history"),
    ],
)
def test_help_imports_nothing_but_the_command_line(arguments: list[str], module: str | None) -> None:
    imported = modules_after(*arguments)
    ours = {name for name in imported if name.startswith("profkit.") and not name.startswith("profkit.cli")}
    assert ours == {"profkit.core", "profkit.core.errors", "profkit.core.library_first"}
    assert not imported & {"yaml", "numpy", "torch", "psutil"}
    files = {path.stem for path in Path(profkit.cli.__file__).parent.glob("[!_]*.py")} - SHARED
    loaded = {name for name in files if f"profkit.cli.{name}" in imported}
    assert loaded == ({module} if module else set())


def test_a_report_that_is_no_json_is_read_without_what_reads_sweeps_evaluations_and_generations(
    tmp_path: Path,
) -> None:
    report = tmp_path / "stat.csv"
    report.write_text(
        "# started on Thu Nov 20 07:00:00 2026\n\n12||context-switches|101520000|100.00|118.2|/sec\n"
    )
    imported = modules_after("summarize", str(report))
    assert "profkit.profilers.perf.stat_csv" in imported
    unasked = (
        "profkit.kernels",
        "profkit.execution",
        "profkit.generation",
        "profkit.reporting.views.kernels.sweep",
    )
    assert not [name for name in imported if name.startswith(unasked)]


@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_of_commands_has_the_line_that_each_says_of_itself(name: str) -> None:
    command = load_command(name)
    assert command.name == name
    assert " ".join(command.help.partition("\n\n")[0].split()) == COMMANDS[name]
    interspersed = command.context_settings.get("allow_interspersed_args", True)
    assert interspersed is (name not in ("profile", "record"))


def test_every_command_of_the_list_has_what_loads_it() -> None:
    assert list(LOADERS) == list(COMMANDS)


def test_history_with_commands_of_its_own_is_the_last_and_run_is_evaluate_and_in_no_list() -> None:
    assert list(COMMANDS)[-1] == "history"
    assert {"add", "site"} <= load_command("history").commands.keys()
    assert HIDDEN == {"run": "evaluate"}
    assert load_command("run").hidden
    assert [each.name for each in load_command("run").params] == [
        each.name for each in load_command("evaluate").params
    ]
    shown = subprocess.run(
        [sys.executable, "-m", "profkit", "--help"], capture_output=True, text=True, check=True
    )
    names = [
        line.split()[1] for line in shown.stdout.splitlines() if line.startswith("│ ") and line[2].isalpha()
    ]
    assert names == list(COMMANDS)
