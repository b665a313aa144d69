"""The verbs, gathered. Nothing heavy is imported here: `--help` is what people wait for most often."""

from __future__ import annotations

import typer

from profkit.cli import (
    check,
    doctor,
    evaluate,
    generate,
    profile,
    record,
    report,
    scrub,
    summarize,
    sweep,
)
from profkit.cli.regression import bisect, compare, history, history_change, nightly

app = typer.Typer(
    name="profkit",
    help="Profile one workload on whatever hardware it runs on, and say what is wrong with it.\n\n"
    "Start with:  profkit profile -- python your_script.py",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

profile.add_to(app)
record.add_to(app)
summarize.add_to(app)
check.add_to(app)
compare.add_to(app)
bisect.add_to(app)
report.add_to(app)
history.add_to(app)
history_change.add_to(history.history)
nightly.add_to(app)
doctor.add_to(app)
sweep.add_to(app)
evaluate.add_to(app)
generate.add_to(app)
scrub.add_to(app)


def _join_epilog_lines(app: typer.Typer) -> None:
    """Let the terminal break the lines of what stands below a help: in the source they are broken for another width."""
    for info in app.registered_commands:
        if info.epilog:
            paragraphs = [" ".join(part.split("\n")).strip() for part in info.epilog.split("\n\n")]
            info.epilog = "\n\n".join(paragraphs)
    for group in app.registered_groups:
        if group.typer_instance is not None:
            _join_epilog_lines(group.typer_instance)


_join_epilog_lines(app)


@app.callback(invoke_without_command=True)
def version_option(
    version: bool = typer.Option(False, "--version", help="Print the version and leave.", is_eager=True),
) -> None:
    """Carry the option that belongs to no verb."""
    if version:
        from profkit import __version__

        typer.echo(__version__)
        raise typer.Exit
