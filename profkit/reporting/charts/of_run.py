"""Charts of one run: where its time goes, its samples, its memory, and its kernels below the roofline.

Their numbers stand in the run's tables too, so text formats leave them out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import sqrt

from profkit.analysis.stacks.files import flame_of
from profkit.analysis.summaries.cpu import is_sampled
from profkit.analysis.summaries.gpu_time import COPIES, HOST, IDLE, QUEUED, time_by_limit
from profkit.analysis.summaries.kernels import KernelRow
from profkit.analysis.summaries.metal_readings import INTERVALS, TOOL, idle_causes, idle_of, window_of
from profkit.analysis.summaries.roofline_points import Roofline, RooflineCeiling, RooflinePoint, roofline_of
from profkit.analysis.summaries.time import ProcessDistribution, SampleDistribution, distribution_of
from profkit.core.formatting import format_percent, format_quantity, plural, shorten
from profkit.core.types import RUN, MetalTrace, Reading, RunDocument, Source
from profkit.reporting.chart_blocks import Charts, FlameGraph, Piece, StackedBar
from profkit.reporting.charts.marks import (
    AnyMark,
    Area,
    Axis,
    AxisRule,
    Chart,
    Legend,
    Line,
    Point,
    Points,
    Rectangle,
)
from profkit.reporting.extras import Extras
from profkit.reporting.plain_text import footnote_of
from profkit.reporting.view import Block, Section
from profkit.reporting.views.summaries.metal import IDLE as IDLE_OF_PROCESS

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


# ---------------------------------------------------------------- time, cut into its parts

_MOST_PARTS = 40  # that are named; what is smaller than these goes together
_DESCRIBED = 12  # parts in the text of a bar
# The parts of the time in which no kernel ran.
_WITHOUT_KERNELS = {HOST: "the host had launched nothing", QUEUED: "idle with work queued", IDLE: "idle"}


def time_bars(document: RunDocument, rows: Sequence[KernelRow]) -> list[StackedBar]:
    """The wholes that a document tells of, the widest first."""
    metal, trace = document.metal, document.trace
    bars = [_process_bar(metal)] if metal is not None else []
    if metal is not None and len(metal.encoders) > 1:
        works = [(work.name, work.seconds) for work in metal.encoders]
        bars.append(_parts_bar("The process' GPU time, by encoder", works, TOOL))
    if trace is not None and trace.span and rows:
        pieces = [
            _piece(
                _WITHOUT_KERNELS.get(name, "only copies" if name == COPIES else name),
                share,
                trace.tool,
                "part of the traced time",
                idle=name in _WITHOUT_KERNELS,
            )
            for name, share in time_by_limit(trace, rows)[:_MOST_PARTS]
        ]
        bars.append(_bar("The GPU's time, by what limits it", trace.span, pieces))
    kernels = [(row.label, row.share or 0.0) for row in rows if row.share]
    bars.append(
        _parts_bar("The kernels' time, by kernel", kernels, trace.tool if trace is not None else TOOL)
    )
    for profile in document.profiles:
        if is_sampled(profile) and profile.kind == "libraries":
            spots = [(spot.function, spot.own) for spot in profile.hotspots]
            bars.append(_parts_bar("The CPU's time, by library", spots, ""))
    return [bar for bar in bars if bar is not None and bar.pieces]


def _bar(title: str, seconds: float | None, pieces: Sequence[Piece]) -> StackedBar:
    text = "; ".join(f"{one.label} {format_percent(100 * one.share)} %" for one in pieces[:_DESCRIBED])
    whole = f"{title} ({format_quantity(seconds, 's')})" if seconds else title
    return StackedBar("time", whole, f"{text}.", tuple(pieces))


def _parts_bar(title: str, parts: Sequence[tuple[str, float]], tool: str) -> StackedBar:
    """Shares of the sum of all parts, the largest first."""
    ordered = sorted((part for part in parts if part[1] > 0), key=lambda part: -part[1])
    total = sum(value for _, value in ordered)
    formula = "its part / the sum of all parts"
    pieces = [_piece(name, value / total, tool, formula) for name, value in ordered[:_MOST_PARTS]]
    rest = ordered[_MOST_PARTS:]
    if rest:
        pieces.append(
            _piece(f"{len(rest)} smaller ones", sum(value for _, value in rest) / total, tool, formula)
        )
    return _bar(title, None, pieces)


def _piece(name: str, share: float, tool: str, formula: str, *, idle: bool = False, table: str = "") -> Piece:
    """A share as a piece that leads to the tool and the table that it was computed from, and to how."""
    source = Source(tool, table or None, formula=f"100 * {formula}")
    note = (
        footnote_of(Reading("share of the time", 100 * share, "%", "measured", RUN, source)) if tool else None
    )
    return Piece(name, min(1.0, share), f"{name}: {format_percent(100 * share)} %", idle, note)


def _process_bar(trace: MetalTrace) -> StackedBar | None:
    """The window of the process, else all that was recorded: its work, and what the idle time was."""
    whole, idle = window_of(trace), idle_of(trace)
    if not whole or idle is None or trace.process_busy is None:
        return None
    causes = idle_causes(trace)
    nobody = "nobody works on the GPU" if trace.others is not None else "the process does not"
    parts = [
        ("the process works on the GPU", trace.process_busy),
        *((IDLE_OF_PROCESS[cause], seconds) for cause, seconds in causes),
        (nobody, idle - sum(seconds for _, seconds in causes)),
    ]
    pieces = [
        _piece(
            name, seconds / whole, TOOL, "union of its intervals / it all", idle=place > 0, table=INTERVALS
        )
        for place, (name, seconds) in enumerate(parts)
        if seconds > 1e-9 * whole
    ]
    return _bar("The marked region" if trace.marked else "The time of the process", whole, pieces)


# ---------------------------------------------------------------- samples


def distribution_chart(spread: SampleDistribution) -> Chart:
    """A row for each process: how many samples lie where, its median with the 95 % interval, and what lies outside."""
    shown = spread.processes[:_MOST_ROWS]
    marks: list[AnyMark] = []
    whole = f"Median over processes {format_quantity(spread.median, 's')}"
    if spread.low is not None and spread.high is not None:
        between = _between(spread.low, spread.high)
        words = f"95 % interval of the median over processes: {between}"
        marks.append(Rectangle((spread.low, spread.high), (0, -len(shown)), "band", words))
        whole += f", 95 % interval {between}"
    marks += [mark for n, one in enumerate(shown, 1) for mark in _histogram(one, spread, -n)]
    more = len(spread.processes) - len(shown)
    rest = f" {plural(more, 'further process', 'further processes')} not drawn." if more else ""
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
    yield AxisRule(y=row + 0.66, style="unseen", label=", ".join([words, *outside]))


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
    peaks = ", ".join(map(_named, roofline.ceilings))
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
        note=f"Lines: {peaks}. {_not_placed(roofline)}".strip(),
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
    style = f"ceiling{'' if one.main else ' thin'}{' estimated' if one.estimated else ''}"
    source = footnote_of(one.reading) if one.reading is not None else None
    return Line(points, style, _named(one), source)


def _named(one: RooflineCeiling) -> str:
    peak = format_quantity(one.peak, "FLOP/s" if one.kind == "compute" else "B/s")
    return f"{one.name} {peak}{' (estimated)' if one.estimated else ''}"


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
        more = f" and {one.count - 1} more" if one.count > 1 else ""
        found.append(f"Not placed: {shorten(one.first, 32)}{more}{part}: {one.reason}.")
    return " ".join(found)


# ---------------------------------------------------------------- the sections of a page

_TIMINGS, _FLAMES = 4, 3  # timings and sampled events that are drawn


def chart_sections(document: RunDocument, kernels: Sequence[KernelRow], extras: Extras) -> list[Section]:
    """Where the time goes, the roofline, how the samples lie, flame graphs, and what is held after each iteration."""
    bars = time_bars(document, kernels)
    sections = [_section("Where time goes", "where-time", bars)]
    if (roofline := roofline_of(document, kernels)) is not None:
        note = (
            "Hollow points are estimated or simulated. Thick lines limit something here, thin ones nothing."
        )
        sections.append(_section("Roofline", "roofline", [roofline_chart(roofline)], note))
    spreads = [spread for timing in document.timings if (spread := distribution_of(timing)) is not None]
    sections.append(
        _section("Timing", "distribution", [distribution_chart(one) for one in spreads[:_TIMINGS]])
    )
    flames = [flame for stacks in extras.stacks if (flame := flame_of(stacks)) is not None]
    how = "Widths are shares of the samples; callers stand above what they call."
    sections.append(
        _section("Flame graph", "flame-graph", [FlameGraph(one) for one in flames[:_FLAMES]], how)
    )
    if (found := extras.allocations) is not None:
        words = found.growth.reason[:1].upper() + found.growth.reason[1:]
        if found.growth.per_iteration is not None:
            words += f": {format_quantity(found.growth.per_iteration, 'B')} each iteration."
        points = [(float(x), float(y)) for x, y in found.points]
        chart = growth_chart(points, "Held by Python after each iteration", words)
        sections.append(_section("Memory", "memory", [chart] if chart.marks else [], words))
    return [section for section in sections if section.blocks]


def _section(title: str, anchor: str, charts: Sequence[Block], note: str = "") -> Section:
    blocks = (Charts(tuple(charts), note, repeats=True),) if charts else ()
    return Section(title, blocks, anchor=anchor, repeats=True)
