"""The rule over the past: every night of a series judged by the nights of its machine before it alone.

A level holds the nights of the present normal, a streak the nights in a row outside of its control limits: these wait
for a verdict and are no part of it. A regression that was confirmed stands until it is gone or accepted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite, sqrt
from typing import NamedTuple

from profkit.core.statistics import mad_sigma, median
from profkit.core.types import AcceptedChange, DecisionStep, Direction, Outcome, Point, Series
from profkit.regression.detection.rules import NightRule
from profkit.regression.detection.segments import accepted_cuts
from profkit.regression.paired.decide import ConfirmWord

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
    "seen-before": "pass",
    "same": "pass",
    "returning": "pass",
    "perhaps-better": "pass",
    "moved": "pass",
    "suspect": "ambiguous",
    "same-night": "regressed",
    "nights": "regressed",
    "change-point": "regressed",
    "drift": "regressed",
    "standing": "regressed",
    "gone": "improved",
    "improved": "improved",
}  # by the code of a night


class Night(NamedTuple):
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
        """1 above the limits, -1 below, 0 within."""
        return 1 if value > self.high else -1 if value < self.low else 0

    def far_side(self, value: float) -> int:
        """Likewise by the edges that are moved out."""
        return 1 if value > self.far[1] else -1 if value < self.far[0] else 0


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


def control_limits(level: Sequence[Night], rule: NightRule, *, following: bool = False) -> Limits:
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
    nights: list[Night] = field(default_factory=list)  # all of them, but for those that collapsed
    level: list[Night] = field(default_factory=list)
    streak: list[Night] = field(default_factory=list)
    side: int = 0
    alike: int = 0  # nights of the streak that are no change by a re-run
    standing: NightResult | None = None  # the regression that nobody accepted and that is not gone
    old: list[Night] = field(default_factory=list)  # the level before it
    last_good: int | None = None

    def judge(
        self, night: Night, word: ConfirmWord | None = None, *, with_limits: bool = False
    ) -> NightResult:
        """The result of a night, by the `word` of its re-run where there was one; `with_limits`: always with them."""
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
        side = limits.far_side(night.value)
        if not side and limits.side(night.value) == self.bad:
            if word != "different":
                result = self._judge_inside(night, limits)
                return replace(result, code="seen-before") if result.code == "held" else result
            side = self.bad
        if not side:
            return self._judge_inside(night, limits)
        if side != self.side:
            self._return_streak()
        self.side = side
        self.streak.append(night)
        self.alike += word == "same"
        return self._judge_worse(limits, word) if side == self.bad else self._judge_better(limits, word)

    # ------------------------------------------------------------ the level

    def _add(self, night: Night) -> None:
        centre = median([each.value for each in self.level[-WINDOW:]]) if self.level else night.value
        if len(self.level) < LEAST or self.bad * (night.value - centre) <= 0:
            self.last_good = (
                night.place
            )  # not every night within: after a small step the first bad ones are, too
        self.level.append(night)

    def _return_streak(self) -> None:
        """A streak that came to nothing: its nights are part of the level after all."""
        self.level += self.streak
        self.streak, self.side, self.alike = [], 0, 0

    def _new_level(self, back: Sequence[Night] = ()) -> None:
        """The nights of the streak are the normal from here on; `back`: again, after these."""
        self.level, self.last_good = list(back), self.streak[-1].place
        self._return_streak()

    def _judge_young(self, night: Night, first_level: bool) -> NightResult:
        """A night at a level too young to be judged by: at most back where it was before a regression."""
        stands, limits = self.standing, self.standing.limits if self.standing is not None else None
        if stands is None or limits is None or limits.side(night.value) == self.bad:
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

    def _judge_inside(self, night: Night, limits: Limits | None) -> NightResult:
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

    def _judge_worse(self, limits: Limits, word: ConfirmWord | None) -> NightResult:
        nights = len(self.streak)
        seen = NightResult("same", "same-night", limits, nights, self.streak[0].place, self.last_good)
        if word == "same":
            result = self._inside(limits) if self.standing is not None else seen
            if self.alike >= self.rule.nights:
                self._new_level()  # the code is the same and the level another: the machine's normal now
            return result
        calm = sum(
            night.lost <= DISTURBED for night in self.streak
        )  # a night that others disturbed confirms nothing
        missing = self.rule.nights - calm + self.alike
        if word != "different" and missing > 0:
            if self.standing is not None:
                return self._inside(limits)
            return replace(seen, code="suspect", step="band", short=missing)
        step: DecisionStep = "same-night" if word == "different" else "nights"
        result = replace(seen, code=step, step=step, before=limits.centre)
        if self.standing is None:
            self.standing, self.old = result, self.level
        self._new_level()
        return result

    def _judge_better(self, limits: Limits, word: ConfirmWord | None) -> NightResult:
        nights, stands = len(self.streak), self.standing
        seen = NightResult("returning", "band", limits, nights, self.streak[0].place, self.last_good)
        near = stands is not None and stands.limits is not None
        inside = near and stands.limits.side(self.streak[-1].value) != self.bad  # type: ignore[union-attr]
        confirmed = word == "different" or (word != "same" and nights - self.alike >= self.rule.nights)
        if confirmed or self.alike >= self.rule.nights:
            self._new_level(self.old if confirmed and inside else ())
        if stands is not None and not inside:
            return self._inside(limits)
        if not confirmed:
            return seen if inside else replace(seen, code="perhaps-better")
        self.standing = None
        step: DecisionStep = "same-night" if word == "different" else "nights"
        first = stands.first if stands is not None else seen.first
        return replace(seen, code="gone" if inside else "improved", step=step, first=first)

    def _has_collapsed(self, limits: Limits, value: float) -> bool:
        """An improvement to a small part of the past, or to nothing: the work was not done, rather than so fast."""
        if limits.centre <= 0 or limits.side(value) != -self.bad:
            return False
        return value < COLLAPSE * limits.centre if self.bad > 0 else value * COLLAPSE > limits.centre


# ---------------------------------------------------------------- a series


@dataclass(frozen=True)
class JudgedNights:
    """The results in the order of the points, and what is known of the last point's machine (None: nothing)."""

    results: tuple[NightResult, ...]
    past: MachinePast | None


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
    pasts: dict[str, MachinePast] = {}
    results = tuple(_judge_each(series, rule, accepted, confirmed or {}, pasts))
    return JudgedNights(results, pasts.get(series.points[-1].machine) if series.points else None)


def _judge_each(
    series: Series,
    rule: NightRule,
    accepted: Sequence[AcceptedChange],
    words: Mapping[str, ConfirmWord],
    pasts: dict[str, MachinePast],
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
        night, last = Night(index, point.value, point.lost), index == len(series.points) - 1
        result = past.judge(night, words.get(point.entry), with_limits=last)
        if moved:  # reported once, and not green: a runner that changes each night would never be judged
            result = NightResult("other-machine")
        elif result.code in ("nights", "same-night") and any(
            other is not past and other.standing is not None for other in pasts.values()
        ):
            result = replace(result, code="standing")  # no news: it stands on another machine of the pool
        yield result
