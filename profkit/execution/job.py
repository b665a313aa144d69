"""A job, the batch it belongs to, and its outcome.

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
    """One piece of work. `key` names it within its batch; `data` is for the worker function."""

    key: str
    data: Json = None


@dataclass(frozen=True)
class Batch:
    """Jobs that one worker does one after the other. `shared` is what they have in common, prepared once for all."""

    jobs: tuple[Job, ...]
    shared: Json = None

    def as_request(self) -> dict[str, Json]:
        """As it is asked of a worker."""
        return {"shared": self.shared, "jobs": [[job.key, job.data] for job in self.jobs]}


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
    shared: Json = None  # of its batch


class JobQueue:
    """What a pool takes its batches from, in their order. The pool calls it from one thread at a time.

    Where it is made `open`, more can be put into it until it is closed, and a pool waits for them.
    """

    def __init__(self, batches: Iterable[Batch] = (), *, open: bool = False) -> None:
        self._batches, self._open, self._changed = deque(batches), open, threading.Event()

    def put(self, batch: Batch) -> None:
        """One more batch, behind the others."""
        self._batches.append(batch)
        self._changed.set()

    def close(self) -> None:
        """No more batches come."""
        self._open = False
        self._changed.set()

    def take(self) -> Batch | None:
        """The first one; None where there is none now."""
        self._changed.clear()
        return self._batches.popleft() if self._batches else None

    def put_back(self, batch: Batch) -> None:
        """It comes first."""
        self._batches.appendleft(batch)

    def wait(self, seconds: float) -> None:
        """Wait until a batch comes, at most so long."""
        self._changed.wait(seconds)

    def drain(self) -> Sequence[Batch]:
        """All batches that are left; the queue is empty then."""
        batches, self._batches = tuple(self._batches), deque()
        return batches

    def __len__(self) -> int:
        """How many batches are left; one more where others may come."""
        return len(self._batches) + self._open
