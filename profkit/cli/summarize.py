"""`profkit summarize`: any profiler's report, whoever made it, into summaries."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from profkit.cli import options

EXAMPLES = """
Example:  profkit summarize callgrind.out.1234

Works on: runs; of GPUs .ncu-rep, ncu --csv, .nsys-rep, nsys SQLite and stats, traces of torch.profiler; of CPUs
perf stat (CSV, text), perf script, perf.data, callgrind, cProfile, stacks.jsonl; of Macs what
xctrace export wrote (a table, or the folder of a recording's), and .trace where xctrace is.
"""


def summarize(
    reports: Annotated[list[Path], typer.Argument(help="Reports or run folders.", metavar="REPORT|RUN...")],
    targets: options.TargetsOption = None,
    format: options.FormatOption = options.OutputFormat.terminal,
) -> None:
    """Read reports and say what is in them."""
    from profkit.cli import print_fault
    from profkit.cli.progress import show_reading
    from profkit.core.errors import ProfkitError
    from profkit.core.types import RunDocument
    from profkit.profiling.export import render_kernels, runs_text
    from profkit.profiling.summarize import summarize_report

    # Of many kernels: as a run a page for each
    if len(reports) == 1 and format is not options.OutputFormat.json:
        text = render_kernels(reports[0], format.value)
        if text is not None:
            options.print_result(text)
            return
    documents: list[RunDocument] = []
    faults: list[ProfkitError] = []
    for report in reports:
        try:
            show_reading(report)
            documents.append(summarize_report(report, targets))
        except ProfkitError as fault:  # one that cannot be read does not keep the others from being told
            if len(reports) == 1:
                raise
            faults.append(fault)
    if len(reports) > 1 and format is options.OutputFormat.json:
        options.print_result(runs_text(documents, faults))
    else:
        for document in documents:
            options.print_document(document, format, details=True)
    for unread in faults:
        print_fault(unread)
    if faults:
        raise typer.Exit(faults[0].exit_code)
