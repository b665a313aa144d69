"""Series over time: the line, where its segments begin and where it changed; and what each night would have been."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from profkit.backends import kernel_word
from profkit.core.formatting import plural, quantity, shortened
from profkit.core.types import ChangePoint, Series, Trend
from profkit.reporting.chart_blocks import TrendChart
from profkit.reporting.view import Block, Paragraph, Section, Span, Status, Text, View, soft, table

_MOST_PLOTS = 12  # trends that are drawn; the table below has all of them
_LOOKED_AT = 10  # values from which changes are looked for; below, a note of the detectors says so


def view(trends: Sequence[Trend]) -> View:
    """Each trend as a chart with its changes and notes, those that changed first; then all of them as a table."""
    ordered = sorted(trends, key=lambda trend: (not trend.change_points, -len(trend.series.points)))
    blocks: list[Block] = [
        Section(title_of(trend.series), tuple(_trend(trend))) for trend in ordered[:_MOST_PLOTS]
    ]
    if len(ordered) > 1:
        columns = ("series", "values", "first", "last", "changes", "noise")
        blocks.append(Section("All series", (table(columns, [_row(trend) for trend in ordered]),)))
    left = len(ordered) - _MOST_PLOTS
    if left > 0:
        blocks.append(
            Paragraph(f"{left} more are not drawn. To see one: profkit history trend WORKLOAD:METRIC")
        )
    if len(ordered) == 1:
        return View(title_of(ordered[0].series), tuple(_trend(ordered[0])))
    changed = sum(bool(trend.change_points) for trend in trends)
    return View(f"{plural(len(trends), 'series', 'series')} over time, {changed} changed", tuple(blocks))


def title_of(series: Series) -> str:
    """`gated_mlp time.median (region gated_mlp) on cpu`; the scope only where it says more."""
    key = series.key
    scope = key.scope
    kind = kernel_word(key.backend) if scope.kind == "kernel" else scope.kind
    name = f" ({kind} {scope.name}{f', {scope.id}' if scope.id else ''})" if scope.name else ""
    backend = f" on {key.backend}" if key.backend else ""
    return f"{key.workload} {key.metric}{name}{backend}"


def _trend(trend: Trend) -> Iterator[Block]:
    series = trend.series
    yield TrendChart(trend)
    first, last = series.points[0].started, series.points[-1].started
    yield Paragraph(soft(f"{plural(len(series.points), 'value')}, {_day(first)} to {_day(last)}"))
    for segment in trend.epochs[1:]:
        started = _day(series.points[segment.first].started)
        yield Paragraph(f"┊ {started}: a new segment begins: {segment.reason}")
    for change in trend.change_points:
        yield Paragraph(_change(series, change))
    if not trend.change_points and len(series.points) >= _LOOKED_AT:
        yield Paragraph("No change found.")
    for note in trend.notes:
        yield Paragraph(soft(note))


def _change(series: Series, change: ChangePoint) -> Text:
    by = f", {(change.ratio - 1) * 100:+.1f} %" if change.ratio is not None else ""
    commit = f", commit {change.commit[:12]}" if change.commit else ""
    votes = f"; seen by {', '.join(change.votes)}" if change.votes else ""
    when = _day(change.started or series.points[change.index].started)
    before, after = quantity(change.before, series.unit), quantity(change.after, series.unit)
    course, status = "", None
    if series.better != "none" and change.after != change.before:
        worse = (change.after > change.before) == (series.better == "lower")
        course, status = (", worse", Status.FAIL) if worse else (", better", Status.BETTER)
    return Span(
        f"▲ {when}: {before} to {after}{by}{course} (value {change.index}{commit}{votes})", status=status
    )


def _row(trend: Trend) -> tuple[Text, ...]:
    points = [point for point in trend.series.points if point.valid]
    unit = trend.series.unit
    return (
        title_of(trend.series),
        str(len(trend.series.points)),
        quantity(points[0].value, unit) if points else "-",
        quantity(points[-1].value, unit) if points else "-",
        str(len(trend.change_points)),
        f"{trend.noise * 100:.2g} %" if trend.noise is not None else "-",
    )


def _day(started: str) -> str:
    if len(started) > 10 and started[4:5] == "-":
        return started[:10]
    return shortened(started, 40)  # a series of a file calls its values what it likes
