"""Every night of a series judged by the nights before it alone, from the values and the results of re-runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite

from profkit.core.types import AcceptedChange, Direction, Point, Series
from profkit.regression.detection.control_limits import ANCHOR_NIGHTS
from profkit.regression.detection.machine_series import MachineSeries, NightResult
from profkit.regression.detection.rules import NightRule
from profkit.regression.detection.segments import accepted_cuts, microseconds_or_none
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
    anchor: str | None = None,
    with_limits: bool = False,
) -> JudgedNights:
    """What each night was. `anchor`: the commit or the date (ISO 8601) of an old state that drift is measured from.

    `with_limits`: with the limits of every night, not of the last alone. Where no direction is good, more counts as
    worse, and the caller says "moved" instead.
    """
    words = confirmed or {}
    bad = -1 if direction(series, rule) == "higher" else 1
    cuts = accepted_cuts(series, accepted)
    anchors = _anchors(series.points, anchor)
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
            pasts, anchors = {}, {}
        if not is_usable(point):
            results.append(NightResult("invalid", "not-valid", "none"))
            continue
        state, is_new_machine = states.get(point.machine), False
        if state is None:
            is_new_machine = any(len(other.level) >= rule.least for other in states.values())
            state = states[point.machine] = MachineSeries(rule, bad)
        result = state.judge(
            index, point.value, words.get(point.entry), with_limits or index == last, point.lost
        )
        # Reported once, and not green: a runner that changes each night would never be judged.
        results.append(
            replace(result, outcome="invalid", code="other-machine", step="none")
            if is_new_machine
            else _without_repeats(result, state, states.values())
        )
        if result.code != "collapse":
            pasts.setdefault(point.machine, []).append(index)
        if index in anchors:
            state.set_anchor(list(anchors[index]))
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


def _anchors(points: Sequence[Point], anchor: str | None) -> dict[int, tuple[float, ...]]:
    """Of each machine the first 24 valid nights from the anchor on, by the index of the last."""
    if anchor is None:
        return {}
    start = next((i for i, p in enumerate(points) if p.commit and p.commit.startswith(anchor)), None)
    if start is None:
        since = microseconds_or_none(anchor)
        if since is None:
            return {}
        start = next(
            (i for i, p in enumerate(points) if (microseconds_or_none(p.started) or 0) >= since), None
        )
    by_machine: dict[str, list[float]] = {}
    ends: dict[int, tuple[float, ...]] = {}
    for i in range(start, len(points)) if start is not None else ():
        point = points[i]
        if not is_usable(point):
            continue
        values = by_machine.setdefault(point.machine, [])
        values.append(point.value)
        if len(values) == ANCHOR_NIGHTS:
            ends[i] = tuple(values)
    return ends
