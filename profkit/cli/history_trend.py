"""`profkit history trend`: a metric over time, and where it changed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from profkit.cli.history_options import HistoryOption, SinceOption, begin
from profkit.cli.options import FormatOption, OutputFormat, put, put_view

EXAMPLES = """
Example:  profkit history trend 'gated_mlp:time.*' --since 90d

Change points of any series, one value a line or a CSV file:  profkit history trend --from series.csv --format json
"""


def add_to(history: typer.Typer) -> None:
    """Register the verb."""
    history.command("trend", epilog=EXAMPLES)(trend)


def trend(
    series: Annotated[
        list[str] | None,
        typer.Argument(
            help="WORKLOAD, WORKLOAD:METRIC or WORKLOAD:METRIC:SCOPE, with * and ? (default: the time of all).",
            metavar="[SERIES]...",
        ),
    ] = None,
    source: Annotated[
        Path | None,
        typer.Option("--from", help="A text file with a series, instead of the history.", metavar="FILE"),
    ] = None,
    column: Annotated[str | None, typer.Option("--column", help="Of FILE: the column of the values.")] = None,
    by: Annotated[
        str | None, typer.Option("--by", help="Of FILE: the column of the builds; `none`: each row is one.")
    ] = None,
    backend: Annotated[str | None, typer.Option("--backend", help="Only of this backend.")] = None,
    machine: Annotated[
        str | None, typer.Option("--machine", help="Only of this machine (its whole id).")
    ] = None,
    since: SinceOption = None,
    limit: Annotated[
        int | None, typer.Option("--limit", "-n", min=1, help="Only the last so many values of each.")
    ] = None,
    history: HistoryOption = None,
    format: FormatOption = OutputFormat.terminal,
) -> None:
    """Plot a metric over time, with its epochs and the places where it changed."""
    from profkit.core.errors import UsageError
    from profkit.regression.trends import trend_of_file, trends_of
    from profkit.reporting import json
    from profkit.reporting.views.trend import view

    if source is not None:
        if series:
            raise UsageError(
                "a series comes from the history or from a file, not from both", "leave one of them out"
            )
        found, file = trend_of_file(source, column, by)
        if format is OutputFormat.json:
            put(json.trend_of_file(found, str(source), file.column, file.by, file.rows))
        else:
            put_view(view([found]), format)
        return
    if column is not None or by is not None:
        raise UsageError("--column and --by speak of a file", "--from FILE")
    from profkit.regression.history import open_history

    with open_history(history, read_only=True) as store:
        trends = trends_of(
            store, tuple(series or ()), backend=backend, machine=machine, since=begin(since), limit=limit
        )
        where = str(store.path)
    if format is OutputFormat.json:
        put(json.trends(trends, where))
    else:
        put_view(view(trends), format)
