"""`profkit history replay`: what every stored night would have been, by these rules or by others."""

from __future__ import annotations

from typing import Annotated

import typer

from profkit.cli.history_options import HistoryOption, SinceOption, begin
from profkit.cli.options import FormatOption, OutputFormat, put, put_view

EXAMPLES = """
Example:  profkit history replay gated_mlp:time.median

Would two nights in a row have been enough?  profkit history replay gated_mlp --set nights=2 --set relative=3%
"""


def add_to(history: typer.Typer) -> None:
    """Register the verb."""
    history.command("replay", epilog=EXAMPLES)(replay)


def replay(
    series: Annotated[
        list[str] | None,
        typer.Argument(
            help="WORKLOAD, WORKLOAD:METRIC or WORKLOAD:METRIC:SCOPE, with * and ? (default: the time of all).",
            metavar="[SERIES]...",
        ),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", help="A rule: nights=2, relative=3%, sigmas=5, standing=note.", metavar="KEY=VALUE"
        ),
    ] = None,
    backend: Annotated[str | None, typer.Option("--backend", help="Only of this backend.")] = None,
    since: SinceOption = None,
    history: HistoryOption = None,
    format: FormatOption = OutputFormat.terminal,
) -> None:
    """Decide the past again, night by night: what would have alarmed, and when."""
    from profkit.regression.history import open_history
    from profkit.regression.nightly.rehearsal import rehearse
    from profkit.regression.trends import trends_of
    from profkit.reporting import json
    from profkit.reporting.views.replay import view

    with open_history(history, read_only=True) as store:
        trends = trends_of(store, tuple(series or ()), backend=backend, since=begin(since))
        replays = rehearse(store, [trend.series for trend in trends], tuple(settings or ()))
        where = str(store.path)
    if format is OutputFormat.json:
        put(json.replays(replays, where))
    else:
        put_view(view(replays), format)
