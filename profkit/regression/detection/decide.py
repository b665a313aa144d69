"""One series, one night, one outcome: the look at its last point, in words, with the second verdict beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import isfinite

from profkit.core.types import Accepted, ChangePoint, MetricOutcome, Point, Series, Trend
from profkit.regression.detection.band import DETECTED, Band, far_band
from profkit.regression.detection.confirmation import ConfirmWord
from profkit.regression.detection.epochs import epochs
from profkit.regression.detection.nights import Looked, direction, look
from profkit.regression.detection.reasons import reason_of
from profkit.regression.detection.retrospect import Late, changes_of, late
from profkit.regression.detection.rules import Rule
from profkit.regression.detection.walk import Look

SHOWN = 120  # nights that are walked through for a metric that does not gate
# What a re-run in the same night is made for: outside of the band on the bad side, whatever came of it so far.
_ASKS = ("suspect", "seen-before", "nights", "autocorrelated")


def suspect(outcome: MetricOutcome) -> bool:
    """Whether tonight asks for a re-run beside the last good commit: it is outside of its band in the bad direction."""
    return outcome.code in _ASKS


def decide(
    series: Series,
    rule: Rule,
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
    whole, series = series, series if rule.gates else replace(series, points=series.points[-SHOWN:])
    looked = look(series, rule, accepted, confirmed, anchor)
    word = (confirmed or {}).get(series.points[-1].entry)
    changes = changes_of(series, looked) if rule.gates else ()
    second = late(series, rule, looked, changes) if rule.gates else None
    outcome = _outcome(series, rule, looked, looked.looks[-1], word, second)
    far = _far(looked, rule)
    if far is not None and far.centre and outcome.detectable is not None:
        # what made the band wider only when a night leaves it: neighbours that cling, a second mode
        edge = far.high - far.centre if outcome.better != "higher" else far.centre - far.low
        seen = (edge + DETECTED * far.sigma) / abs(far.centre)
        outcome = replace(outcome, detectable=max(outcome.detectable, seen))
    trend = _trend(whole, accepted, looked, far, changes, outcome)
    return replace(outcome, change_points=changes, trend=trend)


def _far(looked: Looked, rule: Rule) -> Band | None:
    """The band of the last night with all that is known of its level; None where there is no band."""
    walk, near = looked.walk, looked.looks[-1].band
    if walk is None or near is None or len(walk.level) < rule.least:
        return None
    return far_band(near, walk.level, rule, guess=walk.guess)


def replay(
    series: Series,
    rule: Rule,
    accepted: Sequence[Accepted] = (),
    confirmed: Mapping[str, ConfirmWord] | None = None,
    anchor: str | None = None,
) -> tuple[MetricOutcome, ...]:
    """What every past night would have been by this rule, one outcome per point, each given the nights before it alone.

    An accepted change counts from the night that it was accepted for, not from the day on which somebody typed it.
    Without trends; the second verdict is in it from the night on in which the detectors first saw it.
    """
    looked = look(series, rule, accepted, confirmed, anchor, whole=True)
    second = late(series, rule, looked, changes_of(series, looked)) if rule.gates else None
    found = []
    for index, one in enumerate(looked.looks):
        cut = replace(series, points=series.points[: index + 1])
        word = (confirmed or {}).get(series.points[index].entry)
        told = second if second is not None and index >= second.seen and index in looked.past else None
        found.append(_outcome(cut, rule, looked, one, word, told))
    return tuple(found)


def _outcome(
    series: Series, rule: Rule, looked: Looked, one: Look, word: ConfirmWord | None, second: Late | None
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
    told = reason_of(one, series, expected, second, word)
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


def _expected(one: Look, second: Late | None) -> float | None:
    """What tonight is held against: of what stands the level that it left, else the centre of the band."""
    if one.step == "change-point" and second is not None:
        return second.change.before
    if one.standing is not None:
        return one.standing.before.centre
    return one.band.centre if one.band is not None else None


def _trend(
    series: Series,
    accepted: Sequence[Accepted],
    looked: Looked,
    far: Band | None,
    changes: tuple[ChangePoint, ...],
    outcome: MetricOutcome,
) -> Trend:
    band: Band | None = looked.looks[-1].band
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
        epochs=epochs(series, accepted),
        change_points=changes,
        noise=band.sigma / abs(band.centre) if band is not None and band.centre else None,
        detectable=outcome.detectable,
        autocorrelation=cling,
        notes=tuple(notes),
    )


def _missing(series: Series, rule: Rule) -> MetricOutcome:
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
