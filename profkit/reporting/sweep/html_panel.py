"""One panel of a sweep on its page: the table of who is how fast, the map of winners, and lines over each axis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from profkit.analysis.ranking.grid import (
    AXES,
    AxisSeries,
    SeriesLine,
    ShapeResult,
    results_by_shape,
    series_along,
)
from profkit.analysis.ranking.ranking import (
    BASELINE,
    ComparisonGroup,
    ImplementationRanking,
    rank_implementations,
)
from profkit.core.formatting import format_percent, format_quantity, plural
from profkit.core.types import CaseResult, SweepDocument
from profkit.reporting.charts.lines import Dot, Series, lines_chart
from profkit.reporting.charts.winner_map import Cell, winner_map
from profkit.reporting.html.sweep_figures import figures
from profkit.reporting.html.templates import filled
from profkit.reporting.plain_text import without_control_characters
from profkit.reporting.sweep.words import ALIKE, gaps, legend, ratio, span, told_share

MAP_NOTE = (
    "{legend}, {alike} several alike by their 95 % intervals. The number, and the shade: how many times as long the"
    " next one takes. Hover, or go by arrow keys, for all times of a cell."
)
LINES_NOTE = (
    "Times at the largest sizes of the other axes, with their 95 % intervals where these are larger than a mark."
    " Speed-ups are geometric means over all shapes with that size. Both axes are logarithmic."
)


@dataclass(frozen=True)
class Signs:
    """Of every implementation of the sweep its letter and its colour (a number from 0)."""

    letters: Mapping[str, str]
    places: Mapping[str, int]


@dataclass(frozen=True)
class _Row:
    name: str
    letter: str
    kind: int
    cells: tuple[str, ...]
    best: bool


def panel_html(panel: ComparisonGroup, document: SweepDocument, signs: Signs, *, drawn: bool) -> str:
    """The panel as finished HTML; with `drawn` its charts too."""
    table = rank_implementations(panel, document.roofs)
    speeds = {s.implementation: _speed(s) for s in table}
    best = max((speed for speed in speeds.values() if speed is not None), default=None)
    rows = [
        _row(s, signs, len(table) > 1 and best is not None and speeds[s.implementation] == best)
        for s in table
    ]
    missing = [
        f"{without_control_characters(one.implementation)}: {gaps(one)}" for one in table if one.why_not
    ]
    body = filled("sweep_panel.html.j2", label=panel.title, rows=rows, missing=missing)
    if not drawn:
        return body
    charts = [
        chart
        for axis in AXES
        if (view := series_along(panel, axis)) is not None
        for chart in _lines(view, signs, panel.title)
    ]
    map_ = _map(panel, signs)
    note = MAP_NOTE.format(legend=legend(panel, signs.letters), alike=ALIKE)
    body += figures([map_], note) if map_ else ""
    return body + (figures(charts, LINES_NOTE) if charts else "")


def _speed(standing: ImplementationRanking) -> float | None:
    return 1.0 if standing.implementation == BASELINE and standing.measured else standing.speedup


def _row(standing: ImplementationRanking, signs: Signs, best: bool) -> _Row:
    name = standing.implementation
    speed = _speed(standing)
    cells = (
        format_quantity(standing.time, "s"),
        format_quantity(float(standing.memory), "B") if standing.memory is not None else "-",
        format_quantity(1 / standing.time) if standing.time else "-",
        told_share(standing.efficiency),
        format_quantity(standing.throughput, "B/s"),
        "1" if name == BASELINE and speed is not None else ratio(speed),
        span(standing.least, standing.most) or "-",
        f"{standing.wins}",
        f"{standing.measured} of {standing.cases}",
    )
    return _Row(
        without_control_characters(name), signs.letters[name], signs.places[name] % 8 + 1, cells, best
    )


def _map(panel: ComparisonGroup, signs: Signs) -> str | None:
    """The heat map: rows are batch x sequence, columns dimensions."""
    best = results_by_shape(panel)
    if len(panel.implementations) < 2 or not best:
        return None
    dimensions = sorted({point.dimension for point in panel.points})
    rows = sorted({(p.batch, p.sequence) for p in panel.points}, key=lambda pair: (pair[0] * pair[1], pair))
    column, row = {d: n for n, d in enumerate(dimensions)}, {pair: n for n, pair in enumerate(rows)}
    cells = {
        (row[point.batch, point.sequence], column[point.dimension]): _cell(place, signs)
        for point, place in best.items()
    }
    alone = [place.alone for place in best.values()]
    told = ", ".join(
        f"{without_control_characters(n)} at {alone.count(n)}" for n in panel.implementations if n in alone
    )
    alike = alone.count(None)
    words = f"Of {plural(len(best), 'shape')}: {told or 'nobody alone'}; several alike at {alike}."
    names = [f"{batch} x {sequence}" for batch, sequence in rows]
    return winner_map(names, [str(d) for d in dimensions], cells, f"Fastest in {panel.title}", words)


def _cell(place: ShapeResult, signs: Signs) -> Cell:
    fastest = place.timed[0].median or 1.0
    times = ", ".join(
        _timed(result) + (f" ({(result.median or 0.0) / fastest:.2f} x)" if n else "")
        for n, result in enumerate(place.timed)
    )
    told = f"{place.point.shape}: {times}" + ("" if place.alone else "; the first ones are alike")
    if place.alone is None:
        return Cell(ALIKE, None, place.lead, told)
    return Cell(signs.letters[place.alone], signs.places[place.alone], place.lead, told)


def _timed(result: CaseResult) -> str:
    half = f" ± {format_percent(100 * result.half_width)} %" if result.half_width is not None else ""
    return f"{without_control_characters(result.implementation)} {format_quantity(result.median, 's')}{half}"


def _lines(view: AxisSeries, signs: Signs, of: str) -> list[str]:
    """Two charts of an axis: time, and speed-up."""
    held = ", ".join(f"{axis} {value}" for axis, value in view.held)
    times = lines_chart(_series(view.times, signs, "s"), f"Time at {held}", view.axis, "s", of=of)
    if not view.speedups:
        return [times]
    speed = lines_chart(
        _series(view.speedups, signs, ""),
        f"Speed-up over {BASELINE}",
        view.axis,
        of=of,
        level=1.0,
        label=ratio,
    )
    return [times, speed]


def _series(lines: Sequence[SeriesLine], signs: Signs, unit: str) -> list[Series]:
    found = []
    for one in lines:
        dots = []
        for stop in one.stops:
            said = format_quantity(stop.value, unit) if unit else ratio(stop.value)
            ends = (
                f", {format_quantity(stop.low, unit)} to {format_quantity(stop.high, unit)}"
                if unit
                else f" by {plural(stop.count, 'shape')}, {span(stop.low, stop.high)}"
            )
            told = f"{one.implementation} at {stop.at}: {said}{ends}"
            dots.append(Dot(float(stop.at), stop.value, stop.low, stop.high, told))
        name = one.implementation
        found.append(Series(name, signs.letters[name], signs.places[name], tuple(dots), spread=not unit))
    return found
