"""Two versions in turn, in random order, until every time is decided or the budget is spent."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import inf
from pathlib import Path

from profkit.core.errors import WorkloadError
from profkit.core.progress import Progress
from profkit.core.types import RUN, Change, Fact, Look, Pairing, Scope
from profkit.regression.paired.decide import FIRST_ROUNDS, Confirmation, MetricFloor, confirm
from profkit.regression.paired.one_run import OneRun, RunOptions, run_once
from profkit.regression.paired.version import Version

TIME, MEMORY = "time.median", "memory.rss_peak"
FLOOR = 0.02  # the relative change of a time that counts, where nobody says
MEMORY_FLOOR = MetricFloor(MEMORY, 0.05, 4 << 20)
MOST_PAIRS = 200
FAILED_MOST = 2  # of the pairs: a workload that crashes now and then is still measured
LEAST_SECONDS = 1e-8  # a change below that counts for nothing


@dataclass(frozen=True)
class PairedOptions:
    """`budget` wall seconds for all pairs; `floor` the relative change of a time that counts; `seed` of the order."""

    budget: float = 60.0
    floor: float = FLOOR
    most: int = MOST_PAIRS
    seed: int | None = None
    run: RunOptions = field(default_factory=RunOptions)


@dataclass(frozen=True)
class PairedResult:
    """What the pairs say: a change for each time and for memory, and how it came to that."""

    changes: tuple[Change, ...]
    pairing: Pairing
    interrupted: bool = False
    notes: tuple[Fact, ...] = ()


@dataclass
class PairedRuns:
    """The pairs of `first` (the baseline) and `second` as they are made; `folder` is for logs and records."""

    first: Version
    second: Version
    options: PairedOptions
    folder: Path
    progress: Progress
    pairs: list[tuple[OneRun, OneRun]] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    looks: list[Look] = field(default_factory=list)
    longest: float = 0.0
    shortest: float = inf
    # pairs that the budget may have room for, once some are made: the error is shared out over these
    most: int = 0

    def run(self, is_enough: Callable[[PairedRuns], bool] | None = None) -> PairedResult:
        """Make pairs until all times are decided. Raises WorkloadError where a version does not run.

        With `is_enough` it is asked after every four pairs instead, until the budget is spent.

        A Ctrl-C ends it with what there is, once that says anything.
        """
        draw = random.Random(self.options.seed)
        began, interrupted = time.monotonic(), False
        deadline = began + self.options.budget
        words: Mapping[Scope, Confirmation] = {}
        spent = False
        try:
            while not spent:
                self._make_pair(draw, deadline)
                left = deadline - time.monotonic()
                if self.most == 0 and len(self.pairs) >= FIRST_ROUNDS:
                    room = int(left / max(self.shortest, 1e-3))
                    self.most = max(FIRST_ROUNDS, min(self.options.most, len(self.pairs) + room))
                spent = left < self.longest or 0 < self.most <= len(self.pairs)
                words = self._look(spent)
                decided = words and all(word.word not in ("more", "ambiguous") for word in words.values())
                if is_enough is not None:
                    decided = len(self.pairs) % FIRST_ROUNDS == 0 and is_enough(self)
                if decided:
                    break
        except KeyboardInterrupt:
            if len(self.pairs) < 2:
                raise
            interrupted, words = True, self._look(spent=True)
        changes = [word.change for word in words.values() if word.change is not None]
        memory = self._memory_change()
        return PairedResult(
            (*changes, *([memory] if memory is not None else [])),
            Pairing(
                len(self.pairs),
                time.monotonic() - began,
                self.options.budget,
                tuple(self.looks),
                self._share_waited(),
                len(self.failures),
            ),
            interrupted,
            tuple(self._notes(words)),
        )

    def _make_pair(self, draw: random.Random, deadline: float) -> None:
        start = time.monotonic()
        order = [0, 1]
        draw.shuffle(order)
        seed = draw.randrange(2**32)
        runs: dict[int, OneRun] = {}
        versions = self.first, self.second
        try:
            for side in order:
                runs[side] = run_once(
                    versions[side],
                    self.options.run,
                    self.folder / ("baseline", "candidate")[side],
                    draw,
                    self._tick_from(start, deadline),
                    seed,
                )
        except WorkloadError as fault:
            self.failures.append(fault.message)
            if not self.pairs or len(self.failures) > FAILED_MOST:
                raise
            return
        self.pairs.append((runs[0], runs[1]))
        seconds = time.monotonic() - start
        self.longest, self.shortest = max(self.longest, seconds), min(self.shortest, seconds)

    def _tick_from(self, start: float, deadline: float) -> Callable[[float], None]:
        gone = start - (deadline - self.options.budget)
        return lambda seconds: self.progress.tick(gone + seconds)

    # ------------------------------------------------------------ what the pairs say

    def _look(self, spent: bool) -> Mapping[Scope, Confirmation]:
        """The word on each time both versions have, and a note of where the widest open interval stands."""
        scopes = [s for s in self.pairs[0][0].times if s in self.pairs[0][1].times] if self.pairs else []
        words = {
            scope: confirm(
                self.values(scope),
                MetricFloor(TIME, self.options.floor, LEAST_SECONDS),
                "lower",
                "s",
                max(self.most, FIRST_ROUNDS),
                spent,
                scope,
                len(scopes),
            )
            for scope in scopes
        }
        changes = [word.change for word in words.values() if word.change is not None]
        widest = max(changes, key=_width, default=None)
        if widest is not None and widest.ratio and widest.low is not None and widest.high is not None:
            self.looks.append(Look(len(self.pairs), widest.ratio, widest.low, widest.high))
            self.progress.move(f"pair {len(self.pairs)}: {change_text(widest)}")
        elif self.pairs:
            self.progress.move(f"pair {len(self.pairs)}")
        return words

    def values(self, scope: Scope) -> list[tuple[float, float]]:
        """(candidate, baseline) in seconds of each pair; without what was waited for a core, where all can tell."""
        told = self._waiting_is_known()

        def seconds(run: OneRun) -> float:
            return run.times[scope] - (run.waited or 0.0 if told and scope == RUN else 0.0)

        return [
            (seconds(new), seconds(old))
            for old, new in self.pairs
            if {scope} <= old.times.keys() & new.times.keys()
        ]

    def _waiting_is_known(self) -> bool:
        return all(run.waited is not None for pair in self.pairs for run in pair)

    def _share_waited(self) -> float | None:
        """The share of the wall time that was taken out; None where nothing could be."""
        if not self.pairs or not self._waiting_is_known():
            return None
        runs = [run for pair in self.pairs for run in pair]
        return sum(run.waited or 0.0 for run in runs) / sum(run.wall for run in runs)

    def _memory_change(self) -> Change | None:
        """Of the peak memory, where it is known of all runs: below profkit's own size the kernel does not tell it."""
        values = [(float(new.rss), float(old.rss)) for old, new in self.pairs if new.rss and old.rss]
        if len(self.pairs) < 2 or len(values) < len(self.pairs):
            return None
        return confirm(values, MEMORY_FLOOR, "lower", "B", max(FIRST_ROUNDS, len(values)), spent=True).change

    def _notes(self, words: Mapping[Scope, Confirmation]) -> list[Fact]:
        notes = []
        if self.failures:
            message = self.failures[0].splitlines()[0]
            notes.append(Fact.of("pairs-failed", count=len(self.failures), message=message))
        lost = {scope for pair in self.pairs for run in pair for scope in run.times} - set(words)
        if lost:
            names = ", ".join(sorted(scope.name or "the whole process" for scope in lost))
            notes.append(Fact.of("not-in-both", names=names))
        return notes


def _width(change: Change) -> float:
    if change.low is None or change.high is None:
        return float("inf")
    return change.high - change.low


def change_text(change: Change) -> str:
    """The change with its interval: `+5.0 % [+4.1, +5.9]`."""
    if change.ratio is None or change.low is None or change.high is None:
        return "no ratio"
    percents = [100 * (value - 1) for value in (change.ratio, change.low, change.high)]
    return f"{percents[0]:+.1f} % [{percents[1]:+.1f}, {percents[2]:+.1f}]"
