"""`profkit doctor`: what this machine can measure, what is in the way, the line that fixes it."""

from __future__ import annotations

import typer

from profkit.cli import options

EXAMPLES = """
Example:  profkit doctor --backend cpu

Another machine:  profkit doctor --on ssh:gpu1

Exit codes: 0 the backend can be profiled; 3 it cannot be profiled at all here.
"""


def doctor(
    backend: options.BackendOption = "auto",
    where: options.Elsewhere = options.HERE,
    format: options.FormatOption = options.OutputFormat.terminal,
    quiet: options.QuietOption = False,
) -> None:
    """Try every tool with a tiny measurement and say what it can do here."""
    from profkit.cli.progress import progress_for
    from profkit.profiling.doctor import blocking_reason, diagnose
    from profkit.reporting import json
    from profkit.reporting.views.plan import checks_view as view

    elsewhere = where.places()
    if elsewhere is None:
        checks = diagnose(backend, progress_for(quiet=quiet))
    else:
        from profkit.profiling.elsewhere import diagnose_elsewhere

        checks = diagnose_elsewhere(backend, *elsewhere, progress_for(quiet=quiet))
    options.print_as(format, lambda: json.checks(checks), lambda: view(checks))
    if backend != "auto" and blocking_reason(backend, checks) is not None:
        raise typer.Exit(3)
