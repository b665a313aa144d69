"""All cases of a sweep: in one table that sorts and filters, and as dots below the roofline that lead to its rows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from profkit.analysis.ranking.ranking import BASELINE, FILE, efficiency, throughput
from profkit.core.formatting import format_figures, format_quantity, plural, shorten
from profkit.core.types import CaseResult, MeasuredCeilings, SweepDocument
from profkit.reporting.chart_blocks import CellValue, Charts, NoChart, SortableColumn, SortableTable
from profkit.reporting.charts.marks import Point, Points
from profkit.reporting.charts.series import cloud_chart
from profkit.reporting.view import Block, Paragraph, Section, Span
from profkit.reporting.views.sweep.text import Marker, short_name

_SHOWN = 100  # rows that stand in the page as HTML, for paper and no script
_NAMED = 8  # operations whose intensities a sentence names
_MANY = 8000  # cases from which on some columns are left out, or the page would take long to open
_LEFT_OUT = ("calls", "traffic", "error", "first", "samples")
_HOVER = ("Time", "Speed-up", "GPU Efficiency", "Traffic")  # columns whose numbers hover over a dot


@dataclass(frozen=True)
class CaseColumn:
    """A column of the table; `key` names it here. `unit` is "text" for words, "n" for sizes as they were asked for."""

    key: str
    title: str
    unit: str
    value: Callable[[CaseResult], CellValue]
    meaning: str = ""


def cases_section(document: SweepDocument) -> Iterator[Section]:
    """The table; nothing where no case was settled."""
    results = document.results
    if not results:
        return
    left_out = [c for c in _columns(document) if len(results) >= _MANY and c.key in _LEFT_OUT]
    values = {c: tuple(map(c.value, results)) for c in _columns(document) if c not in left_out}
    shown = [c for c in values if c.key == "case" or len(set(values[c])) > 1]
    same = [
        f"{c.title.lower()} {values[c][0]}"
        for c in values
        if c.unit == "text" and c not in shown and values[c][0]
    ]
    note = "An empty cell was not measured: the state says why. ± is half of the median's 95 % interval."
    note += f" The same for all: {', '.join(same)}." if same else ""
    if left_out:
        titles = ", ".join(column.title.lower() for column in left_out)
        note += f" Of so many cases {titles} are in {FILE} alone."
    body = SortableTable(
        "All cases",
        tuple(SortableColumn(c.title, c.unit, values[c], c.meaning) for c in shown),
        tuple(f"{result.implementation}, {result.point.name}" for result in results),
        note=note,
        hint="words of a case: CUDA 16x256",
        shown=_SHOWN,
    )
    how = "click a title to sort, type words to filter, click a row for all that is known of a case."
    yield Section(
        "All cases", (body,), f"{plural(len(results), 'case')}: {how}", anchor="cases", repeats=True
    )


def _columns(document: SweepDocument) -> tuple[CaseColumn, ...]:
    ceilings = document.roofs
    base = {r.point: r.median for r in document.results if r.implementation == BASELINE and r.median}

    def speedup(result: CaseResult) -> CellValue:
        before = base.get(result.point)
        return before / result.median if before and result.median else None

    def share(result: CaseResult) -> CellValue:
        reached = efficiency(result, ceilings)
        return None if reached is None else 100 * reached

    def half_width(result: CaseResult) -> CellValue:
        return None if result.half_width is None else 100 * result.half_width

    def state(result: CaseResult) -> CellValue:
        return shorten(f"{result.state}: {result.reason}" if result.reason else result.state, 120)

    return (
        CaseColumn("case", "Case", "text", lambda r: shorten(f"{r.point.operation} {r.point.shape}", 40)),
        CaseColumn("by", "By", "text", lambda r: shorten(r.implementation, 24), "the implementation"),
        CaseColumn("direction", "Direction", "text", lambda r: r.point.direction),
        CaseColumn("dtype", "Dtype", "text", lambda r: r.point.dtype),
        CaseColumn("time", "Time", "s", lambda r: r.median, "median of its samples"),
        CaseColumn("half", "±", "%", half_width, "half of its 95 % interval"),
        CaseColumn("speedup", "Speed-up", "x", speedup, f"the time of {BASELINE} over its own"),
        CaseColumn("memory", "Memory", "B", lambda r: r.memory, "the most during a call, inputs included"),
        CaseColumn(
            "calls",
            "Inference Speed",
            "count",
            lambda r: 1 / r.median if r.median else None,
            "calls per second",
        ),
        CaseColumn(
            "roofline",
            "GPU Efficiency",
            "%",
            share,
            "of the roofline: the least time by bytes and FLOPs over the measured one",
        ),
        CaseColumn(
            "traffic",
            "Traffic",
            "B/s",
            lambda r: throughput(r) or None,
            "bytes that must be moved, per second",
        ),
        CaseColumn("batch", "Batch", "n", lambda r: r.point.batch),
        CaseColumn("sequence", "Sequence", "n", lambda r: r.point.sequence),
        CaseColumn("dimension", "Dimension", "n", lambda r: r.point.dimension),
        CaseColumn("error", "Error", "", lambda r: r.error, "largest error over what rounding explains"),
        CaseColumn("first", "First call", "s", lambda r: r.first or None, "with compiling and tuning"),
        CaseColumn("samples", "Samples", "n", lambda r: r.samples or None),
        CaseColumn("device", "Device", "n", lambda r: r.device, "the number of the one that measured it"),
        CaseColumn("state", "State", "text", state),
        CaseColumn("cache", "Cache", "text", lambda r: r.cache),
        CaseColumn("remarks", "Remarks", "text", lambda r: "; ".join(r.remarks) or None),
        CaseColumn(
            "throttled",
            "Throttled",
            "text",
            lambda r: ", ".join(r.throttled) or None,
            "why the device lowered its clock",
        ),
    )


# ---------------------------------------------------------------- below the roofline


def roofline_section(document: SweepDocument, marks: Mapping[str, Marker]) -> Section:
    """Every case below the measured ceilings, and how near to them each is by the bytes that it must move."""
    ceilings = document.roofs
    blocks: tuple[Block, ...]
    if not ceilings.bandwidth or not ceilings.flops:
        blocks = (NoChart("The device's peaks were not measured, so there is no roofline to draw."),)
        return Section("Roofline", blocks, anchor="roofline")
    rates: dict[str, list[Point]] = defaultdict(list)
    shares: dict[str, list[Point]] = defaultdict(list)
    for row, result in enumerate(document.results):
        if result.median and result.bytes and result.flops:
            name = result.implementation
            rates[name].append(Point(result.flops / result.bytes, result.flops / result.median, row=row))
            if share := efficiency(result, ceilings):
                shares[name].append(Point(result.bytes, 100 * share, row=row))
    if not rates:
        blocks = (NoChart("No case has a time, so there is none to draw."),)
        return Section("Roofline", blocks, anchor="roofline")
    of_rates = cloud_chart(
        "All cases below the ceilings",
        "FLOP per byte that must be moved",
        "FLOP/s",
        _dot_series(rates, marks),
        ceilings=(ceilings.bandwidth, ceilings.flops),
        caption="Every case below the ceilings. *: several are at one place.",
        columns=_HOVER,
    )
    of_shares = cloud_chart(
        "Share of the roofline",
        "bytes that a call must move",
        "%",
        _dot_series(shares, marks),
        caption="Share of the roofline by bytes that a call must move:",
        columns=_HOVER,
    )
    key: list[str | Span] = []
    for name, mark in marks.items():
        key += [Span(mark.letter, series=mark.number), f" {short_name(name)}  "] if name in rates else []
    charts = Charts((of_rates, of_shares), _note(document, ceilings))
    return Section("Roofline", (Paragraph(tuple(key)), charts), anchor="roofline")


def _note(document: SweepDocument, ceilings: MeasuredCeilings) -> str:
    """Where the numbers come from, and which operation stands where: all shapes of one have about one intensity."""
    intensities: dict[str, list[float]] = defaultdict(list)
    for result in document.results:
        if result.bytes and result.flops:
            group = f"{result.point.operation} {result.point.direction} {result.point.dtype}"
            intensities[group].append(result.flops / result.bytes)
    ranges = ", ".join(f"{name} {_range(values)}" for name, values in intensities.items())
    where = f" FLOP per byte: {ranges}." if len(intensities) <= _NAMED else ""
    most = f"{format_quantity(ceilings.bandwidth, 'B/s')} and {format_quantity(ceilings.flops, 'FLOP/s')}"
    return (
        "Bytes and FLOPs are those that a call cannot do without: inputs read once, outputs written once. The ceilings,"
        f" {most}, were measured right before the sweep: {ceilings.method}. What is above 100 % was served by"
        f" caches.{where} Implementations stand side by side in the order of their letters above."
    )


def _range(values: Sequence[float]) -> str:
    low, high = format_figures(min(values), 2), format_figures(max(values), 2)
    return low if low == high else f"{low} to {high}"


def _dot_series(dots: Mapping[str, list[Point]], marks: Mapping[str, Marker]) -> tuple[Points, ...]:
    return tuple(
        Points(tuple(dots[name]), name, mark.letter, mark.number)
        for name, mark in marks.items()
        if name in dots
    )
