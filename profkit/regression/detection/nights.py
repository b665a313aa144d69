"""The rule over the past: every night of a series judged by the nights of its machine before it alone.

A level holds the nights of the present normal, a streak the nights in a row outside of its control limits: these wait
for a verdict and are no part of it. A regression that was confirmed stands until it is gone or accepted.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import isfinite, sqrt
from typing import NamedTuple

from profkit.core.statistics import mad_sigma, median
from profkit.core.types import AcceptedChange, DecisionStep, Direction, HistoryPoint, Outcome, Segment, Series
from profkit.regression.detection.rules import NightRule
from profkit.regression.history.rows import microseconds

WINDOW = 24  # nights that the control limits are made of
LONG_WINDOW = 120  # nights that tell how often a level leaves them: four months
LEAST = 7  # nights with which a level can be judged
WEEK = 7
SIGMAS = 4.0  # half-width of the limits in MAD-sigma
FOLLOWING = 2.5 / 4  # of the half-width, for a night that follows one outside
MEDIAN_VARIANCE = 1.571  # pi / 2: variance of a median over that of a mean, normal distribution
DISTURBED = 0.05  # of a night's time, lost to others: such nights count where there are too few others
COLLAPSE = 0.2  # an improvement to less than this share of the past is not believed
LARGEST = 1e150  # nothing that is measured is as large in any unit

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
    "drift": "regressed",
    "standing": "regressed",
    "gone": "improved",
    "improved": "improved",
}  # by the code of a night


class NightValue(NamedTuple):
    """A value with its place in the series, and the share of its time that others had."""

    place: int
    value: float
    lost: float


@dataclass(frozen=True)
class Limits:
    """`centre` and `sigma` of the nights before; outside of `low` to `high` a night is a candidate.

    `far`: the same edges, moved out to where 1 night, and 1 in 50, of the level lay beyond (two modes, spikes).
    """

    centre: float
    sigma: float
    low: float
    high: float
    far: tuple[float, float]

    def side(self, value: float) -> int:
        """1 above the limits, -1 below, 0 within; by the edges that are moved out."""
        return 1 if value > self.far[1] else -1 if value < self.far[0] else 0

    def inner_side(self, value: float) -> int:
        """Likewise by the edges that are not."""
        return 1 if value > self.high else -1 if value < self.low else 0


@dataclass(frozen=True)
class NightResult:
    """What one night was: `code` is the word for scripts. Indices are of the series.

    `limits` is None for a night so near to the centre that none were needed. `nights` counts the streak, which began
    at `first`; `short` are the nights that a past, or a streak, is short of. `before`: the level it is held against.
    """

    code: str
    step: DecisionStep = "none"
    limits: Limits | None = None
    nights: int = 0
    first: int | None = None
    last_good: int | None = None
    short: int = 0
    before: float | None = None

    @property
    def outcome(self) -> Outcome:
        """The outcome that the code means."""
        return OUTCOMES[self.code]


def control_limits(level: Sequence[NightValue], rule: NightRule, *, following: bool = False) -> Limits:
    """The median of the last 24 nights +- the larger of 4 MAD-sigma and the floor; `following` a night outside: 2.5.

    Without the nights that lost time to others, where seven are left. Wider by sqrt(1 + pi / 2 / n), as the centre is
    not known better, and by sqrt(1 + 12 (1 / n - 1 / 24)): the MAD of 7 values is off by a third.
    """
    recent = level[-WINDOW:]
    calm = [night.value for night in recent if night.lost <= DISTURBED]
    values = calm if len(calm) >= LEAST else [night.value for night in recent]
    n, centre, sigma = len(values), median(values), mad_sigma(values)
    unsure = sqrt((1 + MEDIAN_VARIANCE / n) * (1 + 12 * (1 / n - 1 / WINDOW)))
    width = max(SIGMAS * sigma * unsure * (FOLLOWING if following else 1), rule.floor(centre))
    low, high = centre - width, centre + width
    ordered = sorted(
        night.value for night in level[-LONG_WINDOW:] if len(calm) < LEAST or night.lost <= DISTURBED
    )
    allowed = 1 + len(ordered) // 50
    lowest, highest = low, high
    if len(ordered) > 2 * allowed:
        lowest = ordered[allowed] - sigma if ordered[allowed] < low else low
        highest = ordered[-1 - allowed] + sigma if ordered[-1 - allowed] > high else high
    return Limits(centre, sigma, low, high, (lowest, highest))


@dataclass
class MachinePast:
    """What is known of one machine since the last accepted change. `bad` is 1 where more is worse, -1 where less is."""

    rule: NightRule
    bad: int
    nights: list[NightValue] = field(default_factory=list)  # all of them, but for those that collapsed
    level: list[NightValue] = field(default_factory=list)
    streak: list[NightValue] = field(default_factory=list)
    side: int = 0
    standing: NightResult | None = None  # the regression that nobody accepted and that is not gone
    old: list[NightValue] = field(default_factory=list)  # the level before it
    last_good: int | None = None

    def judge(self, night: NightValue, *, with_limits: bool = False) -> NightResult:
        """The result of a night; `with_limits`: always with them."""
        first_level = len(self.nights) < LEAST
        self.nights.append(night)
        if len(self.level) < LEAST:
            return self._judge_young(night, first_level)
        if not self.streak and not with_limits:
            centre = median([each.value for each in self.level[-WINDOW:]])
            if abs(night.value - centre) <= self.rule.floor(centre):
                return self._judge_inside(night, None)
        limits = control_limits(self.level, self.rule, following=bool(self.streak))
        if self._has_collapsed(limits, night.value):
            self.nights.pop()
            return NightResult("collapse", "band", limits, last_good=self.last_good)
        side = limits.side(night.value)
        if not side:
            return self._judge_inside(night, limits)
        if side != self.side:
            self._return_streak()
        self.side = side
        self.streak.append(night)
        return self._judge_worse(limits) if side == self.bad else self._judge_better(limits)

    # ------------------------------------------------------------ the level

    def _add(self, night: NightValue) -> None:
        centre = median([each.value for each in self.level[-WINDOW:]]) if self.level else night.value
        if len(self.level) < LEAST or self.bad * (night.value - centre) <= 0:
            self.last_good = (
                night.place
            )  # not every night within: after a small step the first bad ones are, too
        self.level.append(night)

    def _return_streak(self) -> None:
        """A streak that came to nothing: its nights are part of the level after all."""
        self.level += self.streak
        self.streak, self.side = [], 0

    def _new_level(self, back: Sequence[NightValue] = ()) -> None:
        """The nights of the streak are the normal from here on; `back`: again, after these."""
        self.level, self.last_good = list(back), self.streak[-1].place
        self._return_streak()

    def _judge_young(self, night: NightValue, first_level: bool) -> NightResult:
        """A night at a level too young to be judged by: at most back where it was before a regression."""
        stands, limits = self.standing, self.standing.limits if self.standing is not None else None
        if stands is None or limits is None or limits.inner_side(night.value) == self.bad:
            short = LEAST - len(self.level)
            self._return_streak()
            self._add(night)
            return NightResult("new", short=short) if first_level else self._inside(None)
        self.side = -self.bad
        self.streak.append(night)
        seen = NightResult("returning", "band", limits, len(self.streak), stands.first, self.last_good)
        if len(self.streak) < self.rule.nights:
            return seen
        self.standing = None
        self._new_level(self.old)
        return replace(seen, code="gone", step="nights")

    # ------------------------------------------------------------ nights within the limits

    def _judge_inside(self, night: NightValue, limits: Limits | None) -> NightResult:
        last_good = self.last_good
        self._return_streak()
        self._add(night)
        if self.standing is not None and self._is_back():
            back, self.standing = self.standing, None
            return NightResult("gone", "nights", limits, first=back.first, last_good=last_good)
        return self._inside(limits, last_good)

    def _inside(self, limits: Limits | None, last_good: int | None = None) -> NightResult:
        """A night that says nothing new: the regression that stands, if there is one."""
        if self.standing is None:
            return NightResult("held", "band", limits, last_good=last_good)
        nights = len(self.streak) if self.side == self.bad else 0
        return replace(self.standing, code="standing", limits=limits, nights=nights)

    def _is_back(self) -> bool:
        """Whether the last two weeks are where they were before what stands, to within half the floor."""
        before = self.standing.before if self.standing is not None else None
        if before is None or len(self.level) < 2 * WEEK:
            return False
        now = median([night.value for night in self.level[-WEEK:]])
        return self.bad * (now - before) <= self.rule.floor(before) / 2

    # ------------------------------------------------------------ nights outside

    def _judge_worse(self, limits: Limits) -> NightResult:
        # a night that others disturbed confirms nothing
        missing = self.rule.nights - sum(night.lost <= DISTURBED for night in self.streak)
        if missing > 0 and self.standing is not None:
            return self._inside(limits)
        first, last_good = self.streak[0].place, self.last_good
        seen = NightResult("suspect", "band", limits, len(self.streak), first, last_good, missing)
        if missing > 0:
            return seen
        result = replace(seen, code="nights", step="nights", before=limits.centre, short=0)
        if self.standing is None:
            self.standing, self.old = result, self.level
        self._new_level()
        return result

    def _judge_better(self, limits: Limits) -> NightResult:
        nights, stands = len(self.streak), self.standing
        seen = NightResult("returning", "band", limits, nights, self.streak[0].place, self.last_good)
        near = stands.limits if stands is not None else None
        inside = near is not None and near.inner_side(self.streak[-1].value) != self.bad
        confirmed = nights >= self.rule.nights
        if confirmed:
            self._new_level(self.old if inside else ())
        if stands is not None and not inside:
            return self._inside(limits)
        if not confirmed:
            return seen if inside else replace(seen, code="perhaps-better")
        self.standing = None
        first = stands.first if stands is not None else seen.first
        return replace(seen, code="gone" if inside else "improved", step="nights", first=first)

    def _has_collapsed(self, limits: Limits, value: float) -> bool:
        """An improvement to a small part of the past, or to nothing: the work was not done, rather than so fast."""
        if limits.centre <= 0 or limits.inner_side(value) != -self.bad:
            return False
        return value < COLLAPSE * limits.centre if self.bad > 0 else value * COLLAPSE > limits.centre


# ---------------------------------------------------------------- a series


@dataclass(frozen=True)
class JudgedNights:
    """The results in the order of the points, and what is known of the last point's machine (None: nothing)."""

    results: tuple[NightResult, ...]
    past: MachinePast | None


def is_usable(point: HistoryPoint) -> bool:
    """Whether a point decides anything: valid, finite, and not so large that its square is no number any more."""
    return point.valid and isfinite(point.value) and abs(point.value) < LARGEST


def direction(series: Series, rule: NightRule) -> Direction:
    """Which way is good: as the rule says, else as the series does."""
    return rule.better or series.better


def judge_nights(series: Series, rule: NightRule, accepted: Sequence[AcceptedChange] = ()) -> JudgedNights:
    """What each night was. Where no direction is good, more counts as worse, and the caller says "moved" instead."""
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
        if not is_usable(point):
            yield NightResult("not-valid")
            continue
        moved = point.machine not in pasts and any(len(past.nights) >= LEAST for past in pasts.values())
        past = pasts.setdefault(point.machine, MachinePast(rule, bad))
        last = index == len(series.points) - 1
        result = past.judge(NightValue(index, point.value, point.lost), with_limits=last)
        if moved:  # reported once, and not green: a runner that changes each night would never be judged
            result = NightResult("other-machine")
        elif result.code == "nights" and any(
            other is not past and other.standing is not None for other in pasts.values()
        ):
            result = replace(result, code="standing")  # no news: it stands on another machine of the pool
        yield result


# ---------------------------------------------------------------- the segments of a series


def accepted_cuts(series: Series, accepted: Sequence[AcceptedChange]) -> dict[int, AcceptedChange]:
    """Index of the first point of every segment that an accepted change of this series begins.

    A change that lies before the first point, or after the last, begins none. Of two that begin the same, the later.
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
    """The stretches of the series in order, from its first to its last point; none for an empty series.

    An accepted change begins one, and so does a machine that was not there before, if none of those before it comes
    again: machines that alternate (a pool of runners) share a segment, and each is compared with its own past.
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
    """Indices at which all machines before are others than all after."""
    last_seen = {points[i].machine: i for i in range(first, end) if points[i].valid}
    reach, before = first, None
    for i in range(first, end):
        if points[i].valid:
            machine = points[i].machine
            if before is not None and i > reach and machine != before:
                yield i
            reach, before = max(reach, last_seen[machine]), machine
