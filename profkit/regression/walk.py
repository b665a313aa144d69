"""Night by night through the values of one machine: what each was, given only those before it.

The walk is the memory of the decision. It keeps a level (the nights of the present normal), a streak (nights in a row
outside of its band, which wait for a verdict and are not part of it), and what stands (a regression that nobody
accepted and that is not gone). All of it follows from the values and the words of the re-runs, so nothing is stored.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import sqrt

from profkit.model import DecisionStep, Outcome
from profkit.regression.band import CLING_GUESS, MEDIAN_VARIANCE, TOO_MUCH, Band, far_band, middle, near_band
from profkit.regression.confirmation import ConfirmWord
from profkit.regression.rules import Rule
from profkit.regression.runs import Run, run_of

ANCHOR = 24  # nights that the old state is the median of
DRIFT_SIGMAS = 3.0  # the recent median must be beyond the floor by this many standard errors


@dataclass(frozen=True)
class Standing:
    """A convicted regression: when it began, what it left, and how it was found. Indices are of the series."""

    first: int
    convicted: int
    last_good: int | None
    before: Band
    step: DecisionStep
    anchor: tuple[float, ...] = ()


@dataclass(frozen=True)
class Look:
    """What one night was. `code` is the word for scripts; `nights` counts the streak; `first` is where it began."""

    outcome: Outcome
    code: str
    step: DecisionStep = "band"
    band: Band | None = None
    nights: int = 0
    first: int | None = None
    last_good: int | None = None
    short: int = 0  # nights that a past is short of
    standing: Standing | None = None


@dataclass
class Walk:
    """One machine within one epoch. `bad` is 1 where more is worse, -1 where less is."""

    rule: Rule
    bad: int
    inherited: float | None = None  # relative sigma of the level before
    guess: float = CLING_GUESS  # its autocorrelation
    level: list[float] = field(default_factory=list)
    indices: list[int] = field(default_factory=list)  # of the level's values in the series
    anchor: list[float] = field(default_factory=list)
    streak: list[tuple[int, float]] = field(default_factory=list)
    side: int = 0
    centre: float = 0.0  # of the band of the last night
    alike: int = 0  # nights of the streak that a re-run said are no change
    standing: Standing | None = None
    last_good: int | None = None
    judged: int = 0
    outside: int = 0

    def next(self, index: int, value: float, word: ConfirmWord | None = None) -> Look:
        """What the value at `index` of the series is, and the walk one night further."""
        least = self.rule.least if self.inherited is None else self.rule.nights
        if len(self.level) < least:
            self._settle(index, value)
            return Look("new", "new", "none", short=least - len(self.level) + 1)
        near = near_band(self.level, self.inherited, self.rule)
        self.centre = near.centre
        if _collapsed(near, value, self.bad, self.rule):
            return Look("invalid", "collapse", band=near, last_good=self.last_good, standing=self.standing)
        band, side = near, _side(near, value)
        seen_before = False
        if side or self.streak:
            band = far_band(near, self.level, self.rule, bool(self.streak), self.guess)
            far_side = _side(band, value)
            seen_before = side == self.bad and far_side == 0
            side = side if seen_before and word == "different" else far_side
        self.judged += 1
        if not side:
            return self._inside(index, value, band, word, seen_before)
        self.outside += 1
        if side != self.side:
            self._dissolve()
        self.side = side
        self.streak.append((index, value))
        if word == "same":
            self.alike += 1
        return self._bad(band, word) if side == self.bad else self._good(band, value, word)

    @property
    def chance(self) -> float:
        """The share of nights that left the band and were convicted of nothing."""
        return (self.outside + 0.5) / (self.judged + 1)

    def relative_sigma(self) -> float | None:
        """What the next level may inherit; None where this one never came about."""
        if len(self.level) < self.rule.least:
            return self.inherited
        near = near_band(self.level, self.inherited, self.rule)
        return near.sigma / abs(near.centre) if near.centre else None

    def _settle(self, index: int, value: float) -> None:
        self.level.append(value)
        self.indices.append(index)
        if len(self.anchor) < ANCHOR:
            self.anchor.append(value)
        if len(self.level) < self.rule.least or self.bad * (value - self.centre) <= 0:
            self.last_good = index

    def _dissolve(self) -> None:
        """A streak that came to nothing: its nights are part of the level after all."""
        for index, value in self.streak:
            self.level.append(value)
            self.indices.append(index)
        self.streak, self.side, self.alike = [], 0, 0

    def _inside(
        self, index: int, value: float, band: Band, word: ConfirmWord | None, seen_before: bool
    ) -> Look:
        last_good = self.last_good
        self._dissolve()
        self._settle(index, value)
        if (run := run_of(self.level, self.rule, self.inherited, self.guess)) is not None:
            return self._run(run, word)
        if (drifted := self._drift(index, band, last_good)) is not None:
            return drifted
        if self.standing is not None and self._is_back():
            back, self.standing = self.standing, None
            self.anchor = list(back.anchor) or self.anchor
            return Look("improved", "gone", "nights", band, first=back.first, last_good=last_good)
        held = self._held(band, last_good)
        return replace(held, code="seen-before") if seen_before and held.code == "held" else held

    def _held(self, band: Band, last_good: int | None) -> Look:
        if self.standing is None:
            return Look("pass", "held", band=band, last_good=last_good)
        stands = self.standing
        outcome: Outcome = "regressed" if self.rule.standing == "fail" else "pass"
        return Look(
            outcome,
            "standing",
            stands.step,
            band,
            first=stands.first,
            last_good=stands.last_good,
            standing=stands,
        )

    def _is_back(self) -> bool:
        """Whether the recent nights are where they were before what stands, to within half the floor."""
        assert self.standing is not None
        recent = self.level[-self.rule.recent :]
        before = self.standing.before.centre
        return (
            len(self.level) >= 2 * self.rule.recent
            and self.bad * (middle(sorted(recent)) - before) <= self.rule.floor(before) / 2
        )

    def _run(self, run: Run, word: ConfirmWord | None) -> Look:
        """Many nights on one side, none of them far out: a level of its own all the same."""
        self.streak = list(zip(self.indices[-run.nights :], self.level[-run.nights :], strict=True))
        self.outside += run.nights
        del self.level[-run.nights :], self.indices[-run.nights :]
        self.side = run.side
        self.last_good = self._good_night(run.band.centre)
        value = middle(sorted(value for _, value in self.streak))
        self.alike = run.nights if word == "same" else 0
        return self._bad(run.band, word) if run.side == self.bad else self._good(run.band, value, word)

    def _good_night(self, centre: float) -> int | None:
        """The last night of the level on the good side of its centre: what a re-run is held against.

        Not the last that was within the band: after a small step the first bad nights are that, too.
        """
        for index, value in zip(reversed(self.indices), reversed(self.level), strict=True):
            if self.bad * (value - centre) <= 0:
                return index
        return self.last_good

    def _drift(self, index: int, band: Band, last_good: int | None) -> Look | None:
        """The recent median against the old anchor: what a week's 1 % adds up to, whatever each night said."""
        rule = self.rule
        if len(self.anchor) < ANCHOR or len(self.level) < rule.recent + ANCHOR:
            return None
        old = middle(sorted(self.anchor))
        recent = self.level[-rule.recent :]
        shift = middle(sorted(recent)) - old
        floor = rule.drift_floor(old)
        week_before = middle(sorted(self.level[-2 * rule.recent : -rule.recent])) - old
        if min(abs(shift), abs(week_before)) <= floor or shift * week_before < 0:
            return None  # a step of this week is not for the drift to tell
        far = far_band(band, self.level, rule, guess=self.guess)
        if far.cling > TOO_MUCH:
            return None
        kept = max(far.cling, 0.0)
        error = far.sigma * sqrt(MEDIAN_VARIANCE * (1 + kept) / (1 - kept) * (1 / rule.recent + 1 / ANCHOR))
        if abs(shift) - DRIFT_SIGMAS * error <= floor:
            return None
        before = Band(old, far.sigma, old - floor, old + floor, ANCHOR, far.cling)
        self.anchor, was = list(recent), tuple(self.anchor)
        first = index - rule.recent + 1
        if shift * self.bad < 0:
            if (
                self.standing is not None
                and self.bad * (middle(sorted(recent)) - self.standing.before.high) <= 0
            ):
                self.standing = None
            return Look("improved", "drift-better", "drift", before, first=first, last_good=last_good)
        self.standing = self.standing or Standing(first, index, last_good, before, "drift", was)
        return Look("regressed", "drift", "drift", before, 0, first, last_good, standing=self.standing)

    def _bad(self, band: Band, word: ConfirmWord | None) -> Look:
        first, nights = self.streak[0][0], len(self.streak)
        if word == "same":
            look = Look(
                "pass", "same", "same-night", band, nights, first, self.last_good, standing=self.standing
            )
            if (
                self.alike >= self.rule.nights
            ):  # the code is the same and the level another: the machine's new normal
                self._new_level(band)
            return look
        step: DecisionStep = "same-night" if word == "different" else "nights"
        if word != "different" and nights - self.alike < self.rule.nights:
            return Look(
                "ambiguous", "suspect", "band", band, nights, first, self.last_good, standing=self.standing
            )
        if step == "nights" and band.cling > TOO_MUCH:
            return Look("ambiguous", "autocorrelated", "nights", band, nights, first, self.last_good)
        if self.standing is None:
            self.standing = Standing(
                first, self.streak[-1][0], self.last_good, band, step, tuple(self.anchor)
            )
        look = Look("regressed", step, step, band, nights, first, self.last_good, standing=self.standing)
        self._new_level(band)
        return look

    def _good(self, band: Band, value: float, word: ConfirmWord | None) -> Look:
        first, nights = self.streak[0][0], len(self.streak)
        stands, last_good = self.standing, self.last_good
        # back on the good side of the edge that it left
        inside = stands is not None and _side(stands.before, value) != self.bad
        convicted = word == "different" or (
            word != "same" and nights - self.alike >= self.rule.nights and band.cling <= TOO_MUCH
        )
        if convicted:
            self._new_level(band)
            if stands is not None and not inside:
                return Look(
                    "regressed", "standing", stands.step, band, 0, stands.first, stands.last_good, 0, stands
                )
            if stands is not None and _side(stands.before, value) == 0:
                self.standing, self.anchor = None, list(stands.anchor) or self.anchor
                return Look("improved", "gone", "nights", band, nights, first, last_good)
            self.standing = None
            return Look(
                "improved", "improved", "same-night" if word == "different" else "nights", band, nights, first
            )
        if self.alike >= self.rule.nights:
            self._new_level(band)
        if stands is not None and not inside:
            return self._held(band, last_good)
        return Look(
            "pass", "returning" if inside else "perhaps-better", "band", band, nights, first, last_good
        )

    def _new_level(self, band: Band) -> None:
        """The nights of the streak are the normal from here on; the noise of those before is kept in mind."""
        if band.centre:
            self.inherited = band.sigma / abs(band.centre)
        self.guess = band.cling
        self.level = [value for _, value in self.streak]
        self.indices = [index for index, _ in self.streak]
        self.anchor = list(self.level)
        self.last_good = self.streak[-1][0]
        self.outside -= len(self.streak)
        self.streak, self.side, self.alike = [], 0, 0


def _side(band: Band, value: float) -> int:
    return 1 if value > band.high else -1 if value < band.low else 0


def _collapsed(band: Band, value: float, bad: int, rule: Rule) -> bool:
    """An improvement to a small part of the past, or to nothing: the work was not done, rather than done so fast."""
    if band.centre <= 0 or not rule.collapse or _side(band, value) != -bad:
        return False
    return value < rule.collapse * band.centre if bad > 0 else value * rule.collapse > band.centre
