"""`profkit check`: summaries against targets, with an exit code for scripts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from profkit.cli.options import (
    FormatOption,
    OutputFormat,
    StrictOption,
    TargetsOption,
    print_document,
    print_evaluation,
    print_sweep_digest,
    show_reading,
    verdict_exit,
)

EXAMPLES = """
Example:  profkit check reports/20261120-054700-gated_mlp-cpu --targets targets.yaml --strict

Exit codes: 0 all that could be judged passed; 1 a target failed; 5 with --strict, a verdict is unknown.
"""


def check(
    report: Annotated[Path, typer.Argument(help="A report or a run folder.", metavar="REPORT|RUN")],
    targets: TargetsOption = None,
    strict: StrictOption = False,
    details: Annotated[
        bool, typer.Option("--details", help="In the terminal: every table; of a sweep every case by itself.")
    ] = False,
    format: FormatOption = OutputFormat.terminal,
) -> None:
    """Judge a report or a run by its targets."""
    from profkit.profiling.summarize import is_sweep, summarize_report

    with show_reading(report):
        document = summarize_report(report, targets)
    if print_evaluation(report, document, format, details=details):
        pass
    elif not (is_sweep(document) and not details and print_sweep_digest(report, document, format)):
        print_document(document, format, details=details and not is_sweep(document), every_case=True)
    raise typer.Exit(verdict_exit(document, judged=True, strict=strict))
