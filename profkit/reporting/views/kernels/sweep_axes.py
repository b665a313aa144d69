"""A sweep along its axes: a table for each that it varies, and on a page curves, one chart for each operation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, zip_longest

from profkit.analysis.axes import SIZES, AxisMeans, means_along, varied_axes
from profkit.analysis.ranking import BASELINE, ComparisonGroup, comparison_groups, whole_sweep
from profkit.core.formatting import format_percent, format_quantity, joined, plural
from profkit.core.types import SweepDocument
from profkit.reporting.charts.marks import (
    AnyMark,
    Area,
    Axis,
    Chart,
    ChartGroup,
    Line,
    Point,
    PointGroup,
    Scale,
    Tick,
    linear,
)
from profkit.reporting.view import Block, DataTable, Fold, Paragraph, Section, Span, Text, between, table
from profkit.reporting.view import joined as joined_text
from profkit.reporting.views.kernels.cases import ratio, short_name

_DECADE = 10.0  # values that span more than that stand on a logarithmic axis
_ROOM = 1.15  # free above and below the curves of a logarithmic axis
_MIN_EDGE = 0.05  # of a time: an interval down to 0 has no end on a logarithmic axis
_MAX_CHARTS = 30  # five operations in both directions and three dtypes
_DASHED = "dashed: the least time by the roofline"
ROOF = "Roof"


def axes_section(document: SweepDocument, marks: Mapping[str, Span]) -> Iterator[Section]:
    """Yield a table for each axis over the whole sweep, curves, and the tables of each operation; nothing of one
    point.
    """
    whole, groups = whole_sweep(document), comparison_groups(document)
    blocks: list[Block] = []
    for axis in varied_axes(whole):
        blocks += _of_axis(axis, whole, groups, document, marks)
    if blocks:
        faster = f", and how many times as fast as {BASELINE}" if len(whole.implementations) > 1 else ""
        headline = f"Time{faster}: geometric means over everything but the axis of the table."
        yield Section("Along each axis", tuple(blocks), headline, anchor="axes")


def _of_axis(
    axis: str,
    whole: ComparisonGroup,
    groups: Sequence[ComparisonGroup],
    document: SweepDocument,
    marks: Mapping[str, Span],
) -> Iterator[Block]:
    yield from _table(means_along(whole, axis, document.roofs), f"By {axis}")
    if axis not in SIZES:
        return
    own = [(group, means_along(group, axis, document.roofs)) for group in groups]
    drawn = [(group.title, means) for group, means in own if means.values]
    if drawn:
        charts = tuple(_chart(title, means, marks) for title, means in drawn[:_MAX_CHARTS])
        yield ChartGroup(charts, _legend([means for _, means in drawn], len(charts), marks), repeats=True)
    if len(groups) > 1:
        tables = tuple(block for group, means in own for block in _table(means, f"{group.title}, by {axis}"))
        yield Section(f"By {axis}, each operation", tables, fold=Fold.FOLDED)


def _table(means: AxisMeans, title: str) -> tuple[DataTable | Paragraph]:
    """Return a table with values as rows and implementations as columns; a sentence if no shapes can be compared."""
    if not means.values:
        why = f"no {means.axis} was timed beside another one in every implementation"
        return (Paragraph(f"{title}: no means, since {why} at the same other values."),)
    rows = [
        (str(value), *(_cell(means, name, place) for name in means.times))
        for place, value in enumerate(means.values)
    ]
    return (table((means.axis, *map(short_name, means.times)), rows, title=title, note=_note(means)),)


def _cell(means: AxisMeans, name: str, place: int) -> str:
    """Return `1.23 ms (2.50 x)`; the baseline's has its time alone."""
    time = format_quantity(means.times[name][place], "s")
    speedups = means.speedups(name)
    return time if speedups is None or name == BASELINE else f"{time} ({ratio(speedups[place])})"


def _note(means: AxisMeans) -> str:
    text = f"Each mean is over the same {plural(means.compared, 'combination')} of the other axes"
    if means.left_out:
        text += (
            f"; {means.left_out} of {plural(means.shapes, 'shape')} are left out: not every implementation has a time"
            f" there at every {means.axis}"
        )
    if means.without:
        text += f"; no row for {joined(list(map(str, means.without)))}"
    if means.elsewhere:
        names = joined(list(map(short_name, means.elsewhere)))
        text += f"; {names}: not in every operation, direction and dtype, so in their own tables alone"
    return f"{text}."


# ---------------------------------------------------------------- curves


def _chart(title: str, means: AxisMeans, marks: Mapping[str, Span]) -> Chart:
    """Time against the axis, a line for each implementation with its letter behind it, and the roof."""
    values = [float(value) for value in means.values]
    times = [time for own in (*means.times.values(), means.least or ()) for time in own]
    times += [
        end
        for name in means.times
        for area in _bands(means, name, "")
        for _, *ends in area.edges
        for end in ends
    ]
    across = max(values) / min(values) > _DECADE
    up = across or max(times) / min(times) > _DECADE
    room = Scale(min(times) / _ROOM, max(times) * _ROOM, 0, 1) if up else linear(times, 0, 1)
    drawn: list[AnyMark] = []
    for name in means.times:  # behind all curves
        drawn += _bands(means, name, f"area held w{(marks[name].series or 0) % 8 + 1}")
    if means.least is not None:
        roof = tuple(zip(values, means.least, strict=True))
        drawn.append(Line(roof, "roof", f"{ROOF}: {_times_text(means, means.least)}"))
    for name, own in means.times.items():
        series = f"w{(marks[name].series or 0) % 8 + 1}"
        drawn.append(Line(tuple(zip(values, own, strict=True)), f"curve {series}", label=marks[name].text))
        dots = tuple(Point(x, y, style=f"knot {series}") for x, y in zip(values, own, strict=True))
        drawn.append(
            PointGroup(
                dots, f"{short_name(name)}: {_times_text(means, own, means.half_widths.get(name, ()))}"
            )
        )
    ticks = tuple(Tick(float(value), str(value)) for value in means.values)
    named = f"{title}: time by {means.axis}"
    return Chart(
        "axis",
        named,
        f"Geometric means over {plural(means.compared, 'combination')} of the other axes each; a line for each of"
        f" {joined(list(map(short_name, means.times)))}.",
        Axis(ticks=ticks, log=across),
        Axis(named, "s", room.low, room.high, log=up),
        tuple(drawn),
    )


def _bands(means: AxisMeans, name: str, style: str) -> Iterator[Area]:
    """Yield the intervals of an implementation's times, as far as they are known side by side."""
    values, widths = map(float, means.values), means.half_widths.get(name, ())
    places = list(zip(values, means.times[name], widths, strict=False))
    for known, stretch in groupby(places, key=lambda place: place[2] is not None):
        edges = tuple(
            (at, time * max(_MIN_EDGE, 1 - (half or 0.0)), time * (1 + (half or 0.0)))
            for at, time, half in stretch
        )
        if known and len(edges) > 1:
            yield Area(edges, style)


def _times_text(means: AxisMeans, times: Sequence[float], half_widths: Sequence[float | None] = ()) -> str:
    """Return `16 1.20 ms ±0.8 %, 32 2.31 ms`: each value with its time, and its interval where that is known."""
    parts = []
    for value, time, half in zip_longest(means.values, times, half_widths):
        interval = f" ±{format_percent(100 * half)} %" if half else ""
        parts.append(f"{value} {format_quantity(time, 's')}{interval}")
    return ", ".join(parts)


def _legend(charts: Sequence[AxisMeans], shown: int, marks: Mapping[str, Span]) -> Text:
    """Return the letters with their names, what the dashed line is, and how many have no chart."""
    names = dict.fromkeys(name for means in charts for name in means.times)
    parts: list[Text] = [joined_text(marks[name], f" {short_name(name)}") for name in names]
    if any(means.least is not None for means in charts):
        parts.append(_DASHED)
    if left := len(charts) - shown:
        parts.append(f"{left} further ones have their tables alone")
    return joined_text(*between("; ", parts))
