"""Which job is responsible when a worker ends, or does not answer in time. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from profkit.execution.job import Batch, Job


class BatchProgress:
    """What a worker has said of a batch.

    `fresh`: the worker was started for this batch. If such a worker ends before it has said anything, the batch itself
    is responsible. A worker that did other batches before may have been damaged by one of them.
    """

    def __init__(self, batch: Batch) -> None:
        self.left = {job.key: job for job in batch.jobs}
        self.fresh = False
        self.shared = batch.shared
        self._running: Job | None = None

    @property
    def rest(self) -> Batch:
        """The jobs without an outcome."""
        return Batch(tuple(self.left.values()), self.shared)

    def send(self, *, fresh: bool) -> None:
        """The rest is sent to a worker."""
        self.fresh, self._running = fresh, None

    def begin(self, message: Mapping[str, Any]) -> bool:
        """Take note that a job runs now; False where the message does not say so."""
        key = message.get("key")
        if message["event"] != "begin" or key not in self.left:
            return False
        self.fresh = False
        self._running = self.left[key]
        return True

    def finish(self, key: object) -> Job | None:
        """The job of that name, which has its outcome now; None where no such job was waiting for one."""
        job = self.left.pop(key, None) if isinstance(key, str) else None
        if job is not None:
            self.fresh, self._running = False, None
        return job

    def responsible(self) -> tuple[Job, ...]:
        """The jobs that ended their worker.

        The job that was running; or all that are left, where a fresh worker had said nothing yet: their shared
        preparation did it. Otherwise none: something before this batch did it, and a new worker gets the rest.
        """
        if self._running is not None:
            return (self._running,)
        return tuple(self.left.values()) if self.fresh else ()
