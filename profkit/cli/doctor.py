"""`profkit doctor`: what this machine can measure, what is in the way, the line that fixes it."""

from __future__ import annotations

from typing import Annotated

import typer

from profkit.cli.options import FormatOption, OutputFormat, put, put_view
from profkit.cli.profile import BackendName

EXAMPLES = """
Example:  profkit doctor --backend cpu

Exit codes: 0 the backend can be profiled; 3 it cannot be profiled at all here.
"""


def add_to(app: typer.Typer) -> None:
    """Register the verb."""
    app.command("doctor", epilog=EXAMPLES)(doctor)


def doctor(
    backend: Annotated[
        BackendName, typer.Option(help="Only this backend (auto: all of them).")
    ] = BackendName.auto,
    format: FormatOption = OutputFormat.terminal,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress on standard error.")] = False,
) -> None:
    """Try every tool with a tiny measurement and say what it can do here."""
    from profkit.cli.progress import progress_for
    from profkit.profiling.doctor import blocked, diagnose
    from profkit.reporting import json
    from profkit.reporting.views.checks import view

    checks = diagnose("all" if backend is BackendName.auto else backend.value, progress_for(quiet=quiet))
    if format is OutputFormat.json:
        put(json.checks(checks))
    else:
        put_view(view(checks), format)
    if backend is not BackendName.auto and blocked(backend.value, checks) is not None:
        raise typer.Exit(3)
