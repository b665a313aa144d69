"""`profkit bisect`: which commit made it slower."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from profkit.cli.options import OutputFormat, print_pieces, print_result, print_view, remember_format

if TYPE_CHECKING:
    from profkit.core.types import BisectOptions
    from profkit.regression.bisect import BisectRequest
    from profkit.reporting.view import View

EXAMPLES = """
Example:  profkit bisect v1.2 HEAD -- python bench.py

With a build:  profkit bisect v1.2 HEAD --setup 'make -j8' -- ./bench

What it would cost:  profkit bisect v1.2 HEAD --plan -- python bench.py

As a page:  profkit bisect v1.2 HEAD --format html -- python bench.py > bisect.html

After a Ctrl-C:  profkit bisect v1.2 HEAD --resume reports/bisect-20261123-081500 -- python bench.py

Exit codes: 0 a commit was found, or several that made it together; 5 both ends are the same, or it cannot be decided;
2 wrong usage; 4 the command fails at one of both ends; 130 interrupted.
"""


class BisectFormat(str, Enum):
    """How the answer is printed."""

    terminal = "terminal"
    json = "json"
    markdown = "markdown"
    html = "html"

    def __str__(self) -> str:
        return self.value


def _remember(form: BisectFormat) -> BisectFormat:
    if form is BisectFormat.json:
        remember_format(OutputFormat.json)
    return form


SETTLED = ("budget", "floor", "sampling", "timeout", "seed", "certainty", "output")


def add_to(app: typer.Typer) -> None:
    """Register the verb."""
    app.command("bisect", epilog=EXAMPLES)(bisect)


def bisect(
    context: typer.Context,
    words: Annotated[
        list[str] | None,
        typer.Argument(
            help="A commit that is fast, a later one that is slow, and after `--` the command.",
            metavar="GOOD BAD -- COMMAND",
        ),
    ] = None,
    setup: Annotated[
        str | None,
        typer.Option("--setup", help="Run in each checkout before its first run; kept for the next time."),
    ] = None,
    budget: Annotated[float, typer.Option("--budget", help="Seconds for each test at most.", min=1.0)] = 60.0,
    floor: Annotated[
        str | None,
        typer.Option("--floor", help="The relative change that counts (default: 2%).", metavar="SHARE"),
    ] = None,
    certainty: Annotated[
        str, typer.Option("--certainty", help="The probability at which the search ends.", metavar="SHARE")
    ] = "95%",
    sampling: Annotated[
        float, typer.Option("--sampling", help="Seconds that one process samples what it marks.", min=0.01)
    ] = 1.0,
    timeout: Annotated[
        float | None, typer.Option("--timeout", help="Seconds for one process.", min=0.01)
    ] = None,
    seed: Annotated[int | None, typer.Option("--seed", help="Of the random order.")] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="A new folder for what was found (default: reports/bisect-TIME)."
        ),
    ] = None,
    resume: Annotated[
        Path | None,
        typer.Option(
            "--resume",
            help="Go on in this folder, by its options; both ends and the command are named again.",
        ),
    ] = None,
    plan: Annotated[
        bool, typer.Option("--plan", help="Print how many tests it takes, and how long; run nothing.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing of the progress.")] = False,
    format: Annotated[
        BisectFormat,
        typer.Option(
            "--format",
            "-f",
            help="json prints one document and nothing else there; html one page.",
            callback=_remember,
        ),
    ] = BisectFormat.terminal,
) -> None:
    """Find the commit that made a command slower, by running commits between two ends in turn."""
    from profkit.cli.progress import progress_for
    from profkit.cli.regression.compare import parse_share
    from profkit.core.signals import defer_interrupts, raise_on_signals
    from profkit.core.types import BisectOptions
    from profkit.regression import bisect as bisecting
    from profkit.regression.paired import FLOOR

    share = parse_share(floor)
    options = BisectOptions(
        budget, share if share is not None else FLOOR, sampling, timeout, seed, _parse_certainty(certainty)
    )
    request = _request(words or [], options, setup, output)
    if plan:
        _print_plan(request, format)
        return
    progress = progress_for(quiet=quiet, ends_only=True)
    with raise_on_signals():
        if resume is not None:
            _check_resume(context)
            document, folder = bisecting.resume(request, resume, progress), resume
        else:
            document, folder = bisecting.bisect(request, progress)
    with defer_interrupts():
        if format is BisectFormat.json:
            from profkit.reporting.json import bisection

            print_result(bisection(document))
        else:
            from profkit.reporting.views.bisect import view

            _print(view(document, str(folder)), format)
    raise typer.Exit(bisecting.exit_code(document))


def _request(
    words: list[str], options: BisectOptions, setup: str | None, output: Path | None
) -> BisectRequest:
    from profkit.core.errors import UsageError
    from profkit.regression.bisect import BisectRequest

    if len(words) < 3:
        raise UsageError(
            "bisect takes two commits and a command after `--`",
            "profkit bisect HEAD~20 HEAD -- python bench.py",
        )
    good, bad, *command = words
    return BisectRequest(good, bad, tuple(command), options, setup, folder=output)


def _print(shown: View, form: BisectFormat) -> None:
    if form is BisectFormat.html:
        from profkit.reporting.html.page import render

        print_pieces((render(shown),))
    else:
        print_view(shown, OutputFormat(form.value))


def _print_plan(request: BisectRequest, output: BisectFormat) -> None:
    from profkit.regression.bisect import plan_bisect

    planned = plan_bisect(request)
    if output is BisectFormat.json:
        from profkit.reporting.json import bisection_plan

        print_result(bisection_plan(planned))
    else:
        from profkit.reporting.views.bisect import plan_view

        _print(plan_view(planned), output)


def _parse_certainty(text: str) -> float:
    """`95%` as 0.95. Raises UsageError for what is no share from 50 to below 100 %."""
    from profkit.cli.regression.compare import parse_share
    from profkit.core.errors import UsageError

    try:
        value = parse_share(text)
    except UsageError:
        value = None
    if value is None or value < 0.5:
        raise UsageError(f"--certainty {text} is no share from 50 % to below 100 %", "--certainty 95%")
    return value


def _check_resume(context: typer.Context) -> None:
    """Raises UsageError where --resume stands beside what its folder has settled: it would not be heeded."""
    from profkit.cli.options import typed_options
    from profkit.core.errors import UsageError

    for option, value in typed_options(context, SETTLED):
        raise UsageError(
            f"{option} {value} cannot be changed by --resume: a bisection goes on by its own options",
            f"leave out {option}, or leave out --resume for a new bisection",
        )
