"""One plain process of a command: how long it took, by its own marks or as a whole, and what it used."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from profkit.core import process
from profkit.core.errors import MORE_TIME, UnreadableReport, UsageError, WorkloadError
from profkit.core.process import ProcessOutcome
from profkit.core.statistics import median, percentile
from profkit.core.types import RUN, Directive, SampleSet, Scope, Timing
from profkit.profiling.run_steps import DIRECTIVE, directive_json
from profkit.runtime.passes.read import read_record, region_timings

# Of the samples that one process took by the wall clock: what other programs do only makes them longer.
LOW_PERCENT = 25.0
# Of the wall time: where threads of a program ran and waited for less than that together, they did so one at a time.
ONE_AT_A_TIME = 1.02
# Of the processor time: where the first thread used so much, those of a library that wait for work do not count.
MOST_OF_IT = 0.95
MOST_OFFSET = 4096  # bytes by which the environment is longer, drawn anew for each process


@dataclass(frozen=True)
class RunOptions:
    """How each process is run. `sampling`: seconds that a marked region samples; `timeout` of one process."""

    sampling: float = 1.0
    precision: float = 0.01
    timeout: float | None = None


@dataclass(frozen=True)
class OneRun:
    """What one process showed. Seconds by scope, as `seconds` of the whole process where it marks nothing.

    `waited`: seconds in which it could run and had no processor; None where that cannot be taken out, since several of
    its threads may have run at once.
    """

    times: Mapping[Scope, float]
    wall: float
    waited: float | None
    rss: int | None  # bytes, of the largest process; None where it is not known to the byte
    marked: bool


def run_plain(
    name: str,
    command: Sequence[str],
    cwd: Path,
    env: Mapping[str, str],
    options: RunOptions,
    folder: Path,
    tick: Callable[[float], None] | None = None,
    printed: Path | None = None,
) -> OneRun:
    """Run one process of `command`; its log and records lie in `folder`, which is made anew.

    `env` comes on top of the caller's environment. `printed` takes standard output alone.
    Raises WorkloadError where it fails, UsageError where it cannot be started; `name` is what they call it.
    """
    outcome = start_process(name, command, cwd, env, options, folder, tick, printed)
    timings = _timings(folder)
    ran, wait = outcome.main_thread
    alone = ran >= MOST_OF_IT * outcome.cpu_seconds
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


def value_of(timing: Timing) -> float:
    """The seconds of one process: the median by a device's clock, by the wall clock the lower quartile."""
    return median([_low(samples) for samples in timing.processes])


def _low(samples: SampleSet) -> float:
    if samples.clock != "wall":
        return median(samples.seconds)
    return percentile(samples.seconds, LOW_PERCENT)


def start_process(
    name: str,
    command: Sequence[str],
    cwd: Path,
    env: Mapping[str, str],
    options: RunOptions,
    folder: Path,
    tick: Callable[[float], None] | None = None,
    printed: Path | None = None,
    inside: Path | None = None,
) -> ProcessOutcome:
    """Run `command` with its marks timed. `folder` is made anew, and `inside` in it. Raises as `run_plain`."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    if inside is not None:
        inside.mkdir()
    directive = Directive("timing", str(folder / "run"), precision=options.precision, budget=options.sampling)
    try:
        outcome = process.run(
            command,
            env={**env, DIRECTIVE: directive_json(directive)},
            cwd=cwd,
            log=folder / "log",
            timeout=options.timeout,
            tick=tick,
            printed=printed,
        )
    except UsageError as fault:
        fault.message = f"{name}: {fault.message}"
        raise
    if not outcome.ok:
        said = "\n".join(outcome.output_tail.strip().splitlines()[-12:])
        text = f"; it said:\n{said}" if said else "; it printed nothing"
        raise WorkloadError(f"{name} {outcome.ending()}{text}", MORE_TIME if outcome.timed_out else None)
    return outcome


def variation(draw: random.Random, hash_seed: int) -> dict[str, str]:
    """Return what is another in each pair: the order of sets of strings, and where the stack begins.

    A program can be 1 to 3 % faster for either by chance; drawn anew, chance has no side.
    Mytkowicz et al., "Producing wrong data without doing anything obviously wrong", ASPLOS 2009.
    """
    return {
        "PYTHONHASHSEED": str(hash_seed % 2**32),
        "PROFKIT_ENVIRONMENT_OFFSET": "x" * draw.randrange(MOST_OFFSET),
    }


def _timings(folder: Path) -> tuple[Timing, ...]:
    """What the workload's own marks say; what cannot be read is passed over."""
    records = []
    for path in sorted(folder.glob("run.*.json")):
        try:
            records.append(read_record(path))
        except UnreadableReport:
            continue
    return tuple(timing for timing in region_timings(records) if timing.processes)
