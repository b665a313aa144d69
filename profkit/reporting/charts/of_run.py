"""Charts of one run: its kernels below the roofline, and its flame graphs.

Their numbers stand in the run's tables too, so text formats leave them out.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import sqrt
from pathlib import Path

from profkit.analysis.stacks.files import flame_of, read_speedscope
from profkit.analysis.summaries.kernels import KernelRow, bottleneck_title
from profkit.analysis.summaries.roofline_points import Roofline, RooflineCeiling, RooflinePoint, roofline_of
from profkit.core.errors import UnreadableReport
from profkit.core.formatting import format_percent, format_quantity, plural
from profkit.core.types import RunDocument, Stacks
from profkit.reporting.charts.marks import Axis, Chart, Charts, FlameGraph, Line, Point, Points
from profkit.reporting.view import Section

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
    named = [f"{number}  {spot.label}" for number, spot in enumerate(roofline.points, 1)]
    told = [f"{name}: {describe(spot)}." for name, spot in zip(named, roofline.points, strict=True)]
    return Chart(
        "roofline",
        "Roofline",
        " ".join([f"Ceilings: {peaks}.", *told[:5], _not_placed(roofline)]).strip(),
        Axis("FLOP per byte of memory traffic", "", low, high, log=True),
        Axis("Roofline", "FLOP/s", bottom, top, log=True),
        (*filter(None, lines), points),
        height=300,
        legend=tuple(zip(named, (describe(spot) for spot in roofline.points), strict=True)),
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
    return Line(points, style, _named(one))


def _named(one: RooflineCeiling) -> str:
    peak = format_quantity(one.peak, "FLOP/s" if one.kind == "compute" else "B/s")
    return f"{one.name} {peak}{' (estimated)' if one.estimated else ''}"


def _spot(number: int, spot: RooflinePoint) -> Point:
    """Its area grows with its share of the time."""
    return Point(
        spot.intensity,
        spot.rate,
        f"{number}: {spot.label}, {describe(spot)}",
        label=str(number),
        style="dot hollow" if spot.quality != "measured" else "dot",
        size=3.5 + 6.5 * sqrt(min(1.0, 1.0 if spot.share is None else spot.share)),
    )


def describe(spot: RooflinePoint) -> str:
    """`84.3 % of the time, 763 TFLOP/s tensor at 300 FLOP/B, 95.0 % of what its ceiling allows; limited by DRAM`."""
    parts = [f"{format_percent(100 * spot.share)} % of the time"] if spot.share is not None else []
    at = format_quantity(spot.intensity, "FLOP/B")
    parts.append(f"{format_quantity(spot.rate, 'FLOP/s')} {spot.kind} at {at}")
    if spot.attainable:
        parts.append(f"{format_percent(100 * spot.rate / spot.attainable)} % of what its ceiling allows")
    quality = f"; {spot.quality}" if spot.quality != "measured" else ""
    known = spot.bound not in (None, "unknown")
    return (
        ", ".join(parts) + quality + (f"; limited by {bottleneck_title(spot.bound or '')}" if known else "")
    )


def _not_placed(roofline: Roofline) -> str:
    """What is not on the chart: a kernel that most of the time goes to is missed there."""
    found = [f"and {plural(roofline.further, 'further kernel')}."] if roofline.further else []
    if roofline.left_out:
        share = (
            f", {format_percent(100 * roofline.left_out_share)} % of the time"
            if roofline.left_out_share
            else ""
        )
        kernels = plural(roofline.left_out, "kernel")
        found.append(f"Not placed: {kernels}{share}, of which arithmetic or memory traffic is not counted.")
    return " ".join(found)


# ---------------------------------------------------------------- the sections of a page

_FLAMES = 3  # sampled events that are drawn


def chart_sections(document: RunDocument, kernels: Sequence[KernelRow], extras: Extras) -> Iterator[Section]:
    """The roofline, and flame graphs."""
    if (roofline := roofline_of(document, kernels)) is not None:
        how = "Hollow points are estimated or simulated. Thick lines limit something here, thin ones nothing."
        charts = Charts((roofline_chart(roofline),), how, repeats=True)
        yield Section("Roofline", (charts,), anchor="roofline", repeats=True)
    flames = [flame for stacks in extras.stacks if (flame := flame_of(stacks)) is not None]
    if flames:
        how = "Widths are shares of the samples; callers stand above what they call."
        charts = Charts(tuple(map(FlameGraph, flames[:_FLAMES])), how, repeats=True)
        yield Section("Flame graph", (charts,), anchor="flame-graph", repeats=True)


PAGE = "report.html"


@dataclass(frozen=True)
class Extras:
    """All of it may be missing: a page is made of what is there."""

    folder: Path | None = None  # where the page will lie: it links to the files that are there
    stacks: tuple[Stacks, ...] = ()  # for flame graphs: Python's, then native; the fullest first

    def has(self, path: str) -> bool:
        """Whether the file lies beside the page."""
        try:
            return self.folder is not None and (self.folder / path).is_file()
        except (OSError, ValueError):
            return False


def read_extras(folder: Path | None) -> Extras:
    """The extras of the run in `folder`; None, or a folder that cannot be read, has none. Never raises."""
    if folder is None:
        return Extras()
    stacks: list[Stacks] = []
    for name in ("stacks", "trace"):
        with contextlib.suppress(UnreadableReport):
            sampled = read_speedscope(folder / "artifacts" / f"{name}.speedscope.json")
            stacks += sorted(sampled, key=lambda one: -len(one.weights))
    return Extras(folder, tuple(stacks))
