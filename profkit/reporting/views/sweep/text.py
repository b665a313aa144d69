"""What is said of a sweep: who is fastest, where most time can be saved, what has no time, how it was measured."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from profkit.analysis.ranking.ranking import (
    BAD,
    BASELINE,
    NEAR,
    ComparisonGroup,
    GroupWinner,
    Overall,
    Score,
    efficiency,
    failed_cases,
    farthest_from_roofline,
    is_excused,
    leaders,
    rank_overall,
)
from profkit.core.formatting import format_percent, format_quantity, format_utc_time, plural, shorten
from profkit.core.types import CaseResult, CaseState, SweepDocument
from profkit.reporting.views.cases import format_duration, format_sharing, percent, ratio

ALIKE = "="
_CLOCKS = {
    "cuda-events": "the device's own clock",
    "mps-synchronized": "the wall clock, the GPU waited for",
    "wall": "the wall clock",
}
_NUMBERS = re.compile(r"[0-9]+(?:\.[0-9]+)?")
_NAMED = 4  # groups that a sentence names for each implementation


# ---------------------------------------------------------------- names and numbers


@dataclass(frozen=True)
class Marker:
    """How an implementation is marked, the same everywhere in a sweep: its letter, and the number of its colour."""

    letter: str
    number: int


def markers(document: SweepDocument) -> Mapping[str, Marker]:
    """A marker for each implementation.

    The letter is its first one that nobody else has; those that begin with a capital choose first.
    """
    names = list(dict.fromkeys(result.implementation for result in document.results))
    letters: dict[str, str] = {}
    for name in sorted(names, key=lambda name: not name[:1].isupper()):
        spare = f"{name}ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
        free = (sign.upper() for sign in spare if sign.isascii() and sign.isalnum())
        letters[name] = next((sign for sign in free if sign not in letters.values()), "?")
    return {name: Marker(letters[name], number) for number, name in enumerate(names)}


def legend(group: ComparisonGroup, marks: Mapping[str, Marker]) -> str:
    """`P PyTorch, O torch.compile`."""
    return ", ".join(f"{marks[name].letter} {short_name(name)}" for name in group.implementations)


def short_name(name: str) -> str:
    """What an implementation is called, in a sentence or a table."""
    return shorten(name, 40)


def short_titles(document: SweepDocument) -> dict[str, str]:
    """Of each group's title what is not the same in all of them: `LayerNorm` where all are forward float32."""
    points = [result.point for result in document.results]
    directions, dtypes = {p.direction for p in points}, {p.dtype for p in points}
    titles = {}
    for p in points:
        words = [p.operation]
        words += [p.direction] if len(directions) > 1 else []
        words += [p.dtype] if len(dtypes) > 1 else []
        titles[f"{p.operation} {p.direction} {p.dtype}"] = " ".join(words)
    return titles


def case_line(result: CaseResult, document: SweepDocument) -> str:
    """`Triton, GELU forward float32 16x256x8: 5.11 µs, 12 % of its roofline`."""
    share = efficiency(result, document.roofs)
    line = f"{short_name(result.implementation)}, {result.point.name}: {format_quantity(result.median, 's')}"
    return line + (f", {percent(share)} of its roofline" if share is not None else "")


def head_line(document: SweepDocument) -> str:
    """`2240 of 2240 cases measured in 3.8 min`; how many are left of a sweep that was interrupted."""
    measured = sum(1 for result in document.results if result.state == "measured")
    left = document.planned - len(document.results)
    cases = plural(max(document.planned, len(document.results)), "case")
    line = f"{measured} of {cases} measured in {format_duration(document.seconds)}"
    return line + (f"; interrupted, {left} left" if left > 0 else "")


# ---------------------------------------------------------------- conclusions


def conclusions(document: SweepDocument) -> tuple[tuple[str, str], ...]:
    """What to know before any table, as (name, sentence)."""
    overall = rank_overall(document)
    facts = [("Fastest", _fastest(overall))]
    facts += [("By operation", line)] if (line := _by_group(document, overall)) else []
    facts += [("Most to save", line)] if (line := _most_to_save(document, overall)) else []
    bad = failed_cases(document)
    if bad:
        states = {state: sum(r.state == state for r in bad) for state in BAD}
        counts = ", ".join(f"{number} {state}" for state, number in states.items() if number)
        facts.append(
            ("Not right", f"{plural(len(bad), 'case')} ({counts}). No mean includes them.{_excuse(bad)}")
        )
    return tuple(facts)


def _excuse(bad: Sequence[CaseResult]) -> str:
    """Which of them fail no sweep: those of the framework's own arithmetic, which nobody who sweeps can mend."""
    excused = [result for result in bad if is_excused(result)]
    if not excused:
        return ""
    names = " and ".join(dict.fromkeys(short_name(result.implementation) for result in excused))
    which = "They are" if len(excused) == len(bad) else f"{len(excused)} of them are"
    return f" {which} wrong in {names} itself, which does not fail the sweep."


def _fastest(overall: Overall) -> str:
    measured = [score for score in overall.scores if score.measured]
    if not measured:
        return "not known: no case was measured."
    if len(measured) == 1:
        return f"not known: only {short_name(measured[0].implementation)} was measured."
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
        f"{short_name(s.implementation)} {ratio(s.speedup)}{_shapes(s, best)}" for s in others
    )
    then = f"; then {next_ones}." if next_ones else "."
    mean = f"the geometric mean of {plural(best.compared, 'shape')}"
    if len(first) > 1:
        names = " and ".join(short_name(score.implementation) for score in first)
        return f"{names} are alike by {mean}{then}"
    alone = f"alone fastest at {best.wins} of {overall.shapes}"
    if best.speedup is None:
        return f"{BASELINE} by the geometric mean, {alone}{then}"
    return f"{short_name(best.implementation)}, {ratio(best.speedup)} as fast as {BASELINE} by {mean}, {alone}{then}"


def _shapes(score: Score, first: Score) -> str:
    """Over how many shapes, where these are not those of the first: such means are of other work."""
    return "" if score.compared == first.compared else f" of {plural(score.compared, 'shape')}"


def _by_group(document: SweepDocument, overall: Overall) -> str:
    """The groups of each implementation that is fastest in one, its largest gains first."""
    if len(overall.best) < 2:
        return ""
    by_names: dict[tuple[str, ...], list[GroupWinner]] = defaultdict(list)
    for best in overall.best:
        by_names[best.implementations].append(best)
    titles = short_titles(document)
    parts = []
    for names, winners in sorted(by_names.items(), key=lambda pair: -len(pair[1])):
        winners.sort(key=lambda best: -(best.speedup or 0.0))
        compared = BASELINE not in names
        groups = [
            titles[best.group.title] + (f" {ratio(best.speedup)}" if best.speedup and compared else "")
            for best in winners[:_NAMED]
        ]
        left = len(winners) - _NAMED
        more = f" and {left} more" if left > 0 else ""
        parts.append(f"{' and '.join(map(short_name, names))} in {', '.join(groups)}{more}")
    return f"{'; '.join(parts)}."


def _most_to_save(document: SweepDocument, overall: Overall) -> str:
    first = next(iter(farthest_from_roofline(document, 1)), None)
    if first is None or first.median is None:
        return ""
    timed = sum(1 for result in document.results if result.point == first.point and result.median)
    alone = "; no other implementation is faster there" if timed > 1 else ""
    return (
        f"{case_line(first, document)}{alone}. {100 * NEAR:.0f} % or more is reached by {overall.near} of "
        f"{plural(overall.placed, 'case')}."
    )


# ---------------------------------------------------------------- what has no time


@dataclass(frozen=True)
class MissingCases:
    """Cases of one implementation without a time for one reason, whatever numbers stand in it: that of the first."""

    state: CaseState
    implementation: str
    reason: str
    fix: str | None
    cases: int
    place: str  # `GELU forward float32 16x256x8 and 111 more in 5 operations`


def missing_cases(document: SweepDocument) -> tuple[MissingCases, ...]:
    """Cases without a time by reason: what is wrong first, then what does not fit or is not available."""
    cases: dict[tuple[CaseState, str, str], list[CaseResult]] = defaultdict(list)
    for r in document.results:
        if r.state != "measured":
            cases[r.state, r.implementation, _NUMBERS.sub("#", r.reason or "")].append(r)
    rows = []
    for (state, name, _), same in cases.items():
        groups = {(r.point.operation, r.point.direction, r.point.dtype) for r in same}
        first = same[0]
        place = first.point.name + (f" and {len(same) - 1} more" if len(same) > 1 else "")
        place += f" in {len(groups)} operations" if len(groups) > 1 else ""
        rows.append(
            MissingCases(state, name, first.reason or "no reason is known", first.fix, len(same), place)
        )
    return tuple(sorted(rows, key=lambda row: row.state not in BAD))


# ---------------------------------------------------------------- how it was measured


def measurement_facts(document: SweepDocument) -> tuple[tuple[str, str], ...]:
    """How it was measured, as (what, words)."""
    timed = [result for result in document.results if result.median]
    ceilings = document.roofs
    facts = [("Started", format_utc_time(document.started))]
    if ceilings.bandwidth and ceilings.flops:
        most = (
            f"{format_quantity(ceilings.bandwidth, 'B/s')} and {format_quantity(ceilings.flops, 'FLOP/s')} "
            f"in float32"
        )
        facts.append(("Roofline", f"{most}, measured: {ceilings.method}"))
    else:
        facts.append(("Roofline", "not measured, so no share is shown"))
    if timed:
        clocks = " and ".join(sorted({_CLOCKS[r.clock] for r in timed if r.clock})) or "an unknown clock"
        caches = " and ".join(sorted({f"{r.cache} cache" for r in timed if r.cache}))
        calls = sorted({r.calls for r in timed})
        what = "single calls" if calls == [1] else f"means of {' or '.join(map(str, calls))} calls"
        facts.append(("Times", f"medians of {what} by {clocks}" + (f", {caches}" if caches else "")))
        facts.append(("Precision", _precision(timed)))
    speeds = sorted(clock for result in timed for clock in result.clocks)
    if speeds:
        low, high = format_quantity(speeds[0], "Hz"), format_quantity(speeds[-1], "Hz")
        facts.append(("Clock", low if low == high else f"{low} to {high}"))
    if places := list(dict.fromkeys(result.place for result in timed if result.place is not None)):
        facts.append(("Places", ", ".join(places)))
    devices = {result.device for result in timed if result.device is not None}
    if len(devices) > 1 or document.serial:
        facts.append(("Devices", format_sharing(len(devices), "cases", serial=document.serial)))
    for name, texts in (("Throttled", (r.throttled for r in timed)), ("Remarks", (r.remarks for r in timed))):
        for text, count in _counts(texts).items():
            facts.append((name, f"in {plural(count, 'case')}: {text}"))
    errors = [result.error for result in timed if result.error is not None]
    if errors:
        largest = f"{max(errors):.2f} of what rounding explains"
        facts.append(("Correctness", f"checked against float64; the largest error is {largest}"))
    if document.versions:
        facts.append(
            ("Versions", ", ".join(f"{name} {number}" for name, number in document.versions.items()))
        )
    return tuple(facts)


def _counts(texts: Iterable[Sequence[str]]) -> dict[str, int]:
    counts: dict[str, int] = defaultdict(int)
    for of_case in texts:
        for text in of_case:
            counts[text] += 1
    return counts


def _precision(timed: Sequence[CaseResult]) -> str:
    widths = sorted(result.half_width for result in timed if result.half_width is not None)
    if not widths:
        return "no interval is known"
    vague = sum(not result.precise for result in timed)
    middle = format_percent(100 * widths[(len(widths) - 1) // 2])
    text = f"half of the medians are known to ± {middle} % or better (95 % intervals)"
    return text + (f"; {plural(vague, 'median')} less well than was asked" if vague else "")
