"""The insights of two runs: which are fixed, which are new, and which are still there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from profkit.analysis.insights import find_insights
from profkit.analysis.kernel_names import short_name
from profkit.analysis.metrics import title_of
from profkit.core.formatting import format_quantity
from profkit.core.types import Insight, InsightChange, InsightWord, Reading, RunDocument, Scope
from profkit.regression.compare.kernels import MatchedKernels, counts_chosen_launches
from profkit.regression.compare.pairs import readings_of
from profkit.regression.compare.roles import renamed_kernels

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
            changes.append(InsightChange(place[0], "remains", _gain_change(old, new), old, new))
        elif old is not None:
            word, reason = _missing(old, "fixed", in_candidate)
            changes.append(InsightChange(place[0], word, reason, baseline=old))
        elif new is not None:
            word, reason = _missing(new, "new", in_baseline)
            changes.append(InsightChange(place[0], word, reason, candidate=new))
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


def _gain_change(old: Insight, new: Insight) -> str:
    """`at most 33 % of the GPU time, before 38 %`."""
    if new.gain is None:
        return ""
    text = f"at most {100 * new.gain.at_most:.0f} % of {new.gain.of}"
    return f"{text}, before {100 * old.gain.at_most:.0f} %" if old.gain is not None else text


# ---------------------------------------------------------------- an insight that one run does not have


@dataclass(frozen=True)
class _Other:
    """The run that lacks an insight, seen from the one that has it. `scopes`: its kernels by those of that one."""

    having: RunDocument
    lacking: RunDocument
    scopes: Mapping[Scope, Scope]
    name: str

    @cached_property
    def _values(self) -> Mapping[tuple[str, Scope], float | None]:
        values: dict[tuple[str, Scope], float | None] = {}
        for reading in readings_of(self.lacking):
            values.setdefault((reading.metric, reading.scope), reading.value)
        return values

    @cached_property
    def kernels(self) -> frozenset[str | None]:
        """The names, in the run that has the insight, of the kernels that both have."""
        return frozenset(scope.name for scope in self.scopes)

    def value_of(self, reading: Reading) -> float | None:
        """What it is in the run that lacks the insight; None where that did not measure it."""
        return self._values.get((reading.metric, self.scopes.get(reading.scope, reading.scope)))


def _missing(insight: Insight, word: InsightWord, other: _Other) -> tuple[InsightWord, str]:
    """`word` where the other run shows that the insight does not hold there, else `unknown`; and why."""
    kernel = insight.where.kernel
    if kernel is not None and kernel not in other.kernels:
        label = short_name(kernel)
        if counts_chosen_launches(other.lacking.trace) or other.lacking.trace is None:
            return "unknown", f"{label} was not measured in the {other.name}"
        return word, f"{label} is not launched in the {other.name}"
    values = [(reading, other.value_of(reading)) for reading in insight.readings if reading.value is not None]
    missing = [title_of(reading.metric) for reading, value in values if value is None]
    if missing:
        return "unknown", f"not measured in the {other.name}: {', '.join(missing)}"
    if not values:
        lacking = sorted(set(other.having.tools) - set(other.lacking.tools))
        if lacking:
            return "unknown", f"not measured in the {other.name}, where {', '.join(lacking)} was not used"
        return word, ""
    moved = [
        (reading, value) for reading, value in values if value is not None and _differs(reading.value, value)
    ]
    if not moved:
        return (
            "unknown",
            f"its values are nearly the same in the {other.name}: it is at the limit of what counts",
        )
    sides = (_transition(reading, value, forward=word == "fixed") for reading, value in moved)
    return word, "; ".join(dict.fromkeys(sides))


def _differs(first: float | None, second: float) -> bool:
    return first is not None and abs(first - second) > HARDLY * max(abs(first), abs(second))


def _transition(reading: Reading, value: float, *, forward: bool) -> str:
    own, opposite = (format_quantity(number, reading.unit) for number in (reading.value, value))
    before, after = (own, opposite) if forward else (opposite, own)
    return f"{title_of(reading.metric)} {before} -> {after}"
