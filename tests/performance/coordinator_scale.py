"""What one coordinator costs where 1,000 slots share a sweep of a million cases: its processor time, and its memory.

    python tests/performance/coordinator_scale.py                          # 1,000 slots, 10^6 cases, as fast as it can
    python tests/performance/coordinator_scale.py --seconds 10 --cases 10000  # a case takes 10 s

The sweep is the real one: its queue, its pool, its journal, and this side of a slot with the messages of one (a case
has 100 samples, as many as are kept). The other side of all slots is one process that measures nothing: it answers
when a case would be done, and says as often as a real one that it lives. No connection is made and nothing is staged.

Only this process's own time counts, from the moment when a fifth of the cases is done until four fifths are. Memory is
what is resident, and the most that was. Aims: under 5 % of one core, and memory that does not grow.
"""

# ruff: noqa: E402 (the project's own packages are found first, wherever this is run)

from __future__ import annotations

import argparse
import heapq
import itertools
import json
import os
import random
import resource
import select
import socket
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from profkit.core import codec
from profkit.core.progress import Progress, Silent
from profkit.core.types import CaseResult, GridPoint, MeasuredCeilings, SweepDocument
from profkit.execution.child import ChildProcess
from profkit.execution.job import Batch
from profkit.execution.places.connection import LOOK_SECONDS, Connection, PlaceWorker
from profkit.execution.places.files import Sending
from profkit.execution.places.kinds import ExecutionPlace
from profkit.execution.places.there import SLOT_BEAT_SECONDS
from profkit.kernels.places import PlaceSlots, SlotWork
from profkit.kernels.sweep import run
from profkit.kernels.sweep.request import SweepGrid, SweepRequest

IMPLEMENTATIONS = ("PyTorch", "torch.compile", "Triton", "CUDA")
OPERATIONS = ("LayerNorm", "GELU", "Swish", "MSE", "CrossEntropy")
MARKS = (0.1, 0.5, 1.0)  # shares of the cases at which the memory is told
STEADY = (0.2, 0.8)  # between these shares of the cases all slots work: the share of a core is taken there


def main() -> None:
    """Run a sweep with simulated slots, and print what it cost."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--slots", type=int, default=1000)
    parser.add_argument("--cases", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=float, default=0.0, help="that a case takes; 0: none")
    parser.add_argument(
        "--profile", action="store_true", help="where the time goes, by cProfile of all threads"
    )
    asked = parser.parse_args()
    lines = [socket.socketpair() for _ in range(asked.slots)]
    if not (simulator := os.fork()):
        for here, _ in lines:
            here.close()
        OtherSide([there for _, there in lines], asked.seconds).serve()
        os._exit(0)
    for _, there in lines:
        there.close()
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as folder:
        _run(Path(folder), [here for here, _ in lines], asked)
    os.waitpid(simulator, 0)


def _run(folder: Path, lines: list[socket.socket], asked: argparse.Namespace) -> None:
    grid = _grid(asked.cases)
    slots = SimulatedSlots(lines, folder / "log")
    meter = Meter(slots, grid.cases)
    ends: list[SweepDocument] = []

    def note_end(_: Path, document: SweepDocument, *__: object) -> tuple[str, ...]:
        meter.stop()  # what is written for people is another question
        ends.append(document)
        return ()

    run.write_results = note_end
    begin = time.monotonic()
    profiler = _profile_threads() if asked.profile else None
    run.run_sweep(SweepRequest(grid, folder / "sweep", "cuda"), meter, slots)
    if profiler is not None:
        profiler()
    assert len(ends[0].results) == grid.cases
    meter.tell(asked, os.path.getsize(folder / "sweep" / "cases.jsonl"), time.monotonic() - begin)


def _grid(cases: int) -> SweepGrid:
    """About so many, by the number of batch sizes; the other axes are fixed."""
    each = len(IMPLEMENTATIONS) * len(OPERATIONS) * 50
    sizes = tuple(range(1, max(1, round(cases / each)) + 1))
    return SweepGrid(OPERATIONS, IMPLEMENTATIONS, sizes, tuple(range(1, 11)), (8, 16, 32, 64, 128))


def _profile_threads() -> Any:
    import cProfile
    import pstats
    import threading

    profiles: list[cProfile.Profile] = []
    plain = threading.Thread.run

    def profiled(thread: threading.Thread) -> None:
        profile = cProfile.Profile(time.thread_time)
        profiles.append(profile)
        profile.runcall(plain, thread)

    threading.Thread.run = profiled  # type: ignore[method-assign]

    def show() -> None:
        whole = pstats.Stats(profiles[0])
        for profile in profiles[1:]:
            whole.add(profile)
        whole.sort_stats("tottime").print_stats(35)

    return show


class Meter(Silent):
    """A progress that measures the process whenever it is told that time goes by."""

    def __init__(self, slots: SimulatedSlots, cases: int) -> None:
        self._slots, self._cases = slots, cases
        self._begin: tuple[float, float] | None = None
        self._end = (0.0, 0.0)
        self._memory: dict[float, float] = {}
        self._steady: dict[float, tuple[float, float, int]] = {}
        self._start_memory = 0.0

    def tick(self, gone: float) -> None:
        """Called a few times a second."""
        del gone
        done = self._slots.done
        if self._begin is None and done:
            self._begin, self._start_memory = (time.monotonic(), time.process_time()), resident_megabytes()
        for mark in MARKS:
            if done >= mark * self._cases:
                self._memory.setdefault(mark, resident_megabytes())
        for mark in STEADY:
            if done >= mark * self._cases and mark not in self._steady:
                self._steady[mark] = (time.monotonic(), time.process_time(), done)
        self._last = (time.monotonic(), time.process_time())

    def stop(self) -> None:
        """The document is there."""
        self._end = (time.monotonic(), time.process_time())

    def tell(self, asked: argparse.Namespace, bytes_of_journal: int, whole: float) -> None:
        """Print it."""
        assert self._begin is not None
        begin, end = (self._steady[mark] for mark in STEADY)
        wall, own, cases = (last - first for first, last in zip(begin, end, strict=True))
        self._memory.setdefault(1.0, float("nan"))
        print(f"{asked.slots:,} slots, {self._cases:,} cases, each {asked.seconds:g} s; {whole:.0f} s in all")
        print(f"  {cases / wall:,.0f} cases a second; journal {bytes_of_journal / 1e6:,.0f} MB")
        print(f"  {1e6 * own / cases:.0f} us of a processor for each case, {own / wall:.1%} of one core")
        marks = ", ".join(f"{mark:.0%} {self._memory[mark]:.0f} MB" for mark in MARKS)
        print(f"  resident: first case {self._start_memory:.0f} MB, {marks}")
        wall, own = (end - last for end, last in zip(self._end, self._last, strict=True))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"  document made in {own:.0f} s of a processor; the most that was resident then {peak:.0f} MB")


def resident_megabytes() -> float:
    """Of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / (1 << 20)


class SimulatedSlots(PlaceSlots):
    """Slots that are there at once."""

    def __init__(self, lines: list[socket.socket], log: Path) -> None:
        super().__init__((), Sending())
        self._counter, self.done = itertools.count(1), 0
        self._lines, self._log = lines, log

    def connect(self, work: SlotWork, progress: Progress) -> None:
        """Take the lines."""
        del work, progress
        self.workers = [SimulatedWorker(self._connect(n, line), self) for n, line in enumerate(self._lines)]

    def close(self) -> None:
        """No slots any more."""
        for worker in self.workers:
            worker.close()

    def count(self) -> None:
        """A case is done."""
        self.done = next(self._counter)

    def _connect(self, number: int, line: socket.socket) -> Connection:
        connection = Connection(ExecutionPlace("prefix", f"prefix:{number}"), self._log)
        connection._child = SimulatedProcess(line, self._log)
        connection._child.start()
        return connection


class SimulatedWorker(PlaceWorker):
    """As a real one, and counts its results."""

    def __init__(self, connection: Connection, slots: SimulatedSlots) -> None:
        super().__init__(connection)
        self._slots = slots

    def run(self, batch: Batch, timeout: float) -> Iterator[dict[str, Any]]:
        """As a real one."""
        for message in super().run(batch, timeout):
            if message["event"] == "result":
                self._slots.count()
            yield message


class SimulatedProcess(ChildProcess):
    """The pipes of a process that is not there."""

    def __init__(self, line: socket.socket, log: Path) -> None:
        super().__init__((), {}, log, look_seconds=LOOK_SECONDS)
        self._line = line

    def start(self) -> None:
        """It runs already."""
        self._child, self._tree = _Pipes(self._line), _NoTree()  # type: ignore[assignment]


class _Pipes:
    pid = 1  # nobody's child

    def __init__(self, line: socket.socket) -> None:
        self.stdin, self.stdout = line.makefile("wb"), line

    def wait(self, timeout: float | None = None) -> int:
        del timeout
        return 0


class _NoTree:
    def kill(self) -> None:
        """Nothing runs."""

    def forget(self) -> None:
        """Nothing ran."""


@dataclass
class OtherSide:
    """All slots' other sides in one process. `seconds`: what a case takes, by half more or less."""

    lines: list[socket.socket]
    seconds: float
    _due: list[tuple[float, int, int, str]] = field(default_factory=list)  # time, order, slot, what is said
    _order: Iterator[int] = field(default_factory=itertools.count)

    def serve(self) -> None:
        """Until all lines are closed."""
        poll, unread = select.epoll(), [b""] * len(self.lines)
        slots = {line.fileno(): slot for slot, line in enumerate(self.lines)}
        for file in slots:
            poll.register(file, select.EPOLLIN)
        for slot in range(len(self.lines)):
            self._say(time.monotonic() + random.random() * SLOT_BEAT_SECONDS, slot, "")
        while slots:
            wait = max(0.0, self._due[0][0] - time.monotonic()) if self._due else 1.0
            for file, _ in poll.poll(min(wait, 1.0)):
                slot = slots[file]
                try:
                    more = self.lines[slot].recv(1 << 16)
                except ConnectionResetError:
                    more = b""
                if not more:
                    poll.unregister(file)
                    del slots[file]
                    self.lines[slot].close()
                    continue
                *asked, unread[slot] = (unread[slot] + more).split(b"\n")
                for line in asked:
                    self._answer(slot, json.loads(line))
            self._say_what_is_due()

    def _say(self, at: float, slot: int, text: str) -> None:
        heapq.heappush(self._due, (at, next(self._order), slot, text))

    def _say_what_is_due(self) -> None:
        now = time.monotonic()
        while self._due and self._due[0][0] <= now:
            _, _, slot, text = heapq.heappop(self._due)
            if not text:  # it lives
                self._say(now + SLOT_BEAT_SECONDS, slot, "")
                text = '{"event": "beat"}\n'
            try:
                self.lines[slot].sendall(text.encode())
            except OSError:  # closed
                continue

    def _answer(self, slot: int, request: dict[str, Any]) -> None:
        at = time.monotonic()
        if request["ask"] == "open":
            about = {"device": "a device", "versions": {"torch": "2"}, "roofs": ROOFS, "changed": []}
            self._say(at, slot, json.dumps({"event": "opened", "about": about}) + "\n")
            return
        point = json.dumps(request["shared"])
        for key, _ in request["jobs"]:
            self._say(at, slot, said({"event": "begin", "key": key}))
            at += self.seconds * random.uniform(0.5, 1.5)
            self._say(at, slot, RESULT.replace('"POINT"', point).replace("NAME", key))
        self._say(at, slot, '{"event": "done"}\n')


def said(message: dict[str, Any]) -> str:
    """What a slot hands on of its worker."""
    return json.dumps({"event": "said", "message": message}) + "\n"


def _example() -> str:
    samples = tuple(float(f"{1e-4 * (1 + random.random() / 20):.6g}") for _ in range(100))
    point = GridPoint("GELU", 16, 16, 16, "float32", "forward")
    more = {"samples": 100, "precise": True, "cache": "cold", "clock": "cuda-events", "first": 0.1}
    sizes = {"memory": 1 << 30, "flops": 1e9, "bytes": 1e9, "error": 0.1, "clocks": (1.98e9,), "spent": 0.1}
    result = CaseResult(point, "NAME", "measured", None, None, 1e-4, 0.005, seconds=samples, **more, **sizes)  # type: ignore[arg-type]
    plain = {**codec.to_plain_data(result), "point": "POINT"}  # type: ignore[dict-item]
    return said({"event": "result", "key": "NAME", "value": plain})


RESULT = _example()
ROOFS = codec.to_plain_data(MeasuredCeilings(4e12, 6e13, "not measured"))


if __name__ == "__main__":
    main()
