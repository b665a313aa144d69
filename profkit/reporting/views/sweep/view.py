"""A sweep: who is fastest, group by group with maps and lines, every case below its roofline, and what has no time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path

from profkit.analysis.ranking.grid import (
    AXES,
    SeriesLine,
    ShapeResult,
    results_by_shape,
    series_along,
    winners_by_size,
)
from profkit.analysis.ranking.ranking import (
    BAD,
    BASELINE,
    FILE,
    ComparisonGroup,
    ImplementationRanking,
    comparison_groups,
    faulty_cases,
    rank_implementations,
    rank_overall,
)
from profkit.core.formatting import format_percent, format_quantity, joined, plural, shorten
from profkit.core.types import CaseResult, GridPoint, SweepDocument
from profkit.reporting.chart_blocks import Charts, WinnerCell, WinnerMap
from profkit.reporting.charts.marks import Point, Points
from profkit.reporting.charts.series import series_chart
from profkit.reporting.columns import Column, data_table
from profkit.reporting.view import (
    Block,
    DataTable,
    Detail,
    Facts,
    Fold,
    Items,
    Label,
    OnScreen,
    Section,
    Span,
    Status,
    Statuses,
    StatusRow,
    Text,
    View,
    command,
    strong,
)
from profkit.reporting.views.cases import (
    complete_label,
    files_line,
    limited,
    percent,
    profiled_section,
    range_text,
    ratio,
)
from profkit.reporting.views.sweep.cases import cases_section, roofline_section
from profkit.reporting.views.sweep.text import (
    ALIKE,
    Marker,
    MissingCases,
    case_line,
    conclusions,
    head_line,
    legend,
    markers,
    measurement_facts,
    missing_cases,
    short_name,
    short_titles,
)

_OPEN = 8  # groups that stand open; of more each opens at a click, and a short screen has their headlines
_DRAWN = 2500  # shapes that are drawn: each is 300 bytes, and a page is to open at once
_LONG_MAP = 8  # rows: of a longer map a short screen has one row for each number of vectors
_ROWS, _FEW_ROWS = 200, 8  # of what has no time, and on a short screen
_LONG = 3  # groups from which on the first lines have left the screen: they stand at the end once more
_MAP_NOTE = (
    "{legend}; {alike}: several are alike by their 95 % intervals. The number, and the shade: how many times as long"
    " the next one takes. Point at a cell, or go to it by arrow keys, for all of its times."
)
_LINES_NOTE = (
    "Times at the largest sizes of the other axes, with their 95 % intervals where these are larger than a mark."
    " Speed-ups are geometric means over all shapes with that size. Both axes are logarithmic."
)
_COLUMNS_NOTE = (
    "Time and speed-up are geometric means over shapes. Memory is the largest during any call, inputs included."
    " Inference Speed is calls per second. GPU Efficiency is the median share of the device's roofline, also where the"
    " device is a processor. Range is that of the speed-ups. Fastest counts the shapes at which no other is as fast."
)


def view(document: SweepDocument, folder: Path | None = None) -> View:
    """The sweep as blocks. `folder` is where it lies, for the lines to type."""
    return View(
        f"Sweep on {document.device}",
        tuple(_blocks(document, folder)),
        Label(Status.FAIL, "FAIL") if faulty_cases(document) else complete_label(document.complete),
        (head_line(document),),
        facts=conclusions(document),
    )


def _blocks(document: SweepDocument, folder: Path | None) -> Iterator[Block]:
    groups, titles, marks = comparison_groups(document), short_titles(document), markers(document)
    yield from _speedups(document, groups, titles)
    left = _DRAWN
    for number, group in enumerate(groups):
        drawn = len(group.points) <= left
        left -= len(group.points) if drawn else 0
        yield _group(number, group, document, titles[group.title], marks, drawn=drawn)
    yield roofline_section(document, marks)
    yield from cases_section(document)
    yield from _missing(document)
    profiled = [
        (case_line(result, document), (), result.profile) for result in document.results if result.profile
    ]
    yield from profiled_section(
        profiled, folder, "Why these take as long as they do: each has a page of its own."
    )
    facts = [*measurement_facts(document), *([("Columns", _COLUMNS_NOTE)] if groups else [])]
    yield Section("How it was measured", (Facts(tuple(facts)),), anchor="how")
    if len(groups) >= _LONG:
        yield OnScreen((Section("The result once more", (Facts(conclusions(document)),)),), ())
    yield from files_line(folder, ("report.html", "report.md", FILE))


# ---------------------------------------------------------------- who is how fast


def _speedups(
    document: SweepDocument, groups: Sequence[ComparisonGroup], titles: Mapping[str, str]
) -> Iterator[Block]:
    """A row for each group, a column for each implementation, and all shapes together below."""
    names = list(dict.fromkeys(result.implementation for result in document.results))
    if len(groups) < 2 or len(names) < 2:
        return
    rows: list[tuple[Text, dict[str, float | None]]] = []
    for number, group in enumerate(groups):
        speedups = {one.implementation: _speedup(one) for one in rank_implementations(group, document.roofs)}
        rows.append((Span(titles[group.title], link=f"#panel-{number}"), speedups))
    scores = rank_overall(document).scores
    overall = {
        s.implementation: 1.0 if s.implementation == BASELINE and s.measured else s.speedup for s in scores
    }
    rows.append((strong("All shapes"), overall))

    def column(name: str) -> Column[tuple[Text, dict[str, float | None]]]:
        return Column(short_name(name), lambda row: _among(row[1], name), "x", hidden_when_empty=False)

    first: Column[tuple[Text, dict[str, float | None]]] = Column(
        f"Speed-up over {BASELINE}", lambda row: row[0]
    )
    note = f"How many times as fast as {BASELINE}, as geometric means over shapes; the largest is bold."
    body = data_table([first, *map(column, names)], rows, note=note)
    yield Section("Who is fastest", (body,), anchor="speed-ups")


def _among(speedups: Mapping[str, float | None], name: str) -> Text:
    """The speed-up of one of several, bold where none is larger."""
    value = speedups.get(name)
    text = "1" if name == BASELINE and value is not None else ratio(value)
    largest = max((one for one in speedups.values() if one is not None), default=None)
    return strong(text) if value is not None and value == largest else text


def _speedup(ranking: ImplementationRanking) -> float | None:
    return 1.0 if ranking.implementation == BASELINE and ranking.measured else ranking.speedup


def _group(
    number: int,
    group: ComparisonGroup,
    document: SweepDocument,
    title: str,
    marks: Mapping[str, Marker],
    *,
    drawn: bool,
) -> Section:
    ranking = rank_implementations(group, document.roofs)
    speedups = {one.implementation: _speedup(one) for one in ranking}
    largest = max((value for value in speedups.values() if value is not None), default=None)
    best = {name for name, value in speedups.items() if len(ranking) > 1 and largest and value == largest}
    headline = f"{group.title}, {plural(len(group.points), 'shape')}"
    if best:
        gain = f", {ratio(largest)} as fast as {BASELINE}" if BASELINE not in best else ""
        headline += f"; fastest: {' and '.join(map(short_name, best))}{gain}"
    headline += "" if drawn else "; not drawn, as there are many shapes: filter the table of all cases"
    gaps = tuple(
        f"{short_name(one.implementation)}: {one.cases - one.measured} of {one.cases} not measured, "
        f"mostly {shorten(one.why_not, 200)}"
        for one in ranking
        if one.why_not
    )
    screen, page = (_ranking_table(ranking, marks, best, screen=narrow) for narrow in (True, False))
    blocks: list[Block] = [OnScreen((screen,), (page,)), *([Items(gaps)] if gaps else [])]
    if drawn:
        blocks += [*_maps(group, marks), *_lines(group, marks)]
    fold = Fold.FOLDED if number >= _OPEN else Fold.OPEN
    return Section(title, tuple(blocks), headline, fold, f"panel-{number}")


def _ranking_table(
    ranking: Sequence[ImplementationRanking], marks: Mapping[str, Marker], best: set[str], *, screen: bool
) -> DataTable:
    def name(one: ImplementationRanking) -> Text:
        mark, own = marks[one.implementation], short_name(one.implementation)
        return (
            Span(mark.letter, series=mark.number),
            " ",
            strong(own) if one.implementation in best else own,
        )

    def speedup(one: ImplementationRanking) -> Text:
        text = "1" if one.implementation == BASELINE and one.measured else ratio(one.speedup)
        return strong(text) if one.implementation in best else text

    def calls(one: ImplementationRanking) -> Text:
        return f"{format_quantity(1 / one.time)}/s" if one.time else "-"

    def column(
        title: str, value: object, unit: str, meaning: str, *, wide: bool = False
    ) -> Column[ImplementationRanking]:
        return Column(title, value, unit, meaning, hidden_when_empty=False, wide=wide)  # type: ignore[arg-type]

    columns = (
        Column("", name),
        column("Time", lambda one: one.time, "s", "geometric mean over shapes"),
        column("Memory", lambda one: one.memory, "B", "the largest during any call, inputs included"),
        column("Inference Speed", calls, "n", "calls per second, 1 / time"),
        column(
            "GPU Efficiency",
            lambda one: percent(one.efficiency),
            "%",
            "median share of the device's roofline",
        ),
        column("Traffic", lambda one: one.throughput, "B/s", "the most that any shape reached", wide=True),
        column("Speed-up", speedup, "x", f"over {BASELINE}, geometric mean over shapes"),
        column(
            "Range",
            lambda one: range_text(one.least, one.most) or "-",
            "x",
            "least and largest speed-up",
            wide=True,
        ),
        column("Fastest", lambda one: one.wins, "n", "shapes at which no other is as fast", wide=True),
        column(
            "Measured", lambda one: f"{one.measured} of {one.cases}", "n", "shapes with a time", wide=True
        ),
    )
    return data_table(columns, ranking, screen=screen)


# ---------------------------------------------------------------- who is fastest where


def _maps(group: ComparisonGroup, marks: Mapping[str, Marker]) -> Iterator[Block]:
    """The map: rows are batch x sequence, columns dimensions. Nothing where nothing was compared."""
    results = results_by_shape(group)
    if len(group.implementations) < 2 or not results:
        return
    dimensions = sorted({point.dimension for point in group.points})
    pairs = sorted({(p.batch, p.sequence) for p in group.points}, key=lambda pair: (pair[0] * pair[1], pair))
    names, columns = legend(group, marks), tuple(map(str, dimensions))
    row = {pair: number for number, pair in enumerate(pairs)}
    chart = WinnerMap(
        "Fastest at batch x sequence, by dimension",
        _map_description(group, results),
        tuple(f"{batch} x {sequence}" for batch, sequence in pairs),
        columns,
        {
            (row[point.batch, point.sequence], dimensions.index(point.dimension)): _cell(result, marks)
            for point, result in results.items()
        },
        f"{names}; {ALIKE}: several are alike; the number: how many times as long the next one takes",
    )
    brief = chart
    if len(pairs) > _LONG_MAP:
        sizes = winners_by_size(group, dimensions)
        brief = WinnerMap(
            "Fastest at batch x sequence (multiplied), by dimension",
            "",
            tuple(f"{size.batch_x_sequence:,}" for size in sizes),
            columns,
            {
                (number, place): _winner(winners[0] if len(winners) == 1 else None, marks)
                for number, size in enumerate(sizes)
                for place, winners in enumerate(size.cells)
                if winners is not None
            },
            f"{names}; {ALIKE}: several are alike",
        )
    note = _MAP_NOTE.format(legend=names, alike=ALIKE)
    yield Detail((Charts((chart,), note),), (brief,), "Fastest at each shape")


def _map_description(group: ComparisonGroup, results: Mapping[GridPoint, ShapeResult]) -> str:
    alone = [result.alone for result in results.values()]
    counts = [f"{short_name(name)} at {alone.count(name)}" for name in group.implementations if name in alone]
    winners = ", ".join(counts) or "none alone"
    return f"Of {plural(len(results), 'shape')}: {winners}; several alike at {alone.count(None)}."


def _cell(result: ShapeResult, marks: Mapping[str, Marker]) -> WinnerCell:
    fastest = result.timed[0].median or 1.0
    times = ", ".join(
        _time_text(case) + (f" ({ratio((case.median or 0.0) / fastest)})" if number else "")
        for number, case in enumerate(result.timed)
    )
    hover = f"{result.point.shape}: {times}" + ("" if result.alone else "; the first ones are alike")
    return _winner(result.alone, marks, result.lead, hover)


def _winner(
    winner: str | None, marks: Mapping[str, Marker], lead: float | None = None, hover: str = ""
) -> WinnerCell:
    if winner is None:
        return WinnerCell(ALIKE, None, None, hover)
    return WinnerCell(marks[winner].letter, marks[winner].number, lead, hover)


def _time_text(case: CaseResult) -> str:
    half = f" ± {format_percent(100 * case.half_width)} %" if case.half_width is not None else ""
    return f"{short_name(case.implementation)} {format_quantity(case.median, 's')}{half}"


# ---------------------------------------------------------------- along each axis


def _lines(group: ComparisonGroup, marks: Mapping[str, Marker]) -> Iterator[Block]:
    """Times and speed-ups along each axis; a short screen has the speed-ups, or times where nothing is compared."""
    axes = [series for axis in AXES if (series := series_along(group, axis)) is not None]
    names = joined([one.axis for one in axes])
    times, speedups = (
        [
            series_chart(
                title.format(fixed=", ".join(f"{axis} {value}" for axis, value in one.fixed)),
                one.axis,
                [_series(line, marks[line.implementation], unit) for line in lines],
                unit,
                of=group.title,
                caption=caption,
            )
            for one in axes
            if (lines := one.times if unit == "s" else one.speedups)
        ]
        for title, unit, caption in (
            ("Time at {fixed}", "s", f"Time by {names}, at the largest sizes of the other axes:"),
            (f"Speed-up over {BASELINE}", "x", f"Speed-up over {BASELINE} by {names}:"),
        )
    )
    if times:
        charts = tuple(chart for pair in zip_longest(times, speedups) for chart in pair if chart is not None)
        yield Detail((Charts(charts, _LINES_NOTE),), (Charts(tuple(speedups or times)),), f"By {names}")


def _series(line: SeriesLine, mark: Marker, unit: str) -> Points:
    """Times with their intervals; of speed-ups the ends are the least and the largest of many, and are not drawn."""
    name, points = short_name(line.implementation), []
    for stop in line.points:
        words = f"{name} at {stop.at}: {format_quantity(stop.value, unit)}"
        if unit == "s":
            ends = f"{format_quantity(stop.low, unit)} to {format_quantity(stop.high, unit)}"
            points.append(Point(float(stop.at), stop.value, f"{words}, {ends}", stop.low, stop.high))
        else:
            ends = f"{range_text(stop.low, stop.high)} over {plural(stop.count, 'shape')}"
            points.append(Point(float(stop.at), stop.value, f"{words}, {ends}"))
    return Points(tuple(points), name, mark.letter, mark.number, joined=True, hover=name)


# ---------------------------------------------------------------- what has no time


def _missing(document: SweepDocument) -> Iterator[Block]:
    """Cases without a time and why; a short screen has what is not right, and what can be made available."""
    missing = missing_cases(document)
    if missing:
        first = [one for one in missing if one.state in BAD or one.fix]
        first.sort(key=lambda one: one.state not in BAD)
        left = len(missing) - min(_FEW_ROWS, len(first))
        rows = limited(missing_statuses, missing, first[:_FEW_ROWS], left, _ROWS, "reason", FILE)
        headline = f"{plural(sum(one.cases for one in missing), 'case')} without a time, and why"
        yield Section("Not measured", (rows,), headline, anchor="missing")


def missing_statuses(missing: Sequence[MissingCases]) -> Statuses:
    """A row for each reason."""
    rows = (
        StatusRow(
            Status.FAIL if one.state in BAD else Status.UNKNOWN,
            one.state,
            (short_name(one.implementation),),
            shorten(one.reason, 400),
            place=one.place,
            below=(command(one.fix),) if one.fix else (),
        )
        for one in missing
    )
    return Statuses(tuple(rows), ("implementation", "", "", "cases"), "state", "", "fix: ")
