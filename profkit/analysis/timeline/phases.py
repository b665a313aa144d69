"""Loops of a program that follow one another: training, then evaluation. Pure functions on numbers.

Two loops that take turns are one workload, as training with an evaluation after each epoch is. Where one ends before
the other begins, a step of both together would be a step of neither: the longer one counts, and the other is reported.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Protocol

# Of the launches of an iteration: another batch size, or a longer sequence, changes some of them.
_SAME = 0.75
_SURELY = 0.9  # the same kernels in the same proportion: the same step, of which one iteration holds several
_OF_OTHERS = 0.25  # of the launches at most, where the programs of XLA are others
_LARGE = 0.25  # of the time of the longest loop: a shorter one is a detail of the run
# Of the time of all loops: where none has that, it is a sweep over many, and all are the workload.
_MIN_LONGEST_SHARE = 0.4


class PeriodicRun(Protocol):
    """A stretch of launches that repeats with a period."""

    @property
    def first(self) -> int:
        """Return the position of its first launch."""

    @property
    def last(self) -> int:
        """Return the position after its last launch."""

    @property
    def period(self) -> int:
        """Return the launches of one iteration."""


@dataclass(frozen=True)
class LaunchClues:
    """What distinguishes loops beside the launches themselves; each is empty where it is not known."""

    programs: Any = ()  # of each launch, the number of the program of XLA that it belongs to; -1: of none
    families: Sequence[int] = ()  # of each configuration: equal for one kernel of other sizes
    tuning: Sequence[bool] = ()  # of each configuration, whether it only chooses between others

    def at(self, positions: Any) -> LaunchClues:
        """Return the clues of some launches alone."""
        return replace(self, programs=self.programs[positions]) if len(self.programs) else self


@dataclass(frozen=True)
class Loop:
    """Runs that are iterations of the same loop, by their numbers."""

    runs: tuple[int, ...]
    first: int
    last: int
    spent: float


def separate_loops(
    sequence: Any, runs: Sequence[PeriodicRun], spent: Sequence[float], clues: LaunchClues
) -> tuple[Loop, ...]:
    """Return the loops that follow one another, the longest first; none where there is one, or where they take turns.

    `spent` is the device's time of each run. How long a loop spent says less: tuning and set-up keep the host busy.
    """
    loops = _alike(sequence, runs, spent, clues)
    longest = max((loop.spent for loop in loops), default=0.0)
    large = [loop for loop in loops if loop.spent >= _LARGE * longest]
    if len(large) < 2 or longest < _MIN_LONGEST_SHARE * sum(loop.spent for loop in large):
        return ()
    in_order = sorted(large, key=lambda loop: loop.first)
    if any(before.last > after.first for before, after in pairwise(in_order)):
        return ()
    return tuple(sorted(large, key=lambda loop: -loop.spent))


def _alike(
    sequence: Any, runs: Sequence[PeriodicRun], spent: Sequence[float], clues: LaunchClues
) -> list[Loop]:
    """Return the runs by the loop that they belong to, each compared with the longest of a loop."""
    groups: list[list[int]] = []
    iterations = [_Iteration.of(sequence, run, clues) for run in runs]
    working = [number for number, iteration in enumerate(iterations) if not iteration.tunes]
    for number in sorted(working, key=lambda at: -spent[at]):
        group = next(
            (members for members in groups if iterations[members[0]].is_like(iterations[number])), None
        )
        if group is None:
            groups.append([number])
        else:
            group.append(number)
    return [
        Loop(
            tuple(group),
            min(runs[number].first for number in group),
            max(runs[number].last for number in group),
            sum(spent[number] for number in group),
        )
        for group in groups
    ]


@dataclass(frozen=True)
class _Iteration:
    """What one iteration launches."""

    kernels: Counter[int]  # how often each
    programs: Counter[int]  # of XLA: how many launches of each
    tunes: bool  # some of it only chooses between kernels

    @staticmethod
    def of(sequence: Any, run: PeriodicRun, clues: LaunchClues) -> _Iteration:
        """Return the iteration in the middle of a run: the first ones may still be finding their way."""
        begin = run.first + (run.last - run.first) // (2 * run.period) * run.period
        inside = slice(begin, min(begin + run.period, run.last))
        families, launches = clues.families, sequence[inside].tolist()
        kernels = Counter(families[what] if len(families) else what for what in launches)
        programs = clues.programs[inside].tolist() if len(clues.programs) else ()
        tunes = len(clues.tuning) > 0 and any(clues.tuning[what] for what in launches)
        return _Iteration(kernels, Counter(number for number in programs if number >= 0), tunes)

    def is_like(self, other: _Iteration) -> bool:
        """Tell whether both are iterations of the same loop."""
        if self.programs and other.programs and _proportion(self.programs, other.programs) < _OF_OTHERS:
            return False
        most = max(self.kernels.total(), other.kernels.total())
        common = (self.kernels & other.kernels).total() / most
        return common >= _SAME or _proportion(self.kernels, other.kernels) >= _SURELY


def _proportion(first: Counter[int], second: Counter[int]) -> float:
    """Return the share (0..1) in which two iterations agree, whichever of them holds more launches."""
    every, others = first.total(), second.total()
    return sum(min(count / every, second[what] / others) for what, count in first.items())
