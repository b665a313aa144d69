"""One series, one outcome: the result of its last night, with what the change point detectors see afterwards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import isfinite

from profkit.core.types import AcceptedChange, ChangePoint, Direction, MetricOutcome, Series, Trend
from profkit.regression.detection.control_limits import (
    ControlLimits,
    widened_limits,
)
from profkit.regression.detection.late import LateRegression, change_points_of, find_late_regression
from profkit.regression.detection.machine_series import NightResult
from profkit.regression.detection.nights import JudgedNights, direction, judge_nights
from profkit.regression.detection.reasons import reason_of
from profkit.regression.detection.rules import LEAST, NightRule
from profkit.regression.detection.segments import segments_of
from profkit.regression.paired.decide import ConfirmWord

DETECTED = 1.2816  # sigma by which 9 of 10 nights of a changed level lie beyond the edge
SHOWN_NIGHTS = 120  # that are judged for a metric that does not gate
# Codes of nights outside of the limits on the bad side: these ask for a re-run in the same night.
_CANDIDATE_CODES = ("suspect", "seen-before", "nights")


def is_candidate(outcome: MetricOutcome) -> bool:
    """Whether tonight asks for a re-run beside the last good commit: it is outside of its limits on the bad side."""
    return outcome.code in _CANDIDATE_CODES


def decide(
    series: Series,
    rule: NightRule,
    accepted: Sequence[AcceptedChange] = (),
    confirmed: Mapping[str, ConfirmWord] | None = None,
    anchor: str | None = None,
) -> MetricOutcome:
    """The outcome of the last point of the series, which is tonight's; `missing` where the series is empty.

    `confirmed`: by the id of an entry the word of its re-run of this metric, tonight's too, where there was one.
    `anchor`: commit or date (ISO 8601) of the old state that drift is measured from; None: the segment's first nights.
    """
    if not series.points:
        return _missing_outcome(series, rule)
    # A metric that does not gate needs no memory of a regression of last year.
    whole, series = series, series if rule.gates else replace(series, points=series.points[-SHOWN_NIGHTS:])
    nights = judge_nights(series, rule, accepted, confirmed)
    word = (confirmed or {}).get(series.points[-1].entry)
    changes = change_points_of(series, nights) if rule.gates else ()
    late = find_late_regression(series, rule, nights, changes, anchor) if rule.gates else None
    outcome = _build_outcome(series, rule, nights, nights.results[-1], word, late)
    wide = _widened_limits(nights, rule)
    detectable = _smallest_detectable(wide or nights.results[-1].limits, outcome.better)
    trend = _build_trend(whole, accepted, nights, wide, changes, detectable)
    return replace(outcome, detectable=detectable, change_points=changes, trend=trend)


# ---------------------------------------------------------------- the outcome


def _widened_limits(nights: JudgedNights, rule: NightRule) -> ControlLimits | None:
    """The limits of the last night with all that is known of its level; None where there are none."""
    machine, recent = nights.machine, nights.results[-1].limits
    if machine is None or recent is None or len(machine.level) < LEAST:
        return None
    return widened_limits(recent, machine.level, rule, guess=machine.guess, weights=machine.weights)


def _smallest_detectable(limits: ControlLimits | None, better: Direction) -> float | None:
    """The relative change for the worse of which one night shows 9 in 10; None around 0."""
    if limits is None or not limits.centre:
        return None
    edge = limits.high - limits.centre if better != "higher" else limits.centre - limits.low
    return (edge + DETECTED * limits.sigma) / abs(limits.centre)


def _build_outcome(
    series: Series,
    rule: NightRule,
    nights: JudgedNights,
    result: NightResult,
    word: ConfirmWord | None,
    late: LateRegression | None,
) -> MetricOutcome:
    """`result` is that of the last point of `series`."""
    index = len(series.points) - 1
    point = series.points[index]
    better = direction(series, rule)
    if late is not None and result.outcome in ("pass", "new", "ambiguous"):
        result = replace(
            result,
            outcome="regressed",
            code=late.step if index == late.seen else "standing",
            step=late.step,
            first=late.first,
            last_good=late.last_good,
        )
    expected = _expected(result, late)
    reason = reason_of(result, series, expected, word)
    limits = result.limits
    first = series.points[result.first] if result.first is not None else None
    last_good = series.points[result.last_good] if result.last_good is not None else None
    outcome = MetricOutcome(
        metric=series.key.metric,
        outcome=result.outcome,
        code=result.code,
        reason=reason,
        step=result.step,
        unit=series.unit,
        better=better,
        scope=series.key.scope,
        value=point.value if isfinite(point.value) else None,
        expected=expected,
        band=(limits.low, limits.high) if limits is not None else (),
        nights=result.nights,
        gates=rule.gates and better != "none",
        since=first.started if first is not None else None,
        commit=first.commit if first is not None else None,
        good_commit=last_good.commit if last_good is not None else None,
        chance=nights.machine.chance if nights.machine is not None and limits is not None else None,
    )
    if better == "none" and outcome.outcome in ("regressed", "improved", "ambiguous"):
        return replace(outcome, outcome="pass", code="moved", reason=f"moved: {reason}")
    return outcome


def _expected(result: NightResult, late: LateRegression | None) -> float | None:
    """What tonight is compared with: the level before an open regression, else the centre of the limits."""
    if late is not None and result.step == late.step:
        return late.before
    if result.standing is not None:
        return result.standing.before.centre
    return result.limits.centre if result.limits is not None else None


def _build_trend(
    series: Series,
    accepted: Sequence[AcceptedChange],
    nights: JudgedNights,
    wide: ControlLimits | None,
    changes: tuple[ChangePoint, ...],
    detectable: float | None,
) -> Trend:
    limits = nights.results[-1].limits
    correlation = wide.correlation if wide is not None else None
    notes = []
    if correlation is not None and correlation > 0.5:
        notes.append(
            f"neighbouring nights are correlated (autocorrelation {correlation:.1f}): three in a row are weak evidence"
        )
    machines = {p.machine for p in series.points if p.valid}
    if len(machines) > 1:
        notes.append(f"{len(machines)} machines: each is compared with its own nights")
    left_out = sum(not p.valid for p in series.points)
    if left_out:
        notes.append(f"{left_out} of {len(series.points)} nights are not valid and decide nothing")
    return Trend(
        series=series,
        epochs=segments_of(series, accepted),
        change_points=changes,
        noise=limits.sigma / abs(limits.centre) if limits is not None and limits.centre else None,
        detectable=detectable,
        autocorrelation=correlation,
        notes=tuple(notes),
    )


def _missing_outcome(series: Series, rule: NightRule) -> MetricOutcome:
    return MetricOutcome(
        metric=series.key.metric,
        outcome="missing",
        code="not-measured",
        reason="it was not measured",
        unit=series.unit,
        better=direction(series, rule),
        scope=series.key.scope,
        gates=rule.gates,
    )
