"""Compiling ahead: helpers fill compilers' caches on disk for the coming points while workers measure others.

To compile a shape takes Inductor about a second of one processor, to time it a tenth of that. A helper that cannot
start, dies or hangs costs what it would have saved, and nothing else: the worker compiles for itself then.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence

from profkit.core.types import GridPoint
from profkit.kernels.operations.compiled import NAME as COMPILED
from profkit.kernels.sweep.hand import Died, Hand, TookTooLong
from profkit.kernels.sweep.order import Work

MOST = 8  # helpers for each worker: they compile faster then than it measures
MOST_IN_ALL = 32
# Shapes for each helper, beside workers and before them; cores, from which on it is done before them. On two cores
# nothing is won by that: 48 shapes took 38 s, and 33 s without, 96 shapes 52 and 50.5 s.
WORTH, WORTH_BEFORE, CORES_BEFORE = 6, 64, 4
START_SECONDS = 120.0
COMPILE_SECONDS = 120.0


def how_many(shapes: int, workers: int, cores: int, room: int | None, *, beside: bool) -> int:
    """Helpers for so many shapes that will be compiled.

    `beside`: the workers measure meanwhile, and each keeps two cores to itself, one for its host code and one for the
    driver and the sweep; else all cores are theirs. `room`: as many as the memory has room for; None where nobody
    tells.
    """
    most = min(MOST * workers, MOST_IN_ALL) if beside else MOST_IN_ALL
    spare = cores - 2 * workers if beside else cores
    found = min(spare, most, shapes // (WORTH if beside else WORTH_BEFORE), most if room is None else room)
    return found if found >= 1 and (beside or (found >= 2 and cores >= CORES_BEFORE)) else 0


class Ahead:
    """Helpers, and which points they are at: those that `ready` says no to are compiled sooner by one of them.

    `tasks` are points with the implementations that are to be compiled there; only Inductor is waited for.
    `beside`: while workers measure; else before anything is measured. `threads` of torch are in what is compiled for
    a CPU; 0 is its own choice.
    """

    def __init__(
        self, hands: Sequence[Hand], tasks: Sequence[Work], *, beside: bool = True, threads: int = 0
    ) -> None:
        self._hands, self.beside, self._threads_of_torch = hands, beside, threads
        self._waiting = deque(tasks) if hands else deque[Work]()
        self._open = {point for point, names in self._waiting if COMPILED in names}
        self._changed = threading.Condition()
        self._working = len(hands)
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=self._serve, args=(hand,), name=f"ahead-{number}", daemon=True)
            for number, hand in enumerate(hands)
        ]

    def begin(self) -> None:
        """Start the helpers. Each has a thread for as long as it lives, whose end would end it."""
        for thread in self._threads:
            thread.start()

    def ready(self, point: GridPoint) -> bool:
        """Whether nothing is gained by waiting: the point is compiled, or will not be by a helper."""
        return point not in self._open

    @property
    def left(self) -> int:
        """Points that are still to be compiled by a helper."""
        return len(self._open)

    @property
    def helpers(self) -> int:
        """How many there are."""
        return len(self._hands)

    def give_up_last(self) -> bool:
        """Take the last point that no helper has begun away from them; whether there was one."""
        with self._changed:
            while self._waiting:
                self._settle(task := self._waiting.pop())
                if COMPILED in task[1]:
                    return True
            return False

    def wait(self, seconds: float) -> None:
        """Until a point is settled, or so long."""
        with self._changed:
            if self._open:
                self._changed.wait(seconds)

    def end(self) -> None:
        """No helpers, and nothing to wait for."""
        self._stop.set()
        with self._changed:
            self._waiting.clear()
            self._open.clear()
            self._changed.notify_all()
        for hand in self._hands:
            hand.close()

    def _serve(self, hand: Hand) -> None:
        task: Work | None = None
        about = {"threads": self._threads_of_torch, "compiles": bool(self._open)}
        try:
            hand.start(about, START_SECONDS)
            while (task := self._next()) is not None:
                for _ in hand.ask(*task, COMPILE_SECONDS):
                    pass
                with self._changed:
                    self._settle(task)
        except (Died, TookTooLong):
            pass
        finally:
            hand.close()
            with self._changed:
                if task is not None:
                    self._settle(task)
                self._working -= 1
                while not self._working and self._waiting:  # nobody is left who would compile them
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
