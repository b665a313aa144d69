"""`profkit scrub`: a copy of a report or a run without host, user, environment and paths."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from profkit.cli.options import FormatOption, OutputFormat, print_result, print_view

EXAMPLES = """
Example:  profkit scrub RUN --output public

Only text is scrubbed: binary reports are left out, with the line that exports them as text. Look at the copy before
you give it away: names that you chose stay.
"""


def scrub(
    report: Annotated[Path, typer.Argument(help="A report or a run's folder.", metavar="REPORT|RUN")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Where the copy goes (else beside it).")
    ] = None,
    format: FormatOption = OutputFormat.terminal,
) -> None:
    """Copy a report in text, or a run, without host, user, command line and paths."""
    from profkit.profiling.scrub import scrub as scrubbed
    from profkit.reporting import json
    from profkit.reporting.views.plan import scrubbed_view

    done = scrubbed(report, output)
    if format is OutputFormat.json:
        texts = json.scrubbed(str(done.source), str(done.output), done.removed, done.left_out)
        print_result(texts)
    else:
        shown = scrubbed_view(str(done.output), done.removed, done.left_out)
        print_view(shown, format, details=False)
