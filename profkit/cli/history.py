"""`profkit history`: runs over time. Each verb reads its arguments, makes one call and prints."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from profkit.cli.options import FormatOption, OutputFormat, put, put_lines

if TYPE_CHECKING:
    from profkit.regression.store import AddResult

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


def add_to(app: typer.Typer) -> None:
    """Register the verb and its own verbs."""
    app.add_typer(history, name="history")


# ---------------------------------------------------------------- add and read


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
    commit: Annotated[
        str | None,
        typer.Option("--commit", help="The git commit, where a file does not say it.", metavar="SHA"),
    ] = None,
    night: Annotated[str | None, typer.Option("--night", help="The night that they belong to.")] = None,
    history: HistoryOption = None,
    format: FormatOption = OutputFormat.terminal,
    quiet: QuietOption = False,
) -> None:
    """Store runs, reports, and results of other benchmark tools."""
    from profkit.cli import print_fault
    from profkit.regression.history import open_history
    from profkit.regression.store import AddOptions, add_paths

    def report(result: AddResult) -> None:
        if result.fault is not None:
            print_fault(result.fault)
        elif format is not OutputFormat.json and not quiet:
            put(_line(result))

    with open_history(history) as store:
        results = add_paths(store, paths, AddOptions(workload, commit, night), report)
        where = str(store.path)
    if format is OutputFormat.json:
        put(_added_document(results, where))
    faults = [result.fault for result in results if result.fault is not None]
    if faults:
        raise typer.Exit(faults[0].exit_code)


def _added_document(results: tuple[AddResult, ...], where: str) -> str:
    from profkit.reporting.history_json import render_added

    rows = [
        {
            "path": str(result.path),
            "entry": result.entry.id,
            "added": result.added,
            "workload": result.entry.workload,
            "source": result.entry.source,
            "started": result.entry.started,
            "values": len(result.entry.values),
            "left_out": result.entry.facts.get("left out"),
        }
        for result in results
        if result.entry is not None
    ]
    errors = [
        {"path": str(result.path), "message": result.fault.message, "fix": result.fault.fix}
        for result in results
        if result.fault is not None
    ]
    return render_added(rows, errors, where)


def _line(result: AddResult) -> str:
    from profkit.core.formatting import plural
    from profkit.reporting.plain_text import harmless

    assert result.entry is not None
    entry = result.entry
    word = "added" if result.added else "known"
    run = f"{entry.id[:8]}  {entry.workload} ({entry.source}) of {_minute(entry.started)}"
    if not result.added:
        return harmless(f"{word}  {run}: was there already, nothing changed")
    left_out = entry.facts.get("left out")
    return harmless(
        f"{word}  {run}: {plural(len(entry.values), 'value')}"
        + (f"; left out: {left_out}" if left_out else "")
    )


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
    from profkit.reporting import history as terminal
    from profkit.reporting import history_json

    chosen = HistoryFilter(
        workload=workload,
        backend=backend,
        machine=machine,
        since=_since(since),
        outcome=outcome,
        night=night,
        limit=limit,
    )
    with open_history(history, read_only=True) as store:
        total = len(store.entries())
        found = store.entries(chosen)
        accepted, where = store.accepted(workload), str(store.path)
    render = history_json.render_list if format is OutputFormat.json else terminal.render_list
    put_lines(render(found, accepted, where, total))


@history.command("show", epilog="Example:  profkit history show last")
def show(
    entry: EntryArgument = "last",
    history: HistoryOption = None,
    format: FormatOption = OutputFormat.terminal,
) -> None:
    """One run with all its values."""
    from profkit.regression.history import open_history
    from profkit.reporting import history as terminal
    from profkit.reporting import history_json

    with open_history(history, read_only=True) as store:
        found = store.entry(entry)
    put_lines(history_json.render_show(found) if format is OutputFormat.json else terminal.render_show(found))


@history.command(
    "trend",
    epilog="Example:  profkit history trend 'gated_mlp:time.*' --since 90d\n\n"
    "Change points of any series, one value a line or a CSV file:"
    "  profkit history trend --from series.csv --format json",
)
def trend(
    series: SeriesArgument = None,
    source: Annotated[
        Path | None,
        typer.Option("--from", help="A text file with a series, instead of the history.", metavar="FILE"),
    ] = None,
    column: Annotated[str | None, typer.Option("--column", help="Of FILE: the column of the values.")] = None,
    by: Annotated[
        str | None, typer.Option("--by", help="Of FILE: the column of the builds; `none`: each row is one.")
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
    from profkit.reporting import trend as terminal
    from profkit.reporting import trend_json

    if source is not None:
        if series:
            raise UsageError(
                "a series comes from the history or from a file, not from both", "leave one of them out"
            )
        found, file = trend_of_file(source, column, by)
        put_lines(
            trend_json.render_file(found, str(source), file.column, file.by, file.rows)
            if format is OutputFormat.json
            else terminal.render([found])
        )
        return
    if column is not None or by is not None:
        raise UsageError("--column and --by speak of a file", "--from FILE")
    chosen = HistoryFilter(backend=backend, machine=machine, since=_since(since), limit=limit)
    with open_history(history, read_only=True) as store:
        trends = trends_of(store, tuple(series or ()), chosen)
        where = str(store.path)
    put_lines(trend_json.render(trends, where) if format is OutputFormat.json else terminal.render(trends))


@history.command(
    "replay",
    epilog="Example:  profkit history replay gated_mlp:time.median\n\n"
    "Would two nights in a row have been enough?"
    "  profkit history replay gated_mlp --set nights=2 --set relative=3%",
)
def replay(
    series: SeriesArgument = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", help="A rule: nights=2, relative=3%, sigmas=5, standing=note.", metavar="KEY=VALUE"
        ),
    ] = None,
    backend: BackendOption = None,
    since: SinceOption = None,
    history: HistoryOption = None,
    format: FormatOption = OutputFormat.terminal,
) -> None:
    """Decide the past again, night by night: what would have alarmed, and when."""
    from profkit.regression.history import HistoryFilter, open_history
    from profkit.regression.trends import replay_series, trends_of
    from profkit.reporting.replay import render, render_json

    with open_history(history, read_only=True) as store:
        trends = trends_of(store, tuple(series or ()), HistoryFilter(backend=backend, since=_since(since)))
        replays = replay_series(store, [trend.series for trend in trends], tuple(settings or ()))
        where = str(store.path)
    put_lines(render_json(replays, where) if format is OutputFormat.json else render(replays))


# ---------------------------------------------------------------- change, and write elsewhere


@history.command(
    "accept", epilog='Example:  profkit history accept gated_mlp --because "the new driver, 2 % slower"'
)
def accept(
    workload: Annotated[str, typer.Argument(help="The workload that changed.", metavar="WORKLOAD")],
    because: Annotated[str, typer.Option("--because", help="Why it is the new normal.", metavar="WORDS")],
    metric: Annotated[str | None, typer.Option("--metric", help="Only this metric (default: all).")] = None,
    since: Annotated[
        str | None,
        typer.Option(
            "--since",
            help="The first run of the new normal: its id, or a time (default: the last).",
            metavar="WHEN",
        ),
    ] = None,
    by: Annotated[str | None, typer.Option("--by", help="Who says so.", metavar="NAME")] = None,
    history: HistoryOption = None,
    format: FormatOption = OutputFormat.terminal,
) -> None:
    """Take a known change for the new normal: a new segment begins, without a regression."""
    from profkit.regression.history import open_history
    from profkit.regression.store import AcceptOptions, accept_change
    from profkit.reporting.history_json import render_change

    with open_history(history, make_new=False) as store:
        change, new = accept_change(store, AcceptOptions(workload, because, metric, since, by))
        where = str(store.path)
    what = f"{change.workload} {change.metric}" if change.metric else change.workload
    if format is OutputFormat.json:
        put(render_change("accept", where, {"accepted": change, "new": new}))
    elif new:
        put(f"accepted  {what} since {change.since}")
    else:
        put(f"known  {what} was accepted since {change.since} already")


@history.command("mark", epilog='Example:  profkit history mark last --because "another job ran beside it"')
def mark(
    entry: EntryArgument,
    because: Annotated[
        str | None, typer.Option("--because", help="Why its values decide nothing.", metavar="WORDS")
    ] = None,
    valid: Annotated[bool, typer.Option("--valid", help="Take such a mark away.")] = False,
    history: HistoryOption = None,
    format: FormatOption = OutputFormat.terminal,
) -> None:
    """Say of a run that its values are kept and shown, and decide nothing."""
    from profkit.core.errors import UsageError
    from profkit.regression.history import open_history
    from profkit.reporting.history_json import render_change

    if valid == bool(because):
        raise UsageError("say why the run is not valid, or that it is", '--because "WORDS", or --valid')
    with open_history(history, make_new=False) as store:
        found = store.entry(entry)
        store.mark(found.id, valid, because)
        where = str(store.path)
    if format is OutputFormat.json:
        put(render_change("mark", where, {"entry": found.id, "valid": valid, "reason": because}))
    else:
        put(f"marked  {found.id[:8]} of {found.workload}: {'valid' if valid else 'not valid'}")


@history.command("prune", epilog="Example:  profkit history prune --older-than 2y --dry-run")
def prune(
    keep: Annotated[
        int | None,
        typer.Option("--keep", min=1, help="Keep the last so many runs of each workload and backend."),
    ] = None,
    older_than: Annotated[
        str | None,
        typer.Option("--older-than", help="Only runs before this: a date, or 180d, 2y.", metavar="WHEN"),
    ] = None,
    workload: WorkloadOption = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would go; change nothing.")] = False,
    history: HistoryOption = None,
    format: FormatOption = OutputFormat.terminal,
) -> None:
    """Take runs out, and say which. What is meant must be said: --keep, --older-than, --workload."""
    from profkit.core.formatting import plural
    from profkit.regression.history import open_history
    from profkit.regression.store import PruneOptions, entries_to_prune
    from profkit.reporting.history_json import render_change
    from profkit.reporting.plain_text import harmless

    with open_history(history, read_only=dry_run, make_new=False) as store:
        chosen = entries_to_prune(store, PruneOptions(keep, _since(older_than), workload))
        taken = 0 if dry_run else store.prune([entry.id for entry in chosen])
        where, left = str(store.path), len(store.entries())
    if format is OutputFormat.json:
        runs = [{"entry": run.id, "workload": run.workload, "started": run.started} for run in chosen]
        put(render_change("prune", where, {"dry_run": dry_run, "runs": runs, "taken": taken, "left": left}))
        return
    word = "would go" if dry_run else "gone"
    lines = [f"{word}  {run.id[:8]}  {run.workload} of {_minute(run.started)}" for run in chosen]
    total = f"{plural(len(chosen), 'run')} {word}, {left - (len(chosen) if dry_run else 0)} stay in {where}"
    put("\n".join(map(harmless, [*lines, total])))


@history.command("rescue", epilog="Example:  profkit history rescue --to new.sqlite")
def rescue(
    to: Annotated[Path, typer.Option("--to", help="The new history.", metavar="FILE")],
    history: HistoryOption = None,
    format: FormatOption = OutputFormat.terminal,
) -> None:
    """Write what is left of a damaged history into a new one, and say how much was lost."""
    from profkit.core.formatting import plural
    from profkit.regression.history import default_path
    from profkit.regression.history import rescue as rescuer
    from profkit.reporting.history_json import render_change
    from profkit.reporting.plain_text import harmless

    path = history if history is not None else default_path()
    result = rescuer.rescue(path, to)
    if format is OutputFormat.json:
        put(render_change("rescue", str(path), {"file": str(to), "rescued": result}))
        return
    runs = "an unknown number of runs" if result.lost_runs is None else plural(result.lost_runs, "run")
    lost = f"lost: {runs}, and {plural(result.lost_values, 'value')} of the others"
    put(harmless(f"{plural(result.runs, 'run')} with {plural(result.values, 'value')} in {to}; {lost}"))


@history.command("export", epilog="Example:  profkit history export --to history.parquet")
def export(
    to: Annotated[Path, typer.Option("--to", help="The table to write: .parquet or .csv.", metavar="FILE")],
    workload: WorkloadOption = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite FILE.")] = False,
    history: HistoryOption = None,
    format: FormatOption = OutputFormat.terminal,
    quiet: QuietOption = False,
) -> None:
    """Write all values as tidy rows that pandas, polars and duckdb read: one row per value."""
    from profkit.cli.progress import progress_for
    from profkit.core.formatting import plural
    from profkit.regression.history import open_history
    from profkit.regression.history.tables import export_table
    from profkit.reporting.history_json import render_change
    from profkit.reporting.plain_text import harmless

    progress = progress_for(quiet=quiet)
    with open_history(history, read_only=True) as store:
        progress.begin("export", str(to))  # a year of 400 metrics a night takes four seconds
        count = export_table(store, to, workload=workload, force=force)
        progress.end(plural(count, "row"))
        where = str(store.path)
    if format is OutputFormat.json:
        put(render_change("export", where, {"file": str(to), "rows": count}))
    else:
        put(harmless(f"{plural(count, 'row')} in {to}"))


def _minute(started: str) -> str:
    return started[:16].replace("T", " ")


def _since(text: str | None) -> str | None:
    """What `--since` means, as ISO 8601 in UTC. Raises UsageError."""
    if text is None:
        return None
    from datetime import datetime, timezone

    from profkit.regression.times import iso_time, parse_since

    return iso_time(parse_since(text, datetime.now(timezone.utc)))
