"""All cases of a sweep: as dots below the roofline, and in a table that sorts and filters, to whose rows they lead."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

from profkit.analysis.ranking.ranking import (
    BASELINE,
    FILE,
    efficiency,
    throughput,
)
from profkit.core.formatting import format_figures, format_quantity, plural, shorten
from profkit.core.types import CaseResult, SweepDocument
from profkit.reporting.chart_blocks import Charts, NoChart
from profkit.reporting.charts.marks import Point, Points
from profkit.reporting.charts.series import cloud_chart
from profkit.reporting.columns import Column, sortable_table
from profkit.reporting.view import (
    Paragraph,
    Section,
    Span,
)
from profkit.reporting.views.cases import (
    hundredfold,
)
from profkit.reporting.views.sweep.text import (
    Marker,
    short_name,
)

_SHOWN = 100  # cases that stand in the page as HTML, for paper and no script
_NAMED = 8  # operations whose intensities a sentence names
_MANY = 8000  # cases from which on some columns are left out, or the page would take long to open
_HOVER = ("Time", "Speed-up", "GPU Efficiency", "Traffic")  # columns whose numbers hover over a dot


def roofline_section(document: SweepDocument, marks: Mapping[str, Marker]) -> Section:
    """Every case below the measured ceilings, and how near to them each is by the bytes that it must move."""
    ceilings = document.roofs
    rates: dict[str, list[Point]] = defaultdict(list)
    shares: dict[str, list[Point]] = defaultdict(list)
    for row, result in enumerate(document.results):
        if result.median and result.bytes and result.flops:
            rate = result.flops / result.median
            rates[result.implementation].append(Point(result.flops / result.bytes, rate, row=row))
            if share := efficiency(result, ceilings):
                shares[result.implementation].append(Point(result.bytes, 100 * share, row=row))
    if not ceilings.bandwidth or not ceilings.flops:
        why = "The device's peaks were not measured, so there is no roofline to draw."
        return Section("Roofline", (NoChart(why),), anchor="roofline")
    if not rates:
        return Section(
            "Roofline", (NoChart("No case has a time, so there is none to draw."),), anchor="roofline"
        )
    of_rates, of_shares = (
        [
            Points(tuple(own[name]), name, mark.letter, mark.number)
            for name, mark in marks.items()
            if name in own
        ]
        for own in (rates, shares)
    )
    charts = (
        cloud_chart(
            "All cases below the ceilings",
            "FLOP per byte that must be moved",
            "FLOP/s",
            of_rates,
            ceilings=(ceilings.bandwidth, ceilings.flops),
            caption="Every case below the ceilings. *: several are at one place.",
            columns=_HOVER,
        ),
        cloud_chart(
            "Share of the roofline",
            "bytes that a call must move",
            "%",
            of_shares,
            caption="Share of the roofline by bytes that a call must move:",
            columns=_HOVER,
        ),
    )
    key: list[str | Span] = []
    for name, mark in marks.items():
        key += [Span(mark.letter, series=mark.number), f" {short_name(name)}  "] if name in rates else []
    note = _roofline_note(document)
    return Section("Roofline", (Paragraph(tuple(key)), Charts(charts, note)), anchor="roofline")


def _roofline_note(document: SweepDocument) -> str:
    """Where the numbers come from, and which operation stands where: all shapes of one have about one intensity."""
    ceilings = document.roofs
    intensities: dict[str, list[float]] = defaultdict(list)
    for result in document.results:
        if result.bytes and result.flops:
            group = f"{result.point.operation} {result.point.direction} {result.point.dtype}"
            intensities[group].append(result.flops / result.bytes)
    ends = {name: [format_figures(end(own), 2) for end in (min, max)] for name, own in intensities.items()}
    ranges = ", ".join(f"{name} {' to '.join(dict.fromkeys(own))}" for name, own in ends.items())
    where = f" FLOP per byte: {ranges}." if len(intensities) <= _NAMED else ""
    most = f"{format_quantity(ceilings.bandwidth, 'B/s')} and {format_quantity(ceilings.flops, 'FLOP/s')}"
    return (
        "Bytes and FLOPs are those that a call cannot do without: inputs read once, outputs written once. The ceilings,"
        f" {most}, were measured right before the sweep: {ceilings.method}. What is above 100 % was served by"
        f" caches.{where} Implementations stand side by side in the order of their letters above."
    )


# ---------------------------------------------------------------- all cases


def cases_section(document: SweepDocument) -> Iterator[Section]:
    """One table that sorts and filters; nothing where no case was settled."""
    results = document.results
    if not results:
        return
    columns = [c for c in _columns(document) if len(results) < _MANY or not c.wide]
    same = [c for c in columns[1:] if len(set(map(c.value, results))) == 1]
    said = [
        f"{c.title.lower()} {c.value(results[0])}" for c in same if c.unit == "text" and c.value(results[0])
    ]
    note = "An empty cell was not measured: the state says why. ± is half of the median's 95 % interval."
    note += f" The same for all: {', '.join(said)}." if said else ""
    if len(results) >= _MANY:
        left = ", ".join(c.title.lower() for c in _columns(document) if c.wide)
        note += f" Of so many cases {left} are in {FILE} alone."
    body = sortable_table(
        "All cases",
        [c for c in columns if c not in same],
        results,
        [f"{result.implementation}, {result.point.name}" for result in results],
        note=note,
        hint="words of a case: CUDA 16x256",
        shown=_SHOWN,
    )
    how = "click a title to sort, type words to filter, click a row for all that is known of a case."
    headline = f"{plural(len(results), 'case')}: {how}"
    yield Section("All cases", (body,), headline, anchor="cases", repeats=True)


def _columns(document: SweepDocument) -> tuple[Column[CaseResult], ...]:
    base = {r.point: r.median for r in document.results if r.implementation == BASELINE and r.median}

    def speedup(result: CaseResult) -> float | None:
        before = base.get(result.point)
        return before / result.median if before and result.median else None

    def state(result: CaseResult) -> str:
        return shorten(f"{result.state}: {result.reason}" if result.reason else result.state, 120)

    def share(result: CaseResult) -> float | None:
        return hundredfold(efficiency(result, document.roofs))

    of_roofline = "of the roofline: the least time by bytes and FLOPs over the measured one"
    return (
        Column("Case", lambda r: shorten(f"{r.point.operation} {r.point.shape}", 40)),
        Column("By", lambda r: shorten(r.implementation, 24), meaning="the implementation"),
        Column("Direction", lambda r: r.point.direction),
        Column("Dtype", lambda r: r.point.dtype),
        Column("Time", lambda r: r.median, "s", "median of its samples"),
        Column("±", lambda r: hundredfold(r.half_width), "%", "half of its 95 % interval"),
        Column("Speed-up", speedup, "x", f"the time of {BASELINE} over its own"),
        Column("Memory", lambda r: r.memory, "B", "the most during a call, inputs included"),
        Column(
            "Inference Speed",
            lambda r: 1 / r.median if r.median else None,
            "count",
            "calls per second",
            wide=True,
        ),
        Column("GPU Efficiency", share, "%", of_roofline),
        Column(
            "Traffic",
            lambda r: throughput(r) or None,
            "B/s",
            "bytes that must be moved, per second",
            wide=True,
        ),
        Column("Batch", lambda r: r.point.batch, "n"),
        Column("Sequence", lambda r: r.point.sequence, "n"),
        Column("Dimension", lambda r: r.point.dimension, "n"),
        Column("Error", lambda r: r.error, "", "largest error over what rounding explains", wide=True),
        Column("First call", lambda r: r.first or None, "s", "with compiling and tuning", wide=True),
        Column("Samples", lambda r: r.samples or None, "n", wide=True),
        Column("Device", lambda r: r.device, "n", "the number of the one that measured it"),
        Column("State", state),
        Column("Cache", lambda r: r.cache),
        Column("Remarks", lambda r: "; ".join(r.remarks) or None),
        Column(
            "Throttled", lambda r: ", ".join(r.throttled) or None, meaning="why the device lowered its clock"
        ),
    )
