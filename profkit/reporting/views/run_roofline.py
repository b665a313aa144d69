"""The roofline of a run on its page: what ran, below the machine's limits, and the same as a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil, floor, log10, sqrt

from profkit.analysis.summaries.roofline_points import RooflineModel, RooflinePoint, roofline_model
from profkit.core.formatting import format_percent, format_quantity, percent_text, plural
from profkit.core.types import RunDocument
from profkit.reporting.charts.marks import (
    AnyMark,
    Axis,
    Chart,
    ChartGroup,
    Line,
    Point,
    PointGroup,
    TextMark,
    Tick,
)
from profkit.reporting.columns import Column, data_table
from profkit.reporting.view import DataTable, Fold, PageOnly, Section
from profkit.reporting.views.run_insights import where_text

_MAX_POINTS = 60  # drawn, and in the table: what is smaller has no time worth a look
_NUMBERED = 9  # points that are numbered in the chart; the table has all of them
_SMALLEST, _LARGEST = 2.4, 11.0  # units: radii of a point with no time, and with all
_ROOM = 1.6  # times further than the points and the edges of the roofs
_MAX_TICKS = 5
_PREFIXES = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
# Targets that are a share of a roof, and which: of DRAM alone, or of both.
_TARGETS = (("roofline", True), ("memory-bandwidth", False))


def roofline_section(document: RunDocument) -> PageOnly | None:
    """Return the roofline chart with its table; None where no roofs are known.

    Where roofs are known but no point can be drawn, the section only says why.
    """
    model = roofline_model(document)
    if model is None:
        return None
    if not model.points:
        said = "Nothing is drawn, because the arithmetic and the bytes are not both known for anything that took time."
        return PageOnly((Section("Roofline", (), said, anchor="roofline"),))
    shown = model.points[:_MAX_POINTS]
    share = percent_text(100 * min(1.0, sum(point.share for point in shown)))
    said = f"{plural(len(shown), 'mark')}, with {share} of {model.of}."
    if model.drawn < 0.995:
        said += (
            " Of the others the arithmetic or the bytes are not known, or there are none: they are not drawn."
        )
    chart = ChartGroup((_chart(document, model, shown),), _note(model, shown), repeats=True)
    table = Section("As a table", (_table(document, model, shown),), fold=Fold.FOLDED)
    return PageOnly((Section("Roofline", (chart, table), said, anchor="roofline"),))


def _note(model: RooflineModel, shown: Sequence[RooflinePoint]) -> str:
    """Return how to read the chart, and at which clock the tensor cores' roof is drawn."""
    said = ["A larger mark takes more time; a mark nearer to its roof leaves less to gain."]
    if any(point.counted for point in shown):
        said.append("Filled: counted.")
    if any(not point.counted for point in shown):
        said.append("Hollow marks show the least traffic that the shapes need; the true traffic may be more.")
    if model.clock is not None:
        said.append(
            f"The roof of the tensor cores is that at the observed clock of {format_quantity(model.clock, 'Hz')}."
        )
    return " ".join(said)


def _chart(document: RunDocument, model: RooflineModel, shown: Sequence[RooflinePoint]) -> Chart:
    """Return the chart of the roofs, the target below them, and a mark for each point; both axes are logarithmic."""
    ridges = [peak / model.bandwidth for peak in model.arithmetic.values()]
    across = [*(point.intensity for point in shown), *ridges]
    left, right = _range(across)
    up = [*(point.rate for point in shown), *model.arithmetic.values()]
    low, high = _range(up)
    marks: list[AnyMark] = [*_roofs(model, left, right, low, ""), *_target(document, model, left, right, low)]
    marks += [
        PointGroup(
            (Point(point.intensity, point.rate, "", _style(point), _radius(point.share)),),
            _point_text(document, model, point),
        )
        for point in reversed(shown)  # the largest are drawn last, and reached last
    ]
    marks += [
        TextMark(point.intensity, point.rate, str(number), "", _radius(point.share) + 2)
        for number, point in enumerate(shown[:_NUMBERED], 1)
    ]
    at = sqrt(max(left, low / model.bandwidth) * min(ridges))
    marks.append(TextMark(at, at * model.bandwidth, "DRAM", "roof", sides="la"))
    roofs = ", ".join(f"{kind} {format_quantity(peak, 'FLOP/s')}" for kind, peak in model.arithmetic.items())
    words = f"Roofs: DRAM {format_quantity(model.bandwidth, 'B/s')}, {roofs}. The table below has each mark."
    return Chart(
        "roofline",
        "Roofline",
        words,
        Axis("FLOP per byte of DRAM", low=left, high=right, ticks=_decades(left, right), log=True),
        Axis("FLOP/s, over FLOP per byte of DRAM", low=low, high=high, ticks=_decades(low, high), log=True),
        tuple(marks),
    )


def _roofs(
    model: RooflineModel,
    left: float,
    right: float,
    low: float,
    of: str,
    bytes_: float = 1.0,
    flop: float = 1.0,
) -> Iterator[Line]:
    """Yield the slope of DRAM up to the highest peak, and a level line for each arithmetic peak.

    `bytes_` and `flop` scale both roofs, to draw a target as a share of them; `of` is that target's name, empty
    for the roofs themselves.
    """
    bandwidth = bytes_ * model.bandwidth
    peaks = {kind: flop * peak for kind, peak in model.arithmetic.items()} if flop else {}
    top = max(peaks.values(), default=bandwidth * right)
    begin = max(left, low / bandwidth)
    style = "target" if of else "roof"
    words = of or f"DRAM: {format_quantity(bandwidth, 'B/s')}"
    yield Line(((begin, begin * bandwidth), (top / bandwidth, top)), style, words)
    for kind, peak in peaks.items():
        words = of or f"{kind}: {format_quantity(peak, 'FLOP/s')}"
        label = "" if of else kind.replace("tensor cores", "tensor").replace(" bits", " bit")
        yield Line(((peak / bandwidth, peak), (right, peak)), style, words, label)


def _target(
    document: RunDocument, model: RooflineModel, left: float, right: float, low: float
) -> Iterator[Line]:
    """Yield the run's target as lines at its share of both roofs, else of DRAM's slope."""
    for name, both in _TARGETS:
        verdict = next((v for v in document.verdicts if v.target == name and v.threshold is not None), None)
        if verdict is None or verdict.threshold is None or not 0 < verdict.threshold.value < 100:
            continue
        share = verdict.threshold.value / 100
        words = f"target {name}: {format_percent(100 * share)} % of the {'roof' if both else 'slope'}"
        if both:
            yield from _roofs(model, left, right, low, words, share, share)
        else:
            ridge = max(model.arithmetic.values(), default=0.0) / model.bandwidth
            begin = max(left, low / (share * model.bandwidth))
            yield Line(tuple((at, at * share * model.bandwidth) for at in (begin, ridge)), "target", words)
        return


def _radius(share: float) -> float:
    """Return a mark's radius, such that its area grows with the share of the time."""
    return sqrt(_SMALLEST**2 + min(1.0, max(0.0, share)) * (_LARGEST**2 - _SMALLEST**2))


def _style(point: RooflinePoint) -> str:
    """Return the mark's style: filled where the work was counted, hollow where it follows from the shapes."""
    return "mark" if point.counted else "mark hollow"


def _point_text(document: RunDocument, model: RooflineModel, point: RooflinePoint) -> str:
    """Return a mark's text: `softmax at train.py:9: 47 % of the GPU time; 1.13 FLOP/B, 2.86 TFLOP/s, ...`.

    It ends with the share reached of what the point's roofs allow.
    """
    place = where_text(point.where, document.workload.folder)
    where = f" at {place}" if place and point.where.file else ""
    reached = percent_text(100 * point.rate / model.attainable(point))
    share = percent_text(100 * point.share)
    return (
        f"{point.name}{where}: {share} of {model.of}; {format_quantity(point.intensity, 'FLOP/B')}, "
        f"{format_quantity(point.rate, 'FLOP/s')}, {reached} of what DRAM and {point.roof} allow"
    )


def _table(document: RunDocument, model: RooflineModel, shown: Sequence[RooflinePoint]) -> DataTable:
    """Return the drawn points as a table, numbered like their marks."""
    folder = document.workload.folder
    numbers = {id(point): number for number, point in enumerate(shown, 1)}
    columns: list[Column[RooflinePoint]] = [
        Column("mark", lambda point: numbers[id(point)], "n"),
        Column("what", lambda point: point.name),
        Column("place", lambda point: where_text(point.where, folder) if point.where.file else ""),
        Column("share", lambda point: 100 * point.share, "%", f"of {model.of}"),
        Column("intensity", lambda point: point.intensity, "FLOP/B", "arithmetic per byte of DRAM"),
        Column("rate", lambda point: point.rate, "FLOP/s"),
        Column("roof", lambda point: point.roof, meaning="whose peak it stands below, and that of DRAM"),
        Column(
            "of roof", lambda point: 100 * point.rate / model.attainable(point), "%", "of what they allow"
        ),
        Column("known by", lambda point: "counters" if point.counted else "its shapes"),
    ]
    left = len(model.points) - len(shown)
    return data_table(columns, shown, title="Marks of the roofline", left=left)


def _range(values: Sequence[float]) -> tuple[float, float]:
    """Return an axis range with room around the values, of at least two decades: in less the roofs have no shape."""
    high = max(values) * _ROOM
    return min(min(values) / _ROOM, high / 100), high


def _decades(low: float, high: float) -> tuple[Tick, ...]:
    """Return ticks at powers of ten (`10 G`), every so many where there are more than about `_MAX_TICKS`."""
    first, last = ceil(log10(low)), floor(log10(high))
    apart = max(1, ceil((last - first + 1) / _MAX_TICKS))
    return tuple(Tick(10.0**power, _short(10.0**power)) for power in range(first, last + 1, apart))


def _short(value: float) -> str:
    """Return a value in three digits with its SI prefix: `10 G`."""
    for size, prefix in _PREFIXES:
        if value >= size:
            return f"{value / size:.3g} {prefix}"
    return f"{value:.3g}"
