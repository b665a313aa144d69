"""The insights of two runs: which are fixed, which are new, and which are still there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from profkit.analysis.insights import find_insights
from profkit.core.types import Fact, Insight, InsightChange, InsightWord, Reading, RunDocument, Scope
from profkit.regression.compare.evidence import moved
from profkit.regression.compare.kernels import MatchedKernels, counts_chosen_launches, renamed_kernels
from profkit.regression.compare.metrics import readings_of

HARDLY = 0.03  # relative: values that moved by no more did not make a problem come or go
_Place = tuple[str, str | None, str | None]
_ORDER: tuple[InsightWord, ...] = ("fixed", "new", "remains", "unknown")


def insight_changes(
    baseline: RunDocument, candidate: RunDocument, matched: MatchedKernels
) -> tuple[InsightChange, ...]:
    """What became of each insight of profkit's own rules, by rule and kernel; a renamed kernel is the one it was.

    Both runs are looked at by the rules of today, whichever version stored them. What is missing counts as fixed (or
    new) only where the other run measured what the insight rests on, and found it different.
    """
    names = renamed_kernels(matched)
    before = _insights_by_place(find_insights(baseline), names)
    after = _insights_by_place(find_insights(candidate), {})
    scopes = {pair.baseline.scope: pair.candidate.scope for pair in matched.pairs}
    back = {second: first for first, second in scopes.items()}
    in_candidate = _Other(baseline, candidate, scopes, "candidate")
    in_baseline = _Other(candidate, baseline, back, "baseline")
    changes = []
    for place in dict.fromkeys((*before, *after)):
        old, new = before.get(place), after.get(place)
        if old is not None and new is not None:
            changes.append(InsightChange(place[0], "remains", (), old, new))
        elif old is not None:
            changes.append(InsightChange(place[0], *_missing(old, "fixed", in_candidate), baseline=old))
        elif new is not None:
            changes.append(InsightChange(place[0], *_missing(new, "new", in_baseline), candidate=new))
    return tuple(sorted(changes, key=lambda change: _ORDER.index(change.word)))


def _insights_by_place(insights: Sequence[Insight], names: Mapping[str, str]) -> dict[_Place, Insight]:
    """By rule and kernel, else function; of several in one place the one with the largest gain, which comes first."""
    places: dict[_Place, Insight] = {}
    for insight in insights:
        kernel = insight.where.kernel
        place = (
            insight.rule,
            names.get(kernel, kernel) if kernel is not None else None,
            insight.where.function if kernel is None else None,
        )
        if insight.source == "profkit":
            places.setdefault(place, insight)
    return places


# ---------------------------------------------------------------- an insight that one run does not have


@dataclass(frozen=True)
class _Other:
    """The run that lacks an insight, seen from the one that has it. `scopes`: its kernels by those of that one."""

    having: RunDocument
    lacking: RunDocument
    scopes: Mapping[Scope, Scope]
    side: str

    @cached_property
    def _values(self) -> Mapping[tuple[str, Scope], float]:
        values: dict[tuple[str, Scope], float] = {}
        for reading in readings_of(self.lacking):
            if reading.value is not None:
                values.setdefault((reading.metric, reading.scope), reading.value)
        return values

    def value_of(self, reading: Reading) -> float | None:
        """What it is in the run that lacks the insight; None where that did not measure it."""
        return self._values.get((reading.metric, self.scopes.get(reading.scope, reading.scope)))


def _missing(insight: Insight, word: InsightWord, other: _Other) -> tuple[InsightWord, tuple[Fact, ...]]:
    """`word` where the other run shows that the insight does not hold there, else `unknown`; and why."""
    kernel = insight.where.kernel
    if kernel is not None and kernel not in {scope.name for scope in other.scopes}:
        if counts_chosen_launches(other.lacking.trace) or other.lacking.trace is None:
            return "unknown", (Fact.of("kernel-not-measured", kernel=kernel, side=other.side),)
        return word, (Fact.of("kernel-not-launched", kernel=kernel, side=other.side),)
    values = [(r, r.value, other.value_of(r)) for r in insight.readings if r.value is not None]
    missing = [reading.metric for reading, _, value in values if value is None]
    if missing:
        return "unknown", tuple(Fact.of("not-measured", metric=name, side=other.side) for name in missing)
    if not values:
        lacking = sorted(set(other.having.tools) - set(other.lacking.tools))
        if lacking:
            return "unknown", (Fact.of("tool-not-used", tools=", ".join(lacking), side=other.side),)
        return word, ()
    transitions = [
        moved(reading.metric, *((own, value) if word == "fixed" else (value, own)), reading.unit)
        for reading, own, value in values
        if value is not None and abs(own - value) > HARDLY * max(abs(own), abs(value))
    ]
    if not transitions:
        return "unknown", (Fact.of("nearly-the-same", side=other.side),)
    return word, tuple(fact for at, fact in enumerate(transitions) if fact not in transitions[:at])
