"""One process of a version: how long it took, by its own marks or as a whole, and what it used."""

from __future__ import annotations

import os
import random
import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from profkit.core import process
from profkit.core.errors import MORE_TIME, UnreadableReport, UsageError, WorkloadError
from profkit.core.process import ProcessOutcome
from profkit.core.statistics import median, percentile
from profkit.core.types import RUN, Directive, SampleSet, Scope, Timing
from profkit.profiling.run_steps import DIRECTIVE, directive_json
from profkit.regression.paired.version import Version
from profkit.runtime.passes.command import START_FOLDER, loaded_files_environment
from profkit.runtime.passes.read import read_record, region_timings

# Of the samples that one process took by the wall clock: what other programs do only makes them longer.
LOW_PERCENT = 25.0
# Of the wall time: where threads of a program ran and waited for less than that together, they did so one at a time.
ONE_AT_A_TIME = 1.02
NOT_INSTALLED = "module-missing"  # the code of the fault where Python does not find a module
_NO_MODULE = re.compile(r"^(ModuleNotFoundError|ImportError)\b", re.MULTILINE)
_NO_BYTECODE = "PYTHONDONTWRITEBYTECODE"
MOST_OFFSET = 4096  # bytes by which the environment is longer, drawn anew for each process


@dataclass(frozen=True)
class RunOptions:
    """How each process is run. `sampling`: seconds that a marked region samples; `timeout` of one process."""

    sampling: float = 1.0
    precision: float = 0.01
    timeout: float | None = None
    stdin: Path | None = None


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


def run_once(
    version: Version,
    options: RunOptions,
    folder: Path,
    draw: random.Random,
    tick: Callable[[float], None] | None = None,
    hash_seed: int = 0,
) -> OneRun:
    """Run one process of `version`; its log and records lie in `folder`, which is made anew.

    Raises WorkloadError where it fails, UsageError where it cannot be started.
    """
    outcome = _start(version, options, folder, tick, _variation(draw, hash_seed), record=True)
    timings = _timings(folder)
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


def loaded_files(
    version: Version, options: RunOptions, folder: Path, tick: Callable[[float], None] | None = None
) -> frozenset[str]:
    """Run it once for its caches (byte code, files on disk), and say which files its Python processes loaded.

    Empty where it runs no Python that can be asked. Raises as `run_once`.
    """
    names = folder / "loaded"
    environment, _ = loaded_files_environment(version.command, names)
    extra = dict(environment or {})
    own = version.environment().get("PYTHONPATH")
    if extra and own is not None:
        extra["PYTHONPATH"] = os.pathsep.join((str(START_FOLDER), own))
    _start(version, options, folder, tick, extra, record=False, also=names)
    found: set[str] = set()
    for path in sorted(names.glob("*.txt"))[:64]:
        found.update(_read_lines(path))
    return frozenset(found)


def bytecode_environment(version: Version, folder: Path) -> dict[str, str]:
    """Where Python may write no byte code beside its files, it writes and finds that of both versions below `folder`.

    A working tree often has some from before, and a fresh checkout has none: that one would be compiled in each run,
    and take longer for it.
    """
    if not version.environment().get(_NO_BYTECODE, os.environ.get(_NO_BYTECODE)):
        return {}
    return {_NO_BYTECODE: "", "PYTHONPYCACHEPREFIX": str(folder / "bytecode")}


def value_of(timing: Timing) -> float:
    """The seconds of one process: the median by a device's clock, by the wall clock the lower quartile."""
    return median([_low(samples) for samples in timing.processes])


def _low(samples: SampleSet) -> float:
    if samples.clock != "wall":
        return median(samples.seconds)
    return percentile(samples.seconds, LOW_PERCENT)


def _variation(draw: random.Random, hash_seed: int) -> dict[str, str]:
    """What is another in each pair: the order of sets of strings, and where the stack begins.

    A program can be 1 to 3 % faster for either by chance; drawn anew, chance has no side.
    Mytkowicz et al., "Producing wrong data without doing anything obviously wrong", ASPLOS 2009.
    """
    return {
        "PYTHONHASHSEED": str(hash_seed % 2**32),
        "PROFKIT_ENVIRONMENT_OFFSET": "x" * draw.randrange(MOST_OFFSET),
    }


def _start(
    version: Version,
    options: RunOptions,
    folder: Path,
    tick: Callable[[float], None] | None,
    extra: Mapping[str, str],
    *,
    record: bool,
    also: Path | None = None,
) -> ProcessOutcome:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    if also is not None:
        also.mkdir()
    directive = Directive("timing", str(folder / "run"), precision=options.precision, budget=options.sampling)
    env = {**version.environment(), **bytecode_environment(version, folder.parent), **extra}
    env[DIRECTIVE] = directive_json(directive)
    if not record:
        env[DIRECTIVE] = directive_json(replace(directive, budget=min(0.2, options.sampling)))
    try:
        outcome = process.run(
            version.command,
            env=env,
            cwd=version.cwd,
            log=folder / "log",
            timeout=options.timeout,
            tick=tick,
            stdin=options.stdin,
        )
    except UsageError as fault:
        fault.message = f"{version.name}: {fault.message}"
        raise
    if not outcome.ok:
        said = "\n".join(outcome.output_tail.strip().splitlines()[-12:])
        printed = f"; it said:\n{said}" if said else "; it printed nothing"
        fix = MORE_TIME if outcome.timed_out else None
        code = NOT_INSTALLED if _NO_MODULE.search(outcome.output_tail) else None
        raise WorkloadError(f"{version.name} {outcome.ending()}{printed}", fix, code)
    return outcome


def _timings(folder: Path) -> tuple[Timing, ...]:
    """What the workload's own marks say; what cannot be read is passed over."""
    records = []
    for path in sorted(folder.glob("run.*.json")):
        try:
            records.append(read_record(path))
        except UnreadableReport:
            continue
    return tuple(timing for timing in region_timings(records) if timing.processes)


def _read_lines(path: Path) -> list[str]:
    from profkit.core.files.regular import read_bounded_text

    try:
        return read_bounded_text(path).splitlines()
    except (OSError, UnicodeDecodeError):
        return []
