"""`profkit bisect`: which commit made it slower."""

from __future__ import annotations

from typing import Annotated

import typer

from profkit.cli import options
from profkit.cli.options import option

EXAMPLES = """
Example:  profkit bisect v1.2 HEAD -- python bench.py

With a build:  profkit bisect v1.2 HEAD --setup 'make -j8' -- ./bench

Exit codes: 0 a commit was found, or several that made it together; 5 both ends are the same, or it cannot be decided;
2 wrong usage; 4 the command fails at one of both ends; 130 interrupted.
"""


def bisect(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            help="A commit that is fast, a later one that is slow, and after `--` the command.",
            metavar="GOOD BAD -- COMMAND",
        ),
    ] = None,
    setup: Annotated[str | None, option(None, "Run in each checkout before its first run.")] = None,
    budget: Annotated[float, option(None, "Seconds for each test at most.", min=1.0)] = 60.0,
    floor: Annotated[str | None, option(None, "The relative change that counts: 2%.", "SHARE")] = None,
    sampling: Annotated[float, option(None, "Seconds that one process samples.", min=0.01)] = 1.0,
    timeout: Annotated[float | None, option(None, "Seconds for one process.", min=0.01)] = None,
    quiet: Annotated[bool, option(None, "Say nothing of the progress.", None, "--quiet", "-q")] = False,
    format: options.FormatOption = options.OutputFormat.terminal,
) -> None:
    """Find the commit that made a command slower, by running commits between two ends in turn."""
    from profkit.cli.compare import parse_share
    from profkit.cli.progress import progress_for
    from profkit.core.errors import UsageError
    from profkit.core.signals import defer_interrupts, raise_on_signals
    from profkit.core.types import BisectOptions
    from profkit.regression.bisect import bisection as bisecting
    from profkit.regression.paired.interleave import FLOOR
    from profkit.reporting import json
    from profkit.reporting.views.bisect import view

    if len(words or []) < 3:
        raise UsageError(
            "bisect takes two commits and a command after `--`",
            "profkit bisect HEAD~20 HEAD -- python bench.py",
        )
    good, bad, *command = words or []
    share = parse_share(floor)
    asked = BisectOptions(budget, share if share is not None else FLOOR, sampling, timeout)
    progress = progress_for(quiet=quiet)
    with raise_on_signals():
        document, folder = bisecting.bisect(good, bad, tuple(command), asked, progress, setup)
    with defer_interrupts():
        options.print_as(format, lambda: json.document(document), lambda: view(document, str(folder)))
    raise typer.Exit(bisecting.exit_code(document))
