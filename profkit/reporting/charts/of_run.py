"""Charts of one run: its samples, its memory, shares over time, and its kernels below the roofline."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from math import sqrt

from profkit.analysis.summaries.roofline_points import Roofline, RooflineCeiling, RooflinePoint
from profkit.analysis.summaries.time import ProcessDistribution, SampleDistribution
from profkit.core.formatting import format_percent, format_quantity, plural, shorten
from profkit.reporting.charts.axes import Axis
from profkit.reporting.charts.marks import AnyMark, Area, Chart, Legend, Line, Point, Points, Rectangle, Rule
from profkit.reporting.footnotes import footnote_of

_MOST_ROWS = 12  # processes that are drawn; more are counted in a line
_MOST_POINTS = 300  # points of a line that are drawn; of more every so many


def growth_chart(
    points: Sequence[tuple[float, float]], title: str, description: str, unit: str = "B"
) -> Chart:
    """A value after each iteration: flat, or growing. Without marks where there are fewer than two."""
    stride = -(-len(points) // _MOST_POINTS) or 1
    kept = [*points[::stride], *(points[-1:] if (len(points) - 1) % stride else [])]
    drawn = len({x for x, _ in kept}) > 1
    marks: tuple[AnyMark, ...] = (Line(tuple(kept)), Points((Point(*kept[-1]),))) if drawn else ()
    return Chart("growth", title, description, Axis("iteration"), Axis(title, unit), marks, height=170)


# ---------------------------------------------------------------- over time


def over_time_chart(
    title: str,
    description: str,
    seconds: float,
    outer: Sequence[float],
    inner: Sequence[float],
    states: Sequence[str] = (),
    legend: str = "",
) -> Chart:
    """Shares (0..1) of equal slices: `outer` as a light area, `inner` as a solid one before it, `states` below both."""
    marks: list[AnyMark] = [
        Area(_steps(values, seconds), style) for values, style in ((outer, "soft"), (inner, "bins")) if values
    ]
    kinds = sorted(filter(None, dict.fromkeys(states)), key=lambda name: -states.count(name))
    colours = {name: f"s{place % 6 + 1}" for place, name in enumerate(kinds)}
    place = 0
    for name, same in groupby(states if kinds else ()):
        begin, place = place, place + len(list(same))
        ends = tuple(seconds * at / len(states) for at in (begin, place))
        words = f"{name or 'not known'}: {format_quantity(ends[0], 's')} to {format_quantity(ends[1], 's')}"
        marks.append(Rectangle((ends[0], ends[1]), (-16, -4), f"{colours.get(name, 's0')} cut", words))
    rows = tuple(
        Legend(name, f"{format_percent(100 * states.count(name) / len(states))} %", colours[name])
        for name in kinds
    )
    return Chart(
        "over-time",
        title,
        description,
        Axis("time", "s", 0.0, seconds),
        Axis(title, "%", -20.0 if kinds else 0.0, 100.0),
        tuple(marks) if seconds > 0 else (),
        legend=rows,
        note=legend,
    )


def _steps(values: Sequence[float], seconds: float) -> tuple[tuple[float, float, float], ...]:
    """The edges of slices, each as wide as it is long, as an area from 0 on."""
    wide = seconds / len(values)
    levels = [100 * min(1.0, max(0.0, share)) for share in values]
    return tuple((at * wide, 0.0, y) for n, y in enumerate(levels) for at in (n, n + 1))


# ---------------------------------------------------------------- samples


def distribution_chart(spread: SampleDistribution) -> Chart:
    """A row for each process: how many samples lie where, its median with the 95 % interval, and what lies outside."""
    shown = spread.processes[:_MOST_ROWS]
    marks: list[AnyMark] = []
    if spread.low is not None and spread.high is not None:
        words = f"95 % interval of the median over processes: {_between(spread.low, spread.high)}"
        marks.append(Rectangle((spread.low, spread.high), (0, -len(shown)), "band", words))
    rows = [_histogram(one, spread, -n) for n, one in enumerate(shown, 1)]
    marks += [mark for row in rows for mark in row]
    more = len(spread.processes) - len(shown)
    rest = f" {plural(more, 'further process', 'further processes')} not drawn." if more else ""
    whole = f"Median over processes {format_quantity(spread.median, 's')}"
    if spread.low is not None and spread.high is not None:
        whole += f", 95 % interval {_between(spread.low, spread.high)}"
    title = f"Time of {spread.name}"
    return Chart(
        "distribution",
        title,
        ". ".join([whole, *map(_process, shown)]) + ".",
        Axis("time", "s", spread.begin, spread.end, spread.log),
        Axis(title, "", -len(shown), 0, ticks=()),
        tuple(marks),
        height=46.0 * len(shown) + 4 * 16,
        note=f"Line: median. Bar below it: its 95 % interval. Shaded: that of all processes together.{rest}",
    )


def _histogram(process: ProcessDistribution, spread: SampleDistribution, row: float) -> Iterator[AnyMark]:
    """Bars of the samples upon a base line, words above them at the left, and the median through both."""
    base, tall, peak = row + 0.12, 0.5, max(process.bins, default=0) or 1
    count = len(process.bins)

    def edge(place: int) -> float:
        share = place / count
        if spread.log:
            return float(spread.begin * (spread.end / spread.begin) ** share)
        return spread.begin + (spread.end - spread.begin) * share

    edges = (
        (edge(n + side), base, base + tall * b / peak) for n, b in enumerate(process.bins) for side in (0, 1)
    )
    yield Area(tuple(edges), "bins", _process(process))
    if process.low is not None and process.high is not None:
        yield Rectangle((process.low, process.high), (base - 0.1, base - 0.03), "s2")
    yield Line(((process.median, base - 0.1), (process.median, base + tall + 0.05)), "median")
    outside = [f"‹ {process.below} below"] if process.below else []
    outside += [f"{process.above} beyond ›"] if process.above else []
    words = f"{process.number}: {format_quantity(process.median, 's')}, {plural(process.count, 'sample')}"
    yield Rule(y=row + 0.66, style="unseen", label=", ".join([words, *outside]))


def sequence_chart(spread: SampleDistribution) -> Chart:
    """Samples in the order in which they were taken, process by process: drift, and the warm-up that is not counted."""
    shown = spread.processes[:_MOST_ROWS]
    title = f"Samples of {spread.name} in their order"
    marks = [mark for number, process in enumerate(shown) for mark in _panel(process, spread, number)]
    note = "One stretch for each process; band: from the fastest to the slowest of neighbours."
    note += " Dashed: warm-up, not counted." if any(process.warmup for process in shown) else ""
    drifts = [f"process {one.number} by {format_percent(100 * one.drift)} %" for one in shown if one.drift]
    words = (
        f"It drifts: {', '.join(drifts)}." if drifts else "No drift stands out of the noise in any process."
    )
    across = Axis("", "", 0, len(shown), ticks=())
    return Chart("sequence", title, words, across, Axis(title, "s"), tuple(marks), height=150, note=note)


def _panel(process: ProcessDistribution, spread: SampleDistribution, left: float) -> Iterator[AnyMark]:
    """One stretch of the width 1. As far up as the histogram reaches: one hiccup must not flatten everything else."""

    def kept(value: float) -> float:
        return min(spread.end, max(spread.begin, value))

    early = min(0.2, len(process.warmup) / max(1, len(process.warmup) + len(process.sequence)))
    room = 0.98 - early
    band = [
        (left + early + room * at, kept(low), kept(mid), kept(high))
        for at, low, mid, high in process.sequence
    ]
    if len(band) == 1:
        yield Points((Point(band[0][0], band[0][2], _process(process)),))
    else:
        yield Area(tuple((x, low, high) for x, low, _, high in band), hover=_process(process))
        yield Line(tuple((x, middle) for x, _, middle, _ in band))
    if process.warmup and band:
        warm = [(left + early * at, kept(middle)) for at, _, middle, _ in process.warmup]
        yield Line((*warm, (band[0][0], band[0][2])), "warm")
    if left:
        yield Rule(x=left, style="grid")


def _process(process: ProcessDistribution) -> str:
    median = format_quantity(process.median, "s")
    parts = [f"process {process.number}: median {median} of {plural(process.count, 'sample')}"]
    if process.low is not None and process.high is not None:
        parts.append(f"95 % interval {_between(process.low, process.high)}")
    parts += [plural(process.outliers, "outlier")] if process.outliers else []
    parts += [f"drifts by {format_percent(100 * process.drift)} %"] if process.drift else []
    return "; ".join(parts)


def _between(low: float, high: float) -> str:
    return f"{format_quantity(low, 's')} to {format_quantity(high, 's')}"


# ---------------------------------------------------------------- roofline


def roofline_chart(roofline: Roofline) -> Chart:
    """Attainable FLOP/s over arithmetic intensity, both logarithmic, and where kernels stand below it.

    Points are numbered, and named below the chart: names would stand on each other where kernels are alike. A point is
    as large as its share of the time; a hollow one is estimated or simulated.
    """
    memory = [one.peak for one in roofline.ceilings if one.kind == "memory"]
    compute = [one.peak for one in roofline.ceilings if one.kind == "compute"]
    rates = [spot.rate for spot in roofline.points]
    across = [*(spot.intensity for spot in roofline.points), *(c / m for c in compute for m in memory)]
    low, high = min(across) / 4, max(across) * 4
    # At the left the lowest slope ends at its own rate, which should be on the chart, within reason.
    floor = max(min(rates) / 30, min([peak * low for peak in memory], default=min(rates)))
    bottom, top = min([*rates, *compute, floor]) / 3, max([*rates, *compute]) * 3
    ceilings = sorted(roofline.ceilings, key=lambda one: one.main)
    lines = (_ceiling(one, (low, bottom, high, top), memory, compute) for one in ceilings)
    points = Points(tuple(_spot(number, spot) for number, spot in enumerate(roofline.points, 1)))
    peaks = ", ".join(f"{one.name} {_peak(one)}" for one in roofline.ceilings)
    first = [f"{spot.description}{_quality(spot)}." for spot in roofline.points[:5]]
    return Chart(
        "roofline",
        "Roofline",
        " ".join([f"Ceilings: {peaks}.", *first, _not_placed(roofline)]).strip(),
        Axis("FLOP per byte of memory traffic", "", low, high, log=True),
        Axis("Roofline", "FLOP/s", bottom, top, log=True),
        (*filter(None, lines), points),
        height=300,
        legend=tuple(_spot_row(number, spot) for number, spot in enumerate(roofline.points, 1)),
        note=_not_placed(roofline),
    )


def _ceiling(
    one: RooflineCeiling, ends: tuple[float, float, float, float], memory: list[float], compute: list[float]
) -> Line | None:
    """A level from the highest slope on, or a slope up to the highest level; thin where nothing stands under it."""
    low, bottom, high, top = ends
    if one.kind == "compute":
        begin = max(low, one.peak / max(memory)) if memory else low
        points = ((begin, one.peak), (high, one.peak))
    else:
        begin, end = max(low, bottom / one.peak), min(high, max(compute, default=top) / one.peak)
        if end <= begin:
            return None
        points = ((begin, begin * one.peak), (end, end * one.peak))
    label = f"{one.name}: {_peak(one)}{' (estimated)' if one.estimated else ''}"
    style = f"ceiling{'' if one.main else ' thin'}{' estimated' if one.estimated else ''}"
    source = footnote_of(one.reading) if one.reading is not None else None
    return Line(points, style, label, label, source)


def _peak(one: RooflineCeiling) -> str:
    return format_quantity(one.peak, "FLOP/s" if one.kind == "compute" else "B/s")


def _spot(number: int, spot: RooflinePoint) -> Point:
    """Its area grows with its share of the time."""
    return Point(
        spot.intensity,
        spot.rate,
        f"{number}: {spot.description}{_quality(spot)}",
        label=str(number),
        style="dot hollow" if spot.quality else "dot",
        size=3.5 + 6.5 * sqrt(min(1.0, spot.share or 0.0)),
        source=footnote_of(spot.reading) if spot.reading is not None else None,
    )


def _spot_row(number: int, spot: RooflinePoint) -> Legend:
    """Its name and share of the time, and below it its rate and what limits it."""
    known = spot.share is not None and spot.share < 1
    share = f"{format_percent(100 * (spot.share or 0))} % of the time" if known else ""
    facts = [f"{format_quantity(spot.rate, 'FLOP/s')} {spot.under}"]
    facts += [f"limited by {spot.bound}"] if spot.bound else []
    facts += [spot.quality] if spot.quality else []
    return Legend(f"{number}  {spot.label}", share, small="; ".join(facts), hover=spot.label)


def _quality(spot: RooflinePoint) -> str:
    return f" ({spot.quality})" if spot.quality else ""


def _not_placed(roofline: Roofline) -> str:
    """What is not on the chart, and why: a kernel that most of the time goes to is missed there."""
    found = []
    if roofline.further:
        found.append(f"and {plural(roofline.further, 'further kernel')}, in the table.")
    for one in roofline.left_out[:3]:
        part = f" ({format_percent(100 * one.share)} % of the time)" if one.share else ""
        which = (
            f"{shorten(one.first, 32)} and {one.count - 1} more" if one.count > 1 else shorten(one.first, 40)
        )
        found.append(f"Not placed: {which}{part}: {one.reason}.")
    return " ".join(found)
