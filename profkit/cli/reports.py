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

Exit codes: 0 all that could be judged passed; 1 a target failed; 5 with --strict, a verdict is unknown.
""",
    "report": """
Example:  profkit report reports/20261120-054700-gated_mlp-cpu --format html --output gated_mlp.html

In GitHub Actions:  profkit report RUN --format markdown >> "$GITHUB_STEP_SUMMARY"

A report judges and does not gate: for an exit code by the verdicts, profkit check.
""",
    "scrub": """
Example:  profkit scrub RUN --output public

Only text is scrubbed: binary reports are left out, with the line that exports them as text. Look at the copy before
you give it away: names that you chose stay.
""",
    "summarize": """
Example:  profkit summarize callgrind.out.1234

Works on: runs; of GPUs .ncu-rep, ncu --csv, .nsys-rep, nsys SQLite and stats, traces of torch.profiler and
jax.profiler; of CPUs perf stat (CSV, text), perf script, perf.data, callgrind, cProfile, stacks.jsonl; of Macs what
xctrace export wrote (a table, or the folder of a recording's), and .trace where xctrace is.
""",
}


def check(
    report: Annotated[Path, typer.Argument(help="A report or a run folder.", metavar="REPORT|RUN")],
    targets: options.TargetsOption = None,
    strict: options.StrictOption = False,
    details: Annotated[bool, typer.Option("--details", help="In the terminal: every table.")] = False,
    format: options.FormatOption = options.OutputFormat.terminal,
) -> None:
    """Judge a report or a run by its targets."""
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
    report: Annotated[Path, typer.Argument(help="A run, or a report.", metavar="RUN|REPORT")],
    format: Annotated[
        ReportFormat,
        typer.Option(
            "--format",
            "-f",
            help=f"What to make of it: {', '.join(form.value for form in ReportFormat)}.",
            metavar="FORM",
            callback=_remember,
        ),
    ] = ReportFormat.terminal,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The file (else standard output).")
    ] = None,
    targets: options.TargetsOption = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="In junit what is not known is an error; else it is skipped.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
) -> None:
    """Export a run or a report as HTML, Markdown, JSON or JUnit."""
    from profkit.cli.progress import progress_for
    from profkit.profiling.export import ExportOptions, check_output, export, write_export

    asked = ExportOptions(report, format.value, targets, strict=strict, output=output)
    check_output(asked, force=force, terminal=sys.stdout.isatty())
    text = export(asked, progress_for(quiet=not sys.stderr.isatty()))
    if output is None:
        options.print_as_it_is(text)
    else:
        write_export(output, text)
        typer.echo(f"{output} is written", err=True)


def scrub(
    report: Annotated[Path, typer.Argument(help="A report or a run's folder.", metavar="REPORT|RUN")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Where the copy goes (else beside it).")
    ] = None,
    format: options.FormatOption = options.OutputFormat.terminal,
) -> None:
    """Copy a report in text, or a run, without host, user, command line and paths."""
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
    """Read reports and show what is in them."""
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
