"""The verbs, gathered. Only the one that is called is loaded: `--help` is what people wait for most often."""

from __future__ import annotations

import importlib
from functools import lru_cache
from typing import Any

import typer
import typer.main
from typer.core import TyperCommand, TyperGroup

# The line that `--help` has of each verb: the first of what the verb says itself.
VERBS = {
    "profile": "Run a workload under every instrument this machine has, and judge what they say.",
    "record": "Run a workload under one profiler, with profkit's own recipe for it.",
    "summarize": "Read reports and show what is in them.",
    "check": "Judge a report or a run by its targets.",
    "compare": "Show what differs between two runs or two versions, whether it is real, and why.",
    "bisect": "Find the commit that made a command slower by alternating runs of commits.",
    "gate": "Write the workflow that compares this repository's benchmarks in each pull request.",
    "report": "Export a run or a report as HTML, Markdown, JSON or JUnit.",
    "nightly": "Profile a set of workloads, compare each with its past, and report what changed.",
    "mcp": "Serve profile, summarize, compare, check and doctor to a coding agent, by the Model Context Protocol.",
    "doctor": "Try every tool with a tiny measurement and say what it can do here.",
    "sweep": "Check and time operations over a grid of shapes, in every implementation, and show who wins where.",
    "evaluate": "Test kernels against PyTorch: is each one correct, and how many times as fast?",
    "generate": "Let a language model write kernels: each is tested, timed and profiled, and it gets the result.",
    "scrub": "Copy a report in text, or a run, without host, user, command line and paths.",
    "history": "Runs over time, in one SQLite file: reports/history.sqlite, or as --history or PROFKIT_HISTORY says.",
}
MODULES = {  # of the others their own names
    **dict.fromkeys(("summarize", "check", "report", "scrub"), "reports"),
    "bisect": "compare",
    "record": "profile",
    "generate": "evaluate",
}
BEFORE_COMMANDS = ("profile", "record")  # their options stand before the workload, whose own are its own
HIDDEN = {"run": "evaluate"}  # as the guide of BackendBench calls it


class _Verbs(TyperGroup):
    """A group whose commands are their names and lines, until one is called."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        for name, line in VERBS.items():
            self.commands[name] = TyperCommand(name, help=line)
        for name in HIDDEN:
            self.commands[name] = TyperCommand(name, hidden=True)

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        name, line, rest = super().resolve_command(ctx, args)
        return name, load_verb(line.name) if line is not None and line.name else None, rest


@lru_cache
def load_verb(name: str) -> Any:
    """Return the command or the group of commands, with its options."""
    verb = HIDDEN.get(name, name)
    module = importlib.import_module(f"profkit.cli.{MODULES.get(verb, verb)}")
    from profkit.cli.options import spread

    alone = typer.Typer()
    if hasattr(module, "add_to"):
        module.add_to(alone)
    else:
        settings = {"allow_interspersed_args": False} if verb in BEFORE_COMMANDS else None
        examples = module.EXAMPLES[verb] if isinstance(module.EXAMPLES, dict) else module.EXAMPLES
        # The terminal breaks the lines: in the source they are broken for another width.
        epilog = "\n\n".join(part.strip().replace("\n", " ") for part in examples.split("\n\n"))
        command = alone.command(name, epilog=epilog, hidden=name in HIDDEN, context_settings=settings)
        command(spread(getattr(module, verb)))
    return typer.main.get_group(alone).commands[name]


app = typer.Typer(
    name="profkit",
    cls=_Verbs,
    help="Profile a program on CPU, NVIDIA GPU or Mac and show what slows it down.\n\n"
    "Start with:  profkit profile -- python your_script.py",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(invoke_without_command=True)
def version_option(
    version: bool = typer.Option(False, "--version", help="Print the version and leave.", is_eager=True),
) -> None:
    """Carry the option that belongs to no verb."""
    if version:
        from profkit import __version__

        typer.echo(__version__)
        raise typer.Exit
