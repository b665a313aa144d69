"""Judge the last night of one series by the nights of its machine before it, and by the change detector.

A level holds the nights of the present normal, a streak the nights in a row outside of its control limits:
these wait for a verdict and are no part of it. A regression that was confirmed stands until it is gone or
accepted.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import isfinite, sqrt
from typing import NamedTuple

from profkit.core.statistics import mad_sigma, median
from profkit.core.types import (
    AcceptedChange,
    Direction,
    HistoryPoint,
    MetricOutcome,
    Outcome,
    Segment,
    Series,
    Trend,
)
from profkit.regression.change_points import SeriesFindings, examine_series
from profkit.regression.detection.rules import NightRule
from profkit.regression.history.rows import microseconds

WINDOW = 24  # nights that the control limits are made of
LONG_WINDOW = 120  # nights that tell how often a level leaves them: four months
MIN_LEVEL_NIGHTS = 7  # nights with which a level can be judged
WEEK = 7
SIGMAS = 4.0  # half-width of the limits in MAD-sigma
FOLLOWING = 2.5 / 4  # of the half-width, for a night that follows one outside
MEDIAN_VARIANCE = 1.571  # pi / 2: variance of a median over that of a mean, normal distribution
COLLAPSE = 0.2  # an improvement to less than this share of the past is not believed
LARGEST = 1e150  # nothing that is measured is as large in any unit
DETECTED = 1.2816  # sigma by which 9 of 10 nights of a changed level lie beyond the edge
SHOWN_NIGHTS = 120  # that are judged for a metric that does not gate: it needs no memory of last year
SAME_CHANGE = 5  # nights that two verdicts on one change may lie apart
MIN_NIGHTS = 12  # with which the detector begins to say something
# From this autocorrelation on the detector sees changes where there are none: shown, and decides nothing.
UNRELIABLE_CORRELATION = 0.5

OUTCOMES: Mapping[str, Outcome] = {
    "not-measured": "missing",
    "not-valid": "invalid",
    "other-machine": "invalid",
    "collapse": "invalid",
    "new": "new",
    "held": "pass",
    "returning": "pass",
    "perhaps-better": "pass",
    "moved": "pass",
    "suspect": "ambiguous",
    "nights": "regressed",
    "change-point": "regressed",
    "standing": "regressed",
    "gone": "improved",
    "improved": "improved",
}  # by the code of a night


def judge_last_night(
    series: Series, rule: NightRule, accepted: Sequence[AcceptedChange] = ()
) -> MetricOutcome:
    """Return the outcome of the last point of the series, which is tonight's; `missing` if the series is empty."""
    better = direction(series, rule)
    if not series.points:
        return MetricOutcome(
            series.key.metric, "missing", "not-measured", unit=series.unit, better=better, gates=rule.gates
        )
    whole, series = series, series if rule.gates else replace(series, points=series.points[-SHOWN_NIGHTS:])
    nights = judge_nights(series, rule, accepted)
    findings, result = SeriesFindings(), nights.results[-1]
    if rule.gates and nights.past is not None and len(nights.past.nights) >= MIN_NIGHTS:
        findings = _placed_in_series(
            examine_series([night.value for night in nights.past.nights]), series, nights.past
        )
        if result.outcome in ("pass", "new", "ambiguous"):
            result = _found_late(nights, rule, findings) or result
    outcome, limits = outcome_of(series, rule, result), result.limits
    trend = Trend(
        series=whole,
        epochs=segments_of(whole, accepted),
        change_points=findings.change_points,
        noise=limits.sigma / abs(limits.centre) if limits is not None and limits.centre else None,
        autocorrelation=findings.autocorrelation,
    )
    return replace(outcome, trend=trend)


def outcome_of(series: Series, rule: NightRule, result: NightResult) -> MetricOutcome:
    """Convert `result`, of the last point of `series`, to an outcome."""
    point, better = series.points[-1], direction(series, rule)
    limits, outcome, code = result.limits, result.outcome, result.code
    if better == "none" and outcome in ("regressed", "improved", "ambiguous"):
        outcome, code = "pass", "moved"
    first = series.points[result.first] if result.first is not None else None
    last_good = series.points[result.last_good] if result.last_good is not None else None
    centre = limits.centre if limits is not None else None
    return MetricOutcome(
        metric=series.key.metric,
        outcome=outcome,
        code=code,
        reason=point.reason if code == "not-valid" else None,
        unit=series.unit,
        better=better,
        scope=series.key.scope,
        value=point.value if isfinite(point.value) else None,
        expected=result.before if result.before is not None else centre,
        band=(limits.low, limits.high) if limits is not None else (),
        detectable=_smallest_detectable(limits, better),
        nights=result.nights,
        gates=rule.gates and better != "none",
        since=first.started if first is not None else None,
        commit=first.commit if first is not None else None,
        good_commit=last_good.commit if last_good is not None else None,
    )


def direction(series: Series, rule: NightRule) -> Direction:
    """Return which way is good: as the rule says, else as the series does."""
    return rule.better or series.better


def _smallest_detectable(limits: Limits | None, better: Direction) -> float | None:
    """Return the relative change for the worse that one night shows 9 times in 10; None around 0."""
    if limits is None or not limits.centre:
        return None
    edge = limits.far[1] - limits.centre if better != "higher" else limits.centre - limits.far[0]
    return (edge + DETECTED * limits.sigma) / abs(limits.centre)


# ---------------------------------------------------------------- what no night confirmed


def _placed_in_series(findings: SeriesFindings, series: Series, past: MachinePast) -> SeriesFindings:
    """Map the findings of one machine's nights to places in the series."""
    placed = []
    for change in findings.change_points:
        index = past.nights[change.index].place
        point = series.points[index]
        placed.append(replace(change, index=index, started=point.started, commit=point.commit))
    return replace(findings, change_points=tuple(placed))


def _found_late(nights: JudgedNights, rule: NightRule, findings: SeriesFindings) -> NightResult | None:
    """Return tonight's result by the first change point that the nights missed, and that persists; else None."""
    past = nights.past
    if past is None or past.standing is not None or len(past.level) < WEEK:
        return None
    if (findings.autocorrelation or 0.0) > UNRELIABLE_CORRELATION:
        return None
    now = median([night.value for night in past.level[-WEEK:]])
    judged = [r.first for r in nights.results if r.code in ("nights", "improved", "gone")]
    for change in findings.change_points:
        worse = min(past.bad * (change.after - change.before), past.bad * (now - change.before))
        is_judged = any(first is not None and abs(first - change.index) <= SAME_CHANGE for first in judged)
        if worse > rule.floor(change.before) and not is_judged:  # not too small, or gone again
            return replace(
                nights.results[-1],
                code="change-point",
                first=change.index,
                last_good=change.index - 1,
                before=change.before,
            )
    return None


# ---------------------------------------------------------------- the nights of one machine


class NightValue(NamedTuple):
    """A value with its index in the series."""

    place: int
    value: float


@dataclass(frozen=True)
class Limits:
    """`centre` and `sigma` of the nights before; outside of `low` to `high` a night is a candidate.

    `far`: the same edges, moved outwards where more than 1 night, and 1 in 50, of the level lay beyond (two
    modes, spikes).
    """

    centre: float
    sigma: float
    low: float
    high: float
    far: tuple[float, float]

    def side(self, value: float) -> int:
        """Return 1 above the limits, -1 below, 0 within, by the edges in `far`."""
        return 1 if value > self.far[1] else -1 if value < self.far[0] else 0


@dataclass(frozen=True)
class NightResult:
    """The result of one night: `code` is the word for scripts. Indices are of the series.

    `limits` is None below seven nights. `nights` counts the streak, which began at `first`. `before`: the level
    it is compared with.
    """

    code: str
    limits: Limits | None = None
    nights: int = 0
    first: int | None = None
    last_good: int | None = None
    before: float | None = None

    @property
    def outcome(self) -> Outcome:
        """Return the outcome that the code means."""
        return OUTCOMES[self.code]


def control_limits(level: Sequence[NightValue], rule: NightRule, *, following: bool = False) -> Limits:
    """Return the median of the last 24 nights +- the larger of 4 MAD-sigma and the floor.

    `following` a night outside, 2.5 MAD-sigma. Wider by sqrt(1 + pi / 2 / n), since the centre is only known so
    well, and by sqrt(1 + 12 (1 / n - 1 / 24)): the MAD of 7 values is off by a third.
    """
    values = [night.value for night in level[-WINDOW:]]
    n, centre, sigma = len(values), median(values), mad_sigma(values)
    unsure = sqrt((1 + MEDIAN_VARIANCE / n) * (1 + 12 * (1 / n - 1 / WINDOW)))
    width = max(SIGMAS * sigma * unsure * (FOLLOWING if following else 1), rule.floor(centre))
    low, high = centre - width, centre + width
    ordered = sorted(night.value for night in level[-LONG_WINDOW:])
    allowed = 1 + len(ordered) // 50
    lowest, highest = low, high
    if len(ordered) > 2 * allowed:
        lowest = ordered[allowed] - sigma if ordered[allowed] < low else low
        highest = ordered[-1 - allowed] + sigma if ordered[-1 - allowed] > high else high
    return Limits(centre, sigma, low, high, (lowest, highest))


@dataclass
class MachinePast:
    """What is known of one machine since the last accepted change.

    `bad` is 1 where more is worse, -1 where less is.
    """

    rule: NightRule
    bad: int
    nights: list[NightValue] = field(default_factory=list)  # all of them, but for those that collapsed
    level: list[NightValue] = field(default_factory=list)  # before a regression that stands
    streak: list[NightValue] = field(default_factory=list)
    side: int = 0
    standing: NightResult | None = None  # the regression that nobody accepted and that is not gone
    last_good: int | None = None

    def judge(self, night: NightValue) -> NightResult:
        """Judge a night and remember it."""
        self.nights.append(night)
        if len(self.level) < MIN_LEVEL_NIGHTS:
            self._add(night)
            return NightResult("new" if len(self.nights) <= MIN_LEVEL_NIGHTS else "held")
        following = bool(self.streak) or self.standing is not None
        limits = control_limits(self.level, self.rule, following=following)
        if self._has_collapsed(limits, night.value):
            self.nights.pop()
            return NightResult("collapse", limits, last_good=self.last_good)
        side = limits.side(night.value)
        if self.standing is not None:
            return self._judge_standing(self.standing, night, limits, back=side != self.bad)
        if not side:
            last_good = self.last_good
            self._return_streak()
            self._add(night)
            return NightResult("held", limits, last_good=last_good)
        if side != self.side:
            self._return_streak()
        self.side = side
        self.streak.append(night)
        return self._judge_outside(limits)

    def _add(self, night: NightValue) -> None:
        """Add a night to the level; it is a good one if it is not on the bad side of the level's middle."""
        centre = median([earlier.value for earlier in self.level[-WINDOW:]]) if self.level else night.value
        if len(self.level) < MIN_LEVEL_NIGHTS or self.bad * (night.value - centre) <= 0:
            self.last_good = night.place
        self.level.append(night)

    def _return_streak(self) -> None:
        """Give the nights of a streak that was not confirmed back to the level."""
        self.level += self.streak
        self.streak, self.side = [], 0

    def _judge_standing(
        self, stands: NightResult, night: NightValue, limits: Limits, *, back: bool
    ) -> NightResult:
        """Judge a night after a regression; enough nights in a row `back` at the level before end it."""
        if not back:
            self.streak = []
            return replace(stands, code="standing", limits=limits)
        self.streak.append(night)
        seen = NightResult("returning", limits, len(self.streak), stands.first, self.last_good)
        if len(self.streak) < self.rule.nights:
            return seen
        self.standing, self.last_good = None, night.place
        self._return_streak()
        return replace(seen, code="gone")

    def _judge_outside(self, limits: Limits) -> NightResult:
        """Judge a night outside of the limits, the last of the streak."""
        seen = NightResult("suspect", limits, len(self.streak), self.streak[0].place, self.last_good)
        if self.side != self.bad:
            if len(self.streak) < self.rule.nights:
                return replace(seen, code="perhaps-better")
            self.level, self.last_good = [], self.streak[-1].place
            self._return_streak()
            return replace(seen, code="improved")
        if len(self.streak) < self.rule.nights:
            return seen
        self.standing = replace(seen, code="nights", before=limits.centre)
        self.streak, self.side = [], 0
        return self.standing

    def _has_collapsed(self, limits: Limits, value: float) -> bool:
        """Return whether a value improved to a small part of the past, or to nothing: probably no work was done."""
        if (
            limits.centre <= 0
            or self.bad * (value - limits.centre) >= 0
            or limits.low <= value <= limits.high
        ):
            return False
        return value < COLLAPSE * limits.centre if self.bad > 0 else value * COLLAPSE > limits.centre


# ---------------------------------------------------------------- a series


@dataclass(frozen=True)
class JudgedNights:
    """The results in the order of the points, and the past of the last point's machine (None: nothing is known)."""

    results: tuple[NightResult, ...]
    past: MachinePast | None


def judge_nights(series: Series, rule: NightRule, accepted: Sequence[AcceptedChange] = ()) -> JudgedNights:
    """Judge each night. If no direction is good, more counts as worse, and the caller reports "moved" instead."""
    pasts: dict[str, MachinePast] = {}
    results = tuple(_judge_each(series, rule, accepted, pasts))
    return JudgedNights(results, pasts.get(series.points[-1].machine) if series.points else None)


def _judge_each(
    series: Series, rule: NightRule, accepted: Sequence[AcceptedChange], pasts: dict[str, MachinePast]
) -> Iterator[NightResult]:
    bad = -1 if direction(series, rule) == "higher" else 1
    cuts = accepted_cuts(series, accepted)
    for index, point in enumerate(series.points):
        if index in cuts:
            pasts.clear()
        # A square of what is larger would be no number any more.
        if not point.valid or not isfinite(point.value) or abs(point.value) >= LARGEST:
            yield NightResult("not-valid")
            continue
        moved = point.machine not in pasts and any(
            len(past.nights) >= MIN_LEVEL_NIGHTS for past in pasts.values()
        )
        past = pasts.setdefault(point.machine, MachinePast(rule, bad))
        result = past.judge(NightValue(index, point.value))
        if moved:  # reported once, and not green: a runner that changes each night would never be judged
            result = NightResult("other-machine")
        elif result.code == "nights" and any(o is not past and o.standing for o in pasts.values()):
            result = replace(result, code="standing")  # no news: it stands on another machine of the pool
        yield result


# ---------------------------------------------------------------- the segments of a series


def accepted_cuts(series: Series, accepted: Sequence[AcceptedChange]) -> dict[int, AcceptedChange]:
    """Map the index of each segment's first point to the accepted change of this series that begins it.

    A change that lies before the first point, or after the last, begins none. Of two at the same point, the later
    counts.
    """
    key, cuts = series.key, {}
    ours = [a for a in accepted if a.workload == key.workload and a.metric in (None, key.metric)]
    if not ours:
        return {}
    times = [microseconds(point.started) for point in series.points]
    for change in sorted(ours, key=lambda a: microseconds(a.since)):
        index = bisect_left(times, microseconds(change.since))
        if 0 < index < len(times):
            cuts[index] = change
    return cuts


def segments_of(series: Series, accepted: Sequence[AcceptedChange] = ()) -> tuple[Segment, ...]:
    """Return the stretches of the series in order, from its first to its last point; none for an empty series.

    An accepted change begins one, and so does a new machine if none of those before it comes again: machines that
    alternate (a pool of runners) share a segment, and each is compared with its own past.
    """
    if not series.points:
        return ()
    begins = [Segment(0, 0, "begin")]
    by_word = accepted_cuts(series, accepted)
    for first, end in pairwise([0, *sorted(by_word), len(series.points)]):
        if first:
            begins.append(Segment(first, first, "accepted", by_word[first].word, by_word[first].by))
        begins += [Segment(index, index, "machine") for index in _machine_cuts(series.points, first, end)]
    ends = [*(segment.first for segment in begins[1:]), len(series.points)]
    return tuple(replace(segment, last=end - 1) for segment, end in zip(begins, ends, strict=True))


def _machine_cuts(points: Sequence[HistoryPoint], first: int, end: int) -> Iterator[int]:
    """Yield the indices at which all machines before differ from all after."""
    last_seen = {points[i].machine: i for i in range(first, end) if points[i].valid}
    reach, before = first, None
    for i in range(first, end):
        if points[i].valid:
            machine = points[i].machine
            if before is not None and i > reach and machine != before:
                yield i
            reach, before = max(reach, last_seen[machine]), machine
