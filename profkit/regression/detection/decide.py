"""One series, one outcome: the rule's result for its last night, with what the change detector sees afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isfinite, sqrt
from operator import mul
from typing import Literal

from profkit.core.statistics import mad_sigma, median
from profkit.core.types import AcceptedChange, Direction, MetricOutcome, Series, Trend
from profkit.regression.change_points import SeriesFindings, examine_series
from profkit.regression.detection.nights import (
    LONG_WINDOW,
    MEDIAN_VARIANCE,
    WEEK,
    WINDOW,
    JudgedNights,
    Limits,
    MachinePast,
    NightResult,
    direction,
    judge_nights,
    segments_of,
)
from profkit.regression.detection.rules import NightRule

DETECTED = 1.2816  # sigma by which 9 of 10 nights of a changed level lie beyond the edge
SHOWN_NIGHTS = 120  # that are judged for a metric that does not gate: it needs no memory of last year
SAME_CHANGE = 5  # nights that two verdicts on one change may lie apart
LEAST_NIGHTS = 12  # with which the detector begins to say something
# From this autocorrelation on the detector sees changes where there are none: shown, and decides nothing.
UNRELIABLE_CORRELATION = 0.5
WANDERING = 0.75  # autocorrelation from which a series drifts without a cause
DRIFT_SIGMAS = 3.0  # standard errors by which the recent median must be beyond the floor
_JUDGED_CODES = ("nights", "improved", "gone")


def decide(
    series: Series,
    rule: NightRule,
    accepted: Sequence[AcceptedChange] = (),
) -> MetricOutcome:
    """The outcome of the last point of the series, which is tonight's; `missing` where the series is empty."""
    better = direction(series, rule)
    if not series.points:
        return MetricOutcome(
            series.key.metric, "missing", "not-measured", unit=series.unit, better=better, gates=rule.gates
        )
    whole, series = series, series if rule.gates else replace(series, points=series.points[-SHOWN_NIGHTS:])
    nights = judge_nights(series, rule, accepted)
    findings = SeriesFindings()
    if rule.gates and nights.past is not None and len(nights.past.nights) >= LEAST_NIGHTS:
        findings = examine_series([night.value for night in nights.past.nights])
        findings = _placed_in_series(findings, series, nights.past)
    late = find_late(series, rule, nights, findings) if rule.gates else None
    outcome = outcome_of(series, rule, nights.results[-1], late)
    limits = nights.results[-1].limits
    trend = Trend(
        series=whole,
        epochs=segments_of(whole, accepted),
        change_points=findings.change_points,
        noise=limits.sigma / abs(limits.centre) if limits is not None and limits.centre else None,
        detectable=outcome.detectable,
        autocorrelation=findings.autocorrelation,
    )
    return replace(outcome, change_points=findings.change_points, trend=trend)


def outcome_of(
    series: Series, rule: NightRule, result: NightResult, late: Late | None = None
) -> MetricOutcome:
    """`result` of the last point of `series` as an outcome, with what was found late of what it lets pass."""
    point, better = series.points[-1], direction(series, rule)
    if late is not None and result.outcome in ("pass", "new", "ambiguous"):
        where = replace(result, first=late.first, last_good=late.last_good, before=late.before)
        result = replace(where, code=late.step, step=late.step)
    limits, outcome, code = result.limits, result.outcome, result.code
    if better == "none" and outcome in ("regressed", "improved", "ambiguous"):
        outcome, code = "pass", "moved"
    first = series.points[result.first] if result.first is not None else None
    last_good = series.points[result.last_good] if result.last_good is not None else None
    return MetricOutcome(
        metric=series.key.metric,
        outcome=outcome,
        code=code,
        message=(point.reason or "") if code == "not-valid" else "",
        step=result.step,
        unit=series.unit,
        better=better,
        scope=series.key.scope,
        value=point.value if isfinite(point.value) else None,
        expected=result.before
        if result.before is not None
        else limits.centre
        if limits is not None
        else None,
        band=(limits.low, limits.high) if limits is not None else (),
        detectable=_smallest_detectable(limits, better),
        nights=result.nights,
        short=result.short,
        gates=rule.gates and better != "none",
        since=first.started if first is not None else None,
        commit=first.commit if first is not None else None,
        good_commit=last_good.commit if last_good is not None else None,
    )


def _smallest_detectable(limits: Limits | None, better: Direction) -> float | None:
    """The relative change for the worse of which one night shows 9 in 10; None around 0."""
    if limits is None or not limits.centre:
        return None
    edge = limits.far[1] - limits.centre if better != "higher" else limits.centre - limits.far[0]
    return (edge + DETECTED * limits.sigma) / abs(limits.centre)


# ---------------------------------------------------------------- what no night confirmed


@dataclass(frozen=True)
class Late:
    """What is worse than `before` since the night `first`, still there, and was accepted by nobody."""

    step: Literal["change-point", "drift"]
    first: int
    last_good: int | None
    before: float


def _placed_in_series(findings: SeriesFindings, series: Series, past: MachinePast) -> SeriesFindings:
    """The findings of a machine's nights, their places in the series."""
    placed = []
    for change in findings.change_points:
        index = past.nights[change.index].place
        point = series.points[index]
        placed.append(replace(change, index=index, started=point.started, commit=point.commit))
    return replace(findings, change_points=tuple(placed))


def find_late(series: Series, rule: NightRule, nights: JudgedNights, findings: SeriesFindings) -> Late | None:
    """The first change point that the nights missed and that still stands; else a drift."""
    past, better = nights.past, direction(series, rule)
    if past is None or better == "none" or past.standing is not None or len(past.level) < WEEK:
        return None
    now = median([night.value for night in past.level[-WEEK:]])
    for change in findings.change_points:
        worse = min(past.bad * (change.after - change.before), past.bad * (now - change.before))
        if worse <= rule.floor(change.before):
            continue  # too small, the good direction, or gone again
        judged = (r.first for r in nights.results if r.code in _JUDGED_CODES and r.first is not None)
        if any(abs(first - change.index) <= SAME_CHANGE for first in judged):
            continue
        if (findings.autocorrelation or 0.0) <= UNRELIABLE_CORRELATION:
            return Late("change-point", change.index, change.index - 1, change.before)
    return _find_drift(past, rule)


def _find_drift(past: MachinePast, rule: NightRule) -> Late | None:
    """What the level became worse by in steps of which none was found, against its first 24 nights.

    The median of the last two weeks lies beyond the floor of drifts by 3 standard errors (those of two medians, with
    (1 + r) / (1 - r) for autocorrelated neighbours), and that of the last week beyond it. Two weeks, so that a step of
    this week is left to the nights.
    """
    level, fortnight = [night.value for night in past.level], 2 * WEEK
    if len(level) < fortnight + WINDOW:
        return None
    old = median(level[:WINDOW])
    floor = rule.drift_floor(old)
    shift, week = (past.bad * (median(level[-nights:]) - old) for nights in (fortnight, WEEK))
    if min(shift, week) <= floor:
        return None
    sigma, r = _noise_about_line(level[-LONG_WINDOW:])
    error = sigma * sqrt(MEDIAN_VARIANCE * (1 + r) / (1 - r) * (1 / fortnight + 1 / WINDOW))
    if r > WANDERING or shift - DRIFT_SIGMAS * error <= floor:
        return None
    places = range(len(level) - fortnight, 0, -1)
    begin = next((n for n in places if past.bad * (level[n - 1] - old) <= 0), 0)
    return Late("drift", past.level[begin].place, past.level[begin - 1].place if begin else None, old)


def _noise_about_line(values: Sequence[float]) -> tuple[float, float]:
    """MAD-sigma and autocorrelation about a straight line through the medians of the first and the last third.

    The correlation is too low by about (1 + 4 r) / n (Kendall 1954), which is added again.
    """
    n, third = len(values), len(values) // 3
    slope = (median(values[-third:]) - median(values[:third])) / (n - third)
    rest = [value - slope * i for i, value in enumerate(values)]
    centre = median(rest)
    rest = [value - centre for value in rest]
    sigma, power = mad_sigma(rest), sum(value * value for value in rest)
    r = sum(map(mul, rest, rest[1:])) / power if power else 0.0
    return sigma, min(0.95, max(0.0, r + (1 + 4 * r) / n))
