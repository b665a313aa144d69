"""Decide by the instructions that each version executes what its times leave open.

A count does not see the noise of a machine. It decides only where equal runs agree.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from profkit.backends.cpu.counting import InstructionCounter, instruction_counter
from profkit.core import process
from profkit.core.errors import ProfkitError
from profkit.core.files.safe_folder import make_parents
from profkit.core.inference import Interval, course_of, decide
from profkit.core.statistics import median
from profkit.core.types import Change, Fact
from profkit.hardware.machine import usable_cores
from profkit.profiling.run_steps import DIRECTIVE, at_once, directive_json
from profkit.regression.paired.checkout import Version

EQUAL = 0.001  # of the instructions: equal runs that lie further apart are no evidence
# Of the floor: counts that lie closer say the same by one run of each version, since both repeat one number.
ONE_RUN = 0.25
# The interval of the times may reach no further from 1 than that where counts within the floor decide, and where they
# are equal: what waits for memory takes longer by as many instructions.
MAX_WIDTH, MAX_WIDTH_OF_EQUAL = 0.12, 0.35
MAX_LONGER, MIN_SECONDS = 2.0, 5.0  # times what a count is expected to take, and seconds
INSIDE = 0.5  # of half the interval: how far from 1 its middle may lie there


@dataclass(frozen=True)
class Counts:
    """Instructions of each run (baseline's, candidate's), and the tool that counted them."""

    tool: str
    runs: tuple[tuple[float, float], ...]

    @property
    def ratio(self) -> float:
        """Return candidate over baseline."""
        return median([new for _, new in self.runs]) / median([old for old, _ in self.runs])

    @property
    def apart(self) -> float:
        """Return the relative distance of equal runs, for the version whose runs scatter more."""
        sides = [old for old, _ in self.runs], [new for _, new in self.runs]
        return max(max(side) / min(side) - 1 for side in sides)


@dataclass
class CountedRuns:
    """The counted runs of `versions`; `plain` is the seconds of one normal run, `floor` that of the time."""

    versions: tuple[Version, Version]
    marked: bool
    plain: float
    floor: float
    folder: Path
    tick: Callable[[float], None]

    def count(self, seconds: float) -> Counts | Fact:
        """Count in at most `seconds`; return the counts, or why they decide nothing."""
        counter = instruction_counter()
        if counter is None:
            return Fact("counts-no-tool")
        workers = 2 if len(usable_cores()) > 1 else 1
        needed = counter.slowdown * self.plain * 2 / workers
        deadline, runs = time.monotonic() + seconds, list[tuple[float, float]]()
        while True:
            left = deadline - time.monotonic()
            if needed > left:
                return Fact.of("counts-too-long", seconds=(len(runs) + 1) * needed, tool=counter.tool)
            # One that takes far longer than usual is a program that cannot be counted: time is left for the pairs.
            counted = self._round(counter, workers, min(left, MAX_LONGER * needed + MIN_SECONDS))
            if isinstance(counted, Fact):
                return counted
            runs.append(counted)
            counts = Counts(counter.tool, tuple(runs))
            if len(runs) == 1 and abs(counts.ratio - 1) <= ONE_RUN * self.floor:
                return counts
            if len(runs) > 1:
                scattered = Fact.of("counts-scatter", apart=counts.apart, tool=counter.tool)
                return counts if counts.apart <= EQUAL else scattered
            needed = min(needed, time.monotonic() - deadline + seconds)

    def _round(self, counter: InstructionCounter, workers: int, seconds: float) -> tuple[float, float] | Fact:
        tasks = [self._task(counter, side, seconds * workers / 2) for side in (0, 1)]
        old, new = at_once(tasks, workers, self.tick)
        for count in (old, new):
            if isinstance(count, Fact):
                return count
        assert isinstance(old, float)
        assert isinstance(new, float)
        return old, new

    def _task(
        self, counter: InstructionCounter, side: int, seconds: float
    ) -> Callable[[threading.Event], float | Fact]:
        version, folder = self.versions[side], self.folder / f"counts-{side}"

        def run(cancel: threading.Event) -> float | Fact:
            make_parents(folder)
            for path in folder.iterdir():
                path.unlink()
            out = folder / "count"
            directive = counter.directive(folder / "run", marked=self.marked)
            env = {**version.environment(), **counter.environment(), DIRECTIVE: directive_json(directive)}
            argv = counter.argv(version.command, out, marked=self.marked)
            try:
                outcome = process.run(
                    argv,
                    env=env,
                    cwd=version.cwd,
                    log=folder / "log",
                    timeout=seconds,
                    cancel=cancel,
                    given=version.given,
                )
            except (ProfkitError, OSError) as fault:
                return Fact.of("counts-failed", tool=counter.tool, message=str(fault))
            counted = counter.read(out, marked=self.marked) if outcome.ok else None
            if counted is None:
                ending = outcome.ending() if not outcome.ok else "counted nothing"
                return Fact.of("counts-failed", tool=counter.tool, message=f"{version.name} {ending}")
            return counted

        return run


def settled(change: Change, counts: Counts) -> Change:
    """Decide an open change of a time by the counts, with a doubt that says so; else return it unchanged.

    Counts within the floor: the same, if the interval of the times is narrow and its middle near 1. Counts beyond
    it: different, if the times lean to the same side.
    """
    low, high, ratio = change.low, change.high, change.ratio
    if change.word != "ambiguous" or low is None or high is None or ratio is None or low <= 0:
        return change
    by = Fact.of("settled-by-instructions", share=counts.ratio - 1, tool=counts.tool)
    word = decide(Interval(*3 * (counts.ratio,)), change.floor)  # an exact number: its interval has no width
    if word == "same":
        half = max(math.log(high / ratio), math.log(ratio / low))
        width = MAX_WIDTH_OF_EQUAL if abs(counts.ratio - 1) <= EQUAL else MAX_WIDTH
        if max(high - 1, 1 - low) <= width and abs(math.log(ratio)) <= INSIDE * half:
            return replace(change, word="same", detectable=None, doubts=(*change.doubts, by))
        return change
    course = course_of(1, counts.ratio, "lower")
    most = 1 + change.floor
    leans = (ratio > 1 and high > most) if course == "worse" else (ratio < 1 and low < 1 / most)
    if not leans:
        return change
    doubts = (*change.doubts, by)
    return replace(change, word="different", course=course, detectable=None, doubts=doubts)
