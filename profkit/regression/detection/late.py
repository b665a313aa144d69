"""Regressions that no night confirmed: a step that the change point detectors see afterwards, and a slow drift."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import sqrt
from typing import Literal

from profkit.core.errors import UsageError
from profkit.core.statistics import median
from profkit.core.types import ChangePoint, Series
from profkit.regression.detection.control_limits import (
    CORRELATION_GUESS,
    MEDIAN_VARIANCE,
    autocorrelation,
    recent_limits,
    widened_limits,
)
from profkit.regression.detection.machine_series import MachineSeries
from profkit.regression.detection.nights import JudgedNights, direction, is_usable
from profkit.regression.detection.rules import WEEK, NightRule
from profkit.regression.times import microseconds

SAME_CHANGE = 5  # nights that two verdicts on one change may lie apart
LEAST_NIGHTS = 12  # with which the detectors begin to say something
# From this autocorrelation on the detectors see changes where there are none: shown, and decides nothing.
UNRELIABLE_CORRELATION = 0.5
FIRST_SEEN = 3  # nights after a change before which no detector can see it
LAST_SEEN = 40  # nights after it in which the first sight is looked for
_JUDGED_CODES = ("same-night", "nights", "improved", "gone", "same")

ANCHOR_NIGHTS = 24  # nights that the old state is the median of
DRIFT_SIGMAS = 3.0  # standard errors by which the recent median must be beyond the floor
# Autocorrelation from which a series wanders without a cause: three nights are one.
WANDERING = 0.75


@dataclass(frozen=True)
class LateRegression:
    """What is worse than `before` since the night `first`, still there, and was accepted by nobody.

    `seen`: the night in which it could first be seen. Nights are indices in the series.
    """

    step: Literal["change-point", "drift"]
    first: int
    last_good: int | None
    before: float
    seen: int


def change_points_of(series: Series, nights: JudgedNights) -> tuple[ChangePoint, ...]:
    """The change points of the segment of the last point, on its machine, by their indices in the series."""
    if len(nights.past) < LEAST_NIGHTS:
        return ()
    from profkit.regression.change_points import find_changes  # here: it loads numpy

    changes = []
    for change in find_changes([series.points[i].value for i in nights.past]):
        index = nights.past[change.index]
        point = series.points[index]
        changes.append(replace(change, index=index, started=point.started, commit=point.commit))
    return tuple(changes)


def find_late_regression(
    series: Series,
    rule: NightRule,
    nights: JudgedNights,
    changes: Sequence[ChangePoint],
    anchor: str | None = None,
) -> LateRegression | None:
    """The first of `changes` that the nights missed and that still stands; else a drift.

    `anchor`: the commit or the date (ISO 8601) of the old state that drift is measured from.
    """
    machine = nights.machine
    better = direction(series, rule)
    if machine is None or better == "none" or machine.standing is not None or len(machine.level) < WEEK:
        return None
    bad = -1 if better == "higher" else 1
    now = median(machine.level[-WEEK:])
    for change in changes:
        floor = rule.floor(change.before)
        if min(bad * (change.after - change.before), bad * (now - change.before)) <= floor:
            continue  # too small, the good direction, or gone again
        if any(
            result.code in _JUDGED_CODES
            and result.first is not None
            and abs(result.first - change.index) <= SAME_CHANGE
            for result in nights.results
        ):
            continue
        values = [series.points[i].value for i in nights.past if i < change.index]
        if autocorrelation(values[-120:], CORRELATION_GUESS) <= UNRELIABLE_CORRELATION:
            seen = _first_seen(series, nights, change)
            return LateRegression("change-point", change.index, change.index - 1, change.before, seen)
    return find_drift(machine, rule, _anchor_of(series, machine, anchor))


def _first_seen(series: Series, nights: JudgedNights, change: ChangePoint) -> int:
    """The night in which the detector first saw it: found by asking again as if each night were the last."""
    from profkit.regression.change_points import find_changes

    past = nights.past
    place = past.index(change.index)
    values = [series.points[i].value for i in past]
    last = min(len(past), place + LAST_SEEN)
    for end in range(max(place + FIRST_SEEN, LEAST_NIGHTS), last):
        if any(abs(c.index - place) <= SAME_CHANGE for c in find_changes(values[:end])):
            return past[end - 1]
    return past[last - 1]


# ---------------------------------------------------------------- drift


def find_drift(machine: MachineSeries, rule: NightRule, anchor: Sequence[float]) -> LateRegression | None:
    """What the level became worse by, in steps of which none was found: since it last was as the `anchor` nights.

    The median of the last two weeks lies beyond the floor of drifts by 3 standard errors (those of two medians, with
    (1 + r) / (1 - r) for autocorrelated neighbours), and that of the last week beyond it. Two weeks, so that a step of
    this week is left to the nights. Not for a series that is autocorrelated too much: it wanders without a cause.
    """
    level, bad = machine.level, machine.bad
    if len(anchor) < ANCHOR_NIGHTS:
        return None
    old = median(anchor)
    seen = len(level)
    while seen > len(level) - LAST_SEEN and _has_drifted(machine, rule, old, seen):
        seen -= 1
    if seen == len(level):
        return None
    nights = seen + 1
    fortnight = 2 * WEEK
    begin = next((n for n in range(nights - fortnight, 0, -1) if bad * (level[n - 1] - old) <= 0), 0)
    last_good = machine.indices[begin - 1] if begin else None
    return LateRegression("drift", machine.indices[begin], last_good, old, machine.indices[nights - 1])


def _has_drifted(machine: MachineSeries, rule: NightRule, old: float, nights: int) -> bool:
    """Whether the first `nights` of the level end in a drift away from `old`."""
    level, week = machine.level[:nights], WEEK
    if nights < 2 * week + ANCHOR_NIGHTS:
        return False
    floor = rule.drift_floor(old)
    shift = machine.bad * (median(level[-2 * week :]) - old)
    if min(shift, machine.bad * (median(level[-week:]) - old)) <= floor:
        return False
    limits = widened_limits(recent_limits(level, machine.inherited, rule), level, rule, guess=machine.guess)
    r = max(limits.correlation, 0.0)
    error = limits.sigma * sqrt(MEDIAN_VARIANCE * (1 + r) / (1 - r) * (0.5 / week + 1 / ANCHOR_NIGHTS))
    return r <= WANDERING and shift - DRIFT_SIGMAS * error > floor


def _anchor_of(series: Series, machine: MachineSeries, anchor: str | None) -> list[float]:
    """The 24 nights of the machine from the anchor on; the first of the level where none is named or it lies before."""
    points = series.points
    name = points[machine.indices[-1]].machine
    start = None
    if anchor is not None:
        named_so = (i for i, p in enumerate(points) if p.commit and p.commit.startswith(anchor))
        start = next(named_so, None)
        if start is None:
            with contextlib.suppress(UsageError):  # a commit that the series does not have is no date
                since = microseconds(anchor)
                start = next((i for i, p in enumerate(points) if microseconds(p.started) >= since), None)
    if start is None or start < machine.indices[0]:
        return machine.level[:ANCHOR_NIGHTS]
    named = [p.value for p in points[start:] if p.machine == name and is_usable(p)]
    return named[:ANCHOR_NIGHTS]
