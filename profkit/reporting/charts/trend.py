"""A series over time: its values with their intervals, its segments and its changes, on an axis of dates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from profkit.analysis.metrics import title_of
from profkit.core.formatting import format_figures, format_percent, format_quantity, plural
from profkit.core.types import ChangePoint, Segment, Series, Trend
from profkit.core.types import Point as Value
from profkit.core.types.history import SegmentCause
from profkit.reporting.charts.axes import Axis, Scale, Tick, axis_unit, date_ticks, in_order, linear, ticks
from profkit.reporting.charts.marks import FEW, AnyMark, Area, Chart, Line, Point, Points, Rectangle, Rule

_COLUMNS = 120  # edges of an area: finer is no longer seen
# times the range of the values: an interval that reaches further is cut, or it would be all there is
_BEYOND = 3.0
_CAUSES: dict[SegmentCause, str] = {"begin": "begin", "machine": "other machine", "accepted": "accepted"}


def segment_reason(series: Series, segment: Segment) -> str:
    """Why a segment begins, in words."""
    if segment.cause == "accepted":
        return f"accepted{f' by {segment.by}' if segment.by else ''}: {segment.word}"
    here = series.points[segment.first].machine
    before = [p.machine for p in series.points[: segment.first] if p.valid]
    return f"another machine: {short_machine(before[-1] if before else '')}, then {short_machine(here)}"


def short_machine(machine: str) -> str:
    """A fingerprint's id as people read it: enough of it to tell two apart."""
    return machine[:12] if machine else "unknown"


def trend_chart(trend: Trend, band: tuple[float, float] | None = None, title: str | None = None) -> Chart:
    """The series; `band` is what counts as no change (in the series' unit), drawn behind it.

    Points that decide nothing (throttled, interrupted) are hollow and off the line. Where times of day are not known or
    not in order the nights are numbered. Without marks where no night is stored.
    """
    points, unit = trend.series.points, trend.series.unit
    times = in_order([point.started for point in points])
    at = times or [float(index) for index in range(len(points))]
    named = title or _title(trend)
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
        marks.append(Rectangle((at[0], at[-1]), band, "band", words))
    marks += _lines(trend, at)
    marks += _points(points, at, unit)
    marks += _events(trend, at)
    return Chart(
        "trend",
        named,
        _description(trend),
        Axis(ticks=date_ticks(at[0], at[-1]) if times else _numbers(points)),
        Axis(named, unit, up.low, up.high),
        tuple(marks),
    )


def _points(points: Sequence[Value], at: Sequence[float], unit: str) -> Iterator[Points]:
    """All of a short series; of a long one those that decide nothing, and the last, which is what the page is about."""
    if len(points) > FEW:
        # Two figures more than elsewhere: neighbours are to be told apart.
        own = axis_unit(unit, max(abs(point.value) for point in points))
        texts = (f"{p.started[:10]}: {p.value / own.factor:.5g} {own.name}" for p in points)
        short = (Point(x, p.value, words) for x, p, words in zip(at, points, texts, strict=True))
        yield Points(tuple(short), unseen=True)
    shown = (
        Point(x, p.value, _night(p, unit), style="dot" if p.valid else "dot hollow")
        for n, (x, p) in enumerate(zip(at, points, strict=True), 1)
        if len(points) <= FEW or not p.valid or n == len(points)
    )
    yield Points(tuple(shown), hover=f"each of {plural(len(points), 'night')}")


def _title(trend: Trend) -> str:
    key = trend.series.key
    where = f" of {key.scope.name}" if key.scope.name and key.scope.name != key.workload else ""
    return f"{title_of(key.metric)}{where}{f', {key.workload}' if key.workload else ''}"


def _numbers(points: Sequence[Value]) -> tuple[Tick, ...]:
    """Nights by their number, where dates do not tell their order; one alone by its date."""
    count = len(points)
    if count == 1:
        return (Tick(0.0, points[0].started[:10]),)
    found, _ = ticks(Scale(1.0, float(count), 0, 1), "", min(5, count))
    return tuple(Tick(tick.value - 1, tick.label) for tick in found if tick.value == round(tick.value))


def _lines(trend: Trend, at: Sequence[float]) -> Iterator[AnyMark]:
    """The interval as an area and the value as a line, each segment by itself: across an edge nothing compares."""
    points = trend.series.points
    stretches = [(segment.first, segment.last) for segment in trend.epochs] or [(0, len(points) - 1)]
    for first, last in stretches:
        valid = [i for i in range(max(0, first), min(last, len(points) - 1) + 1) if points[i].valid]
        # Where a night has no interval the area ends, or it would tell one of that night.
        ends = [
            -1,
            *(n for n, i in enumerate(valid) if points[i].low is None or points[i].high is None),
            len(valid),
        ]
        for before, after in pairwise(ends):
            edges = [(at[i], points[i].low or 0.0, points[i].high or 0.0) for i in valid[before + 1 : after]]
            if len(edges) > 1:
                yield Area(_widest(edges))
        if len(valid) > 1:
            yield Line(tuple((at[i], points[i].value) for i in valid))


def _widest(edges: list[tuple[float, float, float]]) -> tuple[tuple[float, float, float], ...]:
    """The edges of an area; of a long stretch the widest of each few neighbours."""
    each = -(-len(edges) // _COLUMNS)
    groups = [edges[start : start + each] for start in range(0, len(edges), each)]
    return tuple(
        (g[len(g) // 2][0], min(low for _, low, _ in g), max(high for *_, high in g)) for g in groups
    )


def _events(trend: Trend, at: Sequence[float]) -> Iterator[AnyMark]:
    """Lines where it became another one and where a new segment begins; a change has its word first."""
    unit = trend.series.unit
    events = [(c.index, "change", _step(c), _change(c, unit)) for c in trend.change_points]
    events += [
        (e.first, "segment", f"◆ {_CAUSES[e.cause]}", f"new segment, {_CAUSES[e.cause]}: {why}")
        for e in trend.epochs
        for why in (segment_reason(trend.series, e),)
    ]
    for index, style, word, words in events:
        if 0 < index < len(at):
            yield Rule(x=(at[index] + at[index - 1]) / 2, style=style, label=word, hover=words)


def _step(change: ChangePoint) -> str:
    """`▲ 5.2 %`: up or down by a sign, so that it needs no colour."""
    sign = "▲" if change.after > change.before else "▼"
    if change.ratio is None or change.before < 0:
        return sign
    by = 100 * abs(change.ratio - 1)
    return f"{sign} {format_percent(by)} %" if by < 1000 else f"{sign} × {format_figures(change.ratio)}"


def _change(change: ChangePoint, unit: str) -> str:
    commit = f", at {change.commit[:10]}" if change.commit else ""
    when = f" from {change.started[:10]} on" if change.started else ""
    return f"{format_quantity(change.before, unit)} to {format_quantity(change.after, unit)}{when}{commit}"


def _night(point: Value, unit: str) -> str:
    interval = ""
    if point.low is not None and point.high is not None:
        interval = f" ({format_quantity(point.low, unit)} to {format_quantity(point.high, unit)})"
    commit = f", {point.commit[:10]}" if point.commit else ""
    why = "" if point.valid else f"; decides nothing: {point.reason or 'not valid'}"
    return f"{point.started[:10]}: {format_quantity(point.value, unit)}{interval}{commit}{why}"


def _description(trend: Trend) -> str:
    """The chart in words: how many nights, the last value, what changed, what does not count."""
    points, unit = trend.series.points, trend.series.unit
    first, last = points[0], points[-1]
    parts = [f"{plural(len(points), 'night')} from {first.started[:10]} to {last.started[:10]}"]
    parts.append(f"the last is {format_quantity(last.value, unit)}")
    hollow = sum(not point.valid for point in points)
    parts += [f"{hollow} of them decide nothing"] if hollow else []
    parts += [f"changed by {_change(change, unit)}" for change in trend.change_points[-5:]]
    begun = [segment for segment in trend.epochs if segment.first > 0]
    for e in begun[-5:]:
        why = segment_reason(trend.series, e)
        parts.append(f"new segment at night {e.first + 1} ({_CAUSES[e.cause]}): {why}")
    return "; ".join(parts) + "."
