"""A process that tries inputs on one target, and the one that watches it: time and memory of each input are bounded."""

from __future__ import annotations

import contextlib
import gc
import json
import os
import random
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from tests.fuzz import guided, mutate
from tests.fuzz.targets import SHOW, Target

SECONDS_PER_MB = 10.0
LEAST_SECONDS = 5.0  # for small inputs: the machine may be slow
MEMORY_TIMES = 4  # times the input
LEAST_MEMORY = 96 << 20  # bytes; modules that are loaded meanwhile, and what shows a small file
CURRENT = "current"  # the input that is being tried
KILL_AFTER = 3.0  # times what is allowed, for what does not return to Python
PACKAGE = f"{os.sep}profkit{os.sep}"


class TooSlow(BaseException):
    """An input took longer than it may; no reader catches it."""


@dataclass
class Tried:
    """What came of one target: how many inputs, how many of them were read, and by its place each failure."""

    inputs: int = 0
    read: int = 0
    seconds: float = 0.0
    failures: dict[str, bytes] = field(default_factory=dict)


def seconds_for(data: bytes) -> float:
    """How long an input may take."""
    return max(LEAST_SECONDS, SECONDS_PER_MB * len(data) / 1e6)


@contextlib.contextmanager
def bounded(data: bytes) -> Iterator[None]:
    """Within it more processor time or memory than the input may take raises TooSlow or MemoryError.

    What waits and does not compute is ended from outside, by `run_child`.
    """

    def stop(number: int, frame: FrameType | None) -> None:
        raise TooSlow(f"more than {seconds_for(data):.0f} s for {len(data)} bytes")

    before = signal.signal(signal.SIGPROF, stop)
    limits = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_bytes().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + LEAST_MEMORY + MEMORY_TIMES * len(data), limits[1]))
    signal.setitimer(signal.ITIMER_PROF, seconds_for(data))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        resource.setrlimit(resource.RLIMIT_AS, limits)
        signal.signal(signal.SIGPROF, before)


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
        if os.environ.get("FUZZ_TRACEBACK"):
            traceback.print_exception(error)
        return False, f"{type(error).__name__} at {place}"


class Trial:
    """Tries one input after another on a target until the time is over; what came of it is added to `report`."""

    def __init__(self, target: Target, folder: Path, report: Path, end: float, most: int | None) -> None:
        self.target, self.folder, self.end, self.most = target, folder, end, most
        self.inputs = self.read = 0
        self._lines = report.open("a")
        self._said = time.monotonic()
        self._known: set[str] = set()

    @property
    def is_over(self) -> bool:
        """Whether the time, a value of `time.monotonic()`, or the number of inputs is reached."""
        return time.monotonic() >= self.end or (self.most is not None and self.inputs >= self.most)

    def try_one(self, data: bytes) -> bool:
        """Whether the input was read; one that fails in a new place is kept in the folder."""
        (self.folder / CURRENT).write_bytes(data)
        was_read, failure = failure_of(self.target, data, self.folder)
        self.inputs, self.read = self.inputs + 1, self.read + was_read
        if failure is not None and failure not in self._known:
            self._known.add(failure)
            (self.folder / f"failure-{len(self._known)}").write_bytes(data)
            self._lines.write(json.dumps({"failure": failure, "file": f"failure-{len(self._known)}"}) + "\n")
        if self.inputs % 200 == 0:
            gc.collect()
        now = time.monotonic()
        if now - self._said > 0.5 or failure is not None:
            self._said = now
            self.say()
        return was_read

    def say(self) -> None:
        """Write down how far it came."""
        self._lines.write(json.dumps({"inputs": self.inputs, "read": self.read}) + "\n")
        self._lines.flush()


def try_inputs(trial: Trial, seed: int) -> None:
    """Change seeds, and inputs that were read, without looking at what they reach."""
    by = random.Random(f"{trial.target.name} {seed}")
    start = tuple(trial.target.seeds())
    pool = mutate.Pool(start)
    while not trial.is_over:
        base = by.choice(start if by.random() < 0.5 else pool.inputs)
        data = mutate.changed(trial.target.mutate, base, by, start)
        if data is not None and trial.try_one(data):
            pool.keep(data, by)


def run_child(target: Target, seconds: float, seed: int, pool: Path | None = None) -> Tried:
    """Try inputs in a process of its own, again where one of them ends or holds it; returns what came of it.

    With `pool`, a folder, inputs that reach new code are kept there and changed further (`tests.fuzz.guided`).
    """
    done = Tried()
    begin = time.monotonic()
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as name:
        folder = Path(name)
        for attempt in range(1000):
            left = seconds - (time.monotonic() - begin)
            if left <= 0.2:
                break
            report = folder / f"report-{attempt}"
            report.touch()
            child = os.fork()
            if child == 0:
                _be_child(target, left, seed + 7919 * attempt, folder, report, pool)
            status = _wait(child, folder / CURRENT, begin + seconds)
            _take(report, folder, done)
            if (
                status != 0
                and (folder / CURRENT).exists()
                and not _was_starved(target, status, folder, report)
            ):
                how = f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else f"exit {status >> 8}"
                done.failures.setdefault(f"the process ended: {how}", (folder / CURRENT).read_bytes())
                done.inputs += 1
    done.seconds = time.monotonic() - begin
    return done


def _be_child(
    target: Target,
    seconds: float,
    seed: int,
    folder: Path,
    report: Path,
    pool: Path | None,
    only: bytes | None = None,
) -> None:
    code = 1
    try:
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        if not os.environ.get("FUZZ_TRACEBACK"):
            os.dup2(quiet, 2)
        work = folder / "work"
        work.mkdir(exist_ok=True)
        os.environ["TMPDIR"] = str(work)
        tempfile.tempdir = None
        for data in target.seeds():  # loads what readers import, before memory is counted
            for depth in range(SHOW + 1):
                with contextlib.suppress(Exception):
                    target.try_input(data, folder, depth)
        trial = Trial(target, folder, report, time.monotonic() + seconds, None)
        if only is not None:
            trial.try_one(only)
        elif pool is None:
            try_inputs(trial, seed)
        else:
            guided.try_inputs(trial, seed, pool)
        trial.say()
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def _wait(child: int, current: Path, end: float, times: float = KILL_AFTER) -> int:
    """The status of the process; it is killed where one input holds it."""
    while True:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return status
        time.sleep(0.05)
        try:
            held = time.time() - current.stat().st_mtime
            allowed = times * max(LEAST_SECONDS, SECONDS_PER_MB * current.stat().st_size / 1e6)
        except FileNotFoundError:
            continue
        if held > allowed or time.monotonic() > end + allowed:
            os.kill(child, signal.SIGKILL)


def _was_starved(target: Target, status: int, folder: Path, report: Path) -> bool:
    """Whether the input for which the process was killed takes little time once more: the machine was busy then."""
    if not os.WIFSIGNALED(status) or os.WTERMSIG(status) != signal.SIGKILL:
        return False
    child = os.fork()
    if child == 0:
        data = (folder / CURRENT).read_bytes()
        (folder / CURRENT).touch()
        _be_child(target, 0, 0, folder, report, None, data)
    return _wait(child, folder / CURRENT, time.monotonic() + 60, KILL_AFTER * 5) == 0


def _take(report: Path, folder: Path, done: Tried) -> None:
    last = {"inputs": 0, "read": 0}
    for text in report.read_text().splitlines():
        with contextlib.suppress(ValueError):
            line = json.loads(text)
            if "failure" in line:
                done.failures.setdefault(line["failure"], (folder / line["file"]).read_bytes())
            else:
                last = line
    done.inputs += last["inputs"]
    done.read += last["read"]


def shrink(target: Target, data: bytes, failure: str, seconds: float = 15.0) -> bytes:
    """The smallest input at hand that fails in the same place, by leaving out lines, then bytes; in this process."""
    end = time.monotonic() + seconds
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)

        def fails(smaller: bytes) -> bool:
            return failure in (
                failure_of(target, smaller, folder)[1],
                failure_of(target, smaller, folder, SHOW)[1],
            )

        if "process ended" in failure or "TooSlow" in failure or "MemoryError" in failure or not fails(data):
            return data
        for unit in (data.splitlines(keepends=True), None):
            parts = unit if unit is not None else [data[i : i + 1] for i in range(len(data))]
            size = max(1, len(parts) // 2)
            while time.monotonic() < end:
                at = 0
                while at < len(parts) and time.monotonic() < end:
                    fewer = parts[:at] + parts[at + size :]
                    if fails(b"".join(fewer)):
                        parts = fewer
                    else:
                        at += size
                if size == 1:
                    break
                size = max(1, size // 2)
            data = b"".join(parts)
    return data
