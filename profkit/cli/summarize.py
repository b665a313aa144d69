"""`profkit summarize`: any profiler's report, whoever made it, into summaries."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from profkit.cli.options import (
    FormatOption,
    OutputFormat,
    TargetsOption,
    print_document,
    print_documents,
    print_result,
    show_reading,
)

EXAMPLES = """
Example:  profkit summarize callgrind.out.1234

Works on: runs; of GPUs .ncu-rep, ncu --csv, .nsys-rep, nsys SQLite and stats, traces of torch.profiler; of CPUs
perf stat (CSV, text), perf script, perf.data, callgrind, cProfile, stacks.jsonl; of Macs what
xctrace export wrote (a table, or the folder of a recording's), and .trace where xctrace is.
"""


def summarize(
    reports: Annotated[list[Path], typer.Argument(help="Reports or run folders.", metavar="REPORT|RUN...")],
    targets: TargetsOption = None,
    format: FormatOption = OutputFormat.terminal,
) -> None:
    """Read reports and say what is in them."""
    from profkit.cli import print_fault
    from profkit.core.errors import ProfkitError
    from profkit.core.types import RunDocument
    from profkit.profiling.summarize import summarize_report
    from profkit.reporting.views.run_about import what_it_tells

    if len(reports) == 1 and _print_kernels(reports[0], format):
        return
    documents: list[RunDocument] = []
    faults: list[ProfkitError] = []
    for report in reports:
        try:
            with show_reading(report):
                documents.append(summarize_report(report, targets))
        except ProfkitError as fault:  # one that cannot be read does not keep the others from being told
            if len(reports) == 1:
                raise
            faults.append(fault)
    if len(reports) > 1 and format is OutputFormat.json:
        print_documents(documents, faults)
    else:
        for document in documents:
            excerpt = document if format is OutputFormat.json else what_it_tells(document)
            print_document(excerpt, format, details=True)
    for unread in faults:
        print_fault(unread)
    if faults:
        raise typer.Exit(faults[0].exit_code)


def _print_kernels(report: Path, format: OutputFormat) -> bool:
    """Whether it is a sweep or an evaluation, and told: its cases are thousands, and as a run a page for each."""
    if format is OutputFormat.json:
        return False
    from profkit.profiling.export import render_kernels

    text = render_kernels(report, format.value)
    if text is not None:
        print_result(text)
    return text is not None
