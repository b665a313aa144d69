"""A job, its outcome, and the queue that it waits in.

The contract: a job is JSON in. Whatever its worker does, the job gets exactly one outcome.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

from profkit.core.types import Json


class JobStatus(str, Enum):
    """How a job ended. Only `ok` has a value; every other status has a reason."""

    ok = "ok"  # the worker function returned a value
    error = "error"  # the worker function raised an exception; its worker goes on
    crash = "crash"  # the process ended: a signal, an exit, or an answer that is not part of the protocol
    timeout = "timeout"  # no answer in time; the process tree was killed
    out_of_memory = "out_of_memory"  # memory was refused to the job, or the kernel killed the process
    device_error = "device_error"  # the device does not answer any more; the worker was replaced
    lost = "lost"  # no worker could be started for it, or none is left
    cancelled = "cancelled"  # the pool was closed before it ended


@dataclass(frozen=True)
class Job:
    """One piece of work. `key` names it within its queue; `data` is for the worker function."""

    key: str
    data: Json = None


@dataclass(frozen=True)
class JobOutcome:
    """How one job ended. `seconds`: wall time since it began. `slot`: number of the worker in its pool.

    `lost` and `cancelled` jobs may have run in part; a resumed run does them again.
    """

    job: Job
    status: JobStatus
    value: Json = None
    reason: str = ""
    seconds: float = 0.0
    slot: int = 0


class JobQueue:
    """Groups of jobs, for any number of threads: who takes a group does its jobs one after the other.

    Where it is made `open`, more can be put into it until it is closed, and who takes waits for them.
    """

    def __init__(self, groups: Iterable[Sequence[Job]] = (), *, open: bool = False) -> None:
        self._groups, self._open, self._busy = deque(groups), open, 0
        self._stopped, self._changed = False, threading.Condition()

    def put(self, group: Sequence[Job], *, first: bool = False) -> None:
        """One more group, behind the others or before them."""
        with self._changed:
            (self._groups.appendleft if first else self._groups.append)(group)
            self._changed.notify_all()

    def close(self) -> None:
        """No more groups come."""
        with self._changed:
            self._open = False
            self._changed.notify_all()

    def stop(self) -> None:
        """Nothing is taken any more."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    def take(self) -> Sequence[Job] | None:
        """The first group; None where there is none, and none can come. What others have taken may come back."""
        with self._changed:
            self._changed.wait_for(lambda: self._stopped or self._groups or not (self._open or self._busy))
            if self._stopped or not self._groups:
                return None
            self._busy += 1
            return self._groups.popleft()

    def finish(self) -> None:
        """What was taken will not come back."""
        with self._changed:
            self._busy -= 1
            self._changed.notify_all()

    def drain(self) -> list[Job]:
        """All jobs that are left; the queue is empty then."""
        with self._changed:
            jobs = [job for group in self._groups for job in group]
            self._groups.clear()
            return jobs
