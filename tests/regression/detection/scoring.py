"""What a rule's alarms are worth on simulated years: true changes found, after how many nights, and the rest."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from profkit.regression.detection.rules import NightRule
from tests.regression.detection.nights import LATE, every_night
from tests.regression.detection.years import Truth, Year

PATIENCE = 30  # nights after a step in which finding it is still finding it
ALARMS = ("nights", "change-point")  # codes that say a regression for the first time
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
    """The nights of our alarms."""
    told = every_night(year.series, rule, year.accepted)
    news = [i for i, one in enumerate(told) if one.code in ALARMS]
    late = [i for i in news if told[i].code in LATE]
    return [i for i in news if i not in late[1:]]  # that is said every night, and is news once


def runs_of(flags: list[bool]) -> list[int]:
    """Flags in a row are one alarm: its first night."""
    return [i for i, flag in enumerate(flags) if flag and not (i and flags[i - 1])]
