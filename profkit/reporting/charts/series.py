"""Charts of many cases: series over a size, all cases below their ceilings, shares above p."""

from __future__ import annotations

from collections.abc import Sequence

from profkit.core.formatting import format_quantity
from profkit.reporting.charts.marks import AnyMark, Axis, AxisRule, Chart, Line, Points, Tick


def series_chart(
    title: str,
    across: str,
    series: Sequence[Points],
    unit: str,
    *,
    of: str = "",
    counted: bool = False,
    caption: str = "",
) -> Chart:
    """Lines over a size, both axes logarithmic. Values are in `unit`; "x" are ratios, with a line across at 1.

    Of "%" the axis goes evenly from 0 to 100. `counted`: the places are 1, 2, 3, ..., as far from each other.
    """
    at = sorted({point.x for one in series for point in one.points})
    share = unit == "%"
    marks: list[AnyMark] = [AxisRule(y=1.0)] if unit == "x" and at else []
    sentences = (
        f"{one.name}: {', '.join(f'{format_quantity(p.y, unit)} at {p.x:g}' for p in one.points)}"
        for one in series
        if one.points
    )
    return Chart(
        "lines",
        title,
        f"Over {across}. {'; '.join(sentences)}.",
        Axis(across, log=not counted, ticks=tuple(Tick(place, f"{place:g}") for place in at)),
        Axis(title, unit, 0.0 if share else None, 100.0 if share else None, log=not share),
        (*marks, *(one for one in reversed(series) if one.points)),
        of=of,
        height=210,
        caption=caption,
    )


def cloud_chart(
    title: str,
    across: str,
    unit: str,
    clouds: Sequence[Points],
    *,
    ceilings: tuple[float, float] | None = None,
    caption: str = "",
    columns: tuple[str, ...] = (),
) -> Chart:
    """Thousands of points on logarithmic axes: below two ceilings (bytes/s and FLOP/s), else with a line at 100."""
    points = [point for cloud in clouds for point in cloud.points]
    xs, ys = [point.x for point in points], [point.y for point in points]
    marks: list[AnyMark] = [AxisRule(y=100.0, style="ceiling", hover=f"100 {unit}")]
    limits = ""
    if ceilings is not None:
        bandwidth, flops = ceilings
        ridge = flops / bandwidth
        low, high = min(*xs, ridge) / 2, max(*xs, ridge) * 2
        memory = f"memory: {format_quantity(bandwidth, 'B/s')}"
        arithmetic = f"arithmetic: {format_quantity(flops, 'FLOP/s')}"
        marks = [
            Line(((low, low * bandwidth), (ridge, flops)), "ceiling", f"{memory}, measured"),
            Line(((ridge, flops), (high, flops)), "ceiling", f"{arithmetic}, measured"),
        ]
        limits = f" below {format_quantity(bandwidth, 'B/s')} and {format_quantity(flops, 'FLOP/s')}"
        ys += [flops, bandwidth * low]
    else:
        low, high = min(xs) / 1.5, max(xs) * 1.5
        ys.append(100.0)
    return Chart(
        "cases",
        title,
        f"{len(points)} cases{limits}; the table of all cases has their numbers.",
        Axis(across, "", low, high, log=True),
        Axis(title, unit, min(ys) / 1.6, max(ys) * 1.6, log=True),
        (*marks, *clouds),
        height=300,
        caption=caption,
        columns=columns,
    )
