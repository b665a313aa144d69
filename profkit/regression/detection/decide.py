"""One series, one outcome: the result of its last night, with what the change point detectors see afterwards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite

from profkit.core.types import AcceptedChange, ChangePoint, MetricOutcome, Series, Trend
from profkit.regression.detection.control_limits import (
    CORRELATION_GUESS,
    DETECTED,
    ControlLimits,
    autocorrelation,
    median_of_sorted,
    widened_limits,
)
from profkit.regression.detection.machine_series import NightResult
from profkit.regression.detection.nights import JudgedNights, direction, judge_nights
from profkit.regression.detection.reasons import reason_of
from profkit.regression.detection.rules import NightRule
from profkit.regression.detection.segments import segments_of
from profkit.regression.paired.decide import ConfirmWord

SAME_CHANGE = 5  # nights that two verdicts on one change may lie apart
LEAST_NIGHTS = 12  # with which the detectors begin to say something
# From this autocorrelation on the detectors see changes where there are none: shown, and decides nothing.
UNRELIABLE_CORRELATION = 0.5
FIRST_SEEN = 3  # nights after a change before which no detector can see it
LAST_SEEN = 40  # nights after it in which the first sight is looked for
SHOWN_NIGHTS = 120  # that are judged for a metric that does not gate
# Codes of nights outside of the limits on the bad side: these ask for a re-run in the same night.
_CANDIDATE_CODES = ("suspect", "seen-before", "nights", "autocorrelated")
_JUDGED_CODES = ("same-night", "nights", "drift", "improved", "gone", "same")


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
    nights = judge_nights(series, rule, accepted, confirmed, anchor)
    word = (confirmed or {}).get(series.points[-1].entry)
    changes = change_points_of(series, nights) if rule.gates else ()
    late = find_late_regression(series, rule, nights, changes) if rule.gates else None
    outcome = _build_outcome(series, rule, nights, nights.results[-1], word, late)
    wide = _widened_limits(nights, rule)
    if wide is not None and wide.centre and outcome.detectable is not None:
        edge = wide.high - wide.centre if outcome.better != "higher" else wide.centre - wide.low
        detectable = (edge + DETECTED * wide.sigma) / abs(wide.centre)
        outcome = replace(outcome, detectable=max(outcome.detectable, detectable))
    trend = _build_trend(whole, accepted, nights, wide, changes, outcome)
    return replace(outcome, change_points=changes, trend=trend)


def decide_every_night(
    series: Series,
    rule: NightRule,
    accepted: Sequence[AcceptedChange] = (),
    confirmed: Mapping[str, ConfirmWord] | None = None,
) -> tuple[MetricOutcome, ...]:
    """What every past night would have been by this rule, one outcome per point, each given the nights before it alone.

    An accepted change counts from the night that it was accepted for, not from the day on which somebody typed it.
    Without trends; a late regression counts from the night on in which the detectors first saw it.
    """
    nights = judge_nights(series, rule, accepted, confirmed, with_limits=True)
    late = (
        find_late_regression(series, rule, nights, change_points_of(series, nights)) if rule.gates else None
    )
    outcomes = []
    for index, result in enumerate(nights.results):
        cut = replace(series, points=series.points[: index + 1])
        word = (confirmed or {}).get(series.points[index].entry)
        known = late if late is not None and index >= late.seen and index in nights.past else None
        outcomes.append(_build_outcome(cut, rule, nights, result, word, known))
    return tuple(outcomes)


# ---------------------------------------------------------------- what the detectors see afterwards


@dataclass(frozen=True)
class LateRegression:
    """A change in the bad direction that is still there, that nobody accepted, and that no night confirmed.

    `seen`: the index of the night in which the detectors saw it first.
    """

    change: ChangePoint
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
    series: Series, rule: NightRule, nights: JudgedNights, changes: Sequence[ChangePoint]
) -> LateRegression | None:
    """The first of `changes` that the nights missed and that still stands."""
    machine = nights.machine
    better = direction(series, rule)
    if (
        machine is None
        or better == "none"
        or machine.standing is not None
        or len(machine.level) < rule.recent
    ):
        return None
    bad = -1 if better == "higher" else 1
    now = median_of_sorted(sorted(machine.level[-rule.recent :]))
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
            return LateRegression(change, _first_seen(series, nights, change))
    return None


def _first_seen(series: Series, nights: JudgedNights, change: ChangePoint) -> int:
    """The night in which the detectors first saw it: found by asking again as if each night were the last."""
    from profkit.regression.change_points import find_changes

    past = nights.past
    place = past.index(change.index)
    values = [series.points[i].value for i in past]
    last = min(len(past), place + LAST_SEEN)
    for end in range(max(place + FIRST_SEEN, LEAST_NIGHTS), last):
        if any(abs(c.index - place) <= SAME_CHANGE for c in find_changes(values[:end])):
            return past[end - 1]
    return past[last - 1]


# ---------------------------------------------------------------- the outcome


def _widened_limits(nights: JudgedNights, rule: NightRule) -> ControlLimits | None:
    """The limits of the last night with all that is known of its level; None where there are none."""
    machine, recent = nights.machine, nights.results[-1].limits
    if machine is None or recent is None or len(machine.level) < rule.least:
        return None
    return widened_limits(recent, machine.level, rule, guess=machine.guess, weights=machine.level_weights())


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
            outcome="regressed" if index == late.seen or rule.standing == "fail" else "pass",
            code="change-point" if index == late.seen else "standing",
            step="change-point",
            first=late.change.index,
            last_good=late.change.index - 1,
        )
    expected = _expected(result, late)
    reason = reason_of(result, series, expected, late.change.votes if late is not None else (), word)
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
        detectable=limits.detectable if limits is not None else None,
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
    if result.step == "change-point" and late is not None:
        return late.change.before
    if result.standing is not None:
        return result.standing.before.centre
    return result.limits.centre if result.limits is not None else None


def _build_trend(
    series: Series,
    accepted: Sequence[AcceptedChange],
    nights: JudgedNights,
    wide: ControlLimits | None,
    changes: tuple[ChangePoint, ...],
    outcome: MetricOutcome,
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
        detectable=outcome.detectable,
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
