"""`profkit doctor`: what this machine can measure, what is in the way, the line that fixes it."""

from __future__ import annotations

from typing import Annotated

import typer

from profkit.cli.options import (
    BackendOption,
    FormatOption,
    OnOption,
    OnPythonOption,
    OutputFormat,
    places_of,
    print_result,
    print_view,
)

EXAMPLES = """
Example:  profkit doctor --backend cpu

Another machine:  profkit doctor --on ssh:gpu1

Exit codes: 0 the backend can be profiled; 3 it cannot be profiled at all here.
"""


def add_to(app: typer.Typer) -> None:
    """Register the verb."""
    app.command("doctor", epilog=EXAMPLES)(doctor)


def doctor(
    backend: BackendOption = "auto",
    on: OnOption = None,
    on_python: OnPythonOption = None,
    format: FormatOption = OutputFormat.terminal,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress on standard error.")] = False,
) -> None:
    """Try every tool with a tiny measurement and say what it can do here."""
    from profkit.cli.progress import progress_for
    from profkit.profiling.doctor import blocking_reason, diagnose
    from profkit.reporting import json
    from profkit.reporting.views.checks import view

    elsewhere = places_of(on, on_python)
    if elsewhere is None:
        checks = diagnose(backend, progress_for(quiet=quiet))
    else:
        from profkit.profiling.elsewhere.verbs import diagnose_elsewhere

        checks = diagnose_elsewhere(backend, *elsewhere, progress_for(quiet=quiet))
    if format is OutputFormat.json:
        print_result(json.checks(checks))
    else:
        print_view(view(checks), format)
    if backend != "auto" and blocking_reason(backend, checks) is not None:
        raise typer.Exit(3)
