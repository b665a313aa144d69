"""What a rule's alarms are worth on simulated years: true changes found, after how many nights, and the rest."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass, field

from profkit.regression.detection.nights import judge_nights
from profkit.regression.detection.rules import NightRule
from profkit.regression.paired.decide import ConfirmWord, confirm
from tests.regression.detection.nights import LATE, every_night
from tests.regression.detection.years import Truth, Year

PATIENCE = 30  # nights after a step in which finding it is still finding it
ALARMS = ("same-night", "nights", "drift", "change-point")  # codes that say a regression for the first time
ASKS = ("suspect", "seen-before", "nights")  # what a re-run is made for
LARGE = 0.0399  # twice the floor of time.median


@dataclass
class Score:
    """Over many years: which true changes were found (with the delay in nights) and missed, and the other alarms."""

    years: int = 0
    nights: int = 0
    found: list[tuple[Truth, int]] = field(default_factory=list)
    missed: list[Truth] = field(default_factory=list)
    again: int = 0  # right, but said before: a drift that goes on
    wrong: list[str] = field(default_factory=list)  # names of the years

    def add(self, year: Year, alarms: Iterable[int]) -> None:
        """An alarm is right for the last true change not found yet that began up to 30 nights before it.

        Of a drift at any time after its beginning. All others are wrong, a second one for the same step too.
        """
        self.years += 1
        self.nights += len(year.series.points)
        worse = [t for t in year.truths if t.kind in ("worse", "drift")]
        seen: set[int] = set()
        for alarm in alarms:
            hits = [n for n, t in enumerate(worse) if t.index <= alarm < _until(t) and n not in seen]
            if hits:
                seen.add(hits[-1])
                self.found.append((worse[hits[-1]], alarm - worse[hits[-1]].index))
            elif any(t.kind == "drift" and alarm >= t.index for t in worse):
                self.again += 1
            else:
                self.wrong.append(year.name)
        self.missed += [t for n, t in enumerate(worse) if n not in seen]

    @property
    def precision(self) -> float | None:
        right = len(self.found) + self.again
        return right / (right + len(self.wrong)) if right or self.wrong else None

    def recall(self, least: float = LARGE, kind: str = "worse") -> float | None:
        """Of the true changes of at least that size."""
        found = sum(t.kind == kind and t.size >= least for t, _ in self.found)
        missed = sum(t.kind == kind and t.size >= least for t in self.missed)
        return found / (found + missed) if found or missed else None

    def delay(self, share: float = 0.5, least: float = LARGE, kind: str = "worse") -> int | None:
        """The number of nights after which that share of what was found had been found; 0 is the first night."""
        delays = sorted(d for t, d in self.found if t.kind == kind and t.size >= least)
        return delays[int(share * (len(delays) - 1))] if delays else None

    @property
    def wrong_per_1000(self) -> float:
        """Wrong alarms per 1,000 nights of one series."""
        return 1000 * len(self.wrong) / self.nights if self.nights else 0.0


def _until(truth: Truth) -> int:
    return 10**9 if truth.kind == "drift" else truth.index + PATIENCE


def by_nights(year: Year, rule: NightRule) -> list[int]:
    """The nights of our alarms where nothing can be re-run."""
    return _alarms(year, rule, {})


def _alarms(year: Year, rule: NightRule, words: dict[str, ConfirmWord]) -> list[int]:
    told = every_night(year.series, rule, year.accepted, words)
    news = [i for i, one in enumerate(told) if one.code in ALARMS]
    late = [i for i in news if told[i].code in LATE]
    return [i for i in news if i not in late[1:]]  # that is said every night, and is news once


def same_night(year: Year, rule: NightRule, most: int = 20) -> list[int]:
    """The same with a re-run in every suspect night: both sides on tonight's machine, each process with its noise."""
    rng = random.Random(f"rerun/{year.name}")
    words: dict[str, ConfirmWord] = {}
    points = year.series.points
    while True:
        looks = judge_nights(year.series, rule, year.accepted, words).results
        asked = [i for i, one in enumerate(looks) if one.code in ASKS and points[i].entry not in words]
        if not asked:
            return _alarms(year, rule, words)
        i = asked[0]
        good = looks[i].last_good
        words[points[i].entry] = rerun(year, i, good if good is not None else i, rule, rng, most)


def rerun(year: Year, night: int, good: int, rule: NightRule, rng: random.Random, most: int) -> ConfirmWord:
    """The word of an interleaved re-run: what the two codes are, with the noise of single processes.

    Each process is as noisy as a night is: in truth both sides of a round share much of it, so this is the hard case.
    """

    def process(code: float) -> float:
        wild = 1.5 if year.noise == "spikes" and rng.random() < 0.05 else 1.0
        slow = 4 * year.sigma if year.noise == "bimodal" and rng.random() < 0.2 else 0.0
        return code * wild * (1 + rng.gauss(0, year.sigma) + slow)

    rounds: list[tuple[float, float]] = []
    while True:
        told = confirm(rounds, rule, most=most)
        if told.word != "more":
            return told.word
        while len(rounds) < told.wanted:
            rounds.append((process(year.code[night]), process(year.code[good])))


def runs_of(flags: list[bool]) -> list[int]:
    """Flags in a row are one alarm: its first night."""
    return [i for i, flag in enumerate(flags) if flag and not (i and flags[i - 1])]
