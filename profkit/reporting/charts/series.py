"""Charts of many cases: series over a size, and all cases below their ceilings."""

from __future__ import annotations

from collections.abc import Sequence

from profkit.core.formatting import format_quantity
from profkit.reporting.charts.marks import Axis, Chart, Line, Points, Tick


def series_chart(title: str, across: str, series: Sequence[Points], unit: str, *, of: str = "") -> Chart:
    """Lines over a size, both axes logarithmic. Values are in `unit`."""
    at = sorted({point.x for one in series for point in one.points})
    sentences = (
        f"{one.name}: {', '.join(f'{format_quantity(p.y, unit)} at {p.x:g}' for p in one.points)}"
        for one in series
        if one.points
    )
    return Chart(
        "lines",
        title,
        f"Over {across}. {'; '.join(sentences)}.",
        Axis(across, log=True, ticks=tuple(Tick(place, f"{place:g}") for place in at)),
        Axis(title, unit, log=True),
        tuple(one for one in reversed(series) if one.points),
        of=of,
        height=210,
    )


def cloud_chart(title: str, across: str, clouds: Sequence[Points], ceilings: tuple[float, float]) -> Chart:
    """Thousands of points (FLOP/s over FLOP per byte) below two ceilings, in bytes/s and FLOP/s."""
    points = [point for cloud in clouds for point in cloud.points]
    bandwidth, flops = ceilings
    ridge = flops / bandwidth
    xs = [*(point.x for point in points), ridge]
    low, high = min(xs) / 2, max(xs) * 2
    ys = [*(point.y for point in points), flops, bandwidth * low]
    memory, arithmetic = format_quantity(bandwidth, "B/s"), format_quantity(flops, "FLOP/s")
    return Chart(
        "cases",
        title,
        f"{len(points)} cases below {memory} and {arithmetic}; the table of all cases has their numbers.",
        Axis(across, "", low, high, log=True),
        Axis(title, "FLOP/s", min(ys) / 1.6, max(ys) * 1.6, log=True),
        (
            Line(((low, low * bandwidth), (ridge, flops)), "ceiling", f"memory: {memory}, measured"),
            Line(((ridge, flops), (high, flops)), "ceiling", f"arithmetic: {arithmetic}, measured"),
            *clouds,
        ),
        height=300,
    )
