"""`profkit gate`: the workflow that compares a repository's benchmarks in each pull or merge request."""

from __future__ import annotations

import shlex
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from profkit.cli import options
from profkit.cli.options import option

if TYPE_CHECKING:
    from profkit.fronts.gate import GatePlan
    from profkit.reporting.view import View

EXAMPLES = """
Example:  profkit gate --init

Without --init it only shows the benchmarks that it found and the files that it would write.

With a command of your own, if no benchmark is found:  profkit gate --init -- python bench.py
"""


class ForgeOption(str, Enum):
    """Whose workflow."""

    github = "github"
    gitlab = "gitlab"


def gate(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            help="A command to use instead of the benchmarks that are found.", metavar="[-- COMMAND]"
        ),
    ] = None,
    init: Annotated[bool, option(None, "Write the files.", None, "--init")] = False,
    forge: Annotated[
        ForgeOption | None,
        option(None, "The CI system (default: gitlab if the repository points to it, else github)."),
    ] = None,
    install: Annotated[
        str | None, option(None, "What pip installs in the workflow (default: the source of this profkit).")
    ] = None,
    force: Annotated[bool, option(None, "Overwrite existing files.", None, "--force")] = False,
    format: options.FormatOption = options.OutputFormat.terminal,
) -> None:
    """Write a CI workflow that compares this repository's benchmarks in each pull request."""
    from profkit.fronts.gate import plan_gate, write_gate

    plan = plan_gate(Path.cwd(), forge.value if forge else None, words or [], install)
    if init:
        write_gate(plan, force=force)
    if format is options.OutputFormat.json:
        found = [{"name": each.name, "kind": each.kind, "command": each.command} for each in plan.benchmarks]
        body = {"forge": plan.forge, "suite": plan.suite, "written": init, "notes": plan.notes}
        options.print_json({"schema": "profkit.gate/1", **body, "workloads": found, "files": plan.files})
    else:
        options.print_view(_view(plan, written=init), format)


def _view(plan: GatePlan, *, written: bool) -> View:
    from profkit.core.formatting import plural
    from profkit.reporting.view import Block, Commands, Section, View, notes, table

    rows = [(each.name, each.kind, " ".join(each.command)) for each in plan.benchmarks]
    found: tuple[Block, ...] = (table(("workload", "kind", "command"), rows, words=3),) if rows else ()
    files = table(("file",), [(name,) for name in plan.files])
    try_it = f"profkit compare --suite {shlex.quote(plan.suite)} --base HEAD~1"
    lines = (f"git add {shlex.join(plan.files)}", try_it) if written else ("profkit gate --init",)
    done = "written" if written else "would be written"
    what = plural(len(rows), "workload") if rows else f"the workloads of {plan.suite}"
    return View(
        f"{plan.forge}: {what}; {plural(len(plan.files), 'file')} {done}.",
        (*found, files, *notes(plan.notes), Section("Next", (Commands(lines),))),
    )
