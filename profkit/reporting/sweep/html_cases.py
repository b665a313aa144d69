"""All cases of a sweep in one table that sorts and filters, and as dots below the roofline that lead to its rows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from profkit.analysis.ranking.ranking import BASELINE, efficiency, throughput
from profkit.core.formatting import format_figures as short_number
from profkit.core.formatting import format_quantity, plural, shorten
from profkit.core.types import CaseResult, Json, MeasuredCeilings, SweepDocument
from profkit.reporting.charts.cases import Cloud, Frame, roofline_of_cases, share_of_cases
from profkit.reporting.html.graphs import packed, trimmed
from profkit.reporting.html.part import Part
from profkit.reporting.html.sweep_figures import figures, sentence
from profkit.reporting.html.templates import filled
from profkit.reporting.plain_text import without_control_characters
from profkit.reporting.sweep.html_panel import Signs

PLAIN = 100  # rows that stand in the page as HTML, for paper and no script
FIGURES = 4  # of a number in the data: one more than is shown
TITLES = 8  # panels that a sentence names
MANY = 8000  # cases from which on columns that others tell are left out, or the page would take long to open
TOLD = ("Calls/s", "Traffic", "Error", "First call", "Samples")
Value = str | float | int | None


@dataclass(frozen=True)
class _Column:
    """A column: `unit` is "text" for words; `meaning` hovers over its title."""

    title: str
    unit: str
    value: Callable[[CaseResult], Value]
    meaning: str = ""


def part(document: SweepDocument) -> Part | None:
    """The table; None where nothing was settled."""
    results = document.results
    if not results:
        return None
    without = TOLD if len(results) >= MANY else ()
    columns = [one for one in _columns(document) if one.title not in without]
    known = [(one, [one.value(result) for result in results]) for one in columns]
    shown = [(one, values) for one, values in known if one.title == "Case" or _worth(values)]
    alike = [
        f"{one.title.lower()} {values[0]}"
        for one, values in known
        if one.unit == "text" and len(set(values)) == 1 and values[0]
    ]
    rows = [[_told(values[n], one.unit) for one, values in shown] for n in range(min(PLAIN, len(results)))]
    body = filled(
        "sweep_cases.html.j2",
        columns=[(one.title, one.meaning, one.unit != "text") for one, _ in shown],
        rows=rows,
        number=len(results),
        left=max(0, len(results) - PLAIN),
        alike=", ".join(alike),
        without=", ".join(without).lower(),
    )
    data: dict[str, Json] = {
        "rows": len(results),
        "columns": [_data(one, values) for one, values in shown],
        "shape": [],
        "details": {},
    }
    names: list[str | None] = [
        without_control_characters(f"{r.implementation}, {r.point.name}") for r in results
    ]
    headline = f"{plural(len(results), 'case')}: a click on a title sorts, words filter, a row tells all of one case."
    islands: dict[str, Json] = {"kernel-data": data, "kernel-names": packed(names)}
    return Part("cases", "All cases", body, headline=headline, data=islands)


def roofline_part(document: SweepDocument, signs: Signs) -> Part:
    """Every case below the measured roofs, and how near to them each is by the bytes that it must move."""
    roofs = document.roofs
    title, name = "Roofline", "roofline"
    if not roofs.bandwidth or not roofs.flops:
        return Part(name, title, sentence("The device's peaks were not measured, so there is none to draw."))
    rates: dict[str, list[tuple[float, float, int]]] = defaultdict(list)
    shares: dict[str, list[tuple[float, float, int]]] = defaultdict(list)
    for row, result in enumerate(document.results):
        if result.median and result.bytes and result.flops:
            rates[result.implementation].append(
                (result.flops / result.bytes, result.flops / result.median, row)
            )
            if share := efficiency(result, roofs):
                shares[result.implementation].append((result.bytes, 100 * share, row))
    if not rates:
        return Part(name, title, sentence("No case has a time, so none has a place below the roofs."))
    first = roofline_of_cases(
        _clouds(rates, signs),
        Frame("All cases below their roofs", "FLOP per byte that must be moved", "FLOP/s", aside=True),
        roofs.bandwidth,
        roofs.flops,
    )
    second = share_of_cases(
        _clouds(shares, signs), Frame("Share of the roofline", "bytes that a call must move", "%", aside=True)
    )
    key = filled(
        "sweep_key.html.j2",
        names=[(without_control_characters(n), signs.letters[n], signs.places[n] % 8 + 1) for n in rates],
    )
    return Part(name, title, key + figures([first, second], _note(document, roofs)))


def _note(document: SweepDocument, roofs: MeasuredCeilings) -> str:
    """Which operation stands where, since all shapes of one have about the same intensity."""
    found: dict[str, list[float]] = defaultdict(list)
    for result in document.results:
        if result.bytes and result.flops:
            found[f"{result.point.operation} {result.point.direction} {result.point.dtype}"].append(
                result.flops / result.bytes
            )
    told = ", ".join(f"{name} {_range(values)}" for name, values in found.items())
    where = f" FLOP per byte: {told}." if len(found) <= TITLES else ""
    reached = f"{format_quantity(roofs.bandwidth, 'B/s')} and {format_quantity(roofs.flops, 'FLOP/s')}"
    return (
        "Bytes and FLOPs are those that a call cannot do without: inputs read once, outputs written once. The roofs,"
        f" {reached}, were measured right before, by {without_control_characters(roofs.method)};"
        f" what is above 100 % was served by caches.{where}"
        " Implementations stand side by side in the order of their letters above."
    )


def _range(values: Sequence[float]) -> str:
    low, high = short_number(min(values), 2), short_number(max(values), 2)
    return low if low == high else f"{low} to {high}"


def _clouds(dots: dict[str, list[tuple[float, float, int]]], signs: Signs) -> list[Cloud]:
    return [Cloud(name, signs.letters[name], signs.places[name], tuple(own)) for name, own in dots.items()]


def _columns(document: SweepDocument) -> tuple[_Column, ...]:
    roofs = document.roofs
    base = {r.point: r.median for r in document.results if r.implementation == BASELINE and r.median}

    def speedup(result: CaseResult) -> Value:
        before = base.get(result.point)
        return before / result.median if before and result.median else None

    def share(result: CaseResult) -> Value:
        found = efficiency(result, roofs)
        return None if found is None else 100 * found

    return (
        _Column("Case", "text", lambda r: shorten(f"{r.point.operation} {r.point.shape}", 40)),
        _Column("By", "text", lambda r: shorten(r.implementation, 24), "The implementation"),
        _Column("Direction", "text", lambda r: r.point.direction),
        _Column("Dtype", "text", lambda r: r.point.dtype),
        _Column("Time", "s", lambda r: r.median, "Median of its samples"),
        _Column(
            "±",
            "%",
            lambda r: None if r.half_width is None else 100 * r.half_width,
            "Half of its 95 % interval",
        ),
        _Column("Speed-up", "x", speedup, f"The time of {BASELINE} over its own"),
        _Column("Memory", "B", lambda r: r.memory, "The most during a call, inputs included"),
        _Column("Calls/s", "count", lambda r: 1 / r.median if r.median else None),
        _Column("Roofline", "%", share, "The least time by bytes and FLOPs over the measured one"),
        _Column("Traffic", "B/s", lambda r: throughput(r) or None, "Bytes that must be moved, per second"),
        _Column("Batch", "n", lambda r: r.point.batch),
        _Column("Sequence", "n", lambda r: r.point.sequence),
        _Column("Dimension", "n", lambda r: r.point.dimension),
        _Column("Error", "of tolerance", lambda r: r.error, "Largest error over what rounding explains"),
        _Column("First call", "s", lambda r: r.first or None, "Compiling and tuning are in it"),
        _Column("Samples", "n", lambda r: r.samples or None),
        _Column("Device", "n", lambda r: r.device, "The number of the one that measured it"),
        _Column("State", "text", lambda r: _state(r)),
        _Column("Cache", "text", lambda r: r.cache),
        _Column("Remarks", "text", lambda r: "; ".join(r.remarks) or None),
        _Column(
            "Held down",
            "text",
            lambda r: ", ".join(r.throttled) or None,
            "Why the device held its clock down",
        ),
    )


def _state(result: CaseResult) -> str:
    return shorten(f"{result.state}: {result.reason}" if result.reason else result.state, 120)


def _worth(values: Sequence[Value]) -> bool:
    """Whether a column tells rows apart."""
    return len(set(values)) > 1


def _told(value: Value, unit: str) -> str:
    if value is None or isinstance(value, str):
        return without_control_characters(value or "")
    return (
        str(value)
        if unit == "n"
        else format_quantity(float(value), "" if unit in ("x", "of tolerance") else unit)
    )


def _data(column: _Column, values: Sequence[Value]) -> Json:
    """A column for the script: words each once, numbers as they are."""
    held: dict[str, Json]
    told = [_told(value, column.unit) for value in values]
    if column.unit == "text":
        held = {
            "words": packed(
                [None if value is None else without_control_characters(str(value)) for value in values]
            )
        }
    else:
        held = {"values": trimmed([_short(value) for value in values])}
    unit = {"n": "n", "x": "", "of tolerance": ""}.get(column.unit, column.unit)
    width = max(len(column.title) + 2, *(len(words) for words in told))
    return {"title": column.title, "unit": unit, "width": width, **held, "source": 0, "mark": "", "odd": {}}


def _short(value: Value) -> Json:
    return float(f"{value:.{FIGURES}g}") if isinstance(value, float) else value
