"""Runs one plain process of a command, and measures its time, by its own marks or as a whole."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from profkit.core import process
from profkit.core.errors import MORE_TIME, UnreadableReport, UsageError, WorkloadError
from profkit.core.process import ProcessOutcome
from profkit.core.statistics import median, percentile
from profkit.core.types import RUN, Directive, SampleSet, Scope, Timing
from profkit.profiling.run_steps import DIRECTIVE, directive_json
from profkit.runtime.passes.read import read_record, region_timings

# The quantile of one process's samples by the wall clock: other programs can only make a sample longer, never shorter.
LOW_PERCENT = 25.0
# Share of the wall time: if all threads together ran and waited for less, no two of them ran at the same time.
ONE_AT_A_TIME = 1.02
# Share of the processor time: if the first thread used at least this, the others are ignored: threads of a library that
# wait for work.
MAJORITY = 0.95
MAX_OFFSET = 4096  # bytes: the environment is longer by a random number up to this, drawn for each process


@dataclass(frozen=True)
class RunOptions:
    """How each process is run. `sampling`: seconds that a marked region samples; `timeout` of one process."""

    sampling: float = 1.0
    precision: float = 0.01
    timeout: float | None = None


@dataclass(frozen=True)
class OneRun:
    """The result of one process: seconds by scope, which is the whole process if it marks nothing.

    `waited` is the number of seconds in which it was ready to run and had no processor; None if that cannot be
    subtracted, since several of its threads may have run at the same time.
    """

    times: Mapping[Scope, float]
    wall: float
    waited: float | None
    rss: int | None  # bytes, of the largest process; None if it is not known exactly
    marked: bool


@dataclass(frozen=True)
class PlainProcess:
    """A command to run without an instrument, with its marks timed. `name` is its name in errors.

    `env` is added to the caller's environment. `folder`, for its records, is emptied and created again, with `inside`
    in it. `printed` receives standard output alone; `given` is read at its standard input; `hidden` are secrets that
    no log and no error shows.
    """

    name: str
    command: Sequence[str]
    cwd: Path
    env: Mapping[str, str]
    folder: Path
    options: RunOptions = field(default_factory=RunOptions)
    log: Path | None = None  # None: in `folder`
    printed: Path | None = None
    inside: Path | None = None
    hidden: Sequence[str] = ()
    given: Path | None = None

    def time(self, tick: Callable[[float], None] | None = None) -> OneRun:
        """Run it, and return what it took. Raises as `run`."""
        outcome = self.run(tick)
        timings = _timings(self.folder)
        ran, wait = outcome.main_thread
        alone = ran >= MAJORITY * outcome.cpu_seconds
        if not alone:
            wait = outcome.usage[-1][2] if outcome.usage else 0.0
            alone = outcome.cpu_seconds + wait <= ONE_AT_A_TIME * outcome.seconds
        times = {Scope("region", timing.name): value_of(timing) for timing in timings}
        return OneRun(
            times or {RUN: outcome.seconds},
            outcome.seconds,
            min(wait, outcome.seconds) if alone and not times else None,
            outcome.peak_rss if outcome.rss_counted else None,
            bool(times),
        )

    def run(self, tick: Callable[[float], None] | None = None) -> ProcessOutcome:
        """Run it to its end. Raises WorkloadError where it fails, UsageError where it cannot be started."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        if self.inside is not None:
            self.inside.mkdir()
        options = self.options
        record = str(self.folder / "run")
        directive = Directive("timing", record, precision=options.precision, sampling=options.sampling)
        try:
            outcome = process.run(
                self.command,
                env={**self.env, DIRECTIVE: directive_json(directive)},
                cwd=self.cwd,
                log=self.log or self.folder / "log",
                timeout=options.timeout,
                tick=tick,
                hidden=self.hidden,
                printed=self.printed,
                given=self.given,
            )
        except UsageError as fault:
            fault.message = f"{self.name}: {fault.message}"
            raise
        if not outcome.ok:
            last_lines = "\n".join(outcome.output_tail.strip().splitlines()[-12:])
            text = f"; it said:\n{last_lines}" if last_lines else "; it printed nothing"
            fix = MORE_TIME if outcome.timed_out else None
            raise WorkloadError(f"{self.name} {outcome.ending()}{text}", fix)
        return outcome


def value_of(timing: Timing) -> float:
    """Return the seconds of one process: the median by a device's clock, by the wall clock the lower quartile."""
    return median([_low(samples) for samples in timing.processes])


def _low(samples: SampleSet) -> float:
    if samples.clock != "wall":
        return median(samples.seconds)
    return percentile(samples.seconds, LOW_PERCENT)


def variation(draw: random.Random, hash_seed: int) -> dict[str, str]:
    """Return the variables that differ in each pair: the hash seed of strings, and where the stack begins.

    Either can make a program 1 to 3 % faster by chance. Drawn again for each pair, they favour neither version.
    Mytkowicz et al., "Producing wrong data without doing anything obviously wrong", ASPLOS 2009.
    """
    return {
        "PYTHONHASHSEED": str(hash_seed % 2**32),
        "PROFKIT_ENVIRONMENT_OFFSET": "x" * draw.randrange(MAX_OFFSET),
    }


def _timings(folder: Path) -> tuple[Timing, ...]:
    """Return the times of the workload's own marks; unreadable records are skipped."""
    records = []
    for path in sorted(folder.glob("run.*.json")):
        try:
            records.append(read_record(path))
        except UnreadableReport:
            continue
    return tuple(timing for timing in region_timings(records) if timing.processes)
