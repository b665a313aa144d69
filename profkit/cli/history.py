"""`profkit history`: runs over time, added, read, changed, and written elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from profkit.cli import options
from profkit.cli.options import option

if TYPE_CHECKING:
    from profkit.regression.history.actions import AddResult

history = typer.Typer(
    name="history",
    help="Store runs over time in one SQLite file, and show their trends.",
    no_args_is_help=True,
    epilog="Example:  profkit history add reports/*/  then  profkit history trend gated_mlp",
    context_settings={"help_option_names": ["-h", "--help"]},
)

HistoryOption = Annotated[
    Path | None, option(None, "The file (default: $PROFKIT_HISTORY, else reports/history.sqlite).", "FILE")
]
WorkloadOption = Annotated[str | None, option(None, "Only runs of this workload.", None, "--workload", "-w")]
SinceOption = Annotated[
    str | None, option(None, "Only runs since a date, 2026-11-01, or for a time span: 30d, 12w, 1y.", "WHEN")
]
EntryArgument = Annotated[
    str, typer.Argument(help="A run: its id, the beginning of its id, or `last`.", metavar="ENTRY")
]


@history.command(
    "add",
    epilog="Example:  profkit history add reports/20261120-054700-gated_mlp-cpu trace.nsys-rep\n\n"
    "Adds runs, evaluations and every report that `summarize` reads. A run that is already stored is skipped.",
)
def add(
    paths: Annotated[list[Path], typer.Argument(help="Run folders or reports.", metavar="PATH...")],
    workload: Annotated[
        str | None, option(None, "Store them under this workload's name.", None, "--workload", "-w")
    ] = None,
    commit: Annotated[str | None, option(None, "The git commit, if the files do not name it.", "SHA")] = None,
    history: HistoryOption = None,
    format: options.FormatOption = options.OutputFormat.terminal,
) -> None:
    """Store runs and reports."""
    from profkit.cli import print_fault
    from profkit.regression.history import open_history
    from profkit.regression.history.actions import add_paths

    def report(result: AddResult) -> None:
        if result.fault is not None:
            print_fault(result.fault)
        elif format is not options.OutputFormat.json:
            _say(_line(result))

    with open_history(history) as store:
        results = add_paths(store, paths, report, workload, commit)
        where = str(store.path)
    if format is options.OutputFormat.json:
        options.print_result(_added_document(results, where))
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
    from profkit.reporting.plain_text import text_for_others

    assert result.entry is not None
    entry = result.entry
    run = text_for_others(  # in one line, whatever it is called
        f"{entry.id[:8]}  {entry.workload} ({entry.source}) of {_minute(entry.started)}"
    )
    if not result.added:
        return f"known  {run}: already stored, nothing changed"
    return f"added  {run}: {plural(len(entry.values), 'value')}"


@history.command("list", epilog="Example:  profkit history list --workload gated_mlp --since 30d")
def list_(
    workload: WorkloadOption = None,
    since: SinceOption = None,
    limit: Annotated[
        int, option(None, "Show this many runs at most, the newest.", None, "--limit", "-n", min=1)
    ] = 50,
    history: HistoryOption = None,
    format: options.FormatOption = options.OutputFormat.terminal,
) -> None:
    """List the stored runs, the newest first."""
    from profkit.regression.history import HistoryFilter, open_history
    from profkit.reporting import json
    from profkit.reporting.views.history import history_view

    with open_history(history, read_only=True) as store:
        total = len(store.entries())
        found = store.entries(HistoryFilter(workload, since=_since(since), limit=limit))
        accepted, where = store.accepted(workload), str(store.path)
    options.print_as(
        format,
        lambda: json.history(found, accepted, where, total),
        lambda: history_view(found, accepted, where, total),
    )


@history.command("show", epilog="Example:  profkit history show last")
def show(
    entry: EntryArgument = "last",
    history: HistoryOption = None,
    format: options.FormatOption = options.OutputFormat.terminal,
) -> None:
    """Show one run with all its values."""
    from profkit.regression.history import open_history
    from profkit.reporting import json
    from profkit.reporting.views.history import entry_view

    with open_history(history, read_only=True) as store:
        found = store.entry(entry)
    options.print_as(format, lambda: json.document(found), lambda: entry_view(found))


@history.command(
    "trend",
    epilog="Example:  profkit history trend 'gated_mlp:time.*' --since 90d\n\n"
    "Change points of any series, with one value per line:"
    "  profkit history trend --from series.csv --format json",
)
def trend(
    series: Annotated[
        list[str] | None,
        typer.Argument(
            help="WORKLOAD, WORKLOAD:METRIC or WORKLOAD:METRIC:SCOPE, with * and ? (default: the time of all).",
            metavar="[SERIES]...",
        ),
    ] = None,
    source: Annotated[
        Path | None, option(None, "A text file with a series, in place of the history.", "FILE", "--from")
    ] = None,
    since: SinceOption = None,
    history: HistoryOption = None,
    format: options.FormatOption = options.OutputFormat.terminal,
) -> None:
    """Plot a metric over time, with its segments and the places where it changed."""
    from profkit.core.errors import UsageError
    from profkit.regression.history import HistoryFilter, open_history
    from profkit.regression.trends import trend_of_file, trends_of
    from profkit.reporting import json
    from profkit.reporting.views.history import trends_view

    if source is not None:
        if series:
            raise UsageError("a series comes either from the history or from a file", "leave one of them out")
        found = trend_of_file(source)
        options.print_as(format, lambda: json.trend_of_file(found, str(source)), lambda: trends_view([found]))
        return
    with open_history(history, read_only=True) as store:
        trends = trends_of(store, tuple(series or ()), HistoryFilter(since=_since(since)))
        where = str(store.path)
    options.print_as(format, lambda: json.trends(trends, where), lambda: trends_view(trends))


@history.command(
    "accept", epilog='Example:  profkit history accept gated_mlp --because "the new driver, 2 % slower"'
)
def accept(
    workload: Annotated[str, typer.Argument(help="The workload that changed.", metavar="WORKLOAD")],
    because: Annotated[str, option(None, "Why the change is accepted.", "WORDS")],
    metric: Annotated[str | None, option(None, "Only this metric (default: all).")] = None,
    since: Annotated[
        str | None,
        option(None, "The first run after the change: its id, or a time (default: the last run).", "WHEN"),
    ] = None,
    by: Annotated[str | None, option(None, "Who accepts it.", "NAME")] = None,
    history: HistoryOption = None,
    format: options.FormatOption = options.OutputFormat.terminal,
) -> None:
    """Accept a change, so that it is no longer reported as a regression; a new segment of the history begins."""
    from profkit.regression.history import open_history
    from profkit.regression.history.actions import accept_change

    with open_history(history, make_new=False) as store:
        change, new = accept_change(store, workload, because, metric, since, by)
        where = str(store.path)
    what = f"{change.workload} {change.metric}" if change.metric else change.workload
    said = f"accepted  {what} since {change.since}"
    if not new:
        said = f"known  {what} was accepted since {change.since} already"
    _tell("accept", where, {"accepted": change, "new": new}, said, format)


@history.command("prune", epilog="Example:  profkit history prune --older-than 2y --dry-run")
def prune(
    keep: Annotated[
        int | None, option(None, "Keep this many of the newest runs of each workload.", min=1)
    ] = None,
    older_than: Annotated[
        str | None, option(None, "Remove only runs older than this: a date, 180d, 2y.", "WHEN")
    ] = None,
    workload: WorkloadOption = None,
    dry_run: Annotated[
        bool, option(None, "Show what would be removed, and change nothing.", None, "--dry-run")
    ] = False,
    history: HistoryOption = None,
    format: options.FormatOption = options.OutputFormat.terminal,
) -> None:
    """Remove runs from the history, and list them. Needs --keep, --older-than or --workload."""
    from profkit.core.formatting import plural
    from profkit.regression.history import open_history
    from profkit.regression.history.actions import entries_to_prune

    with open_history(history, read_only=dry_run, make_new=False) as store:
        chosen = entries_to_prune(store, keep, _since(older_than), workload)
        pruned = 0 if dry_run else store.prune([entry.id for entry in chosen])
        where, left = str(store.path), len(store.entries())
    runs = [{"entry": run.id, "workload": run.workload, "started": run.started} for run in chosen]
    word = "would go" if dry_run else "gone"
    lines = [f"{word}  {run.id[:8]}  {run.workload} of {_minute(run.started)}" for run in chosen]
    stay = left - (len(chosen) if dry_run else 0)
    said = "\n".join([*lines, f"{plural(len(chosen), 'run')} {word}, {stay} stay in {where}"])
    _tell("prune", where, {"dry_run": dry_run, "runs": runs, "taken": pruned, "left": left}, said, format)


@history.command("export", epilog="Example:  profkit history export --to history.csv")
def export(
    to: Annotated[Path, typer.Option("--to", help="The file to write: .csv.", metavar="FILE")],
    workload: WorkloadOption = None,
    history: HistoryOption = None,
    format: options.FormatOption = options.OutputFormat.terminal,
) -> None:
    """Write all values as tidy rows that pandas, polars and duckdb read: one row per value."""
    from profkit.cli.progress import progress_for
    from profkit.core.formatting import plural
    from profkit.regression.history import open_history
    from profkit.regression.history.actions import export_table

    progress = progress_for(quiet=False)
    with open_history(history, read_only=True) as store:
        progress.begin("export", str(to))  # a year of 400 metrics a night takes four seconds
        count = export_table(store, to, workload)
        progress.end(plural(count, "row"))
        where = str(store.path)
    _tell("export", where, {"file": str(to), "rows": count}, f"{plural(count, 'row')} in {to}", format)


@history.command(
    "site",
    epilog="Example:  profkit history site --to pages\n\n"
    "The page shows what changed lately and the trends of each workload. It opens as a file, without a server; a folder"
    " that a server publishes works as well.",
)
def site(
    to: Annotated[Path, option(None, "The folder to write: new, empty, or with an earlier page.", "DIR")],
    since: SinceOption = None,
    history: HistoryOption = None,
    format: options.FormatOption = options.OutputFormat.terminal,
) -> None:
    """Write the history as a web page: what changed, and the trends of each workload."""
    from profkit.cli.progress import progress_for
    from profkit.regression.history import HistoryFilter, open_history
    from profkit.regression.trends import gating_metrics, trends_of
    from profkit.reporting.site import PAGE, prepare_folder, site_page, write_site

    progress = progress_for(quiet=False)
    with open_history(history, read_only=True) as store:
        folder = prepare_folder(to)  # what cannot be written is said before the history is read
        progress.begin("look for changes", str(store.path))  # 3 ms for a series of a year
        chosen = HistoryFilter(since=_since(since))
        entries = store.entries(chosen)
        trends = trends_of(store, ("*:*",), chosen) if entries else ()
        where = str(store.path)
    size_in_bytes = write_site(folder, site_page(trends, entries, gating_metrics()))
    size, page = f"{size_in_bytes / 1e6:.1f} MB", to / PAGE
    progress.end(size)
    _tell("site", where, {"file": str(page), "bytes": size_in_bytes}, f"{size}: open {page}", format)


def _tell(
    action: str, where: str, fields: dict[str, object], said: str, format: options.OutputFormat
) -> None:
    """Print what a command did to the history at `where`: a document, or words."""
    from profkit.reporting.json import history_change

    if format is options.OutputFormat.json:
        options.print_result(history_change(action, where, fields))
    else:
        _say(said)


def _say(text: str) -> None:
    from profkit.reporting.plain_text import text_for_others

    options.print_result("\n".join(map(text_for_others, text.split("\n"))))


def _minute(started: str) -> str:
    """Return `2026-11-20 05:47` of an ISO 8601 time."""
    return started[:16].replace("T", " ")


def _since(text: str | None) -> str | None:
    """Return what `--since` means, as ISO 8601 in UTC. Raises UsageError."""
    if text is None:
        return None
    from datetime import datetime, timezone

    from profkit.regression.history.rows import iso_time, parse_since

    return iso_time(parse_since(text, datetime.now(timezone.utc)))
