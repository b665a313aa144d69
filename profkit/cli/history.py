"""`profkit history`: runs over time. Each verb reads its arguments, makes one call and prints."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from profkit.cli.history_options import CommitOption, HistoryOption, QuietOption, SinceOption, WorkloadOption
from profkit.cli.options import FormatOption, OutputFormat, put, put_view

if TYPE_CHECKING:
    from profkit.regression.store import Remembered

EXAMPLES = """
Example:  profkit history add reports/*/  then  profkit history trend gated_mlp
"""

history = typer.Typer(
    name="history",
    help="Runs over time, in one SQLite file: reports/history.sqlite, or what --history or PROFKIT_HISTORY names.",
    no_args_is_help=True,
    epilog=EXAMPLES,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def add_to(app: typer.Typer) -> None:
    """Register the verb and its own verbs."""
    from profkit.cli import history_change, history_replay, history_trend

    history_trend.add_to(history)
    history_replay.add_to(history)
    history_change.add_to(history)
    app.add_typer(history, name="history")


@history.command(
    "add",
    epilog="Example:  profkit history add reports/20261120-054700-gated_mlp-cpu benchmark.json\n\n"
    "Reads runs, every report that `summarize` reads, and results of pytest-benchmark, asv, nvbench, Google Benchmark,"
    " hyperfine and pyperf. A run that is there already changes nothing.",
)
@history.command("import", hidden=True)
def add(
    paths: Annotated[list[Path], typer.Argument(help="Runs, reports, results.", metavar="PATH...")],
    workload: Annotated[
        str | None, typer.Option("--workload", "-w", help="Store them under this workload's name.")
    ] = None,
    commit: CommitOption = None,
    night: Annotated[str | None, typer.Option("--night", help="The night that they belong to.")] = None,
    history: HistoryOption = None,
    format: FormatOption = OutputFormat.terminal,
    quiet: QuietOption = False,
) -> None:
    """Store runs, reports, and results of other benchmark tools."""
    from profkit.cli import print_fault
    from profkit.regression.history import open_history
    from profkit.regression.store import remember

    def say(done: Remembered) -> None:
        if done.fault is not None:
            print_fault(done.fault)
        elif format is not OutputFormat.json and not quiet:
            put(_line(done))

    with open_history(history) as store:
        done = remember(store, paths, workload=workload, commit=commit, night=night, told=say)
        where = str(store.path)
    if format is OutputFormat.json:
        from profkit.reporting import json

        rows = [
            {
                "path": str(one.path),
                "entry": one.entry.id,
                "added": one.added,
                "workload": one.entry.workload,
                "source": one.entry.source,
                "started": one.entry.started,
                "values": len(one.entry.values),
                "left_out": one.entry.facts.get("left out"),
            }
            for one in done
            if one.entry is not None
        ]
        errors = [
            {"path": str(one.path), "message": one.fault.message, "fix": one.fault.fix}
            for one in done
            if one.fault is not None
        ]
        put(json.added(rows, errors, where))
    faults = [one.fault for one in done if one.fault is not None]
    if faults:
        raise typer.Exit(faults[0].exit_code)


def _line(done: Remembered) -> str:
    from profkit.core.formatting import plural
    from profkit.reporting.plain_text import harmless

    assert done.entry is not None
    entry = done.entry
    word = "added" if done.added else "known"
    said = (
        f"{word}  {entry.id[:8]}  {entry.workload} ({entry.source}) of {entry.started[:16].replace('T', ' ')}"
    )
    left = entry.facts.get("left out") if done.added else None
    more = f": {plural(len(entry.values), 'value')}" if done.added else ": was there already, nothing changed"
    return harmless(said + more + (f"; left out: {left}" if left else ""))


@history.command("list", epilog="Example:  profkit history list --workload gated_mlp --since 30d")
def list_(
    workload: WorkloadOption = None,
    backend: Annotated[str | None, typer.Option("--backend", help="Only of this backend.")] = None,
    machine: Annotated[str | None, typer.Option("--machine", help="Only of this machine (its id).")] = None,
    since: SinceOption = None,
    outcome: Annotated[
        str | None,
        typer.Option("--outcome", help="Only runs of which this was decided: pass, regressed, ..."),
    ] = None,
    night: Annotated[str | None, typer.Option("--night", help="Only of this night.")] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="At most so many, the last ones.")] = 50,
    history: HistoryOption = None,
    format: FormatOption = OutputFormat.terminal,
) -> None:
    """The runs that are stored, the newest first."""
    from profkit.cli.history_options import begin
    from profkit.regression.history import open_history
    from profkit.reporting import json
    from profkit.reporting.views.history import view

    with open_history(history, read_only=True) as store:
        total = len(store.entries())
        found = store.entries(
            workload=workload, backend=backend, since=begin(since), outcome=outcome, night=night
        )
        found = tuple(one for one in found if machine is None or one.machine.startswith(machine))[-limit:]
        accepted, where = store.accepted(workload), str(store.path)
    if format is OutputFormat.json:
        put(json.history(found, accepted, where, total))
    else:
        put_view(view(found, accepted, where, total), format)


@history.command("show", epilog="Example:  profkit history show last")
def show(
    entry: Annotated[
        str, typer.Argument(help="A run: its id, the beginning of it, or `last`.", metavar="ENTRY")
    ] = "last",
    history: HistoryOption = None,
    format: FormatOption = OutputFormat.terminal,
) -> None:
    """One run with all its values."""
    from profkit.regression.history import open_history
    from profkit.reporting import json
    from profkit.reporting.views.history import entry_view

    with open_history(history, read_only=True) as store:
        found = store.entry(entry)
    if format is OutputFormat.json:
        put(json.entry(found))
    else:
        put_view(entry_view(found), format)
