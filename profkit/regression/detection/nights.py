"""Every night of a series judged by the nights before it alone, from the values and the results of re-runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite

from profkit.core.types import AcceptedChange, Direction, Point, Series
from profkit.regression.detection.machine_series import MachineSeries, NightResult
from profkit.regression.detection.rules import LEAST, NightRule
from profkit.regression.detection.segments import accepted_cuts
from profkit.regression.paired.decide import ConfirmWord

LARGEST = 1e150  # nothing that is measured is as large in any unit


@dataclass(frozen=True)
class JudgedNights:
    """The results in the order of the points; of the last point's machine the indices of its valid nights in this
    segment (without those that collapsed), and its state (None where it has none)."""

    results: tuple[NightResult, ...]
    past: tuple[int, ...]
    machine: MachineSeries | None


def is_usable(point: Point) -> bool:
    """Whether a point decides anything: valid, finite, and not so large that its square is no number any more."""
    return point.valid and isfinite(point.value) and abs(point.value) < LARGEST


def direction(series: Series, rule: NightRule) -> Direction:
    """Which way is good: as the rule says, else as the series does."""
    return rule.better or series.better


def judge_nights(
    series: Series,
    rule: NightRule,
    accepted: Sequence[AcceptedChange] = (),
    confirmed: Mapping[str, ConfirmWord] | None = None,
) -> JudgedNights:
    """What each night was. Where no direction is good, more counts as worse, and the caller says "moved" instead."""
    words = confirmed or {}
    bad = -1 if direction(series, rule) == "higher" else 1
    cuts = accepted_cuts(series, accepted)
    states: dict[str, MachineSeries] = {}
    pasts: dict[str, list[int]] = {}
    results = []
    last = len(series.points) - 1
    for index, point in enumerate(series.points):
        if index in cuts:
            states = {
                machine: MachineSeries(rule, bad, inherited=state.relative_sigma())
                for machine, state in states.items()
            }
            pasts = {}
        if not is_usable(point):
            results.append(NightResult("invalid", "not-valid", "none"))
            continue
        state, is_new_machine = states.get(point.machine), False
        if state is None:
            is_new_machine = any(len(other.level) >= LEAST for other in states.values())
            state = states[point.machine] = MachineSeries(rule, bad)
        result = state.judge(index, point.value, words.get(point.entry), index == last, point.lost)
        # Reported once, and not green: a runner that changes each night would never be judged.
        results.append(
            replace(result, outcome="invalid", code="other-machine", step="none")
            if is_new_machine
            else _without_repeats(result, state, states.values())
        )
        if result.code != "collapse":
            pasts.setdefault(point.machine, []).append(index)
    machine = series.points[-1].machine if series.points else ""
    return JudgedNights(tuple(results), tuple(pasts.get(machine, ())), states.get(machine))


def _without_repeats(
    result: NightResult, state: MachineSeries, states: Iterable[MachineSeries]
) -> NightResult:
    """A regression that stands on another machine already, and that this one had no good night since, is no news."""
    if result.outcome != "regressed" or result.code == "standing":
        return result
    for state_of_other in states:
        stands = state_of_other.standing
        if state_of_other is not state and stands is not None and (result.last_good or 0) < stands.confirmed:
            return replace(result, code="standing")
    return result
