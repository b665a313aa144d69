"""Run a pool of workers that share a queue of jobs, one worker for each device.

A job is JSON in. Whatever its worker does, it gets exactly one outcome.
"""

from __future__ import annotations

import contextlib
import re
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeAlias

from profkit.core.errors import MachineError
from profkit.core.formatting import who_goes_on
from profkit.core.types import Json
from profkit.execution.child import JobStatus, WorkerEnded

if TYPE_CHECKING:
    from profkit.execution.child import WorkerClient
    from profkit.execution.places.connection import PlaceWorker

    Worker: TypeAlias = WorkerClient | PlaceWorker

START_SECONDS = 300.0  # torch from a cold disk, and what `open` measures
MAX_STARTS = 3  # of a worker that ends before it has opened its handler
TICK_SECONDS = 0.2
JOIN_SECONDS = 30.0  # above what the kernel gets to take away a killed worker
CLOSED = "the pool was closed"


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


class WorkerPool:
    """Call `open`, then `run`; `put` and `close` at any time. `serving`: how many workers there are.

    `settle` is called once for each job, by one thread at a time. `timeout`: seconds that one job may take.
    `settings` go to the handler as it opens, with `first`: whether this is the first start of the first worker. A
    worker may be lost with its machine: a job that was running is done once more by another worker, and a second
    loss is its outcome. `check` gets the number of a slot, what its worker said as it opened, and what the first
    one said, and may raise MachineError. `note` gets what is worth a line.
    """

    def __init__(
        self,
        workers: Sequence[Worker],
        settle: Callable[[JobOutcome], None],
        *,
        timeout: float,
        settings: Mapping[str, object] | None = None,
        check: Callable[[int, Any, Any], None] = lambda *_: None,
        note: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.fault: MachineError | None = None  # why the first slot was lost
        self._settle, self._timeout, self._settings = settle, timeout, dict(settings or {})
        self._workers, self._check, self._note = [*workers], check, note
        self._lost: set[str] = set()  # jobs that were running when their worker was lost
        self._groups = SimpleQueue[Sequence[Job] | None]()  # None: a thread that takes it ends
        self._left, self._more = 0, True  # jobs without an outcome, and whether others may come
        self._settling, self._stop = threading.Lock(), threading.Event()
        self._gone = 0  # slots without a worker
        self.serving, self._ended = len(workers), threading.Event()  # set when none serves any more
        self._first: Future[Any] = Future()  # what the first worker said as it opened
        self._error: BaseException | None = None  # an exception of `settle`, or of this module
        self._threads = [
            threading.Thread(target=self._serve, args=each, name=f"worker-{each[0]}", daemon=True)
            for each in enumerate(workers)
        ]

    def open(self, tick: Callable[[], None] = lambda: None) -> Any:
        """Start all workers; return what the first one says as it opens.

        Raises MachineError if it cannot be started.
        """
        for thread in self._threads:
            thread.start()
        while wait([self._first], TICK_SECONDS).not_done:
            tick()
        if self._first.exception() is not None:
            self.close()
        return self._first.result()

    def put(self, group: Sequence[Job]) -> None:
        """Add one group of jobs, which a single worker does one after the other."""
        with self._settling:
            self._left += len(group)
        self._groups.put(group)

    def run(self, groups: Iterable[Sequence[Job]] | None, tick: Callable[[], None] = lambda: None) -> None:
        """Give every job its outcome, with `tick` a few times a second.

        None: those that are put until it is closed. If no worker is left, the rest is `lost`, and `fault` says why.
        If the pool is closed, or `tick` raises, the rest is `cancelled`. What `settle` raises is raised, and the rest
        gets no outcome.
        """
        for group in groups or ():
            self.put(group)
        with self._settling:
            self._more = groups is None
            self._end_if_done()
        try:
            while self.serving and not self._ended.wait(TICK_SECONDS):
                tick()
            tick()
        except BaseException:
            self._halt()
            raise
        finally:
            status = JobStatus.cancelled if self._stop.is_set() else JobStatus.lost
            self.close()
            for thread in self._threads:
                thread.join(JOIN_SECONDS)
            with contextlib.suppress(Empty):
                while True:
                    for job in self._groups.get_nowait() or ():
                        reason = self.fault.message if self.fault is not None else CLOSED
                        self._settle_job(JobOutcome(job, status, reason=reason))
        if self._error is not None:
            raise self._error

    def close(self) -> None:
        """Stop the work, and end the workers."""
        self._halt()
        for worker in self._workers:
            worker.close()

    def _halt(self) -> None:
        """Stop the work."""
        self._stop.set()
        self._end_threads()

    def _end_threads(self) -> None:
        for _ in self._threads:
            self._groups.put(None)

    def _end_if_done(self) -> None:
        if not self._left and not self._more:
            self._end_threads()

    def _serve(self, slot: int, worker: Worker) -> None:
        try:
            self._open_slot(slot, worker)
            while (group := self._groups.get()) is not None:
                self._do_group(slot, worker, group)
        except MachineError as fault:
            self._give_up_slot(slot, fault)
        except BaseException as error:
            if not self._stop.is_set():
                self._error = error
                self._halt()
        finally:
            worker.close()
            with self._settling:
                self.serving -= 1
                if not self.serving:
                    self._ended.set()

    def _open_slot(self, slot: int, worker: Worker) -> None:
        """Start the worker of a slot; all but the first wait for what the first one says."""
        if slot:
            about = self._start(worker)
            self._check(slot, about, self._first.result())
            return
        try:
            self._first.set_result(self._start(worker, first=True))
        except BaseException as error:
            self._halt()
            self._first.set_exception(error)

    def _do_group(self, slot: int, worker: Worker, group: Sequence[Job]) -> None:
        """Give every job of the group its outcome. Raises MachineError; the rest of them is then queued again."""
        left = list(group)
        try:
            while left and not self._stop.is_set():
                self._settle_job(self._do(slot, worker, left[0]))
                del left[0]
        except MachineError as fault:
            # the worker is lost; what was running is tried once more, and only once
            if left[0].key in self._lost and not self._stop.is_set():
                self._settle_job(JobOutcome(left.pop(0), JobStatus.lost, None, fault.message, 0.0, slot))
            else:
                self._lost.add(left[0].key)
            raise
        finally:
            if left:
                self._groups.put(left)

    def _do(self, slot: int, worker: Worker, job: Job) -> JobOutcome:
        begin = monotonic()
        try:
            if not worker.running:
                self._start(worker)
            message = worker.run(job.data, self._timeout)
        except WorkerEnded as ended:
            worker.kill()
            if self._stop.is_set():
                return JobOutcome(job, JobStatus.cancelled, None, CLOSED, 0.0, slot)
            return JobOutcome(job, ended.status, None, str(ended), monotonic() - begin, slot)
        status = JobStatus.ok
        if message["event"] == "error":
            status = JobStatus.out_of_memory if message.get("memory") else JobStatus.error
        value, reason = message.get("value"), message.get("reason", "")
        return JobOutcome(job, status, value, reason, monotonic() - begin, slot)

    def _settle_job(self, outcome: JobOutcome) -> None:
        with self._settling:
            self._left -= 1
            if self._error is None:
                try:
                    self._settle(outcome)
                except BaseException as error:
                    self._error = error
                    self._halt()
            self._end_if_done()

    def _give_up_slot(self, slot: int, fault: MachineError) -> None:
        """Record that a slot has no worker any more: the others continue without it."""
        with self._settling:
            if not self._stop.is_set():
                self.fault = self.fault or fault
                self._gone += 1
                # Not `serving`: another one may be gone already, and not have said so
                if left := len(self._threads) - self._gone:
                    self._note(f"worker {slot} is gone, {who_goes_on(left)}: {fault.message}")

    def _start(self, worker: Worker, *, first: bool = False) -> Json:
        reason = ""
        for _ in range(MAX_STARTS):
            try:
                return worker.open({**self._settings, "first": first}, START_SECONDS)
            except WorkerEnded as ended:
                reason = str(ended)
            if self._stop.is_set():
                break
        missing = re.search(r"No module named '(\w+)'", reason)
        fix = f"pip install {missing[1]}" if missing else None
        raise MachineError(f"the worker process cannot be started: {reason}", fix)
