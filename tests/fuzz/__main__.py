"""Tries the readers with damaged and made-up files: `python -m tests.fuzz --seconds 600 [--target NAME] [--seed N]`.

`--inputs 100000` bounds how many are tried instead of the time.

Every input that fails lies in tests/fuzz/corpus/TARGET afterwards, where the tests read it again. Ends with 1 where
one failed.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import os
import random
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

from tests.fuzz import mutate
from tests.fuzz.targets import SHOW, TARGETS, Target

CORPUS = Path(__file__).parent / "corpus"
SECONDS_PER_MB = 10.0
MIN_SECONDS = 5.0  # for small inputs: the machine may be slow
WAITS = 10.0  # times what is allowed, for what waits: the machine may be busy
MEMORY_TIMES = 4  # times the input
MIN_MEMORY = 96 << 20  # bytes; modules that are loaded meanwhile, and what shows a small file
PACKAGE = f"{os.sep}profkit{os.sep}"


class TooSlow(BaseException):
    """An input took longer than it may; no reader catches it."""


def seconds_for(size: int) -> float:
    """How long an input of so many bytes may take."""
    return max(MIN_SECONDS, SECONDS_PER_MB * size / 1e6)


@contextlib.contextmanager
def bounded(data: bytes) -> Iterator[None]:
    """Within it more processor time, waiting or memory than the input may take raises TooSlow or MemoryError."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise TooSlow(f"more than {seconds_for(len(data)):.0f} s for {len(data)} bytes")

    timers = {signal.SIGPROF: signal.ITIMER_PROF, signal.SIGALRM: signal.ITIMER_REAL}
    before = {number: signal.signal(number, stop) for number in timers}
    limits = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_bytes().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MIN_MEMORY + MEMORY_TIMES * len(data), limits[1]))
    signal.setitimer(signal.ITIMER_PROF, seconds_for(len(data)))
    signal.setitimer(signal.ITIMER_REAL, WAITS * seconds_for(len(data)))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limits)
        for number, timer in timers.items():
            signal.setitimer(timer, 0)
            signal.signal(number, before[number])


def failure_of(
    target: Target, data: bytes, folder: Path, depth: int | None = None
) -> tuple[bool, str | None]:
    """Whether the input was read, and what went wrong: the kind of exception and the place in the package."""
    try:
        with bounded(data):
            return target.try_input(data, folder, depth), None
    except (Exception, TooSlow) as error:
        frames = traceback.extract_tb(error.__traceback__)
        places = [f"{f.filename.rpartition(PACKAGE)[2]}:{f.lineno}" for f in frames if PACKAGE in f.filename]
        ours = [place for place in places if not place.startswith("tests")]
        place = "somewhere" if isinstance(error, TooSlow) else (ours or ["?"])[-1]
        return False, f"{type(error).__name__} at {place}"


def try_inputs(
    target: Target, seconds: float, seed: int, most: int | None = None
) -> tuple[int, dict[str, bytes]]:
    """Try made-up inputs for so many seconds, or until there were `most`: how many, and by its place each failure."""
    inputs, failures, end = 0, dict[str, bytes](), time.monotonic() + seconds
    seeds, by = tuple(target.seeds()), random.Random(f"{target.name} {seed}")
    pool = list(seeds)
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        for data in seeds:  # loads what readers import, before memory is counted
            for depth in range(SHOW + 1):
                with contextlib.suppress(Exception), bounded(data):
                    target.try_input(data, work, depth)
        while not inputs or (time.monotonic() < end if most is None else inputs < most):
            data = mutate.several(target.mutate, by.choice(seeds if by.random() < 0.5 else pool), by, seeds)
            was_read, failure = failure_of(target, data, work)
            inputs += 1
            if failure is not None:
                failures.setdefault(failure, data)
            elif was_read and len(data) <= 4 * max(map(len, seeds)) + 1000:  # or they grow without end
                pool = [*pool[-mutate.POOL :], data]
    return inputs, failures


def main() -> int:
    """Spread the time over the targets, and print what came of each."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument(
        "--seconds", type=float, default=600.0, help="for all targets together (default: 600)"
    )
    parser.add_argument("--inputs", type=int, help="for all targets together, however long they take")
    parser.add_argument(
        "--target", action="append", choices=list(TARGETS), help="only this one; may be repeated"
    )
    parser.add_argument("--seed", type=int, help="what the changes are drawn with (default: the time)")
    parser.add_argument("--corpus", type=Path, default=CORPUS, help="where inputs that failed are kept")
    options = parser.parse_args()
    seed = options.seed if options.seed is not None else int(time.time())
    # each thread of NumPy's asks for memory that no input needs
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    names = options.target or list(TARGETS)
    print(f"seed {seed}", flush=True)
    failed, tried, start = 0, 0, time.monotonic()
    for number, name in enumerate(names):
        others = len(names) - number
        left = options.seconds - (time.monotonic() - start)
        most = None if options.inputs is None else max(1, (options.inputs - tried) // others)
        begun = time.monotonic()
        inputs, failures = try_inputs(TARGETS[name], left / others, seed, most)
        failed, tried = failed + len(failures), tried + inputs
        hung = sum(failure.startswith("TooSlow") for failure in failures)
        print(
            f"{name:15} {inputs:8} inputs, {len(failures)} failed, {hung} of them without an end, "
            f"{time.monotonic() - begun:.0f} s",
            flush=True,
        )
        for failure, data in failures.items():
            path = options.corpus / name / hashlib.sha256(data).hexdigest()[:16]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
            print(f"    {failure}: {path} ({len(data)} bytes)", flush=True)
    print(f"{'all':15} {tried:8} inputs, {failed} failed, {time.monotonic() - start:.0f} s", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
