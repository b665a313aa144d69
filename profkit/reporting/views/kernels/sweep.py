"""A sweep: who is fastest, group by group with maps and lines, every case below its roofline, what has no time.

`judged` is a sweep with its verdicts, on one screen.
"""

from __future__ import annotations

import shlex
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from profkit.analysis.ranking.grid import AXES, SeriesLine, ShapeResult, results_by_shape, series_along
from profkit.analysis.ranking.ranking import (
    BASELINE,
    FILE,
    ComparisonGroup,
    ImplementationRanking,
    Overall,
    comparison_groups,
    failed_cases,
    faulty_cases,
    is_excused,
    leaders,
    rank_implementations,
    rank_overall,
)
from profkit.core.formatting import format_percent, format_quantity, format_utc_time, joined, plural
from profkit.core.types import RunDocument, SweepDocument, Verdict
from profkit.reporting.chart_blocks import Charts, WinnerCell, WinnerMap
from profkit.reporting.charts.marks import Point, Points
from profkit.reporting.charts.series import series_chart
from profkit.reporting.columns import Column, data_table
from profkit.reporting.facts import fact_text
from profkit.reporting.view import (
    Block,
    Commands,
    DataTable,
    Detail,
    Facts,
    Fold,
    Label,
    Section,
    Span,
    Status,
    Statuses,
    StatusRow,
    Text,
    View,
    strong,
)
from profkit.reporting.views.kernels.cases import (
    complete_label,
    files_line,
    format_duration,
    percent,
    profiled_section,
    ratio,
)
from profkit.reporting.views.kernels.sweep_cases import (
    case_line,
    cases_section,
    markers,
    missing_rows,
    missing_section,
    roofline_section,
    short_name,
)
from profkit.reporting.views.run import STATUSES
from profkit.reporting.views.run_text import WORDS, count_verdicts, worst_first

ALIKE = "="
_OPEN = 8  # groups that stand open; of more each opens at a click, and a short screen has their headlines
_DRAWN = 2500  # shapes that are drawn: each is 300 bytes, and a page is to open at once
_LONG_MAP = 8  # rows: a short screen has no longer map
_CLOCKS = {
    "cuda-events": "the device's own clock",
    "mps-synchronized": "the wall clock, the GPU waited for",
    "wall": "the wall clock",
}
_COLUMNS_NOTE = (
    "Time and speed-up are geometric means over shapes. Memory is the largest during any call, inputs included."
    " Inference Speed is calls per second. GPU Efficiency is the median share of the device's roofline, also where the"
    " device is a processor."
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
    groups, marks = comparison_groups(document), markers(document)
    yield from _speedups(document, groups)
    left = _DRAWN
    for number, group in enumerate(groups):
        drawn = len(group.points) <= left
        left -= len(group.points) if drawn else 0
        yield _group(number, group, document, marks, drawn=drawn)
    yield roofline_section(document, marks)
    yield from cases_section(document)
    yield from missing_section(missing_rows(document), "Not measured")
    profiled = [(case_line(one, document), (), one.profile) for one in document.results if one.profile]
    yield from profiled_section(profiled, folder, "Why these take as long as they do.")
    facts = [*_measurement_facts(document), *([("Columns", _COLUMNS_NOTE)] if groups else [])]
    yield Section("How it was measured", (Facts(tuple(facts)),), anchor="how")
    yield from files_line(folder, ("report.html", "report.md", FILE))


# ---------------------------------------------------------------- names and conclusions


def head_line(document: SweepDocument) -> str:
    """`2240 of 2240 cases measured in 3.8 min`; how many are left of a sweep that was interrupted."""
    measured = sum(1 for result in document.results if result.state == "measured")
    left = document.planned - len(document.results)
    cases = plural(max(document.planned, len(document.results)), "case")
    line = f"{measured} of {cases} measured in {format_duration(document.seconds)}"
    return line + (f"; interrupted, {left} left" if left > 0 else "")


def conclusions(document: SweepDocument) -> tuple[tuple[str, str], ...]:
    """What to know before any table, as (name, sentence)."""
    facts = [("Fastest", _fastest(rank_overall(document)))]
    if bad := failed_cases(document):
        counts = joined([f"{number} {state}" for state, number in Counter(r.state for r in bad).items()])
        told = f"{plural(len(bad), 'case')} ({counts}). No mean includes them."
        excused = [result for result in bad if is_excused(result)]
        if excused:
            names = " and ".join(dict.fromkeys(short_name(result.implementation) for result in excused))
            told += f" {len(excused)} wrong in {names} itself, which does not fail the sweep."
        facts.append(("Not right", told))
    return tuple(facts)


def _fastest(overall: Overall) -> str:
    measured = [score for score in overall.scores if score.measured]
    if len(measured) < 2:
        only = f"only {short_name(measured[0].implementation)}" if measured else "no case"
        return f"not known: {only} was measured."
    first = leaders(overall.scores)
    if not first:
        most = max(measured, key=lambda score: score.wins)
        return (
            f"{short_name(most.implementation)}, alone at {most.wins} of {plural(overall.shapes, 'shape')}. "
            f"There are no speed-ups, since {BASELINE} was not measured."
        )
    best = first[0]
    others = [score for score in overall.scores if score.speedup is not None and score not in first]
    others.sort(key=lambda score: -(score.speedup or 0.0))
    next_ones = ", ".join(
        f"{short_name(s.implementation)} {ratio(s.speedup)}"
        # Over other shapes it is a mean of other work.
        + (f" of {plural(s.compared, 'shape')}" if s.compared != best.compared else "")
        for s in others
    )
    names = " and ".join(short_name(score.implementation) for score in first)
    line = names + (f", {ratio(best.speedup)} as fast as {BASELINE}" if best.speedup is not None else "")
    line += " (alike)" if len(first) > 1 else f", alone fastest at {best.wins} of {overall.shapes}"
    then = f"; then {next_ones}" if next_ones else ""
    return f"{line}; geometric mean of {plural(best.compared, 'shape')}{then}."


# ---------------------------------------------------------------- who is how fast


def _speedups(document: SweepDocument, groups: Sequence[ComparisonGroup]) -> Iterator[Block]:
    """A row for each group, a column for each implementation, and all shapes together below."""
    names = list(dict.fromkeys(result.implementation for result in document.results))
    if len(groups) < 2 or len(names) < 2:
        return
    rows: list[tuple[Text, dict[str, float | None]]] = []
    for number, group in enumerate(groups):
        speedups = {one.implementation: _speedup(one) for one in rank_implementations(group, document.roofs)}
        rows.append((Span(group.title, link=f"#panel-{number}"), speedups))
    overall = {
        one.implementation: 1.0 if one.implementation == BASELINE and one.measured else one.speedup
        for one in rank_overall(document).scores
    }
    rows.append((strong("All shapes"), overall))

    def column(name: str) -> Column[tuple[Text, dict[str, float | None]]]:
        return Column(short_name(name), lambda row: row[1].get(name), "x", hidden_when_empty=False)

    first: Column[tuple[Text, dict[str, float | None]]] = Column(f"Over {BASELINE}", lambda row: row[0])
    note = f"How many times as fast as {BASELINE}, as geometric means over shapes."
    body = data_table([first, *map(column, names)], rows, note=note)
    yield Section("Who is fastest", (body,), anchor="speed-ups")


def _speedup(ranking: ImplementationRanking) -> float | None:
    return 1.0 if ranking.implementation == BASELINE and ranking.measured else ranking.speedup


def _group(
    number: int, group: ComparisonGroup, document: SweepDocument, marks: Mapping[str, Span], *, drawn: bool
) -> Section:
    ranking = rank_implementations(group, document.roofs)
    speedups = {one.implementation: _speedup(one) for one in ranking}
    largest = max((value for value in speedups.values() if value is not None), default=None)
    best = {name for name, value in speedups.items() if len(ranking) > 1 and largest and value == largest}
    headline = plural(len(group.points), "shape")
    if best:
        gain = f", {ratio(largest)} as fast as {BASELINE}" if BASELINE not in best else ""
        headline += f"; fastest: {' and '.join(map(short_name, best))}{gain}"
    missing = sum(one.cases - one.measured for one in ranking)
    headline += f"; {plural(missing, 'case')} not measured" if missing else ""
    headline += "" if drawn else "; not drawn, as there are many shapes: filter the table of all cases"
    blocks: list[Block] = [_ranking_table(ranking, marks)]
    if drawn:
        blocks += [*_map(group, marks), *_lines(group, marks)]
    fold = Fold.FOLDED if number >= _OPEN else Fold.OPEN
    return Section(group.title, tuple(blocks), headline, fold, f"panel-{number}")


def _ranking_table(ranking: Sequence[ImplementationRanking], marks: Mapping[str, Span]) -> DataTable:
    def column(
        title: str, value: Callable[[ImplementationRanking], Any], unit: str
    ) -> Column[ImplementationRanking]:
        return Column(title, value, unit, hidden_when_empty=False)

    columns = (
        column("", lambda one: (marks[one.implementation], " ", short_name(one.implementation)), "text"),
        column("Time", lambda one: one.time, "s"),
        column("Memory", lambda one: one.memory, "B"),
        column("Inference Speed", lambda one: 1 / one.time if one.time else None, "/s"),
        column("GPU Efficiency", lambda one: percent(one.efficiency), "%"),
        column("Speed-up", _speedup, "x"),
    )
    return data_table(columns, ranking)


def _map(group: ComparisonGroup, marks: Mapping[str, Span]) -> Iterator[Block]:
    """The map: rows are batch x sequence, columns dimensions. Nothing where nothing was compared."""
    results = results_by_shape(group)
    if len(group.implementations) < 2 or not results:
        return
    dimensions = sorted({point.dimension for point in group.points})
    pairs = sorted({(p.batch, p.sequence) for p in group.points}, key=lambda pair: (pair[0] * pair[1], pair))
    names = ", ".join(f"{marks[name].text} {short_name(name)}" for name in group.implementations)
    row = {pair: number for number, pair in enumerate(pairs)}
    chart = WinnerMap(
        "Fastest at batch x sequence, by dimension",
        f"{plural(len(results), 'shape')} of {group.title}.",
        tuple(f"{batch} x {sequence}" for batch, sequence in pairs),
        tuple(map(str, dimensions)),
        {
            (row[point.batch, point.sequence], dimensions.index(point.dimension)): _cell(result, marks)
            for point, result in results.items()
        },
        f"{names}; {ALIKE}: several are alike; the number: how many times as long the next one takes",
    )
    brief = (chart,) if len(pairs) <= _LONG_MAP else ()
    yield Detail((Charts((chart,)),), brief, "Fastest at each shape")


def _cell(result: ShapeResult, marks: Mapping[str, Span]) -> WinnerCell:
    times = ", ".join(
        f"{short_name(case.implementation)} {format_quantity(case.median, 's')}"
        + (f" ± {format_percent(100 * case.half_width)} %" if case.half_width is not None else "")
        for case in result.timed
    )
    hover = f"{result.point.shape}: {times}" + ("" if result.alone else "; the first ones are alike")
    if result.alone is None:
        return WinnerCell(ALIKE, None, None, hover)
    return WinnerCell(marks[result.alone].text, marks[result.alone].series, result.lead, hover)


def _lines(group: ComparisonGroup, marks: Mapping[str, Span]) -> Iterator[Block]:
    """Times along each axis."""
    axes = [series for axis in AXES if (series := series_along(group, axis)) is not None and series.times]
    names = joined([one.axis for one in axes])
    charts = tuple(
        series_chart(
            f"Time at {', '.join(f'{axis} {value}' for axis, value in one.fixed)}",
            one.axis,
            [_line(line, marks[line.implementation]) for line in one.times],
            "s",
            of=group.title,
            caption=f"Time by {names}, at the largest sizes of the other axes:",
        )
        for one in axes
    )
    if charts:
        note = "95 % intervals are drawn where they are larger than a mark. Both axes are logarithmic."
        yield Detail((Charts(charts, note),), (Charts(charts),), f"By {names}")


def _line(line: SeriesLine, mark: Span) -> Points:
    name = short_name(line.implementation)
    points = (
        Point(
            float(stop.at),
            stop.value,
            f"{name} at {stop.at}: {format_quantity(stop.value, 's')}, "
            f"{format_quantity(stop.low, 's')} to {format_quantity(stop.high, 's')}",
            stop.low,
            stop.high,
        )
        for stop in line.points
    )
    return Points(tuple(points), name, mark.text, mark.series or 0, joined=True, hover=name)


# ---------------------------------------------------------------- how it was measured


def _measurement_facts(document: SweepDocument) -> tuple[tuple[str, str], ...]:
    """How it was measured, as (what, words)."""
    timed = [result for result in document.results if result.median]
    ceilings = document.roofs
    facts = [("Started", format_utc_time(document.started))]
    if ceilings.bandwidth and ceilings.flops:
        most = f"{format_quantity(ceilings.bandwidth, 'B/s')} and {format_quantity(ceilings.flops, 'FLOP/s')}"
        facts.append(("Roofline", f"{most}, measured: {ceilings.method}"))
    else:
        facts.append(("Roofline", "not measured, so no share is shown"))
    if timed:
        clocks = " and ".join(sorted({_CLOCKS[r.clock] for r in timed if r.clock})) or "an unknown clock"
        caches = " and ".join(sorted({f"{r.cache} cache" for r in timed if r.cache}))
        calls = sorted({r.calls for r in timed})
        what = "single calls" if calls == [1] else f"means of {' or '.join(map(str, calls))} calls"
        facts.append(("Times", f"medians of {what} by {clocks}" + (f", {caches}" if caches else "")))
    for name, told in (("Throttled", [r.throttled for r in timed]), ("Remarks", [r.remarks for r in timed])):
        for text, count in Counter(text for of_case in told for text in of_case).items():
            facts.append((name, f"in {plural(count, 'case')}: {text}"))
    if document.versions:
        versions = ", ".join(f"{name} {number}" for name, number in document.versions.items())
        facts.append(("Versions", versions))
    return tuple(facts)


# ---------------------------------------------------------------- judged


def judged(run: RunDocument, sweep: SweepDocument | None = None, folder: Path | None = None) -> View:
    """The verdicts on a sweep, on one screen; `sweep` is what its journal knows, where that is at hand."""
    worst = next(iter(worst_first(run.verdicts)), None)
    cases = plural(sum(timing.group is not None for timing in run.timings), "case")
    bad = [row for row in missing_rows(sweep) if row.status is Status.FAIL] if sweep is not None else []
    blocks: list[Block] = list(missing_section(bad, "Not right"))
    rows = tuple(_verdict_rows(run.verdicts))
    blocks.append(Section("Verdicts", (Statuses(rows),)))
    name = shlex.quote(str(folder)) if folder is not None else "RUN"
    lines = (f"profkit check {name} --details", f"profkit report {name} --format junit    (or json)")
    blocks.append(Section("Every case by itself", (Commands(lines),)))
    return View(
        f"Sweep on {sweep.device}" if sweep is not None else f"{run.name} on {run.backend}",
        tuple(blocks),
        Label(STATUSES[worst.verdict], WORDS[worst.verdict]) if worst is not None else None,
        (head_line(sweep) if sweep is not None else f"a sweep, {cases} with a time",),
        facts=(
            *(conclusions(sweep) if sweep is not None else ()),
            ("Verdicts", count_verdicts(run.verdicts)),
        ),
    )


def _verdict_rows(verdicts: Sequence[Verdict]) -> Iterator[StatusRow]:
    """A row for each target: the worst verdict with its reason, and how many there are of each."""
    by_target: dict[str, list[Verdict]] = defaultdict(list)
    for verdict in worst_first(verdicts):
        by_target[verdict.target].append(verdict)
    for target, own in by_target.items():
        first = own[0]
        told = first.verdict in ("fail", "unknown")
        counts = count_verdicts(own) if len(own) > 1 else ""
        yield StatusRow(
            STATUSES[first.verdict],
            WORDS[first.verdict],
            (target,),
            "; ".join(filter(None, (counts, fact_text(first.reason) if told else ""))),
            place=first.scope.name or "" if told else "",
            below=first.advice[:1] if told else (),
        )
