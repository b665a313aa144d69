"""The second verdict: what the detectors see afterwards, and the nights did not.

One series, one night, one outcome: the look at its last point, in words, with the second verdict beside it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite

from profkit.core.types import Accepted, ChangePoint, MetricOutcome, Point, Series, Trend
from profkit.regression.detection.confirm import ConfirmWord
from profkit.regression.detection.control_limits import (
    CORRELATION_GUESS,
    DETECTED,
    ControlLimits,
    autocorrelation,
    median_of_sorted,
    widened_limits,
)
from profkit.regression.detection.nights import JudgedNights, NightResult, direction, judge_nights
from profkit.regression.detection.reasons import reason_of
from profkit.regression.detection.rules import NightRule
from profkit.regression.detection.segments import segments_of

SAME_CHANGE = 5  # nights that two verdicts on one change may lie apart
LEAST_NIGHTS = 12  # nights with which the detectors begin to say something
UNRELIABLE_CORRELATION = (
    0.5  # from here on they see changes where there are none, and their word is shown and decides nothing
)
FIRST_SEEN = 3  # nights after a change before which no detector can see it
LAST_SEEN = 40  # nights after it in which the first sight is looked for


@dataclass(frozen=True)
class LateRegression:
    """A change in the bad direction that stands, that nobody accepted, and that no night convicted.

    `seen`: the index of the night in which the detectors saw it first.
    """

    change: ChangePoint
    seen: int


def change_points_of(series: Series, looked: JudgedNights) -> tuple[ChangePoint, ...]:
    """The change points of the epoch of the last point, on its machine, by their indices in the series."""
    if len(looked.past) < LEAST_NIGHTS:
        return ()
    from profkit.regression.change_points import find_changes  # here: it loads numpy

    found = find_changes([series.points[i].value for i in looked.past])
    return tuple(_placed(change, series, looked.past) for change in found)


def find_late_regression(
    series: Series, rule: NightRule, looked: JudgedNights, changes: Sequence[ChangePoint]
) -> LateRegression | None:
    """The first of `changes` that the nights missed and that still stands."""
    walk = looked.walk
    better = direction(series, rule)
    if walk is None or better == "none" or walk.standing is not None or len(walk.level) < rule.recent:
        return None
    bad = -1 if better == "higher" else 1
    now = median_of_sorted(sorted(walk.level[-rule.recent :]))
    for change in changes:
        floor = rule.floor(change.before)
        if min(bad * (change.after - change.before), bad * (now - change.before)) <= floor:
            continue  # too small, the good direction, or gone again
        if _known(change, looked):
            continue
        values = [series.points[i].value for i in looked.past if i < change.index]
        if autocorrelation(values[-120:], CORRELATION_GUESS) > UNRELIABLE_CORRELATION:
            continue
        return LateRegression(change, _seen(series, looked, change))
    return None


def _known(change: ChangePoint, looked: JudgedNights) -> bool:
    """Whether some night had a word on it: convicted, improved, or found by a re-run to be the machine's doing."""
    told = ("same-night", "nights", "drift", "improved", "gone", "same")
    return any(
        one.code in told and one.first is not None and abs(one.first - change.index) <= SAME_CHANGE
        for one in looked.looks
    )


def _seen(series: Series, looked: JudgedNights, change: ChangePoint) -> int:
    """The night in which the vote first had it: found by asking again as if each night were the last."""
    from profkit.regression.change_points import find_changes

    past = looked.past
    place = past.index(change.index)
    values = [series.points[i].value for i in past]
    for end in range(max(place + FIRST_SEEN, LEAST_NIGHTS), min(len(past), place + LAST_SEEN)):
        if any(abs(c.index - place) <= SAME_CHANGE for c in find_changes(values[:end])):
            return past[end - 1]
    return past[min(len(past), place + LAST_SEEN) - 1]


def _placed(change: ChangePoint, series: Series, past: Sequence[int]) -> ChangePoint:
    point = series.points[past[change.index]]
    return replace(change, index=past[change.index], started=point.started, commit=point.commit)


SHOWN_NIGHTS = 120  # nights that are walked through for a metric that does not gate
# What a re-run in the same night is made for: outside of the band on the bad side, whatever came of it so far.
_CANDIDATE_CODES = ("suspect", "seen-before", "nights", "autocorrelated")


def is_candidate(outcome: MetricOutcome) -> bool:
    """Whether tonight asks for a re-run beside the last good commit: it is outside of its band in the bad direction."""
    return outcome.code in _CANDIDATE_CODES


def decide(
    series: Series,
    rule: NightRule,
    accepted: Sequence[Accepted] = (),
    confirmed: Mapping[str, ConfirmWord] | None = None,
    anchor: str | None = None,
) -> MetricOutcome:
    """The outcome of the last point of the series, which is tonight's; `missing` where the series is empty.

    `confirmed`: by the id of an entry the word of its re-run of this metric, tonight's too, where there was one.
    `anchor`: commit or date (ISO 8601) of the old state that drift is told against; None: the epoch's first nights.
    """
    if not series.points:
        return _missing(series, rule)
    # what only is shown needs no memory of what stands since last year
    whole, series = series, series if rule.gates else replace(series, points=series.points[-SHOWN_NIGHTS:])
    looked = judge_nights(series, rule, accepted, confirmed, anchor)
    word = (confirmed or {}).get(series.points[-1].entry)
    changes = change_points_of(series, looked) if rule.gates else ()
    second = find_late_regression(series, rule, looked, changes) if rule.gates else None
    outcome = _outcome(series, rule, looked, looked.looks[-1], word, second)
    far = _widened_limits(looked, rule)
    if far is not None and far.centre and outcome.detectable is not None:
        # what made the band wider only when a night leaves it: neighbours that cling, a second mode
        edge = far.high - far.centre if outcome.better != "higher" else far.centre - far.low
        seen = (edge + DETECTED * far.sigma) / abs(far.centre)
        outcome = replace(outcome, detectable=max(outcome.detectable, seen))
    trend = _trend(whole, accepted, looked, far, changes, outcome)
    return replace(outcome, change_points=changes, trend=trend)


def _widened_limits(looked: JudgedNights, rule: NightRule) -> ControlLimits | None:
    """The band of the last night with all that is known of its level; None where there is no band."""
    walk, near = looked.walk, looked.looks[-1].band
    if walk is None or near is None or len(walk.level) < rule.least:
        return None
    return widened_limits(near, walk.level, rule, guess=walk.guess)


def decide_every_night(
    series: Series,
    rule: NightRule,
    accepted: Sequence[Accepted] = (),
    confirmed: Mapping[str, ConfirmWord] | None = None,
    anchor: str | None = None,
) -> tuple[MetricOutcome, ...]:
    """What every past night would have been by this rule, one outcome per point, each given the nights before it alone.

    An accepted change counts from the night that it was accepted for, not from the day on which somebody typed it.
    Without trends; the second verdict is in it from the night on in which the detectors first saw it.
    """
    looked = judge_nights(series, rule, accepted, confirmed, anchor, whole=True)
    second = (
        find_late_regression(series, rule, looked, change_points_of(series, looked)) if rule.gates else None
    )
    found = []
    for index, one in enumerate(looked.looks):
        cut = replace(series, points=series.points[: index + 1])
        word = (confirmed or {}).get(series.points[index].entry)
        told = second if second is not None and index >= second.seen and index in looked.past else None
        found.append(_outcome(cut, rule, looked, one, word, told))
    return tuple(found)


def _outcome(
    series: Series,
    rule: NightRule,
    looked: JudgedNights,
    one: NightResult,
    word: ConfirmWord | None,
    second: LateRegression | None,
) -> MetricOutcome:
    """`one` is the look at the last point of `series`."""
    points, index = series.points, len(series.points) - 1
    point = points[index]
    better = direction(series, rule)
    if second is not None and one.outcome in ("pass", "new", "ambiguous"):
        code = "change-point" if index == second.seen else "standing"
        red = index == second.seen or rule.standing == "fail"
        one = replace(
            one,
            outcome="regressed" if red else "pass",
            code=code,
            step="change-point",
            first=second.change.index,
            last_good=second.change.index - 1,
        )
    expected = _expected(one, second)
    told = reason_of(one, series, expected, second.change.votes if second is not None else (), word)
    outcome = MetricOutcome(
        metric=series.key.metric,
        outcome=one.outcome,
        code=one.code,
        reason=told,
        step=one.step,
        unit=series.unit,
        better=better,
        scope=series.key.scope,
        value=point.value if isfinite(point.value) else None,
        expected=expected,
        band=(one.band.low, one.band.high) if one.band else (),
        detectable=one.band.detectable if one.band else None,
        nights=one.nights,
        gates=rule.gates and better != "none",
        since=_started(points, one.first),
        commit=_commit(points, one.first),
        good_commit=_commit(points, one.last_good),
        chance=looked.walk.chance if looked.walk is not None and one.band else None,
    )
    if better == "none" and outcome.outcome in ("regressed", "improved", "ambiguous"):
        return replace(outcome, outcome="pass", code="moved", reason=f"moved: {told}")
    return outcome


def _expected(one: NightResult, second: LateRegression | None) -> float | None:
    """What tonight is held against: of what stands the level that it left, else the centre of the band."""
    if one.step == "change-point" and second is not None:
        return second.change.before
    if one.standing is not None:
        return one.standing.before.centre
    return one.band.centre if one.band is not None else None


def _trend(
    series: Series,
    accepted: Sequence[Accepted],
    looked: JudgedNights,
    far: ControlLimits | None,
    changes: tuple[ChangePoint, ...],
    outcome: MetricOutcome,
) -> Trend:
    band: ControlLimits | None = looked.looks[-1].band
    cling = far.cling if far is not None else None
    notes = []
    if cling is not None and cling > 0.5:
        notes.append(
            f"nights follow those before them (autocorrelation {cling:.1f}): three in a row say less than they seem"
        )
    machines = {p.machine for p in series.points if p.valid}
    if len(machines) > 1:
        notes.append(f"{len(machines)} machines: each is held against its own past")
    left = sum(not p.valid for p in series.points)
    if left:
        notes.append(f"{left} of {len(series.points)} nights are not valid and decide nothing")
    return Trend(
        series=series,
        epochs=segments_of(series, accepted),
        change_points=changes,
        noise=band.sigma / abs(band.centre) if band is not None and band.centre else None,
        detectable=outcome.detectable,
        autocorrelation=cling,
        notes=tuple(notes),
    )


def _missing(series: Series, rule: NightRule) -> MetricOutcome:
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


def _started(points: Sequence[Point], index: int | None) -> str | None:
    return points[index].started if index is not None else None


def _commit(points: Sequence[Point], index: int | None) -> str | None:
    return points[index].commit if index is not None else None
