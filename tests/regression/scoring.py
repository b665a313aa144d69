"""What a rule's alarms are worth on simulated years: true changes found, after how many nights, and the rest."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from profkit.model import Series
from profkit.regression.confirm import confirm
from profkit.regression.confirmation import ConfirmWord
from profkit.regression.nights import look
from profkit.regression.rules import Rule
from tests.regression.years import Year

PATIENCE = 30  # nights after a step in which finding it is still finding it
ALARMS = ("same-night", "nights", "drift", "change-point")  # codes that say a regression for the first time
ASKS = ("suspect", "seen-before", "nights", "autocorrelated")  # what a re-run is made for


@dataclass
class Score:
    """Over many years: true changes by (story) found and missed, alarms right and wrong."""

    nights: int = 0
    right: int = 0
    wrong: int = 0
    again: int = 0  # alarms on a change that was found already
    found: list[int] = field(default_factory=list)  # delays
    missed: int = 0
    wrong_in: dict[str, int] = field(default_factory=dict)

    def add(self, year: Year, alarms: Iterable[int]) -> None:
        self.nights += len(year.series.points)
        worse = [t for t in year.truths if t.kind in ("worse", "drift")]
        ends = [t.index for t in year.truths[1:]] + [len(year.series.points)]
        seen: set[int] = set()
        for alarm in alarms:
            hit = None
            for n, truth in enumerate(worse):
                until = len(year.series.points) if truth.kind == "drift" else truth.index + PATIENCE
                if truth.index <= alarm < until and n not in seen:
                    hit = n
            if hit is not None:
                seen.add(hit)
                self.right += 1
                self.found.append(alarm - worse[hit].index)
            elif any(t.kind == "drift" and alarm >= t.index for t in worse):
                self.right += 1  # it goes on, and so it may be said again
                self.again += 1
            else:
                self.wrong += 1
                self.wrong_in[year.name] = self.wrong_in.get(year.name, 0) + 1
        self.missed += len(worse) - len(seen)
        del ends

    @property
    def precision(self) -> float | None:
        return self.right / (self.right + self.wrong) if self.right + self.wrong else None

    @property
    def recall(self) -> float | None:
        return len(self.found) / (len(self.found) + self.missed) if self.found or self.missed else None

    @property
    def delay(self) -> float | None:
        return sorted(self.found)[len(self.found) // 2] if self.found else None

    @property
    def wrong_per_1000(self) -> float:
        return 1000 * self.wrong / self.nights if self.nights else 0.0


def by_nights(year: Year, rule: Rule) -> list[int]:
    """The nights of our alarms where nothing can be re-run."""
    looked = look(year.series, rule, year.accepted)
    return [i for i, night in enumerate(looked.looks) if night.code in ALARMS]


def same_night(year: Year, rule: Rule, most: int = 20) -> list[int]:
    """The same with a re-run in every suspect night: both sides on tonight's machine, each process with its noise."""
    rng = random.Random(f"rerun/{year.name}")
    words: dict[str, ConfirmWord] = {}
    while True:
        looked = look(year.series, rule, year.accepted, words)
        asked = [
            i
            for i, night in enumerate(looked.looks)
            if night.code in ASKS and year.series.points[i].entry not in words
        ]
        if not asked:
            return [i for i, night in enumerate(looked.looks) if night.code in ALARMS]
        i = asked[0]
        good = looked.looks[i].last_good
        words[year.series.points[i].entry] = rerun(year, i, good if good is not None else i, rule, rng, most)


def rerun(year: Year, night: int, good: int, rule: Rule, rng: random.Random, most: int) -> ConfirmWord:
    """The word of an interleaved re-run: what the two codes are, with the noise of single processes."""

    def process(code: float) -> float:
        wild = 1.5 if year.noise == "spikes" and rng.random() < 0.05 else 1.0
        slow = 4 * year.sigma if year.noise == "bimodal" and rng.random() < 0.2 else 0.0
        return code * wild * (1 + rng.gauss(0, year.sigma) + slow)

    rounds: list[tuple[float, float]] = []
    while True:
        word = confirm(rounds, rule, most=most)
        if word.word != "more":
            return word.word
        while len(rounds) < word.wanted:
            rounds.append((process(year.code[night]), process(year.code[good])))


Detector = Callable[[Series], list[int]]


def runs_of(flags: list[bool]) -> list[int]:
    """Flags in a row are one alarm: its first night."""
    return [i for i, flag in enumerate(flags) if flag and not (i and flags[i - 1])]
