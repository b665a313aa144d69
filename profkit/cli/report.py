"""`profkit report`: what is known of a run, in the form that somebody else reads: people or CI."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from profkit.cli.options import OutputFormat, TargetsOption, print_pieces, remember_format

EXAMPLES = """
Example:  profkit report reports/20261120-054700-gated_mlp-cpu --format html --output gated_mlp.html

In GitHub Actions:  profkit report RUN --format markdown >> "$GITHUB_STEP_SUMMARY"

A report judges and does not gate: for an exit code by the verdicts, profkit check.
"""


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
        remember_format(OutputFormat.json)
    return form


def report(
    reports: Annotated[list[Path], typer.Argument(help="Runs, or reports.", metavar="RUN|REPORT...")],
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
        Path | None, typer.Option("--output", "-o", help="The file to write (else standard output).")
    ] = None,
    targets: TargetsOption = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="In junit what is not known is an error; else it is skipped.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
) -> None:
    """Write what is known of runs or reports as HTML, Markdown, JSON or JUnit."""
    import sys

    from profkit.cli import print_fault
    from profkit.cli.progress import progress_for
    from profkit.profiling.export import ExportOptions, check_output, export, write_export

    options = ExportOptions(tuple(reports), format.value, targets, strict=strict, output=output)
    check_output(options, force=force, terminal=sys.stdout.isatty())
    done = export(options, progress_for(quiet=not sys.stderr.isatty()))
    if output is None:
        print_pieces(done.pieces)
    else:
        write_export(output, done.pieces)
        typer.echo(f"{output} is written", err=True)
    for fault in done.faults:
        print_fault(fault)
    if done.faults:
        raise typer.Exit(done.faults[0].exit_code)
