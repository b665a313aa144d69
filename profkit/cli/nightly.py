"""`profkit nightly`: a set of workloads profiled, compared with their past, and reported as one night."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from profkit.cli import options
from profkit.cli.options import option

EXAMPLES = """
Example:  profkit nightly nightly.yaml

Show what a file would run:  profkit nightly --plan nightly.yaml

A file to start from:  profkit nightly --example > nightly.yaml

From cron (a second call on the same day continues the night):  profkit nightly nightly.yaml --night "$(date +%F)"

Exit codes: 0 all workloads ran and none regressed; 1 something regressed, or a target failed; 2 the file cannot be
read; 3 this machine could not run a workload; 4 a workload failed; 5 something was not measured or is not valid, with
--strict also if something could not be decided; 130 interrupted.
"""


def nightly(
    config: Annotated[
        Path | None,
        typer.Argument(help="The YAML file with the workloads.", metavar="CONFIG.yaml", show_default=False),
    ] = None,
    night: Annotated[
        str | None,
        option(None, "The name of this night (default: the time); an unfinished night is continued.", "ID"),
    ] = None,
    strict: Annotated[
        bool, option(None, "Exit with 5 if something could not be decided.", None, "--strict")
    ] = False,
    example: Annotated[bool, option(None, "Print a commented example file.", None, "--example")] = False,
    plan: Annotated[
        bool, option(None, "Print what the file would run, and run nothing.", None, "--plan")
    ] = False,
    format: options.FormatOption = options.OutputFormat.terminal,
    quiet: Annotated[
        bool, option(None, "Show no progress on standard error.", None, "--quiet", "-q")
    ] = False,
) -> None:
    """Profile a set of workloads, compare each with its history, and report what changed."""
    from profkit.core.errors import UsageError
    from profkit.regression.nightly.config import EXAMPLE, read_config

    if example:
        options.print_result(EXAMPLE.read_text(encoding="utf-8"))
        return
    if config is None:
        raise UsageError("no configuration was given", "profkit nightly --example > nightly.yaml")
    if plan:
        from profkit.regression.nightly.plan import plan_view

        if format is options.OutputFormat.json:
            raise UsageError("the plan of a night cannot be printed as JSON", "leave --format json out")
        options.print_view(plan_view(read_config(config)), format, details=True)
        return
    from profkit.cli.progress import progress_for
    from profkit.core.run_folder import short_path
    from profkit.core.signals import defer_interrupts
    from profkit.regression.nightly.workflow import night_to_text, run_night
    from profkit.reporting.forges import annotations_in_step
    from profkit.reporting.views.night import view

    done, folder = run_night(read_config(config), progress_for(quiet=quiet), night, strict=strict)
    with defer_interrupts():  # a second Ctrl-C must not cost what the first one left
        shown = view(done, Path(short_path(folder)))
        options.print_as(format, lambda: night_to_text(done), lambda: shown, details=False)
        sys.stderr.write(annotations_in_step(view(done)))
    raise typer.Exit(done.exit_code)
