"""One process of a version: how long it took, by its own marks or as a whole, and what it used.

The first run of both is not counted: do they run at all, and does each run its own code?
"""

from __future__ import annotations

import os
import random
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from profkit.core import process
from profkit.core.errors import MORE_TIME, Progress, UnreadableReport, UsageError, WorkloadError
from profkit.core.files.regular import read_bounded
from profkit.core.process import ProcessOutcome
from profkit.core.statistics import median, percentile
from profkit.core.types import RUN, Directive, SampleSet, Scope, Timing
from profkit.profiling.run_steps import DIRECTIVE, directive_json
from profkit.profiling.time_limits import plain_time_limit
from profkit.regression.paired.checkout import Version
from profkit.regression.paired.same_code import Loaded, equal_files
from profkit.runtime.passes.command import START_FOLDER, is_machine_code, start_up_environment
from profkit.runtime.passes.read import read_record, region_timings

# Of the samples that one process took by the wall clock: what other programs do only makes them longer.
LOW_PERCENT = 25.0
# Of the wall time: where threads of a program ran and waited for less than that together, they did so one at a time.
ONE_AT_A_TIME = 1.02
# Of the processor time: where the first thread used so much, those of a library that wait for work do not count.
MOST_OF_IT = 0.95
MOST_OFFSET = 4096  # bytes by which the environment is longer, drawn anew for each process
_INSTALLS = "python -m venv .venv && .venv/bin/pip install -e ."
SETUP = f"--setup '{_INSTALLS}' -- .venv/bin/python ..."
SPARE = 1.5  # times the four pairs that decide nothing but a large change


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


def loaded_files(
    version: Version, options: RunOptions, folder: Path, tick: Callable[[float], None] | None = None
) -> Loaded:
    """Run it once for its caches (byte code, files on disk), and say what its Python processes loaded and read.

    Empty where it runs no Python that can be asked. Raises as `run_once`.
    """
    names = folder / "loaded"
    environment, _ = start_up_environment(version.command, "loaded-files", names)
    extra = dict(environment or {})
    own = version.environment().get("PYTHONPATH")
    if extra and own is not None:
        extra["PYTHONPATH"] = os.pathsep.join((str(START_FOLDER), own))
    _start(version, options, folder, tick, extra, record=False, also=names)
    return Loaded.of_lines([line for path in sorted(names.glob("*.txt"))[:64] for line in _read_lines(path)])


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
    env = {**version.environment(), **extra}
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
        )
    except UsageError as fault:
        fault.message = f"{version.name}: {fault.message}"
        raise
    if not outcome.ok:
        said = "\n".join(outcome.output_tail.strip().splitlines()[-12:])
        printed = f"; it said:\n{said}" if said else "; it printed nothing"
        fix = MORE_TIME if outcome.timed_out else None
        raise WorkloadError(f"{version.name} {outcome.ending()}{printed}", fix)
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
    try:
        return read_bounded(path).decode().splitlines()
    except (OSError, UnicodeDecodeError):
        return []


# ---------------------------------------------------------------- the first runs


def warm_up(
    first: Version,
    second: Version,
    options: RunOptions,
    folder: Path,
    progress: Progress,
    setup: Sequence[str] = (),
) -> int | None:
    """Run both once without counting it, and see that each runs its own code.

    How many files they load and read, where all of these are equal in both: then nothing is to be compared; else None.
    `setup` is what made the checkouts ready. Raises UsageError where a version runs code of the other, or of the
    working tree that it was checked out from; WorkloadError where one fails.
    """
    _refuse_one_program(first, second, setup)
    both = (first, second)
    old, new = _first_runs(both, options, folder / "first", progress)
    if first.root is None or second.root is None:
        return None
    for version, loaded in zip(both, (old, new), strict=True):
        _refuse_foreign_code(version, loaded.modules, both)
    return equal_files(both, (old, new))


def _first_runs(
    both: tuple[Version, Version], options: RunOptions, folder: Path, progress: Progress
) -> tuple[Loaded, Loaded]:
    """What each version loads and reads; of the baseline's time follows how long the candidate may take."""
    first, second = both
    began = time.monotonic()
    try:
        old = loaded_files(first, options, folder, progress.tick)
    except WorkloadError:
        loaded_files(second, options, folder, progress.tick)  # what fails in both is no fault of the baseline
        raise
    limit = plain_time_limit(time.monotonic() - began, options.timeout, None)
    return old, loaded_files(second, replace(options, timeout=limit), folder, progress.tick)


# ---------------------------------------------------------------- whose code runs


def _refuse_one_program(first: Version, second: Version, setup: Sequence[str]) -> None:
    """Raise UsageError where both would run one program that was built in the repository."""
    roots = _roots((first, second))
    programs = [os.path.realpath(version.cwd / version.command[0]) for version in (first, second)]
    if os.sep not in first.command[0] or programs[0] != programs[1] or first.root == second.root:
        return
    if any(_is_code_of(root, programs[0]) for root in roots) and is_machine_code((programs[0],)):
        built = f", and the setup command built none in the checkout of {first.name}" if setup else ""
        raise UsageError(
            f"both versions would run the same program, {programs[0]}: it is in no commit{built}",
            "--setup make",
        )


def _refuse_foreign_code(version: Version, files: frozenset[str], both: Sequence[Version]) -> None:
    """Raise UsageError where `version` loaded code of the repository that is not in its own folder.

    Files of the command line are let be: a script that is in no commit is the same for both on purpose.
    """
    assert version.root is not None
    named = _named(version)
    for root in _roots(both) - {version.root}:
        stray = sorted(
            path
            for path in files
            if _is_code_of(root, path)
            and not Path(path).is_relative_to(version.root)
            and os.path.realpath(path) not in named
        )
        if not stray:
            continue
        file = Path(stray[0])
        other = next((v.name for v in both if v.root == root), f"the working tree ({root})")
        raise UsageError(
            f"{version.name} runs the code of {other}: it loads {file.relative_to(root)} from there, "
            "so nothing is compared",
            SETUP,
        )


def _named(version: Version) -> frozenset[str]:
    """The files that the words of its command are, or would be: its script is no module."""
    return frozenset(os.path.realpath(version.cwd / word) for word in version.command if "\0" not in word)


def _roots(both: Sequence[Version]) -> set[Path]:
    """All folders with code of this repository: those of the versions, and that which they were checked out from."""
    return {path for version in both for path in (version.root, version.repository) if path is not None}


def _is_code_of(root: Path, path: str) -> bool:
    """Whether a file is of the code in `root`: an environment that lies there is no code of it."""
    file = Path(path)
    if not file.is_relative_to(root):
        return False
    inside = file.relative_to(root).parts
    if "site-packages" in inside or "dist-packages" in inside:
        return False
    folders = [root.joinpath(*inside[:depth]) for depth in range(1, len(inside))]
    return not any((folder / "pyvenv.cfg").is_file() for folder in folders)
