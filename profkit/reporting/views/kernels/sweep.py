"""A sweep: who is fastest, group by group and shape by shape, every case, and what has no time.

`judged` is a sweep with its verdicts, on one screen.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from profkit.analysis.ranking import (
    BAD,
    BASELINE,
    FILE,
    ComparisonGroup,
    ImplementationRanking,
    ShapeResult,
    comparison_groups,
    efficiency,
    failed_cases,
    faulty_cases,
    is_tolerated,
    leaders,
    rank_implementations,
    results_by_shape,
    whole_sweep,
)
from profkit.core.formatting import (
    format_duration,
    format_figures,
    format_quantity,
    format_utc_time,
    joined,
    plural,
    shorten,
)
from profkit.core.types import CaseResult, CaseState, RunDocument, SweepDocument
from profkit.reporting.columns import Column, data_table, sortable_table
from profkit.reporting.facts import fact_text
from profkit.reporting.view import (
    Block,
    DataTable,
    FieldList,
    Fold,
    Label,
    Section,
    Span,
    Status,
    Statuses,
    StatusRow,
    Text,
    View,
    command,
    strong,
    table,
)
from profkit.reporting.views.kernels.cases import (
    complete_label,
    files_line,
    hundredfold,
    limited,
    percent,
    ratio,
    short_name,
    verdicts_section,
)
from profkit.reporting.views.kernels.sweep_axes import axes_section
from profkit.reporting.views.run_text import VERDICTS, count_verdicts, worst_first

ALIKE = "="
_OPEN = 8  # groups that stand open; of more each opens at a click, and a short screen has their headlines
_LONG_MAP = 8  # rows: a short screen has no longer map
_CLOCKS = {
    "cuda-events": "the device's own clock",
    "wall": "the wall clock",
}
_COLUMNS_NOTE = (
    "Time and speed-up are geometric means over shapes. Memory is the most during any call, including inputs."
    " Inference Speed is calls per second. GPU Efficiency is the median share of the device's roofline, also where the"
    " device is a processor."
)


def view(document: SweepDocument, folder: Path | None = None) -> View:
    """Return the sweep as blocks. `folder` is where it lies, for the lines to type."""
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
    yield from axes_section(document, marks)
    for number, group in enumerate(groups):
        yield _group(number, group, document, marks)
    yield from cases_section(document)
    yield from missing_section(missing_rows(document), "Not measured")
    facts = [*_measurement_facts(document), *([("Columns", _COLUMNS_NOTE)] if groups else [])]
    yield Section("How it was measured", (FieldList(tuple(facts)),), anchor="how")
    yield from files_line(folder, ("report.html", "report.md", FILE))


# ---------------------------------------------------------------- names and conclusions


def head_line(document: SweepDocument) -> str:
    """Return `2240 of 2240 cases measured in 3.8 min`; how many are left of a sweep that was interrupted."""
    measured = sum(1 for result in document.results if result.state == "measured")
    left = document.planned - len(document.results)
    cases = plural(max(document.planned, len(document.results)), "case")
    line = f"{measured} of {cases} measured"
    line += f" in {format_duration(document.seconds)}" if document.seconds else ""
    return line + (f"; interrupted, {left} left" if left > 0 else "")


def conclusions(document: SweepDocument) -> tuple[tuple[str, str], ...]:
    """Return what to know before any table, as (name, sentence)."""
    facts = [("Fastest", _fastest(document))]
    if bad := failed_cases(document):
        counts = joined([f"{number} {state}" for state, number in Counter(r.state for r in bad).items()])
        text = f"{plural(len(bad), 'case')} ({counts}). No mean includes them."
        tolerated = [result for result in bad if is_tolerated(result)]
        if tolerated:
            names = " and ".join(dict.fromkeys(short_name(result.implementation) for result in tolerated))
            text += f" {len(tolerated)} wrong in {names} itself, which does not fail the sweep."
        facts.append(("Not right", text))
    return tuple(facts)


def _fastest(document: SweepDocument) -> str:
    whole = whole_sweep(document)
    scores, shapes = rank_implementations(whole, document.roofs), len(results_by_shape(whole))
    measured = [score for score in scores if score.measured]
    if len(measured) < 2:
        only = f"only {short_name(measured[0].implementation)}" if measured else "no case"
        return f"not known: {only} was measured."
    first = leaders(scores)
    if not first:
        most = max(measured, key=lambda score: score.wins)
        return (
            f"{short_name(most.implementation)}, alone at {most.wins} of {plural(shapes, 'shape')}. "
            f"There are no speed-ups, because {BASELINE} was not measured."
        )
    best = first[0]
    line = " and ".join(short_name(score.implementation) for score in first)
    line += f", {ratio(best.speedup)} as fast as {BASELINE}" if best.speedup is not None else ""
    line += " (alike)" if len(first) > 1 else f", the only fastest one for {best.wins} of {shapes}"
    return f"{line}; geometric mean of {plural(best.compared, 'shape')}."


# ---------------------------------------------------------------- who is how fast


def _speedups(document: SweepDocument, groups: Sequence[ComparisonGroup]) -> Iterator[Block]:
    """Yield a row for each group, a column for each implementation, and all shapes together below."""
    names = list(dict.fromkeys(result.implementation for result in document.results))
    if len(groups) < 2 or len(names) < 2:
        return
    rows: list[tuple[Text, dict[str, float | None]]] = []
    for number, group in enumerate(groups):
        speedups = {
            ranked.implementation: _speedup(ranked) for ranked in rank_implementations(group, document.roofs)
        }
        rows.append((Span(group.title, link=f"#panel-{number}"), speedups))
    ranking = rank_implementations(whole_sweep(document), document.roofs)
    overall = {ranked.implementation: _speedup(ranked) for ranked in ranking}
    rows.append((strong("All shapes"), overall))

    def column(name: str) -> Column[tuple[Text, dict[str, float | None]]]:
        return Column(short_name(name), lambda row: row[1].get(name), "x", hidden_when_empty=False)

    first: Column[tuple[Text, dict[str, float | None]]] = Column(f"Over {BASELINE}", lambda row: row[0])
    note = f"How many times as fast as {BASELINE}, as geometric means over shapes."
    body = data_table([first, *map(column, names)], rows, note=note)
    yield Section("Which implementation is fastest", (body,), anchor="speed-ups")


def _speedup(ranking: ImplementationRanking) -> float | None:
    return 1.0 if ranking.implementation == BASELINE and ranking.measured else ranking.speedup


def _group(
    number: int, group: ComparisonGroup, document: SweepDocument, marks: Mapping[str, Span]
) -> Section:
    ranking = rank_implementations(group, document.roofs)
    speedups = {ranked.implementation: _speedup(ranked) for ranked in ranking}
    largest = max((value for value in speedups.values() if value is not None), default=None)
    best = {name for name, value in speedups.items() if len(ranking) > 1 and largest and value == largest}
    headline = plural(len(group.points), "shape")
    if best:
        gain = f", {ratio(largest)} as fast as {BASELINE}" if BASELINE not in best else ""
        headline += f"; fastest: {' and '.join(map(short_name, best))}{gain}"
    missing = sum(ranked.cases - ranked.measured for ranked in ranking)
    headline += f"; {plural(missing, 'case')} not measured" if missing else ""
    blocks = (_ranking_table(ranking, marks), *_map(group, marks))
    fold = Fold.FOLDED if number >= _OPEN else Fold.OPEN
    return Section(group.title, blocks, headline, fold, f"panel-{number}")


def _ranking_table(ranking: Sequence[ImplementationRanking], marks: Mapping[str, Span]) -> DataTable:
    def column(
        title: str, value: Callable[[ImplementationRanking], Any], unit: str
    ) -> Column[ImplementationRanking]:
        return Column(title, value, unit, hidden_when_empty=False)

    columns = (
        column(
            "", lambda ranked: (marks[ranked.implementation], " ", short_name(ranked.implementation)), "text"
        ),
        column("Time", lambda ranked: ranked.time, "s"),
        column("Memory", lambda ranked: ranked.memory, "B"),
        column("Inference Speed", lambda ranked: 1 / ranked.time if ranked.time else None, "/s"),
        column("GPU Efficiency", lambda ranked: percent(ranked.efficiency), "%"),
        column("Speed-up", _speedup, "x"),
    )
    return data_table(columns, ranking)


def _map(group: ComparisonGroup, marks: Mapping[str, Span]) -> Iterator[Block]:
    """Yield the map: rows are batch x sequence, columns dimensions. Nothing where nothing was compared."""
    results = results_by_shape(group)
    if len(group.implementations) < 2 or not results:
        return
    dimensions = sorted({point.dimension for point in group.points})
    pairs = sorted({(p.batch, p.sequence) for p in group.points}, key=lambda pair: (pair[0] * pair[1], pair))
    names = ", ".join(f"{marks[name].text} {short_name(name)}" for name in group.implementations)
    at = {(point.batch, point.sequence, point.dimension): result for point, result in results.items()}
    rows = [
        (f"{pair[0]} x {pair[1]}", *(_fastest_cell(at.get((*pair, size)), marks) for size in dimensions))
        for pair in pairs
    ]
    yield table(
        ("batch x sequence", *map(str, dimensions)),
        rows,
        title="Fastest, by dimension",
        note=f"{names}; {ALIKE}: several are alike; the number: how many times as long the next one takes",
        brief=_LONG_MAP,
    )


def _fastest_cell(result: ShapeResult | None, marks: Mapping[str, Span]) -> Text:
    """Return `C 1.25`: whose time is the shortest, and the next one's over it."""
    if result is None:
        return "."
    if result.alone is None:
        return ALIKE
    lead = f" {format_figures(result.lead)}" if result.lead is not None else ""
    return replace(marks[result.alone], text=marks[result.alone].text + lead)


# ---------------------------------------------------------------- how it was measured


def _measurement_facts(document: SweepDocument) -> tuple[tuple[str, str], ...]:
    """Return how it was measured, as (what, words)."""
    timed = [result for result in document.results if result.median]
    ceilings = document.roofs
    facts = [("Started", format_utc_time(document.started))]
    if ceilings.bandwidth and ceilings.flops:
        most = f"{format_quantity(ceilings.bandwidth, 'B/s')} and {format_quantity(ceilings.flops, 'FLOP/s')}"
        facts.append(("Roofline", f"{most}, measured: {fact_text(ceilings.method)}"))
    else:
        facts.append(("Roofline", "not measured, so no share is shown"))
    if timed:
        clocks = " and ".join(sorted({_CLOCKS[r.clock] for r in timed if r.clock})) or "an unknown clock"
        caches = " and ".join(sorted({f"{r.cache} cache" for r in timed if r.cache}))
        calls = sorted({r.calls for r in timed})
        what = "single calls" if calls == [1] else f"means of {' or '.join(map(str, calls))} calls"
        facts.append(("Times", f"medians of {what} by {clocks}" + (f", {caches}" if caches else "")))
    remarks = [tuple(map(fact_text, result.remarks)) for result in timed]
    for name, by_case in (("Throttled", [r.throttled for r in timed]), ("Remarks", remarks)):
        for text, count in Counter(text for of_case in by_case for text in of_case).items():
            facts.append((name, f"in {plural(count, 'case')}: {text}"))
    if document.versions:
        versions = ", ".join(f"{name} {number}" for name, number in document.versions.items())
        facts.append(("Versions", versions))
    return tuple(facts)


# ---------------------------------------------------------------- judged


def judged(run: RunDocument) -> View:
    """Return the verdicts on a sweep by target, on one screen."""
    worst = next(iter(worst_first(run.verdicts)), None)
    return View(
        f"{run.name} on {run.backend}",
        tuple(verdicts_section(run.verdicts)),
        VERDICTS[worst.verdict] if worst is not None else None,
        (f"a sweep, {plural(sum(timing.group is not None for timing in run.timings), 'case')} with a time",),
        facts=(("Verdicts", count_verdicts(run.verdicts)),),
    )


_ROWS, _FEW_ROWS = 200, 8  # of what has no time, and on a short screen


def markers(document: SweepDocument) -> Mapping[str, Span]:
    """Return how each implementation is marked, the same everywhere: a letter of its own in the colour of its number.

    The letter is its first one that nobody else has; those that begin with a capital choose first.
    """
    names = list(dict.fromkeys(result.implementation for result in document.results))
    letters: dict[str, str] = {}
    for name in sorted(names, key=lambda name: not name[:1].isupper()):
        spare = f"{name}ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
        free = (sign.upper() for sign in spare if sign.isascii() and sign.isalnum())
        letters[name] = next((sign for sign in free if sign not in letters.values()), "?")
    return {name: Span(letters[name], series=number) for number, name in enumerate(names)}


def cases_section(document: SweepDocument) -> Iterator[Section]:
    """Yield one table that can be sorted and filtered; nothing if no case has a result."""
    results = document.results
    if not results:
        return
    note = "Cases that were not measured have no time; the state says why. ± is half of the median's 95 % interval."
    body = sortable_table(
        "All cases",
        _columns(document),
        results,
        [f"{result.implementation}, {result.point.name}" for result in results],
        note=note,
        hint="words of a case: CUDA 16x256",
    )
    how = "click a title to sort, type words to filter."
    headline = f"{plural(len(results), 'case')}: {how}"
    yield Section("All cases", (body,), headline, anchor="cases", repeats=True)


def _columns(document: SweepDocument) -> tuple[Column[CaseResult], ...]:
    base = {r.point: r.median for r in document.results if r.implementation == BASELINE and r.median}

    def speedup(result: CaseResult) -> float | None:
        before = base.get(result.point)
        return before / result.median if before and result.median else None

    def state(result: CaseResult) -> str:
        return shorten(f"{result.state}: {fact_text(result.reason)}" if result.reason else result.state, 120)

    def share(result: CaseResult) -> float | None:
        return hundredfold(efficiency(result, document.roofs))

    of_roofline = "of the roofline: the least time by bytes and FLOPs over the measured one"
    return (
        Column("Case", lambda r: shorten(f"{r.point.operation} {r.point.shape}", 40)),
        Column("By", lambda r: shorten(r.implementation, 24), meaning="the implementation"),
        Column("Direction", lambda r: r.point.direction),
        Column("Dtype", lambda r: r.point.dtype),
        Column("Time", lambda r: r.median, "s", "median of its samples"),
        Column("±", lambda r: hundredfold(r.half_width), "%", "half of its 95 % interval"),
        Column("Speed-up", speedup, "x", f"the time of {BASELINE} over its own"),
        Column("Memory", lambda r: r.memory, "B", "the most during a call, inputs included"),
        Column("GPU Efficiency", share, "%", of_roofline),
        Column("Batch", lambda r: r.point.batch, "n"),
        Column("Sequence", lambda r: r.point.sequence, "n"),
        Column("Dimension", lambda r: r.point.dimension, "n"),
        Column("State", state),
        Column("Remarks", lambda r: "; ".join((*map(fact_text, r.remarks), *r.throttled)) or None),
    )


# ---------------------------------------------------------------- what has no time


def missing_rows(document: SweepDocument) -> list[StatusRow]:
    """Return cases without a time by reason, regardless of numbers and names: wrong ones first, then too large ones."""
    cases: dict[tuple[CaseState, str, object], list[CaseResult]] = defaultdict(list)
    for r in document.results:
        if r.state != "measured":
            cases[r.state, r.implementation, r.reason and r.reason.kind].append(r)
    rows = []
    for (state, name, _), same in cases.items():
        groups = {(r.point.operation, r.point.direction, r.point.dtype) for r in same}
        first = same[0]
        place = first.point.name + (f" and {len(same) - 1} more" if len(same) > 1 else "")
        place += f" in {len(groups)} operations" if len(groups) > 1 else ""
        status = Status.FAIL if state in BAD else Status.UNKNOWN
        reason = shorten(fact_text(first.reason) or "no reason is known", 400)
        below = (command(first.fix),) if first.fix else ()
        rows.append(StatusRow(status, state, (short_name(name),), reason, place=place, below=below))
    return sorted(rows, key=lambda row: row.status is not Status.FAIL)


def missing_section(rows: Sequence[StatusRow], title: str) -> Iterator[Block]:
    """Yield the section of missing implementations; a short screen shows failures and what can be made available."""

    if rows:
        first = [row for row in rows if row.status is Status.FAIL or row.below][:_FEW_ROWS]
        whole = Statuses(tuple(rows), ("implementation", "", "", "cases"), "state", "", "fix: ")
        yield Section(title, (limited(whole, first, _ROWS, "reason", FILE),), anchor="missing")
