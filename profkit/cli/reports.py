"""`profkit summarize`, `check`, `report` and `scrub`: what is done with runs and reports that are there."""

from __future__ import annotations

import sys
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from profkit.cli import options

EXAMPLES = {
    "check": """
Example:  profkit check reports/20261120-054700-gated_mlp-cpu --targets targets.yaml --strict

Exit codes: 0 no target failed; 1 a target failed; 5 with --strict, a target could not be checked.
""",
    "report": """
Example:  profkit report reports/20261120-054700-gated_mlp-cpu --format html --output gated_mlp.html

In GitHub Actions:  profkit report RUN --format markdown >> "$GITHUB_STEP_SUMMARY"

The exit code does not depend on the targets; use profkit check for that.
""",
    "scrub": """
Example:  profkit scrub RUN --output public

Only text is scrubbed. Binary reports are left out, and the command that exports them as text is printed. Look at the
copy before you share it: names that you chose yourself stay in it.
""",
    "summarize": """
Example:  profkit summarize callgrind.out.1234

It reads profkit runs; for GPUs .ncu-rep, ncu --csv, .nsys-rep, nsys SQLite and stats, traces of torch.profiler and
jax.profiler; for CPUs perf stat (CSV, text), perf script, perf.data, callgrind, cProfile, stacks.jsonl; for Macs the
output of xctrace export (a table, or the folder of a recording), and .trace where xctrace is installed.
""",
}


def check(
    report: Annotated[Path, typer.Argument(help="A report or a run folder.", metavar="REPORT|RUN")],
    targets: options.TargetsOption = None,
    strict: options.StrictOption = False,
    details: Annotated[bool, typer.Option("--details", help="Show every table in the terminal.")] = False,
    format: options.FormatOption = options.OutputFormat.terminal,
) -> None:
    """Check a run or a report against its targets; exit 1 if one fails."""
    from profkit.profiling.summarize import summarize_report

    document = summarize_report(report, targets)
    options.print_document(document, format, source=report, details=details)
    raise typer.Exit(options.verdict_exit(document, judged=True, strict=strict))


class ReportFormat(str, Enum):
    """The forms of a report."""

    terminal = "terminal"
    html = "html"
    markdown = "markdown"
    json = "json"
    junit = "junit"

    def __str__(self) -> str:
        return self.value


def _remember(form: ReportFormat) -> ReportFormat:
    if form is ReportFormat.json:
        options.remember_format(options.OutputFormat.json)
    return form


def report(
    report: Annotated[Path, typer.Argument(help="A run folder or a report.", metavar="RUN|REPORT")],
    format: Annotated[
        ReportFormat,
        typer.Option(
            "--format",
            "-f",
            help=f"The output format: {', '.join(form.value for form in ReportFormat)}.",
            metavar="FORM",
            callback=_remember,
        ),
    ] = ReportFormat.terminal,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The file to write (default: standard output).")
    ] = None,
    targets: options.TargetsOption = None,
    strict: Annotated[
        bool,
        typer.Option(
            "--strict", help="junit: count targets that could not be checked as errors, not as skipped."
        ),
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
) -> None:
    """Export a run or a report as HTML, Markdown, JSON or JUnit."""
    from profkit.cli.progress import progress_for
    from profkit.profiling.export import ExportOptions, check_output, export, write_export

    request = ExportOptions(report, format.value, targets, strict=strict, output=output)
    check_output(request, force=force, terminal=sys.stdout.isatty())
    text = export(request, progress_for(quiet=not sys.stderr.isatty()))
    if output is None:
        options.print_as_it_is(text)
    else:
        write_export(output, text)
        typer.echo(f"{output} is written", err=True)


def scrub(
    report: Annotated[Path, typer.Argument(help="A report or a run folder.", metavar="REPORT|RUN")],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Where to write the copy (default: beside the original)."),
    ] = None,
    format: options.FormatOption = options.OutputFormat.terminal,
) -> None:
    """Copy a run or a text report without host names, user names, command lines and paths."""
    from profkit.profiling.scrub import scrub as scrubbed
    from profkit.reporting import json
    from profkit.reporting.views.plan import scrubbed_view

    done = scrubbed(report, output)
    if format is options.OutputFormat.json:
        texts = json.scrubbed(str(done.source), str(done.output), done.removed, done.left_out)
        options.print_result(texts)
    else:
        shown = scrubbed_view(str(done.output), done.removed, done.left_out)
        options.print_view(shown, format, details=False)


def summarize(
    reports: Annotated[list[Path], typer.Argument(help="Reports or run folders.", metavar="REPORT|RUN...")],
    targets: options.TargetsOption = None,
    tree: options.TreeOption = False,
    format: options.FormatOption = options.OutputFormat.terminal,
) -> None:
    """Show what is in a run or in the report of any supported profiler."""
    if tree:
        for run in reports:
            options.print_tree(run, format)
        return
    from profkit.cli import print_fault
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
            documents.append(summarize_report(report, targets))
        except ProfkitError as fault:  # an unreadable report does not keep the others from being shown
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
