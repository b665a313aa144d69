"""A sweep: who is fastest, group by group with maps and lines, every case below its roofline, and what has no time."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
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
from profkit.reporting.view import (
    Block,
    Detail,
    Facts,
    Fold,
    Item,
    Items,
    Label,
    OnScreen,
    Paragraph,
    Section,
    Span,
    Status,
    Statuses,
    StatusRow,
    TableColumn,
    Text,
    View,
    command,
    strong,
    table,
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
    range_text,
    ratio,
    share_text,
    short_name,
    short_titles,
)

_OPEN = 8  # groups that stand open; of more each opens at a click, and a short screen has their headlines
_DRAWN = 2500  # shapes that are drawn: each is 300 bytes, and a page is to open at once
_LONG_MAP = 8  # rows: of a longer map a short screen has one row for each number of vectors
_ROWS, _FEW_ROWS = 200, 8  # of what has no time, and on a short screen
_LONG = 3  # groups from which on the first lines have left the screen: they stand at the end once more
_FILES = ("report.html", "report.md", FILE)
_MAP_TITLE = "Fastest at batch x sequence, by dimension"
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
    label = Label(Status.PASS, "COMPLETE") if document.complete else Label(Status.UNKNOWN, "INTERRUPTED")
    return View(
        f"Sweep on {document.device}",
        tuple(_blocks(document, folder)),
        Label(Status.FAIL, "FAIL") if faulty_cases(document) else label,
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
    yield from _profiled(document, folder)
    facts = [*measurement_facts(document), *([("Columns", _COLUMNS_NOTE)] if groups else [])]
    yield Section("How it was measured", (Facts(tuple(facts)),), anchor="how")
    if len(groups) >= _LONG:
        yield OnScreen((Section("The result once more", (Facts(conclusions(document)),)),), ())
    if folder is not None:
        files = [name for name in _FILES if (folder / name).is_file()]
        line = f"{folder}: {', '.join(files)}" if files else str(folder)
        yield OnScreen((Paragraph(""), Paragraph(command(line))), ())


# ---------------------------------------------------------------- who is how fast


def _speedups(
    document: SweepDocument, groups: Sequence[ComparisonGroup], titles: Mapping[str, str]
) -> Iterator[Block]:
    """A row for each group, a column for each implementation, and all shapes together below."""
    names = list(dict.fromkeys(result.implementation for result in document.results))
    if len(groups) < 2 or len(names) < 2:
        return
    rows: list[Sequence[Text]] = []
    for number, group in enumerate(groups):
        ranking = rank_implementations(group, document.roofs)
        speedups = {one.implementation: _speedup(one) for one in ranking}
        rows.append((Span(titles[group.title], link=f"#panel-{number}"), *_speedup_cells(names, speedups)))
    overall = {
        one.implementation: 1.0 if one.implementation == BASELINE and one.measured else one.speedup
        for one in rank_overall(document).scores
    }
    rows.append((strong("All shapes"), *_speedup_cells(names, overall)))
    note = f"How many times as fast as {BASELINE}, as geometric means over shapes; the largest is bold."
    body = table((f"Speed-up over {BASELINE}", *map(short_name, names)), rows, note=note)
    yield Section("Who is fastest", (body,), anchor="speed-ups")


def _speedup(ranking: ImplementationRanking) -> float | None:
    return 1.0 if ranking.implementation == BASELINE and ranking.measured else ranking.speedup


def _speedup_cells(names: Sequence[str], speedups: Mapping[str, float | None]) -> Iterator[Text]:
    largest = max((value for value in speedups.values() if value is not None), default=None)
    for name in names:
        value = speedups.get(name)
        text = "1" if name == BASELINE and value is not None else ratio(value)
        yield strong(text) if value is not None and value == largest else text


@dataclass(frozen=True)
class _Column:
    """A column of a group's table; `on_screen`: a screen of 80 columns has room for it."""

    title: str
    cell: Callable[[ImplementationRanking], str]
    meaning: str
    on_screen: bool = True


_SPEEDUP = _Column(
    "Speed-up",
    lambda r: "1" if r.implementation == BASELINE and r.measured else ratio(r.speedup),
    f"over {BASELINE}, geometric mean over shapes",
)
_COLUMNS = (
    _Column("Time", lambda r: format_quantity(r.time, "s"), "geometric mean over shapes"),
    _Column(
        "Memory", lambda r: format_quantity(r.memory, "B"), "the largest during any call, inputs included"
    ),
    _Column(
        "Inference Speed",
        lambda r: f"{format_quantity(1 / r.time)}/s" if r.time else "-",
        "calls per second, 1 / time",
    ),
    _Column("GPU Efficiency", lambda r: share_text(r.efficiency), "median share of the device's roofline"),
    _Column(
        "Traffic",
        lambda r: format_quantity(r.throughput, "B/s"),
        "the most that any shape reached",
        on_screen=False,
    ),
    _SPEEDUP,
    _Column("Range", lambda r: range_text(r.least, r.most), "least and largest speed-up", on_screen=False),
    _Column("Fastest", lambda r: str(r.wins), "shapes at which no other is as fast", on_screen=False),
    _Column("Measured", lambda r: f"{r.measured} of {r.cases}", "shapes with a time", on_screen=False),
)


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
    blocks: list[Block] = [
        OnScreen(
            (_ranking_table(ranking, marks, best, [column for column in _COLUMNS if column.on_screen]),),
            (_ranking_table(ranking, marks, best, _COLUMNS),),
        )
    ]
    gaps = tuple(
        f"{short_name(one.implementation)}: {one.cases - one.measured} of {one.cases} not measured, "
        f"mostly {shorten(one.why_not, 200)}"
        for one in ranking
        if one.why_not
    )
    blocks += [Items(gaps)] if gaps else []
    if drawn:
        blocks += [*_maps(group, marks), *_lines(group, marks)]
    fold = Fold.FOLDED if number >= _OPEN else Fold.OPEN
    return Section(title, tuple(blocks), headline, fold, f"panel-{number}")


def _ranking_table(
    ranking: Sequence[ImplementationRanking],
    marks: Mapping[str, Marker],
    best: set[str],
    columns: Sequence[_Column],
) -> Block:
    rows: list[list[Text]] = []
    for one in ranking:
        mark, name = marks[one.implementation], short_name(one.implementation)
        is_best = one.implementation in best
        cells: list[Text] = [
            strong(column.cell(one)) if is_best and column is _SPEEDUP else column.cell(one)
            for column in columns
        ]
        rows.append([(Span(mark.letter, series=mark.number), " ", strong(name) if is_best else name), *cells])
    titles = [TableColumn(column.title, numeric=True, meaning=column.meaning) for column in columns]
    return table(("", *titles), rows)


# ---------------------------------------------------------------- who is fastest where


def _maps(group: ComparisonGroup, marks: Mapping[str, Marker]) -> Iterator[Block]:
    """The map: rows are batch x sequence, columns dimensions. Nothing where nothing was compared."""
    results = results_by_shape(group)
    if len(group.implementations) < 2 or not results:
        return
    dimensions = sorted({point.dimension for point in group.points})
    pairs = sorted({(p.batch, p.sequence) for p in group.points}, key=lambda pair: (pair[0] * pair[1], pair))
    names = legend(group, marks)
    row = {pair: number for number, pair in enumerate(pairs)}
    column = {dimension: number for number, dimension in enumerate(dimensions)}
    chart = WinnerMap(
        _MAP_TITLE,
        _map_description(group, results),
        tuple(f"{batch} x {sequence}" for batch, sequence in pairs),
        tuple(map(str, dimensions)),
        {
            (row[point.batch, point.sequence], column[point.dimension]): _cell(result, marks)
            for point, result in results.items()
        },
        f"{names}; {ALIKE}: several are alike; the number: how many times as long the next one takes",
    )
    brief: Block = chart
    if len(pairs) > _LONG_MAP:
        sizes = winners_by_size(group, dimensions)
        brief = WinnerMap(
            "Fastest at batch x sequence (multiplied), by dimension",
            "",
            tuple(f"{size.batch_x_sequence:,}" for size in sizes),
            tuple(map(str, dimensions)),
            {
                (number, place): _winner_cell(winners[0] if len(winners) == 1 else None, marks)
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
    return _winner_cell(result.alone, marks, result.lead, hover)


def _winner_cell(
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
                _series(lines, marks, unit),
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


def _series(lines: Sequence[SeriesLine], marks: Mapping[str, Marker], unit: str) -> tuple[Points, ...]:
    """Times with their intervals; of speed-ups the ends are the least and the largest of many, and are not drawn."""
    series = []
    for line in lines:
        name, mark = short_name(line.implementation), marks[line.implementation]
        points = []
        for stop in line.points:
            value = format_quantity(stop.value, unit)
            if unit == "s":
                ends = f"{format_quantity(stop.low, unit)} to {format_quantity(stop.high, unit)}"
                words = f"{name} at {stop.at}: {value}, {ends}"
                points.append(Point(float(stop.at), stop.value, words, stop.low, stop.high))
            else:
                ends = f"{range_text(stop.low, stop.high)} over {plural(stop.count, 'shape')}"
                points.append(Point(float(stop.at), stop.value, f"{name} at {stop.at}: {value}, {ends}"))
        series.append(Points(tuple(points), name, mark.letter, mark.number, joined=True, hover=name))
    return tuple(series)


# ---------------------------------------------------------------- what has no time, and what has a run of its own


def _missing(document: SweepDocument) -> Iterator[Block]:
    """Cases without a time and why; a short screen has what is not right, and what can be made available."""
    missing = missing_cases(document)
    if not missing:
        return
    first = [one for one in missing if one.state in BAD] + [
        one for one in missing if one.state not in BAD and one.fix
    ]
    headline = f"{plural(sum(one.cases for one in missing), 'case')} without a time, and why"
    left = len(missing) - _FEW_ROWS if len(first) > _FEW_ROWS else len(missing) - len(first)
    more = (Paragraph(f"{plural(left, 'further reason')} in report.html."),) if left > 0 else ()
    brief: tuple[Block, ...] = (missing_rows(first[:_FEW_ROWS]),) if first else ()
    beyond = len(missing) - _ROWS
    rest = (Paragraph(f"{plural(beyond, 'further reason')} in {FILE}."),) if beyond > 0 else ()
    rows = Detail((missing_rows(missing[:_ROWS]), *rest), (*brief, *more))
    yield Section("Not measured", (rows,), headline, anchor="missing")


def missing_rows(missing: Sequence[MissingCases]) -> Statuses:
    """A row for each reason."""
    rows = [
        StatusRow(
            Status.FAIL if one.state in BAD else Status.UNKNOWN,
            one.state,
            (short_name(one.implementation),),
            shorten(one.reason, 400),
            place=one.place,
            below=(command(one.fix),) if one.fix else (),
        )
        for one in missing
    ]
    return Statuses(tuple(rows), ("implementation", "", "", "cases"), "state", "", "fix: ")


def _profiled(document: SweepDocument, folder: Path | None) -> Iterator[Block]:
    """The cases that have a run of their own, with the line that shows it."""
    items = [
        Item(
            Span(case_line(result, document), link=f"{result.profile}/report.html"),
            (command(f"profkit report {shlex.quote(str((folder or Path()) / result.profile))}"),),
        )
        for result in document.results
        if result.profile
    ]
    if items:
        headline = "Why these take as long as they do: each has a page of its own."
        yield Section("Profiled", (Items(tuple(items)),), headline, anchor="profiled")
