"""Rounds of two sides, each side a fresh process, in the order ABBA: what disturbs the machine disturbs both alike.

Round k runs A then B if k is even, B then A if odd (Bulej et al., "Duet benchmarking", arXiv 2001.05811, in the form
for a device that only one can have at a time). Each side is profiled in a process of its own and its median taken, so
that a round is one pair of values whatever happened inside.
"""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from profkit.core.run_folder import clean_name
from profkit.core.types import RunDocument, Scope
from profkit.regression.nightly.config import WorkloadSpec
from profkit.regression.nightly.one_run import Ran, profile_once

# Seconds of sampling in one process of a round: a round is cheap and there are many. A spec that asks for less gets it.
ROUND_TIMING = 2.0
FAILED_MOST = (
    2  # rounds that may fail before it is given up: a workload that crashes now and then is no baseline
)

Wanted = tuple[str, Scope]


@dataclass(frozen=True)
class Arm:
    """One of the two: what it is called, where it runs, and its command there."""

    name: str
    cwd: Path
    command: tuple[str, ...]


@dataclass
class Rounds:
    """The rounds of one workload as they are made. `pairs` holds (A, B) of each round for what is wanted.

    `passes` None: the workload's own; `deadline` is a time of `time.monotonic()` after which none is begun.
    """

    spec: WorkloadSpec
    arms: tuple[Arm, Arm]
    wanted: Sequence[Wanted]
    folder: Path
    deadline: float
    passes: tuple[str, ...] | None = ("timing",)
    tick: Callable[[float], None] | None = None
    pairs: dict[Wanted, list[tuple[float, float]]] = field(default_factory=dict)
    made: int = 0
    failed: int = 0
    longest: float = 0.0
    why: str | None = None  # why there are no more
    fix: str | None = None

    def more(self, count: int) -> bool:
        """Make rounds until there are `count`; False where no more can be had, and `why` says so."""
        while self.made < count:
            if self.why is not None or not self._one():
                return False
        return True

    def _one(self) -> bool:
        left = self.deadline - time.monotonic()
        if left <= 0 or left < self.longest:
            self.why = "the time for re-runs was spent"
            return False
        start = time.monotonic()
        order = (0, 1) if self.made % 2 == 0 else (1, 0)
        values: dict[int, dict[Wanted, float]] = {}
        for side in order:
            ran = self._run(self.arms[side], max(1.0, self.deadline - time.monotonic()))
            if not ran.ok or ran.document is None:
                return self._failure(self.arms[side], ran)
            values[side] = {
                want: v for want in self.wanted if (v := value_of(ran.document, *want)) is not None
            }
            if not values[side]:
                self.why = f"{self.arms[side].name} does not measure {self.wanted[0][0]} in a re-run"
                return False
        for want in self.wanted:
            if want in values[0] and want in values[1]:
                self.pairs.setdefault(want, []).append((values[0][want], values[1][want]))
        self.made += 1
        self.longest = max(self.longest, time.monotonic() - start)
        return True

    def _run(self, arm: Arm, budget: float) -> Ran:
        into = self.folder / f"{self.made:03d}-{clean_name(arm.name)}"
        timing = ROUND_TIMING if self.spec.timing is None else min(self.spec.timing, ROUND_TIMING)
        ran = profile_once(
            replace(self.spec, depth="gate", timing=timing),
            into,
            cwd=arm.cwd,
            command=arm.command,
            passes=self.passes,
            budget=min(budget, self.spec.budget),
            targets=False,
            tick=self.tick,
        )
        if ran.ok:  # its values are kept, and twenty rounds of folders are none that anybody reads
            shutil.rmtree(into, ignore_errors=True)
            with contextlib.suppress(OSError):  # a round that failed is still in it
                self.folder.rmdir()
        return ran

    def _failure(self, arm: Arm, ran: Ran) -> bool:
        """A round that came to nothing; True where another may be tried."""
        self.failed += 1
        told = ran.reason.splitlines()[0] if ran.reason else ran.ending
        if ran.ending == "out-of-time" and time.monotonic() >= self.deadline:
            self.why = "the time for re-runs was spent"
        elif self.failed > FAILED_MOST or self.made == 0:
            self.why, self.fix = f"{arm.name} could not be run again: {told}", ran.fix
        return self.why is None


def value_of(document: RunDocument, metric: str, scope: Scope) -> float | None:
    """The value of one metric in one scope, in its own unit; None where it was not measured or is doubted."""
    told = [*document.readings, *(r for s in document.summaries for r in s.readings)]
    for reading in told:
        if reading.metric == metric and reading.value is not None and reading.doubt is None:
            same = reading.scope.kind == scope.kind and reading.scope.name == scope.name
            if same and (scope.id is None or reading.scope.id == scope.id):
                return reading.value
    return None


def passes_for(spec: WorkloadSpec, wanted: Sequence[Wanted]) -> tuple[str, ...] | None:
    """The passes that a round needs: the timing pass alone where only times are asked for, else the workload's own."""
    return ("timing",) if all(name.startswith("time.") for name, _ in wanted) else spec.passes
