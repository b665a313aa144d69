"""A series over time: its values with their intervals, its segments and its changes, night by night."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from profkit.analysis.metrics.catalogue import title_of
from profkit.core.formatting import format_percent, format_quantity, plural, shorten
from profkit.core.types import ChangePoint, Segment, Series, Trend
from profkit.core.types import HistoryPoint as Value
from profkit.reporting.charts.marks import (
    AnyMark,
    Area,
    Axis,
    AxisRule,
    Chart,
    Line,
    Point,
    PointGroup,
    Tick,
    linear,
)
from profkit.reporting.facts import fact_text

# times the range of the values: an interval that reaches further is cut, or it would be all there is
_BEYOND = 3.0
_CAUSES = {"begin": "begin", "machine": "other machine", "accepted": "accepted"}


def segment_reason(series: Series, segment: Segment) -> str:
    """Return why a segment begins, in words."""
    if segment.cause == "accepted":
        return f"accepted{f' by {segment.by}' if segment.by else ''}: {segment.word}"
    here = series.points[segment.first].machine
    before = [p.machine for p in series.points[: segment.first] if p.valid]
    return f"another machine: {short_machine(before[-1] if before else '')}, then {short_machine(here)}"


def short_machine(machine: str) -> str:
    """Return a fingerprint's id as people read it: enough of it to tell two apart."""
    return machine[:12] if machine else "unknown"


def trend_chart(trend: Trend, band: tuple[float, float] | None = None, title: str | None = None) -> Chart:
    """Return the series; `band` is what counts as no change (in the series' unit), drawn behind it.

    Points that decide nothing (throttled, interrupted) are hollow and off the line. Nights stand side by side, however
    much time lies between them. Without marks where no night is stored.
    """
    points, unit, key = trend.series.points, trend.series.unit, trend.series.key
    where = f" of {key.scope.name}" if key.scope.name and key.scope.name != key.workload else ""
    named = title or f"{title_of(key.metric)}{where}{f', {key.workload}' if key.workload else ''}"
    if not points:
        return Chart("trend", named, "No night is stored.", Axis(), Axis(named, unit), ())
    values = [point.value for point in points]
    # The band belongs to the picture, but one that is far wider than the values would flatten them.
    reach = (max(values) - min(values)) * _BEYOND or abs(max(values)) or 1.0
    low, high = min(values) - reach, max(values) + reach
    ends = [end for p in points for end in (p.low, p.high) if end is not None]
    up = linear([*values, *(min(high, max(low, end)) for end in (*ends, *(band or ())))], 0, 1)
    marks: list[AnyMark] = []
    if band is not None:
        words = f"no change: {format_quantity(min(band), unit)} to {format_quantity(max(band), unit)}"
        marks.append(Area(((0, *band), (len(points) - 1, *band)), "band", words))
    marks += [*_lines(trend), _points(points, unit), *_events(trend)]
    dated = (Tick(0, points[0].started[:10]), Tick(len(points) - 1, points[-1].started[:10]))
    return Chart(
        "trend",
        named,
        _description(trend),
        Axis(ticks=dated[: len(points)]),
        Axis(named, unit, up.low, up.high),
        tuple(marks),
    )


def _points(points: Sequence[Value], unit: str) -> PointGroup:
    """Return every night with its words."""
    made = (
        Point(index, p.value, _night(p, unit), style="dot" if p.valid else "dot hollow")
        for index, p in enumerate(points)
    )
    return PointGroup(tuple(made), hover=f"each of {plural(len(points), 'night')}")


def _lines(trend: Trend) -> Iterator[AnyMark]:
    """Yield the interval as an area and the value as a line, each segment by itself: across an edge nothing
    compares.
    """
    points = trend.series.points
    stretches = [(segment.first, segment.last) for segment in trend.epochs] or [(0, len(points) - 1)]
    for first, last in stretches:
        valid = [i for i in range(max(0, first), min(last, len(points) - 1) + 1) if points[i].valid]
        # Where a night has no interval the area ends, or it would tell one of that night.
        for has_interval, nights in groupby(valid, key=lambda i: None not in (points[i].low, points[i].high)):
            edges = tuple((i, points[i].low or 0.0, points[i].high or 0.0) for i in nights)
            if has_interval and len(edges) > 1:
                yield Area(edges)
        if len(valid) > 1:
            yield Line(tuple((i, points[i].value) for i in valid))


def _events(trend: Trend) -> Iterator[AnyMark]:
    """Yield lines at changes and at new segments; a change has its word first."""
    events = [(c.index, "change", _step(c), change_text(trend.series, c)) for c in trend.change_points]
    for e in trend.epochs[1:]:
        why = segment_reason(trend.series, e)
        events.append(
            (e.first, "segment", f"◆ {_CAUSES[e.cause]}", f"new segment, {_CAUSES[e.cause]}: {why}")
        )
    for index, style, word, words in events:
        if 0 < index < len(trend.series.points):
            yield AxisRule(x=index - 0.5, style=style, label=word, hover=words)


def _step(change: ChangePoint) -> str:
    """Return `▲ 5.2 %`: up or down by a sign, so that it needs no colour."""
    sign = "▲" if change.after > change.before else "▼"
    if change.ratio is None or change.before < 0:
        return sign
    return f"{sign} {format_percent(100 * abs(change.ratio - 1))} %"


def change_text(series: Series, change: ChangePoint) -> str:
    """Return `2026-02-10: 1.00 ms to 1.10 ms, +10.0 %, worse (value 9, commit feedbeef0123)`."""
    by = f", {(change.ratio - 1) * 100:+.1f} %" if change.ratio is not None else ""
    commit = f", commit {change.commit[:12]}" if change.commit else ""
    when = day_of(change.started or series.points[change.index].started)
    before, after = format_quantity(change.before, series.unit), format_quantity(change.after, series.unit)
    worse = course_of(series, change)
    course = "" if worse is None else ", worse" if worse else ", better"
    return f"{when}: {before} to {after}{by}{course} (value {change.index}{commit})"


def course_of(series: Series, change: ChangePoint) -> bool | None:
    """Return whether it became worse; None where nobody can say."""
    if series.better == "none" or change.after == change.before:
        return None
    return (change.after > change.before) == (series.better == "lower")


def day_of(started: str) -> str:
    """Return the day of a time; a series of a file calls its values what it likes."""
    return started[:10] if len(started) > 10 and started[4:5] == "-" else shorten(started, 40)


def _night(point: Value, unit: str) -> str:
    interval = ""
    if point.low is not None and point.high is not None:
        interval = f" ({format_quantity(point.low, unit)} to {format_quantity(point.high, unit)})"
    commit = f", {point.commit[:10]}" if point.commit else ""
    why = "" if point.valid else f"; decides nothing: {fact_text(point.reason) or 'not valid'}"
    return f"{point.started[:10]}: {format_quantity(point.value, unit)}{interval}{commit}{why}"


def _description(trend: Trend) -> str:
    """Return the chart in words: how many nights, the last value, what changed."""
    points, unit = trend.series.points, trend.series.unit
    parts = [f"{plural(len(points), 'night')} from {points[0].started[:10]} to {points[-1].started[:10]}"]
    parts.append(f"the last is {format_quantity(points[-1].value, unit)}")
    parts += [f"changed by {change_text(trend.series, change)}" for change in trend.change_points[-5:]]
    return "; ".join(parts) + "."
