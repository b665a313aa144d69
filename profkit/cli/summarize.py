"""`profkit summarize`: any profiler's report, whoever made it, into summaries."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from profkit.cli.options import FormatOption, OutputFormat, TargetsOption, print_document, print_documents

EXAMPLES = """
Example:  profkit summarize callgrind.out.1234

Works on: runs, perf stat (CSV, JSON, text), perf script, perf.data, callgrind, cachegrind, cProfile.
"""


def add_to(app: typer.Typer) -> None:
    """Register the verb."""
    app.command("summarize", epilog=EXAMPLES)(summarize)


def summarize(
    reports: Annotated[list[Path], typer.Argument(help="Reports or run folders.", metavar="REPORT|RUN...")],
    targets: TargetsOption = None,
    format: FormatOption = OutputFormat.terminal,
) -> None:
    """Read reports and say what is in them."""
    from profkit.examine import examine

    documents = [examine(report, targets) for report in reports]
    if len(documents) > 1 and format is OutputFormat.json:
        print_documents(documents)
        return
    for document in documents:
        print_document(document, format, details=True)
