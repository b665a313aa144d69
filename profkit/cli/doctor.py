"""`profkit doctor`: what this machine can measure, what is in the way, the line that fixes it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, NoReturn

import typer

from profkit.cli import options
from profkit.cli.options import option

EXAMPLES = """
Example:  profkit doctor --backend cpu

To report a problem: run everything that works here on a small program of profkit's own (a few minutes), and pack the
results without names, paths and secrets:  profkit doctor --bundle bundle.tar.gz

Another machine:  profkit doctor --on ssh:gpu1

Exit codes: 0 the backend can be profiled; 3 it cannot be profiled here.
"""


def doctor(
    backend: options.BackendOption = "auto",
    bundle: Annotated[
        Path | None,
        option(
            None, "Run everything on a small program and pack the results for a bug report.", "FILE.tar.gz"
        ),
    ] = None,
    where: options.Elsewhere = options.HERE,
    format: options.FormatOption = options.OutputFormat.terminal,
    quiet: options.QuietOption = False,
) -> None:
    """Test every tool with a tiny measurement; show what works on this machine and how to fix the rest."""
    from profkit.cli.progress import progress_for
    from profkit.core.errors import UsageError
    from profkit.profiling.doctor import blocking_reason, diagnose
    from profkit.reporting import json
    from profkit.reporting.views.plan import checks_view as view

    elsewhere = where.places()
    if bundle is not None:
        if elsewhere is not None:
            raise UsageError(
                "--bundle works on this machine only", "ssh HOST profkit doctor --bundle FILE.tar.gz"
            )
        _bundle(bundle, backend, format, quiet=quiet)
    if elsewhere is None:
        checks = diagnose(backend, progress_for(quiet=quiet))
    else:
        from profkit.profiling.elsewhere import diagnose_elsewhere

        checks = diagnose_elsewhere(backend, *elsewhere, progress_for(quiet=quiet))
    options.print_as(format, lambda: json.checks(checks), lambda: view(checks))
    if backend != "auto" and blocking_reason(backend, checks) is not None:
        raise typer.Exit(3)


def _bundle(target: Path, backend: str, format: options.OutputFormat, *, quiet: bool) -> NoReturn:
    from profkit.cli.progress import progress_for
    from profkit.core.errors import Interrupted
    from profkit.core.files.safe_folder import TemporaryFolder
    from profkit.core.signals import defer_interrupts, raise_on_signals
    from profkit.fronts.bundle import check_target, collect, pack
    from profkit.reporting.view import Commands, Section, View, table

    check_target(target)
    with TemporaryFolder("bundle") as name:
        with raise_on_signals():
            bundle = collect(backend, Path(name), progress_for(quiet=quiet))
        with defer_interrupts():
            steps = [(step.name, step.ending, f"{step.seconds:.0f} s") for step in bundle.steps]
            sizes = [(file, f"{size:,}") for file, size in bundle.files]
            if format is options.OutputFormat.json:
                body = {"bundle": str(target), "steps": steps, "files": dict(bundle.files)}
                options.print_json({"schema": "profkit.bundle/1", **body})
            else:
                gone = (
                    ", ".join(f"{removal.kind}: {removal.count}" for removal in bundle.removed) or "nothing"
                )
                tables = table(("step", "result", "time"), steps, words=2), table(("file", "bytes"), sizes)
                look = Section("Check its contents, and send it", (Commands((f"tar -tzf {target}",)),))
                title = f"{target}: {len(sizes)} files; removed: {gone}."
                options.print_view(View(title, (*tables, look)), format)
            pack(bundle, target)
    raise typer.Exit(Interrupted.exit_code if bundle.interrupted else 0)
