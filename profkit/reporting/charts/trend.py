"""A series over time: its values with their intervals, its segments and its changes, on an axis of dates."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

from profkit.analysis.metrics import title_of
from profkit.core.formatting import format_figures, format_percent, format_quantity, plural
from profkit.core.types import ChangePoint, Point, Segment, Series, Trend
from profkit.core.types.history import SegmentCause
from profkit.reporting.charts.axes import (
    Box,
    Scale,
    Tick,
    apart,
    axis_unit,
    box_for,
    linear,
    ticks,
    x_axis,
    y_axis,
)
from profkit.reporting.charts.svg import (
    FONT,
    LINE,
    WIDTH,
    curve,
    focusable,
    frame,
    hover,
    line,
    rect,
    tag,
    text,
    width,
)

DAY = 86400.0
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_MINUTES = (1, 2, 5, 10, 15, 30)
_HOURS = (1, 2, 3, 6, 12)
_DAYS = (1, 2, 7, 14)
_STEPS_OF_MONTHS = (1, 2, 3, 6, 12, 24, 60, 120, 240, 1200, 12000)


def seconds(started: str) -> float | None:
    """Seconds since 1970 of a time as ISO 8601, in UTC where it names no zone; None where it is none."""
    try:
        moment = datetime.fromisoformat(started.replace("Z", "+00:00"))
        return (moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)).timestamp()
    except (ValueError, OverflowError):
        return None


def in_order(started: Sequence[str]) -> list[float] | None:
    """All of them as seconds; None where one is no time, or comes before the one before it, or all are the same."""
    found: list[float] = []
    for one in started:
        at = seconds(one)
        if at is None or (found and at < found[-1]):
            return None
        found.append(at)
    return found if len(found) > 1 and found[-1] > found[0] else None


def date_ticks(first: float, last: float, most: int = 5) -> tuple[Tick, ...]:
    """At most `most` round times between two: whole minutes, hours, midnights, or firsts of months."""
    days = (last - first) / DAY
    for minutes in _MINUTES:
        if days * 1440 / minutes <= most - 1:
            return _even(first, last, minutes * 60, hours_only=True)
    for hours in _HOURS:
        if days * 24 / hours <= most - 1:
            return _even(first, last, hours * 3600, hours_only=True)
    for step in _DAYS:
        if days / step <= most - 1:
            return _even(first, last, step * DAY)
    months = next(n for n in _STEPS_OF_MONTHS if days / 30.5 / n <= most - 1 or n == _STEPS_OF_MONTHS[-1])
    return _months(_utc(first), last, months)


def day(at: float) -> str:
    """`2026-01-31`."""
    return _utc(at).strftime("%Y-%m-%d")


def _utc(at: float) -> datetime:
    return datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(seconds=at)


def _even(first: float, last: float, step: float, *, hours_only: bool = False) -> tuple[Tick, ...]:
    count = int(-(-first // step))
    found = []
    while count * step <= last:
        moment = _utc(count * step)
        midnight = moment.hour == 0
        label = f"{moment.day} {_MONTHS[moment.month - 1]}" if midnight else f"{moment:%H:%M}"
        found.append(Tick(count * step, f"{moment:%H:%M}" if hours_only and not midnight else label))
        count += 1
    return tuple(found)


def _months(begin: datetime, last: float, step: int) -> tuple[Tick, ...]:
    """Firsts of months; January bears the year, or the first tick does."""
    number = begin.year * 12 + begin.month - 1
    number += -number % step
    found: list[Tick] = []
    while number // 12 < 9999:
        year, month = divmod(number, 12)
        at = datetime(year, month + 1, 1, tzinfo=timezone.utc).timestamp()
        if at > last:
            break
        label = str(year) if month == 0 and found else _MONTHS[month]
        if at >= begin.timestamp():
            found.append(Tick(at, label if found or step % 12 else str(year)))
        number += step
    if found and step % 12:
        first = _utc(found[0].value)
        found[0] = Tick(found[0].value, f"{_MONTHS[first.month - 1]} {first.year}")
    return tuple(found)


FIGURES = 5  # of each value: two more than are shown elsewhere, since neighbours are to be distinguished


def reader(
    box: Box, x: Scale, places: Sequence[float], values: Sequence[float], unit: str, *, dated: bool
) -> str:
    """An empty area over the plot that carries the values: `places` are seconds since 1970 where `dated`, else indices.

    Days between places are left out where there is one for each day, as a nightly has it.
    """
    own = axis_unit(unit, max((abs(value) for value in values), default=0.0))
    data: dict[str, object] = {
        "x": [round(x.start, 1), round(x.end, 1)],
        "u": own.name,
        "v": [float(f"{value / own.factor:.{FIGURES}g}") for value in values],
    }
    if dated:
        days = [round((place - places[0]) / DAY) for place in places]
        data["t"] = round(places[0])
        if days != list(range(len(days))):
            data["d"] = days
    return tag(
        "rect",
        x=box.left,
        y=box.top,
        width=box.right - box.left,
        height=box.bottom - box.top,
        class_="reader",
        data_read=json.dumps(data, separators=(",", ":"), allow_nan=False),
    )


HEIGHT = 190.0
FEW = 60  # points up to which each has a mark of its own to hover over: 365 marks would be 30 kB
COLUMNS = 120  # edges of an area: finer is no longer seen
# times the range of the values: an interval that reaches further is cut, or it would be all there is
BEYOND = 3.0
CAUSES: dict[SegmentCause, str] = {"begin": "begin", "machine": "other machine", "accepted": "accepted"}


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


@dataclass(frozen=True)
class _Plot:
    """Where everything is: scales, the box, and the place of each point on the x axis."""

    box: Box
    x: Scale
    y: Scale
    places: tuple[float, ...]
    unit: str
    dated: bool  # places are seconds since 1970; else indices

    def at(self, index: int) -> float:
        return self.x(self.places[index])


def trend_chart(trend: Trend, band: tuple[float, float] | None = None, title: str | None = None) -> str:
    """The series as SVG; `band` is what counts as no change (in the series' unit), drawn behind it.

    Points that decide nothing (throttled, interrupted) are hollow and off the line. Where times of day are not known or
    not in order the nights are numbered. Nothing is drawn of a series without points but that sentence.
    """
    points = trend.series.points
    named = title or _title(trend)
    if not points:
        return frame(
            "trend", LINE + 8, named, "No night is stored.", [text((2, FONT), "No night is stored.")]
        )
    plot, axes = _plot(trend, band, named)
    drawn = list(axes)
    if band is not None:
        low, high = plot.y(min(band)), plot.y(max(band))
        label = f"no change: {_value(min(band), plot.unit)} to {_value(max(band), plot.unit)}"
        drawn.append(rect(plot.box.left, high, plot.box.right - plot.box.left, low - high, "band", label))
    drawn += _lines(trend, plot)
    if len(points) > FEW:
        values = [point.value for point in points]
        drawn.append(reader(plot.box, plot.x, plot.places, values, plot.unit, dated=plot.dated))
    drawn += _marks(points, plot)
    drawn += _events(trend, plot)
    return frame("trend", HEIGHT, named, _told(trend, plot.unit), drawn)


def _title(trend: Trend) -> str:
    key = trend.series.key
    what = title_of(key.metric)
    where = f" of {key.scope.name}" if key.scope.name and key.scope.name != key.workload else ""
    return f"{what}{where}, {key.workload}" if key.workload else f"{what}{where}"


def _plot(trend: Trend, band: tuple[float, float] | None, title: str) -> tuple[_Plot, list[str]]:
    points, unit = trend.series.points, trend.series.unit
    times = in_order([point.started for point in points])
    places = times or [float(index) for index in range(len(points))]
    values = [point.value for point in points]
    # The band belongs to the picture, but one that is far wider than the values would flatten them.
    reach = (max(values) - min(values)) * BEYOND or abs(max(values)) or 1.0
    low, high = min(values) - reach, max(values) + reach
    ends = [end for p in points for end in (p.low, p.high) if end is not None]
    seen = [*values, *(min(high, max(low, end)) for end in (*ends, *(band or ())))]
    fine, named = ticks(linear(seen, 1.0, 0.0), unit)
    box = box_for(fine, HEIGHT, top=2 * LINE + 10)
    y = linear(seen, box.bottom, box.top)
    x = Scale(places[0], places[-1], box.left + 6, box.right - 6) if len(places) > 1 else _alone(box)
    heading = f"{title} ({named.name})" if named.name else title
    drawn = y_axis(box, y, fine, heading)
    drawn += x_axis(box, x, date_ticks(times[0], times[-1]) if times else _numbers(points, x))
    return _Plot(box, x, y, tuple(places), unit, times is not None), drawn


def _alone(box: Box) -> Scale:
    return Scale(-1.0, 1.0, box.left, box.right)


def _numbers(points: Sequence[Point], x: Scale) -> list[Tick]:
    """Nights by their number, where dates do not tell their order; one alone by its date."""
    count = len(points)
    if count == 1:
        return [Tick(0.0, points[0].started[:10])]
    found, _ = ticks(Scale(1.0, float(count), x.start, x.end), "", min(5, count))
    return [Tick(tick.value - 1, tick.label) for tick in found if tick.value == round(tick.value)]


def _lines(trend: Trend, plot: _Plot) -> list[str]:
    """The interval as an area and the value as a line, each segment by itself: across an edge nothing compares."""
    points, drawn = trend.series.points, []
    stretches = [(segment.first, segment.last) for segment in trend.epochs] or [(0, len(points) - 1)]
    for first, last in stretches:
        kept = [i for i in range(max(0, first), min(last, len(points) - 1) + 1) if points[i].valid]
        for known in _with_interval(points, kept):
            if len(edges := _edges(points, known, plot)) > 1:
                upper, lower = (
                    [(x, high) for x, _, high in edges],
                    [(x, low) for x, low, _ in reversed(edges)],
                )
                drawn.append(curve([*upper, *lower], "area", closed=True))
        if len(kept) > 1:
            drawn.append(curve([(plot.at(i), plot.y(points[i].value)) for i in kept], "line"))
    return drawn


def _with_interval(points: Sequence[Point], kept: Sequence[int]) -> list[list[int]]:
    """Neighbours that all have an interval: the area ends where one has none, or it would tell one of that night."""
    runs: list[list[int]] = [[]]
    for i in kept:
        if points[i].low is not None and points[i].high is not None:
            runs[-1].append(i)
        elif runs[-1]:
            runs.append([])
    return [run for run in runs if run]


def _edges(points: Sequence[Point], kept: Sequence[int], plot: _Plot) -> list[tuple[float, float, float]]:
    """(x, low, high) of the intervals on the chart; of a long stretch the widest of each few neighbours."""
    known = [(plot.at(i), plot.y(points[i].low or 0.0), plot.y(points[i].high or 0.0)) for i in kept]
    each = -(-len(known) // COLUMNS)
    groups = [known[start : start + each] for start in range(0, len(known), max(1, each))]
    return [
        (group[len(group) // 2][0], max(low for _, low, _ in group), min(high for _, _, high in group))
        for group in groups
    ]


def _marks(points: Sequence[Point], plot: _Plot) -> list[str]:
    """Dots: all of a short series; of a long one the hollow ones and the last, which is what the page is about."""
    drawn = []
    for index, point in enumerate(points):
        if len(points) <= FEW or not point.valid or index == len(points) - 1:
            at = {"cx": plot.at(index), "cy": plot.y(point.value), "r": 2.4}
            label = hover(_point(point, plot.unit))
            drawn.append(tag("circle", label, class_="dot" if point.valid else "dot hollow", **at))
    return drawn


def _events(trend: Trend, plot: _Plot) -> list[str]:
    """Lines where it became another one and where a new segment begins, with a word above as far as words stand apart.

    Changes come first where there is not room for all; whatever has no word still has its text to hover over.
    """
    events = [
        (change.index, "change", _step(change), _change(change, plot.unit)) for change in trend.change_points
    ]
    events += [
        (
            e.first,
            "segment",
            f"◆ {CAUSES[e.cause]}",
            f"new segment, {CAUSES[e.cause]}: {segment_reason(trend.series, e)}",
        )
        for e in trend.epochs
    ]
    known = [event for event in events if 0 < event[0] < len(plot.places)]
    places = [(plot.at(index) + plot.at(index - 1)) / 2 for index, *_ in known]
    half = [width(word) / 2 for _, _, word, _ in known]
    middles = [min(WIDTH - w - 2, max(w + 2, x)) for x, w in zip(places, half, strict=True)]
    labelled = set(apart([(x - w, x + w) for x, w in zip(middles, half, strict=True)]))
    drawn = []
    for number, ((_, kind, word, long), x) in enumerate(zip(known, places, strict=True)):
        mark = line(x, plot.box.top, x, plot.box.bottom, kind)
        if number in labelled:
            mark += text((middles[number], plot.box.top - 4), word, f"{kind} m")
        drawn.append(focusable(mark, long))
    return drawn


def _step(change: ChangePoint) -> str:
    """`▲ 5.2 %`: up or down by a sign, so that it needs no colour."""
    sign = "▲" if change.after > change.before else "▼"
    if change.ratio is None or change.before < 0:
        return sign
    by = 100 * (change.ratio - 1)
    return (
        f"{sign} {format_percent(abs(by))} %"
        if abs(by) < 1000
        else f"{sign} × {format_figures(change.ratio)}"
    )


def _change(change: ChangePoint, unit: str) -> str:
    commit = f", at {change.commit[:10]}" if change.commit else ""
    when = f" from {change.started[:10]} on" if change.started else ""
    return f"{_value(change.before, unit)} to {_value(change.after, unit)}{when}{commit}"


def _point(point: Point, unit: str) -> str:
    interval = ""
    if point.low is not None and point.high is not None:
        interval = f" ({_value(point.low, unit)} to {_value(point.high, unit)})"
    commit = f", {point.commit[:10]}" if point.commit else ""
    why = "" if point.valid else f"; decides nothing: {point.reason or 'not valid'}"
    return f"{point.started[:10]}: {_value(point.value, unit)}{interval}{commit}{why}"


def _value(value: float, unit: str) -> str:
    return format_quantity(value, unit)


def _told(trend: Trend, unit: str) -> str:
    """The chart in words: how many nights, the last value, what changed, what does not count."""
    points = trend.series.points
    first, last = points[0], points[-1]
    parts = [f"{plural(len(points), 'night')} from {first.started[:10]} to {last.started[:10]}"]
    parts.append(f"the last is {_value(last.value, unit)}")
    hollow = sum(not point.valid for point in points)
    if hollow:
        parts.append(f"{hollow} of them decide nothing")
    parts += [f"changed by {_change(change, unit)}" for change in trend.change_points[-5:]]
    begun = [segment for segment in trend.epochs if segment.first > 0]
    parts += [
        f"new segment at night {e.first + 1} ({CAUSES[e.cause]}): {segment_reason(trend.series, e)}"
        for e in begun[-5:]
    ]
    return "; ".join(parts) + "."
