"""The verbs of `profkit history` that change it, or write it elsewhere: accept, mark, prune, export, site."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from profkit.cli.options import FormatOption, OutputFormat, print_result
from profkit.cli.regression.history import (
    EntryArgument,
    HistoryOption,
    QuietOption,
    WorkloadOption,
    format_minute,
    history,
    since_time,
)


def add_to(app: typer.Typer) -> None:
    """Register `history` with its verbs, these and those that read."""
    app.add_typer(history, name="history")
    history.command(
        "accept", epilog='Example:  profkit history accept gated_mlp --because "the new driver, 2 % slower"'
    )(accept)
    history.command(
        "mark", epilog='Example:  profkit history mark last --because "another job ran beside it"'
    )(mark)
    history.command("prune", epilog="Example:  profkit history prune --older-than 2y --dry-run")(prune)
    history.command("export", epilog="Example:  profkit history export --to history.csv")(export)
    history.command(
        "site",
        epilog="Example:  profkit history site --to pages\n\n"
        "Pages of all workloads: what changed lately, and the trends of each. They open as files, without a server;"
        " --to a folder that a server publishes works too.",
    )(site)


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
    from profkit.regression.history_actions import AcceptOptions, accept_change
    from profkit.reporting.json import history_change

    with open_history(history, make_new=False) as store:
        change, new = accept_change(store, AcceptOptions(workload, because, metric, since, by))
        where = str(store.path)
    what = f"{change.workload} {change.metric}" if change.metric else change.workload
    if format is OutputFormat.json:
        print_result(history_change("accept", where, {"accepted": change, "new": new}))
    elif new:
        print_result(f"accepted  {what} since {change.since}")
    else:
        print_result(f"known  {what} was accepted since {change.since} already")


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
    from profkit.reporting.json import history_change

    if valid == bool(because):
        raise UsageError("say why the run is not valid, or that it is", '--because "WORDS", or --valid')
    with open_history(history, make_new=False) as store:
        run = store.entry(entry)
        store.mark(run.id, valid, because)
        where = str(store.path)
    if format is OutputFormat.json:
        print_result(history_change("mark", where, {"entry": run.id, "valid": valid, "reason": because}))
    else:
        print_result(f"marked  {run.id[:8]} of {run.workload}: {'valid' if valid else 'not valid'}")


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
    from profkit.regression.history_actions import PruneOptions, entries_to_prune
    from profkit.reporting.json import history_change
    from profkit.reporting.plain_text import without_control_characters

    with open_history(history, read_only=dry_run, make_new=False) as store:
        chosen = entries_to_prune(store, PruneOptions(keep, since_time(older_than), workload))
        pruned = 0 if dry_run else store.prune([entry.id for entry in chosen])
        where, left = str(store.path), len(store.entries())
    if format is OutputFormat.json:
        runs = [{"entry": run.id, "workload": run.workload, "started": run.started} for run in chosen]
        print_result(
            history_change("prune", where, {"dry_run": dry_run, "runs": runs, "taken": pruned, "left": left})
        )
        return
    word = "would go" if dry_run else "gone"
    lines = [f"{word}  {run.id[:8]}  {run.workload} of {format_minute(run.started)}" for run in chosen]
    total = f"{plural(len(chosen), 'run')} {word}, {left - (len(chosen) if dry_run else 0)} stay in {where}"
    print_result("\n".join(map(without_control_characters, [*lines, total])))


def export(
    to: Annotated[Path, typer.Option("--to", help="The table to write: .csv or .json.", metavar="FILE")],
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
    from profkit.regression.history.export import export_table
    from profkit.reporting.json import history_change
    from profkit.reporting.plain_text import without_control_characters

    progress = progress_for(quiet=quiet)
    with open_history(history, read_only=True) as store:
        progress.begin("export", str(to))  # a year of 400 metrics a night takes four seconds
        count = export_table(store, to, workload=workload, force=force)
        progress.end(plural(count, "row"))
        where = str(store.path)
    if format is OutputFormat.json:
        print_result(history_change("export", where, {"file": str(to), "rows": count}))
    else:
        print_result(without_control_characters(f"{plural(count, 'row')} in {to}"))


def site(
    to: Annotated[
        Path, typer.Option("--to", help="The folder: new, empty, or with pages of before.", metavar="DIR")
    ],
    days: Annotated[
        int | None, typer.Option("--days", min=1, help="Only the last so many days before the newest run.")
    ] = None,
    title: Annotated[
        str, typer.Option("--title", help="What the first page is called.")
    ] = "Performance over time",
    history: HistoryOption = None,
    format: FormatOption = OutputFormat.terminal,
    quiet: QuietOption = False,
) -> None:
    """Write the history as static pages: an overview, and a page for each workload."""
    from profkit.cli.progress import progress_for
    from profkit.core.formatting import plural
    from profkit.regression.history import open_history
    from profkit.regression.trends import summarize_history
    from profkit.reporting.json import history_change
    from profkit.reporting.plain_text import without_control_characters
    from profkit.reporting.site import prepare_folder, site_files, write_site

    progress = progress_for(quiet=quiet)
    with open_history(history, read_only=True) as store:
        folder = prepare_folder(to)  # what cannot be written is said before the history is read
        summary = summarize_history(store, days=days, progress=progress)
        where = str(store.path)
    progress.begin("write", str(to))
    files, size_in_bytes = write_site(folder, site_files(summary, folder, title))
    size = f"{plural(files, 'file')}, {size_in_bytes / 1e6:.1f} MB"
    progress.end(size)
    start = to / "index.html"
    if format is OutputFormat.json:
        print_result(
            history_change("site", where, {"file": str(start), "files": files, "bytes": size_in_bytes})
        )
    elif not quiet:
        print_result(without_control_characters(f"{size}: open {start}"))
