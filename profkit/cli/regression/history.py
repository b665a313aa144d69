"""`profkit history`: runs over time. The verbs that add runs and read them; `history_change` has the others."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from profkit.cli.options import FormatOption, OutputFormat, print_result, print_view

if TYPE_CHECKING:
    from profkit.regression.history_actions import AddResult

history = typer.Typer(
    name="history",
    help="Runs over time, in one SQLite file: reports/history.sqlite, or what --history or PROFKIT_HISTORY names.",
    no_args_is_help=True,
    epilog="Example:  profkit history add reports/*/  then  profkit history trend gated_mlp",
    context_settings={"help_option_names": ["-h", "--help"]},
)

HistoryOption = Annotated[
    Path | None,
    typer.Option(
        "--history", help="The file (default: $PROFKIT_HISTORY, else reports/history.sqlite).", metavar="FILE"
    ),
]
WorkloadOption = Annotated[str | None, typer.Option("--workload", "-w", help="Only of this workload.")]
BackendOption = Annotated[str | None, typer.Option("--backend", help="Only of this backend.")]
MachineOption = Annotated[
    str | None, typer.Option("--machine", help="Only of this machine: its id, or the beginning of it.")
]
SinceOption = Annotated[
    str | None,
    typer.Option("--since", help="From when on: 2026-11-01, or a span: 30d, 12w, 1y.", metavar="WHEN"),
]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Say only what went wrong.")]
SeriesArgument = Annotated[
    list[str] | None,
    typer.Argument(
        help="WORKLOAD, WORKLOAD:METRIC or WORKLOAD:METRIC:SCOPE, with * and ? (default: the time of all).",
        metavar="[SERIES]...",
    ),
]
EntryArgument = Annotated[
    str, typer.Argument(help="A run: its id, the beginning of it, or `last`.", metavar="ENTRY")
]


@history.command(
    "add",
    epilog="Example:  profkit history add reports/20261120-054700-gated_mlp-cpu trace.nsys-rep\n\n"
    "Reads runs, evaluations and every report that `summarize` reads. A run that is there already changes nothing.",
)
def add(
    paths: Annotated[list[Path], typer.Argument(help="Runs, reports.", metavar="PATH...")],
    workload: Annotated[
        str | None, typer.Option("--workload", "-w", help="Store them under this workload's name.")
    ] = None,
    commit: Annotated[
        str | None,
        typer.Option("--commit", help="The git commit, where a file does not say it.", metavar="SHA"),
    ] = None,
    night: Annotated[str | None, typer.Option("--night", help="The night that they belong to.")] = None,
    history: HistoryOption = None,
    format: FormatOption = OutputFormat.terminal,
    quiet: QuietOption = False,
) -> None:
    """Store runs and reports."""
    from profkit.cli import print_fault
    from profkit.regression.history import open_history
    from profkit.regression.history_actions import AddOptions, add_paths

    def report(result: AddResult) -> None:
        if result.fault is not None:
            print_fault(result.fault)
        elif format is not OutputFormat.json and not quiet:
            print_result(_line(result))

    with open_history(history) as store:
        results = add_paths(store, paths, AddOptions(workload, commit, night), report)
        where = str(store.path)
    if format is OutputFormat.json:
        print_result(_added_document(results, where))
    faults = [result.fault for result in results if result.fault is not None]
    if faults:
        raise typer.Exit(faults[0].exit_code)


def _added_document(results: tuple[AddResult, ...], where: str) -> str:
    from profkit.reporting import json

    rows = [
        {
            "path": str(result.path),
            "entry": result.entry.id,
            "added": result.added,
            "workload": result.entry.workload,
            "source": result.entry.source,
            "started": result.entry.started,
            "values": len(result.entry.values),
            "left_out": None,  # nothing is; the field is of the published document
        }
        for result in results
        if result.entry is not None
    ]
    errors = [
        {"path": str(result.path), "message": result.fault.message, "fix": result.fault.fix}
        for result in results
        if result.fault is not None
    ]
    return json.added(rows, errors, where)


def _line(result: AddResult) -> str:
    from profkit.core.formatting import plural
    from profkit.reporting.plain_text import without_control_characters

    assert result.entry is not None
    entry = result.entry
    word = "added" if result.added else "known"
    run = f"{entry.id[:8]}  {entry.workload} ({entry.source}) of {format_minute(entry.started)}"
    if not result.added:
        return without_control_characters(f"{word}  {run}: was there already, nothing changed")
    return without_control_characters(f"{word}  {run}: {plural(len(entry.values), 'value')}")


@history.command("list", epilog="Example:  profkit history list --workload gated_mlp --since 30d")
def list_(
    workload: WorkloadOption = None,
    backend: BackendOption = None,
    machine: MachineOption = None,
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
    from profkit.regression.history import HistoryFilter, open_history
    from profkit.reporting import json
    from profkit.reporting.views.history import history_view

    chosen = HistoryFilter(
        workload=workload,
        backend=backend,
        machine=machine,
        since=since_time(since),
        outcome=outcome,
        night=night,
        limit=limit,
    )
    with open_history(history, read_only=True) as store:
        total = len(store.entries())
        found = store.entries(chosen)
        accepted, where = store.accepted(workload), str(store.path)
    if format is OutputFormat.json:
        print_result(json.history(found, accepted, where, total))
    else:
        print_view(history_view(found, accepted, where, total), format)


@history.command("show", epilog="Example:  profkit history show last")
def show(
    entry: EntryArgument = "last",
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
        print_result(json.entry(found))
    else:
        print_view(entry_view(found), format)


@history.command(
    "trend",
    epilog="Example:  profkit history trend 'gated_mlp:time.*' --since 90d\n\n"
    "Change points of any series, one value a line:"
    "  profkit history trend --from series.csv --format json",
)
def trend(
    series: SeriesArgument = None,
    source: Annotated[
        Path | None,
        typer.Option("--from", help="A text file with a series, instead of the history.", metavar="FILE"),
    ] = None,
    backend: BackendOption = None,
    machine: MachineOption = None,
    since: SinceOption = None,
    limit: Annotated[
        int | None, typer.Option("--limit", "-n", min=1, help="Only the last so many values of each.")
    ] = None,
    history: HistoryOption = None,
    format: FormatOption = OutputFormat.terminal,
) -> None:
    """Plot a metric over time, with its segments and the places where it changed."""
    from profkit.core.errors import UsageError
    from profkit.regression.history import HistoryFilter, open_history
    from profkit.regression.trends import trend_of_file, trends_of
    from profkit.reporting import json
    from profkit.reporting.views.history import trends_view

    if source is not None:
        if series:
            raise UsageError(
                "a series comes from the history or from a file, not from both", "leave one of them out"
            )
        found = trend_of_file(source)
        if format is OutputFormat.json:
            print_result(json.trend_of_file(found, str(source)))
        else:
            print_view(trends_view([found]), format)
        return
    chosen = HistoryFilter(backend=backend, machine=machine, since=since_time(since), limit=limit)
    with open_history(history, read_only=True) as store:
        trends = trends_of(store, tuple(series or ()), chosen)
        where = str(store.path)
    if format is OutputFormat.json:
        print_result(json.trends(trends, where))
    else:
        print_view(trends_view(trends), format)


def format_minute(started: str) -> str:
    """`2026-11-20 05:47` of an ISO 8601 time."""
    return started[:16].replace("T", " ")


def since_time(text: str | None) -> str | None:
    """What `--since` means, as ISO 8601 in UTC. Raises UsageError."""
    if text is None:
        return None
    from datetime import datetime, timezone

    from profkit.regression.times import iso_time, parse_since

    return iso_time(parse_since(text, datetime.now(timezone.utc)))
