"""The charts of a sweep as lines of characters, for a terminal and for Markdown: along each axis, and the roofline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from profkit.analysis.ranking.grid import (
    AXES,
    AxisSeries,
    SeriesLine,
    efficiency_by_traffic,
    roofline_points,
    series_along,
)
from profkit.analysis.ranking.ranking import BASELINE, ComparisonGroup
from profkit.core.formatting import format_quantity
from profkit.core.types import SweepDocument
from profkit.reporting.sweep.words import called, letters, ratio, told_share
from profkit.reporting.text_plots import SEVERAL, Plot, letter_plots, roofline_plot

SPEEDUPS = "speed-up over {baseline} by {axes}:"
TIMES = "time by {axes}, at the largest sizes of the other axes:"
ROOFS = "every case: FLOP/s over FLOP per byte that must be moved, below the roofs; {several} are several:"
SHARES = "share of the roofline by bytes that a call must move: the median of all cases up to that size:"


def speedup_plots(
    panel: ComparisonGroup, signs: Mapping[str, str], width: int
) -> tuple[str, list[str]] | None:
    """What it is, and the lines; None where nothing is compared, or no axis has two values."""
    views = _views(panel)
    plots = [_plot(view, view.speedups, signs) for view in views if view.speedups]
    told = SPEEDUPS.format(baseline=BASELINE, axes=_named([plot.name for plot in plots]))
    lines = letter_plots(plots, ratio, level=True, width=width)
    return (told, lines) if lines else None


def time_plots(panel: ComparisonGroup, signs: Mapping[str, str], width: int) -> tuple[str, list[str]] | None:
    """What it is, and the lines; None where no axis has two values."""
    plots = [_plot(view, view.times, signs) for view in _views(panel) if view.times]
    lines = letter_plots(plots, lambda value: format_quantity(value, "s"), width=width)
    return (TIMES.format(axes=_named([plot.name for plot in plots])), lines) if lines else None


def roofline_lines(document: SweepDocument, width: int) -> list[tuple[str, list[str]]]:
    """All cases below the roofs, and their shares by size, each with what it is; [] where no roofs were measured."""
    roofs, signs = document.roofs, letters(document)
    if not roofs.bandwidth or not roofs.flops:
        return []
    clouds = [(signs[name], dots) for name, dots in roofline_points(document).items()]
    drawn = roofline_plot(
        clouds, roofs.bandwidth, roofs.flops, lambda value: format_quantity(value, "FLOP/s"), width=width
    )
    found = [(ROOFS.format(several=SEVERAL), drawn)] if drawn else []
    sizes = efficiency_by_traffic(document)
    names = tuple(_size(size.high) for size in sizes)
    marks = {sign: tuple(size.shares.get(name) for size in sizes) for name, sign in signs.items()}
    shares = letter_plots([Plot("bytes", names, marks)], told_share, level=True, width=width)
    return [*found, (SHARES, shares)] if shares else found


def who(document: SweepDocument) -> str:
    """`P PyTorch, C CUDA`: the letters of those that were measured anywhere."""
    timed = {result.implementation for result in document.results if result.median}
    return ", ".join(f"{sign} {called(name)}" for name, sign in letters(document).items() if name in timed)


def _views(panel: ComparisonGroup) -> list[AxisSeries]:
    return [view for axis in AXES if (view := series_along(panel, axis)) is not None]


def _plot(view: AxisSeries, lines: Sequence[SeriesLine], signs: Mapping[str, str]) -> Plot:
    values = sorted({stop.at for line in lines for stop in line.stops})
    marks = {
        signs[line.implementation]: tuple({s.at: s.value for s in line.stops}.get(at) for at in values)
        for line in lines
    }
    return Plot(view.axis, tuple(map(str, values)), marks)


def _named(axes: Sequence[str]) -> str:
    return ", ".join(axes[:-1]) + f" and {axes[-1]}" if len(axes) > 1 else "".join(axes)


def _size(value: float) -> str:
    """A number of bytes as short as it can be: `1M`, `316k`."""
    return format_quantity(round(value)).replace(" ", "").replace(".00", "")
