"""Run two versions alternately, in random order, until every time is decided or the budget is spent.

A pair is one run of each version, each in a fresh process. The error holds however often one looks at the
pairs. Everything that compares two versions decides by this one rule: `compare --base`, `bisect` and the
nightly.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from math import inf
from pathlib import Path
from typing import Literal

from profkit.core.errors import Progress
from profkit.core.pairs import FIRST_ROUNDS, change_of_counts, confirm, rounds_of_looks
from profkit.core.statistics import median
from profkit.core.types import RUN, Change, Fact, Pairing, Scope
from profkit.profiling.plain_run import OneRun, RunOptions
from profkit.profiling.time_limits import plain_time_limit
from profkit.regression.detection.rules import NightRule
from profkit.regression.paired.checkout import Version
from profkit.regression.paired.counts import CountedRuns, Counts, settled
from profkit.regression.paired.one_run import run_once
from profkit.reporting.views.comparison.words import size_text

# ---------------------------------------------------------------- the pairs


TIME, MEMORY = "time.median", "memory.rss_peak"
FLOOR = 0.02  # the relative change of a time that counts by default
MEMORY_FLOOR = NightRule(MEMORY, relative=0.05, absolute=4 << 20)
MAX_PAIRS = 200
MIN_SECONDS = 1e-8  # a change below that counts for nothing


@dataclass(frozen=True)
class PairedOptions:
    """`budget` wall seconds for all pairs; `floor` the relative change of a time that counts.

    `seed` of the order. `memory` says which change of the peak memory counts.
    """

    budget: float = 60.0
    floor: float = FLOOR
    most: int = MAX_PAIRS
    seed: int | None = None
    # Instructions are counted where the first pairs leave it open; `always`: also where they do not.
    counts: Literal["never", "open", "always"] = "open"
    run: RunOptions = field(default_factory=RunOptions)
    memory: NightRule = MEMORY_FLOOR


@dataclass(frozen=True)
class PairedResult:
    """The result of the pairs: a change for each time and for memory, and how the pairs were run."""

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
    slowest: float | None = None  # wall seconds of the process that took longest; None: no one is known
    pairs: list[tuple[OneRun, OneRun]] = field(default_factory=list)
    longest: float = 0.0
    shortest: float = inf
    # pairs that the budget may have room for, once some are made: the error is shared out over these
    most: int = 0
    counted: Counts | Fact | None = None  # the instructions, or why they are not known; None: not counted yet

    def run(self, is_enough: Callable[[PairedRuns], bool] | None = None) -> PairedResult:
        """Run pairs until all times are decided or the budget is spent.

        Raises WorkloadError if a version does not run. `is_enough`, if given, decides instead after every four pairs.
        A Ctrl-C ends the pairs with what there is, once there are two of them.
        """
        draw = random.Random(self.options.seed)
        began, interrupted = time.monotonic(), False
        deadline = began + self.options.budget
        changes: Mapping[Scope, Change] = {}
        spent = False
        try:
            while not spent:
                self._make_pair(draw, deadline)
                left = deadline - time.monotonic()
                if self.most == 0 and len(self.pairs) >= FIRST_ROUNDS:
                    room = int(left / max(self.shortest, 1e-3))
                    self.most = max(FIRST_ROUNDS, min(self.options.most, len(self.pairs) + room))
                changes = self._look()
                is_look = len(self.pairs) in rounds_of_looks(max(self.most, FIRST_ROUNDS))
                if is_look and self.options.counts != "never" and is_enough is None:
                    changes = self._with_counts(changes, deadline)
                decided = is_look and bool(changes)
                decided = decided and all(change.word != "ambiguous" for change in changes.values())
                if is_enough is not None:
                    decided = len(self.pairs) % FIRST_ROUNDS == 0 and is_enough(self)
                spent = deadline - time.monotonic() < self.longest or 0 < self.most <= len(self.pairs)
                if decided:
                    break
        except KeyboardInterrupt:
            if len(self.pairs) < 2:
                raise
            interrupted, changes = True, self._look()
        if isinstance(self.counted, Counts):
            changes = self._with_counts(changes, deadline)
        runs = [run for pair in self.pairs for run in pair]
        waited = None  # the share of the wall time that was taken out
        if runs and self._waiting_is_known():
            waited = sum(run.waited or 0.0 for run in runs) / sum(run.wall for run in runs)
        supporting = [c for c in (self._memory_change(), self._instructions()) if c is not None]
        return PairedResult(
            (*changes.values(), *supporting),
            Pairing(
                len(self.pairs),
                time.monotonic() - began,
                self.options.budget,
                waited,
            ),
            interrupted,
            tuple(self._notes()),
        )

    def _make_pair(self, draw: random.Random, deadline: float) -> None:
        start = time.monotonic()
        order = [0, 1]
        draw.shuffle(order)
        seed = draw.randrange(2**32)
        runs: dict[int, OneRun] = {}
        versions = self.first, self.second
        for side in order:
            limit = plain_time_limit(self.slowest, self.options.run.timeout, None)
            runs[side] = run_once(
                versions[side],
                replace(self.options.run, timeout=limit),
                self.folder / ("baseline", "candidate")[side],
                draw,
                self._tick_from(start, deadline),
                seed,
            )
            self.slowest = max(self.slowest or 0.0, runs[side].wall)
        self.pairs.append((runs[0], runs[1]))
        seconds = time.monotonic() - start
        self.longest, self.shortest = max(self.longest, seconds), min(self.shortest, seconds)

    def _tick_from(self, start: float, deadline: float) -> Callable[[float], None]:
        elapsed = start - (deadline - self.options.budget)
        return lambda seconds: self.progress.tick(elapsed + seconds)

    # ------------------------------------------------------------ what the pairs say

    def _look(self) -> Mapping[Scope, Change]:
        """Decide each time that both versions have, and report the widest interval as progress."""
        scopes = self._scopes()
        rule = NightRule(TIME, relative=self.options.floor, absolute=MIN_SECONDS)
        decided = {
            scope: confirm(self.values(scope), rule, "s", max(self.most, FIRST_ROUNDS), scope, len(scopes))
            for scope in scopes
        }
        changes = {scope: change for scope, change in decided.items() if change is not None}
        widest = max(
            changes.values(), key=lambda change: (change.high or 0.0) - (change.low or 0.0), default=None
        )
        if self.pairs:
            widest_text = f": {size_text(widest)}" if widest is not None else ""
            self.progress.move(f"pair {len(self.pairs)}{widest_text}")
        return changes

    def _with_counts(self, changes: Mapping[Scope, Change], deadline: float) -> Mapping[Scope, Change]:
        """Settle the changes by instructions, which are counted at the first look that leaves one open."""
        is_open = any(change.word == "ambiguous" for change in changes.values())
        if len(changes) != 1 or not (is_open or self.options.counts == "always"):
            return changes
        if self.counted is None:
            runs = [run for pair in self.pairs for run in pair]
            plain = median([run.wall for run in runs])
            self.progress.move("counting instructions")
            began = time.monotonic()
            counting = CountedRuns(
                (self.first, self.second), runs[0].marked, plain, self.options.floor, self.folder,
                self._tick_from(began, deadline),
            )  # fmt: skip
            self.counted = counting.count(deadline - began)
        if isinstance(self.counted, Fact):
            return changes
        return {scope: settled(change, self.counted) for scope, change in changes.items()}

    def _instructions(self) -> Change | None:
        """Return the change of the instructions, which supports that of the time."""
        if not isinstance(self.counted, Counts):
            return None
        old, new = ([run[side] for run in self.counted.runs] for side in (0, 1))
        change = change_of_counts((old, new), self.options.floor * median(old), "instructions")
        return replace(change, role="supports", tool=self.counted.tool)

    def _scopes(self) -> list[Scope]:
        return [s for s in self.pairs[0][0].times if s in self.pairs[0][1].times] if self.pairs else []

    def values(self, scope: Scope) -> list[tuple[float, float]]:
        """Return (candidate, baseline) in seconds for each pair, less the wait for a core if all runs know it."""
        waiting_known = self._waiting_is_known()

        def seconds(run: OneRun) -> float:
            return run.times[scope] - (run.waited or 0.0 if waiting_known and scope == RUN else 0.0)

        return [
            (seconds(new), seconds(old))
            for old, new in self.pairs
            if {scope} <= old.times.keys() & new.times.keys()
        ]

    def _waiting_is_known(self) -> bool:
        return all(run.waited is not None for pair in self.pairs for run in pair)

    def _memory_change(self) -> Change | None:
        """Return the change of the peak memory if it is known for all runs.

        The kernel does not report a peak below profkit's own size.
        """
        values = [(float(new.rss), float(old.rss)) for old, new in self.pairs if new.rss and old.rss]
        if len(self.pairs) < 2 or len(values) < len(self.pairs):
            return None
        return confirm(values, self.options.memory, "B", max(FIRST_ROUNDS, len(values)))

    def _notes(self) -> list[Fact]:
        notes = []
        lost = {scope for pair in self.pairs for run in pair for scope in run.times} - set(self._scopes())
        if lost:
            names = ", ".join(sorted(scope.name or "the whole process" for scope in lost))
            notes.append(Fact.of("not-in-both", names=names))
        if isinstance(self.counted, Fact):
            notes.append(self.counted)
        return notes
