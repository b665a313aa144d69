"""The commands, gathered. Only the one that is called is loaded: `--help` is what people wait for most often."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import typer
import typer.main
from typer.core import TyperCommand, TyperGroup

# The line that `--help` has of each command: the first of what the command says itself.
COMMANDS = {
    "profile": "Profile a program with every profiler that works here; show where the time goes and what to change.",
    "record": "Record a program with one profiler, with settings that profkit has tested.",
    "summarize": "Show what is in a run or in the report of any supported profiler.",
    "check": "Check a run or a report against its targets; exit 1 if one fails.",
    "compare": "Compare two runs or two versions: what changed, whether the change is real, and why.",
    "bisect": "Find the commit that made a command slower; runs of the commits alternate.",
    "gate": "Write a CI workflow that compares this repository's benchmarks in each pull request.",
    "report": "Export a run or a report as HTML, Markdown, JSON or JUnit.",
    "nightly": "Profile a set of workloads, compare each with its history, and report what changed.",
    "mcp": "Offer profile, summarize, compare, check and doctor to a coding agent (Model Context Protocol).",
    "doctor": "Test every tool with a tiny measurement; show what works on this machine and how to fix the rest.",
    "sweep": "Check and time operations over a grid of shapes in several implementations; show which is fastest where.",
    "evaluate": "Test kernels against PyTorch: is each one correct, and is it faster?",
    "generate": "Let a language model write kernels; each is tested, timed and profiled, and it gets the result.",
    "scrub": "Copy a run or a text report without host names, user names, command lines and paths.",
    "history": "Store runs over time in one SQLite file, and show their trends.",
}
HIDDEN = {"run": "evaluate"}  # as the guide of BackendBench calls it


class _Commands(TyperGroup):
    """A group whose commands are their names and lines, until one is called."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        for name, line in COMMANDS.items():
            self.commands[name] = TyperCommand(name, help=line)
        for name in HIDDEN:
            self.commands[name] = TyperCommand(name, hidden=True)

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        name, line, rest = super().resolve_command(ctx, args)
        return name, load_command(line.name) if line is not None and line.name else None, rest


def _only_command(app: typer.Typer) -> Any:
    """Return the one command of `app`: click's, of which typer has its own copy from 0.28 on."""
    (command,) = typer.main.get_group(app).commands.values()
    return command


def _command(function: Callable[..., None], examples: str, *, takes_workload: bool = False) -> Any:
    """Return the command that calls `function`.

    With `takes_workload` its options stand before the workload: what follows is the workload's own.
    """
    from profkit.cli.options import spread

    # The terminal breaks the lines: in the source they are broken for another width.
    epilog = "\n\n".join(part.strip().replace("\n", " ") for part in examples.split("\n\n"))
    settings = {"allow_interspersed_args": False} if takes_workload else None
    app = typer.Typer()
    app.command(epilog=epilog, context_settings=settings)(spread(function))
    return _only_command(app)


def _profile() -> Any:
    from profkit.cli.profile import EXAMPLES, profile

    return _command(profile, EXAMPLES["profile"], takes_workload=True)


def _record() -> Any:
    from profkit.cli.profile import EXAMPLES, record

    return _command(record, EXAMPLES["record"], takes_workload=True)


def _summarize() -> Any:
    from profkit.cli.reports import EXAMPLES, summarize

    return _command(summarize, EXAMPLES["summarize"])


def _check() -> Any:
    from profkit.cli.reports import EXAMPLES, check

    return _command(check, EXAMPLES["check"])


def _compare() -> Any:
    from profkit.cli.compare import EXAMPLES, compare

    return _command(compare, EXAMPLES["compare"])


def _bisect() -> Any:
    from profkit.cli.compare import EXAMPLES, bisect

    return _command(bisect, EXAMPLES["bisect"])


def _gate() -> Any:
    from profkit.cli.gate import EXAMPLES, gate

    return _command(gate, EXAMPLES)


def _report() -> Any:
    from profkit.cli.reports import EXAMPLES, report

    return _command(report, EXAMPLES["report"])


def _nightly() -> Any:
    from profkit.cli.nightly import EXAMPLES, nightly

    return _command(nightly, EXAMPLES)


def _mcp() -> Any:
    from profkit.cli.mcp import EXAMPLES, mcp

    return _command(mcp, EXAMPLES)


def _doctor() -> Any:
    from profkit.cli.doctor import EXAMPLES, doctor

    return _command(doctor, EXAMPLES)


def _sweep() -> Any:
    from profkit.cli.sweep import EXAMPLES, sweep

    return _command(sweep, EXAMPLES)


def _evaluate() -> Any:
    from profkit.cli.evaluate import EXAMPLES, evaluate

    return _command(evaluate, EXAMPLES["evaluate"])


def _generate() -> Any:
    from profkit.cli.evaluate import EXAMPLES, generate

    return _command(generate, EXAMPLES["generate"])


def _scrub() -> Any:
    from profkit.cli.reports import EXAMPLES, scrub

    return _command(scrub, EXAMPLES["scrub"])


def _history() -> Any:
    from profkit.cli.history import history

    app = typer.Typer()
    app.add_typer(history)
    return _only_command(app)


# What loads each command, in the order of `COMMANDS`. The command's module is imported by the call.
LOADERS: dict[str, Callable[[], Any]] = {
    "profile": _profile,
    "record": _record,
    "summarize": _summarize,
    "check": _check,
    "compare": _compare,
    "bisect": _bisect,
    "gate": _gate,
    "report": _report,
    "nightly": _nightly,
    "mcp": _mcp,
    "doctor": _doctor,
    "sweep": _sweep,
    "evaluate": _evaluate,
    "generate": _generate,
    "scrub": _scrub,
    "history": _history,
}


@lru_cache
def load_command(name: str) -> Any:
    """Return the command or the group of commands, with its options."""
    command = LOADERS[HIDDEN.get(name, name)]()
    command.name, command.hidden = name, name in HIDDEN
    return command


app = typer.Typer(
    name="profkit",
    cls=_Commands,
    help="Profile a program on CPU, NVIDIA GPU or Mac and show what slows it down.\n\n"
    "Start with:  profkit profile -- python your_script.py",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(invoke_without_command=True)
def version_option(
    version: bool = typer.Option(False, "--version", help="Print the version and exit.", is_eager=True),
) -> None:
    """Carry the option that belongs to no command."""
    if version:
        from profkit import __version__

        typer.echo(__version__)
        raise typer.Exit
