"""The state of one machine within one segment: its level, nights in a row outside of it, and an open regression.

A level holds the nights of the present normal, a streak the nights in a row outside of its limits, which wait for a
verdict and are not part of it. An open regression is one that nobody accepted and that is not gone.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from profkit.core.statistics import median
from profkit.core.types import DecisionStep, Outcome
from profkit.regression.detection.control_limits import (
    CORRELATION_GUESS,
    ControlLimits,
    nights_of,
    recent_limits,
    weight_of,
    widened_limits,
)
from profkit.regression.detection.rules import LEAST, WEEK, WINDOW, NightRule
from profkit.regression.paired.decide import ConfirmWord

COLLAPSE = 0.2  # an improvement to less than this share of the past is not believed


@dataclass(frozen=True)
class OpenRegression:
    """A confirmed regression: when it began, what it left, and how it was found. Indices are of the series."""

    first: int
    confirmed: int
    last_good: int | None
    before: ControlLimits
    step: DecisionStep


@dataclass(frozen=True)
class NightResult:
    """What one night was. `code` is the word for scripts; `nights` counts the streak; `first` is where it began.

    `limits` is None for a night so near to the centre that none were needed.
    """

    outcome: Outcome
    code: str
    step: DecisionStep = "band"
    limits: ControlLimits | None = None
    nights: int = 0
    first: int | None = None
    last_good: int | None = None
    short: int = 0  # nights that a past, or a streak, is short of
    standing: OpenRegression | None = None


@dataclass
class MachineSeries:
    """The state of one machine within one segment. `bad` is 1 where more is worse, -1 where less is."""

    rule: NightRule
    bad: int
    inherited: float | None = None  # relative sigma of the level before
    guess: float = CORRELATION_GUESS  # its autocorrelation
    level: list[float] = field(default_factory=list)
    indices: list[int] = field(default_factory=list)  # of the level's values in the series
    weights: list[float] = field(
        default_factory=list
    )  # what each of them counts: 1 where it lost no time to others
    streak: list[tuple[int, float, float]] = field(default_factory=list)  # index, value, weight
    side: int = 0
    alike: int = 0  # nights of the streak that are no change by a re-run
    standing: OpenRegression | None = None
    last_good: int | None = None
    judged: int = 0
    outside: int = 0

    def judge(
        self,
        index: int,
        value: float,
        word: ConfirmWord | None = None,
        with_limits: bool = False,
        lost: float = 0.0,
    ) -> NightResult:
        """The result of the night at `index` of the series, which `lost` this share of its time to others.

        `with_limits`: always with its limits.
        """
        weight = weight_of(lost)
        least = LEAST if self.inherited is None else self.rule.nights
        weights = self.weights[-WINDOW:]
        nights = round(nights_of(weights))
        if nights < least:
            result = NightResult("new", "new", "none", short=least - nights)
            if self.standing is not None and side_of(self.standing.before, value) == self.bad:
                result = self._open_or_pass(
                    None, self.last_good
                )  # its level is young, and still what was confirmed
            self._add_to_level(index, value, weight)
            return result
        if not self.streak and not with_limits and min(weights) == 1:
            centre = self._centre()
            if abs(value - centre) <= self.rule.floor(centre):
                self.judged += 1
                return self._judge_inside(index, value, weight, None)
        recent = recent_limits(self.level, self.inherited, self.rule, self.weights)
        if _has_collapsed(recent, value, self.bad):
            return NightResult(
                "invalid", "collapse", limits=recent, last_good=self.last_good, standing=self.standing
            )
        self.judged += 1
        limits, side = recent, side_of(recent, value)
        seen_before = False
        if side or self.streak:
            limits = widened_limits(
                recent, self.level, self.rule, bool(self.streak), self.guess, self.weights
            )
            far_side = side_of(limits, value)
            seen_before = side == self.bad and far_side == 0
            side = side if seen_before and word == "different" else far_side
        if not side:
            result = self._judge_inside(index, value, weight, limits)
            return replace(result, code="seen-before") if seen_before and result.code == "held" else result
        self.outside += 1
        if side != self.side:
            self._return_streak()
        self.side = side
        self.streak.append((index, value, weight))
        self.alike += word == "same"
        return (
            self._judge_worse(limits, word) if side == self.bad else self._judge_better(limits, value, word)
        )

    @property
    def chance(self) -> float:
        """The share of nights that left the limits and confirmed nothing."""
        return (self.outside + 0.5) / (self.judged + 1)

    def relative_sigma(self) -> float | None:
        """What the next level may inherit; None where this one never came about."""
        if len(self.level) < LEAST:
            return self.inherited
        recent = recent_limits(self.level, self.inherited, self.rule, self.weights)
        return recent.sigma / abs(recent.centre) if recent.centre else None

    # ------------------------------------------------------------ the level

    def _append(self, index: int, value: float, weight: float) -> None:
        self.level.append(value)
        self.weights.append(weight)
        self.indices.append(index)

    def _centre(self) -> float:
        return median(self.level[-WINDOW:])

    def _add_to_level(self, index: int, value: float, weight: float) -> None:
        if len(self.level) < LEAST or self.bad * (value - self._centre()) <= 0:
            self.last_good = (
                index  # not every night within the limits: after a small step the first bad ones are, too
            )
        self._append(index, value, weight)

    def _return_streak(self) -> None:
        """A streak that came to nothing: its nights are part of the level after all."""
        for night in self.streak:
            self._append(*night)
        self.streak, self.side, self.alike = [], 0, 0

    def _new_level(self, limits: ControlLimits) -> None:
        """The nights of the streak are the normal from here on; the noise of those before is kept in mind."""
        if limits.centre:
            self.inherited = limits.sigma / abs(limits.centre)
        self.guess = limits.correlation
        self.last_good = self.streak[-1][0]
        self.outside -= len(self.streak)
        self.level, self.indices, self.weights = [], [], []
        self._return_streak()

    # ------------------------------------------------------------ nights within the limits

    def _judge_inside(
        self, index: int, value: float, weight: float, limits: ControlLimits | None
    ) -> NightResult:
        last_good = self.last_good
        self._return_streak()
        self._add_to_level(index, value, weight)
        if self.standing is not None and self._is_back():
            back, self.standing = self.standing, None
            return NightResult("improved", "gone", "nights", limits, first=back.first, last_good=last_good)
        return self._open_or_pass(limits, last_good)

    def _open_or_pass(self, limits: ControlLimits | None, last_good: int | None) -> NightResult:
        stands = self.standing
        if stands is None:
            return NightResult("pass", "held", limits=limits, last_good=last_good)
        nights = len(self.streak) if self.side == self.bad else 0
        return NightResult(
            "regressed",
            "standing",
            stands.step,
            limits,
            nights,
            stands.first,
            stands.last_good,
            standing=stands,
        )

    def _is_back(self) -> bool:
        """Whether the recent nights are where they were before what stands, to within half the floor."""
        assert self.standing is not None
        before, week = self.standing.before.centre, WEEK
        away = self.bad * (median(self.level[-week:]) - before)
        return len(self.level) >= 2 * week and away <= self.rule.floor(before) / 2

    # ------------------------------------------------------------ nights outside

    def _judge_worse(self, limits: ControlLimits, word: ConfirmWord | None) -> NightResult:
        first, nights = self.streak[0][0], len(self.streak)
        last_good, stands = self.last_good, self.standing
        if word == "same":
            result = NightResult("pass", "same", "same-night", limits, nights, first, last_good)
            result = self._open_or_pass(limits, last_good) if stands is not None else result
            if self.alike >= self.rule.nights:
                self._new_level(
                    limits
                )  # the code is the same and the level another: what is normal for the machine now
            return result
        step: DecisionStep = "same-night" if word == "different" else "nights"
        missing = self.rule.nights - nights + self.alike
        if step == "nights" and missing > 0:
            if stands is not None:
                return self._open_or_pass(limits, last_good)
            return NightResult("ambiguous", "suspect", "band", limits, nights, first, last_good, missing)
        if stands is None:
            self.standing = OpenRegression(first, self.streak[-1][0], last_good, limits, step)
        self._new_level(limits)
        return NightResult("regressed", step, step, limits, nights, first, last_good, standing=self.standing)

    def _judge_better(self, limits: ControlLimits, value: float, word: ConfirmWord | None) -> NightResult:
        first, nights = self.streak[0][0], len(self.streak)
        last_good, stands = self.last_good, self.standing
        inside = stands is not None and side_of(stands.before, value) != self.bad
        by_nights = word != "same" and nights - self.alike >= self.rule.nights
        step: DecisionStep = "same-night" if word == "different" else "nights"
        if word != "different" and not by_nights:
            if self.alike >= self.rule.nights:
                self._new_level(limits)
            if stands is not None and not inside:
                return self._open_or_pass(limits, last_good)
            return NightResult(
                "pass", "returning" if inside else "perhaps-better", "band", limits, nights, first, last_good
            )
        self._new_level(limits)
        if stands is None:
            return NightResult("improved", "improved", step, limits, nights, first, last_good)
        if not inside:
            return self._open_or_pass(limits, last_good)
        self.standing = None
        return NightResult("improved", "gone", step, limits, nights, stands.first, last_good)


def side_of(limits: ControlLimits, value: float) -> int:
    """1 above the limits, -1 below, 0 within."""
    return 1 if value > limits.high else -1 if value < limits.low else 0


def _has_collapsed(limits: ControlLimits, value: float, bad: int) -> bool:
    """An improvement to a small part of the past, or to nothing: the work was not done, rather than done so fast."""
    if limits.centre <= 0 or side_of(limits, value) != -bad:
        return False
    return value < COLLAPSE * limits.centre if bad > 0 else value * COLLAPSE > limits.centre
