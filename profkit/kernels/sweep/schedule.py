"""The order in which the points of a grid are measured, and what is compiled before a worker needs it.

To compile a shape takes Inductor about a second of one processor, to time it a tenth of that. So compile workers fill
the compilers' caches on disk for the coming points while workers measure others. A compile worker that cannot start,
dies or hangs costs what it would have saved, and nothing else: the worker compiles for itself then.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import TypeAlias

from profkit.core import codec
from profkit.core.types import GridPoint
from profkit.execution.child import WorkerEnded
from profkit.execution.client import WorkerClient
from profkit.execution.job import Batch, Job
from profkit.kernels.operations.pytorch import COMPILED
from profkit.kernels.sweep.plan import work_of

Work: TypeAlias = tuple[GridPoint, tuple[str, ...]]  # a point, and the implementations that are left of it
TAIL = 8  # points for each of several workers that come last, the largest of them first
MOST = 8  # compile workers for each worker: they compile faster then than it measures
MOST_IN_ALL = 32
# Shapes for each compile worker, beside workers and before them; cores, from which on it is done before them. On two
# cores nothing is won by that: 48 shapes took 38 s, and 33 s without, 96 shapes 52 and 50.5 s.
WORTH, WORTH_BEFORE, CORES_BEFORE = 6, 64, 4
START_SECONDS = 120.0
COMPILE_SECONDS = 120.0


def batch_of(point: GridPoint, names: Sequence[str]) -> Batch:
    """Implementations at one point: they share its inputs and its float64 reference."""
    return Batch(tuple(Job(name) for name in names), codec.to_plain_data(point))


def compile_worker_count(shapes: int, workers: int, cores: int, most: int | None, *, beside: bool) -> int:
    """How many compile workers pay for so many shapes that will be compiled.

    `beside`: the workers measure meanwhile, and each keeps two cores to itself, one for its host code and one for the
    driver and the sweep; else all cores are theirs. `most`: as many as fit into the memory; None where it is not known.
    """
    limit = min(MOST * workers, MOST_IN_ALL) if beside else MOST_IN_ALL
    spare = cores - 2 * workers if beside else cores
    count = min(spare, limit, shapes // (WORTH if beside else WORTH_BEFORE), limit if most is None else most)
    return count if count >= 1 and (beside or (count >= 2 and cores >= CORES_BEFORE)) else 0


class Precompile:
    """Compile workers, and the points that they still have to compile.

    `tasks` are points with the implementations that are to be compiled there; only Inductor is waited for. `beside`:
    while workers measure; else before anything is measured. `threads` of torch are in what is compiled for a CPU; 0 is
    its own choice.
    """

    def __init__(
        self, workers: Sequence[WorkerClient], tasks: Sequence[Work], *, beside: bool = True, threads: int = 0
    ) -> None:
        self._workers, self.beside, self._threads_of_torch = workers, beside, threads
        self._waiting = deque(tasks) if workers else deque[Work]()
        self._open = {point for point, names in self._waiting if COMPILED in names}
        self._changed = threading.Condition()
        self._serving = len(workers)
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=self._serve, args=(worker,), name=f"compile-{number}", daemon=True)
            for number, worker in enumerate(workers)
        ]

    def begin(self) -> None:
        """Start the compile workers."""
        for thread in self._threads:
            thread.start()

    def is_ready(self, point: GridPoint) -> bool:
        """Whether nothing is gained by waiting: the point is compiled, or no compile worker will do it."""
        return point not in self._open

    @property
    def left(self) -> int:
        """Points that are still to be compiled."""
        return len(self._open)

    @property
    def workers(self) -> int:
        """How many compile workers there are."""
        return len(self._workers)

    def give_up_last(self) -> bool:
        """Take the last point that no compile worker has begun away from them; whether there was one."""
        with self._changed:
            while self._waiting:
                self._settle(task := self._waiting.pop())
                if COMPILED in task[1]:
                    return True
            return False

    def wait(self, seconds: float) -> None:
        """Wait until a point is settled, at most so long."""
        with self._changed:
            if self._open:
                self._changed.wait(seconds)

    def close(self) -> None:
        """No compile workers, and nothing to wait for."""
        self._stop.set()
        with self._changed:
            self._waiting.clear()
            self._open.clear()
            self._changed.notify_all()
        for worker in self._workers:
            worker.close()

    def _serve(self, worker: WorkerClient) -> None:
        task: Work | None = None
        try:
            worker.open({"threads": self._threads_of_torch, "compiles": bool(self._open)}, START_SECONDS)
            while (task := self._next()) is not None:
                for _ in worker.run(batch_of(*task), COMPILE_SECONDS):
                    pass
                with self._changed:
                    self._settle(task)
        except WorkerEnded:
            pass
        finally:
            worker.close()
            with self._changed:
                if task is not None:
                    self._settle(task)
                self._serving -= 1
                while not self._serving and self._waiting:  # nobody is left who would compile them
                    self._settle(self._waiting.popleft())

    def _next(self) -> Work | None:
        with self._changed:
            return self._waiting.popleft() if self._waiting and not self._stop.is_set() else None

    def _settle(self, task: Work) -> None:
        """With the lock held."""
        point, names = task
        if COMPILED in names:
            self._open.discard(point)
        self._changed.notify_all()


class PointQueue:
    """What is left to do: a `JobQueue` with a batch for each point.

    All implementations of a point are measured one after the other, so that a drift of the device's clock or
    temperature is in none of them alone.

    The implementation `late` may have to wait until it is compiled; the others of the point go ahead then, and it
    follows as soon as it can be, before any other point: seconds later, and in the first seconds of a sweep only where
    compiling keeps up. To wait would leave the device idle, to compile in the worker takes ten times as long.
    """

    def __init__(
        self, work: Sequence[Work], late: str = "", workers: int = 1, precompile: Precompile | None = None
    ) -> None:
        self._work = deque(small_last(work, workers))
        self._late, self._precompile = late, precompile or Precompile((), ())

    def __len__(self) -> int:
        return len(self._work)

    def take(self, *, loaded: bool) -> Batch | None:
        """The next point; of one that is not compiled yet what can be done without."""
        work = self.next_work(lambda point: loaded and self._precompile.is_ready(point))
        return None if work is None else batch_of(*work)

    def next_work(self, is_ready: Callable[[GridPoint], bool]) -> Work | None:
        """The next thing to do: the first point of which all can be done, else the first of which something can.

        None where all that is left waits for its compiler, or nothing is left.
        """
        part: int | None = None
        for place, (point, names) in enumerate(self._work):
            if self._late not in names or is_ready(point):
                del self._work[place]
                return point, names
            if part is None and len(names) > 1:
                part = place
        if part is None:
            return None
        point, names = self._work[part]
        self._work[part] = (point, (self._late,))
        return point, tuple(name for name in names if name != self._late)

    def put_back(self, batch: Batch) -> None:
        """What was taken and not done comes first."""
        names = tuple(job.key for job in batch.jobs)
        self._work.appendleft((codec.from_plain_data(GridPoint, batch.shared), names))

    def wait(self, seconds: float) -> None:
        """All that is left waits for a compiler: take the last of it from the compile workers, or wait for one."""
        if not self._precompile.give_up_last():
            self._precompile.wait(seconds)

    def drain(self) -> Sequence[Batch]:
        """All that is left."""
        work, self._work = self._work, deque()
        return [batch_of(*each) for each in work]


def small_last(work: Sequence[Work], workers: int) -> tuple[Work, ...]:
    """Where workers share the points, the last ones by falling size: none begins a large one when others are done."""
    count = TAIL * workers if workers > 1 else 0
    split = max(0, len(work) - count)
    return (*work[:split], *sorted(work[split:], key=lambda each: -work_of(each[0]) * len(each[1])))
