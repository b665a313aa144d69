"""What to know of a sweep before any table: who is fastest, in what, where most is to be won, and what is not right."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from profkit.analysis.ranking.ranking import (
    BAD,
    BASELINE,
    NEAR,
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
from profkit.core.formatting import format_quantity, plural
from profkit.core.types import CaseResult, SweepDocument
from profkit.reporting.sweep.words import called, counted, ratio, short_titles, told_share

NAMED = 4  # panels that a sentence names for each implementation


def conclusions(document: SweepDocument) -> tuple[str, ...]:
    """What to know before any table: who is fastest, in what, and where most is to be won; then what is not right."""
    found = rank_overall(document)
    lines = [line for line in (_who(found), _where(document, found), _most(document, found)) if line]
    bad = failed_cases(document)
    if bad:
        told = f"Not right: {plural(len(bad), 'case')} ({counted(document, BAD)}); they are in no mean."
        lines.append(told + _excused(bad))
    return tuple(lines)


def _excused(bad: Sequence[CaseResult]) -> str:
    """What of it fails no sweep: the framework's own arithmetic, which nobody who sweeps can mend."""
    found = [result for result in bad if is_excused(result)]
    if not found:
        return ""
    names = " and ".join(dict.fromkeys(called(result.implementation) for result in found))
    which = "They are" if len(found) == len(bad) else f"{len(found)} of them are"
    return f" {which} wrong in {names} itself, which fails no sweep."


def _who(found: Overall) -> str:
    measured = [score for score in found.scores if score.measured]
    if not measured:
        return "Fastest: nobody, since no case was measured."
    if len(measured) == 1:
        return f"Fastest: {called(measured[0].implementation)} alone was measured, so nothing is compared."
    first = leaders(found.scores)
    if not first:
        most = max(measured, key=lambda score: score.wins)
        return (
            f"Fastest: {called(most.implementation)}, alone at {most.wins} of {plural(found.shapes, 'shape')}; "
            f"no speed-ups, since {BASELINE} was not measured."
        )
    best = first[0]
    others = [score for score in found.scores if score.speedup is not None and score not in first]
    others.sort(key=lambda score: -(score.speedup or 0.0))
    behind = ", ".join(f"{called(s.implementation)} {ratio(s.speedup)}{_of(s, best)}" for s in others)
    then = f"; then {behind}." if behind else "."
    if len(first) > 1:
        names = " and ".join(called(score.implementation) for score in first)
        return f"Fastest: {names} are alike by the geometric mean of {plural(best.compared, 'shape')}{then}"
    alone = f"alone at {best.wins} of {found.shapes}"
    if best.speedup is None:
        return f"Fastest: {BASELINE} by the geometric mean, {alone}{then}"
    said = (
        f"{ratio(best.speedup)} {BASELINE} by the geometric mean of {plural(best.compared, 'shape')}, {alone}"
    )
    return f"Fastest: {called(best.implementation)}, {said}{then}"


def _of(score: Score, first: Score) -> str:
    """Over how many shapes, where these are not those of the first: such means are of other work."""
    return "" if score.compared == first.compared else f" of {plural(score.compared, 'shape')}"


def _where(document: SweepDocument, found: Overall) -> str:
    """The panels of each implementation that is best in one, its largest gains first."""
    of: dict[tuple[str, ...], list[GroupWinner]] = defaultdict(list)
    for best in found.best:
        of[best.implementations].append(best)
    if len(found.best) < 2:
        return ""
    titles = short_titles(document)
    told = []
    for names, bests in sorted(of.items(), key=lambda pair: -len(pair[1])):
        bests.sort(key=lambda best: -(best.speedup or 0.0))
        named = [
            titles[best.panel.title]
            + (f" {ratio(best.speedup)}" if best.speedup and BASELINE not in names else "")
            for best in bests[:NAMED]
        ]
        left = len(bests) - NAMED
        told.append(
            f"{' = '.join(map(called, names))} in {', '.join(named)}"
            + (f" and {left} more" if left > 0 else "")
        )
    return f"Best: {'; '.join(told)}."


def _most(document: SweepDocument, found: Overall) -> str:
    first = next(iter(farthest_from_roofline(document, 1)), None)
    if first is None or first.median is None:
        return ""
    share = efficiency(first, document.roofs) or 0.0
    timed = sum(1 for result in document.results if result.point == first.point and result.median)
    alone = ", and nobody is faster there" if timed > 1 else ""
    return (
        f"Most to win: {called(first.implementation)}, {first.point.name}: {format_quantity(first.median, 's')} at "
        f"{told_share(share)} of its roofline{alone}; at {100 * NEAR:.0f} % or above: {found.near} of "
        f"{plural(found.placed, 'case')}."
    )
