"""Trends for the terminal: the line, where its epochs begin, where it changed, and what one night could show."""

from __future__ import annotations

from collections.abc import Sequence

from profkit.core.formatting import plural, quantity, shortened, work_word
from profkit.core.types import ChangePoint, Segment, Series, Trend
from profkit.reporting.line_plot import plot
from profkit.reporting.screen import Screen

MOST_PLOTS = 12  # trends that are drawn; the table below has all of them
HEIGHT = 7
LOOKED_AT = 10  # values from which changes are looked for; below, a note of the detectors says so


def render(trends: Sequence[Trend], *, color: bool | None = None, width: int | None = None) -> str:
    """Each trend as a plot with what is to be said of it, those that changed first; then all of them as a table."""
    screen = Screen(color, width)
    ordered = sorted(trends, key=lambda trend: (not trend.change_points, -len(trend.series.points)))
    for number, trend in enumerate(ordered[:MOST_PLOTS]):
        if number:
            screen.blank()
        _show(screen, trend)
    if len(ordered) > 1:
        screen.blank()
        screen.table(
            ("series", "values", "first", "last", "changes", "noise"),
            tuple(_row(trend) for trend in ordered),
            indent=0,
        )
    if len(ordered) > MOST_PLOTS:
        screen.blank()
        screen.line(
            f"{len(ordered) - MOST_PLOTS} more are not drawn; name them: profkit history trend WORKLOAD:METRIC"
        )
    return screen.text()


def title_of(series: Series) -> str:
    """`gated_mlp time.median (region gated_mlp)`; the scope only where it says more."""
    key = series.key
    scope = key.scope
    kind = work_word(key.backend) if scope.kind == "kernel" else scope.kind
    name = f" ({kind} {scope.name}{f', {scope.id}' if scope.id else ''})" if scope.name else ""
    backend = f" on {key.backend}" if key.backend else ""
    return f"{key.workload} {key.metric}{name}{backend}"


def _show(screen: Screen, trend: Trend) -> None:
    series = trend.series
    screen.line((title_of(series), "bold"))
    values = [point.value if point.valid else None for point in series.points]
    lines = (
        []
        if sum(value is not None for value in values) < 2
        else plot(
            values,
            lambda value: quantity(value, series.unit),
            width=min(screen.console.width, 100),
            height=HEIGHT,
            bars=[epoch.first for epoch in trend.epochs[1:]],
            marks=[change.index for change in trend.change_points],
        )
    )
    for line in lines:
        screen.line(line)
    first, last = series.points[0].started, series.points[-1].started
    screen.line((f"{plural(len(series.points), 'value')}, {_day(first)} to {_day(last)}", "dim"))
    for epoch in trend.epochs[1:]:
        screen.line(f"┊ {_day(series.points[epoch.first].started)}: {_epoch(epoch)}", hang=2)
    for change in trend.change_points:
        screen.line((f"▲ {_change(series, change)}", _style(series, change)), hang=2)
    if not trend.change_points and len(series.points) >= LOOKED_AT:
        screen.line("No change found.")
    for note in trend.notes:
        screen.line((note, "dim"), hang=2)


def _epoch(epoch: Segment) -> str:
    return f"a new epoch begins: {epoch.reason}"


def _change(series: Series, change: ChangePoint) -> str:
    ratio = change.ratio
    by = f", {(ratio - 1) * 100:+.1f} %" if ratio is not None else ""
    commit = f", commit {change.commit[:12]}" if change.commit else ""
    votes = f"; seen by {', '.join(change.votes)}" if change.votes else ""
    when = _day(change.started or series.points[change.index].started)
    before, after = quantity(change.before, series.unit), quantity(change.after, series.unit)
    return f"{when}: {before} to {after}{by}{_course(series, change)} (value {change.index}{commit}{votes})"


def _course(series: Series, change: ChangePoint) -> str:
    if series.better == "none" or change.after == change.before:
        return ""
    worse = (change.after > change.before) == (series.better == "lower")
    return ", worse" if worse else ", better"


def _style(series: Series, change: ChangePoint) -> str:
    return {", worse": "red", ", better": "green"}.get(_course(series, change), "")


def _row(trend: Trend) -> tuple[str, ...]:
    points = [point for point in trend.series.points if point.valid]
    unit = trend.series.unit
    noise = f"{trend.noise * 100:.2g} %" if trend.noise is not None else "-"
    return (
        title_of(trend.series),
        str(len(trend.series.points)),
        quantity(points[0].value, unit) if points else "-",
        quantity(points[-1].value, unit) if points else "-",
        str(len(trend.change_points)),
        noise,
    )


def _day(started: str) -> str:
    if len(started) > 10 and started[4:5] == "-":
        return started[:10]
    return shortened(started, 40)  # a series of a file calls its values what it likes
