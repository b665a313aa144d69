"""Workers that share a queue of batches, one for each device; every job gets one outcome, whatever becomes of them."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from time import monotonic
from typing import Any

from profkit.core.errors import MachineError
from profkit.core.types import Json
from profkit.execution.child import WorkerEnded
from profkit.execution.client import Worker
from profkit.execution.job import Batch, Job, JobOutcome, JobQueue, JobStatus

START_SECONDS = 300.0  # torch from a cold disk, and what `open` measures
MOST_STARTS = 3  # of a worker that ends before it has opened its handler
TICK_SECONDS = 0.2
WAIT_SECONDS = 0.1  # between two looks where nothing can be done
IDLE_SECONDS = 10.0  # the same where only what others have is left: they say when it is done, or comes back
JOIN_SECONDS = 30.0  # above what the kernel gets to take away a killed worker
CLOSED = "the pool was closed"


class _NoWorker(Exception):
    """No worker can be started; its cause is the MachineError that says why."""


class WorkerPool:
    """Call `begin`, `open`, `run` in this order; `close` at any time.

    `settle` is called once for each job, by one thread at a time. `timeout`: seconds between two messages of a worker,
    which is what one job may take. `settings` go to `Handler.open`, with `first`: whether this is the first start of
    the first worker. `moves`: a worker may be lost with its machine; a job that was running is done once more by
    another worker, and a second loss is its outcome. `check` gets the number of a slot, what its worker said as it
    opened, and what the first one said, and may raise MachineError. `note` gets what is worth a line.
    """

    def __init__(
        self,
        workers: Sequence[Worker],
        settle: Callable[[JobOutcome], None],
        *,
        timeout: float,
        settings: Mapping[str, object] | None = None,
        moves: bool = False,
        check: Callable[[int, Any, Any], None] = lambda *_: None,
        note: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.fault: MachineError | None = None  # why the first slot was lost
        self._settle, self._timeout, self._settings = settle, timeout, dict(settings or {})
        self._workers, self._check, self._note = [*workers], check, note
        self._moves, self._busy = moves, 0  # how many workers have a batch
        self._lost: set[tuple[str, str]] = set()  # jobs that were running when their worker was lost
        self._queue: JobQueue | None = None
        self._settling = threading.Lock()
        self._queueing = threading.Condition()  # notified where work came back, or none will
        self._stop, self._go, self._opened = threading.Event(), threading.Event(), threading.Event()
        self._serving, self._ended = len(workers), threading.Event()  # set when none serves any more
        self._about: Json = None
        self._ready = False  # the first worker has opened
        self._error: BaseException | None = None  # an exception of `settle`, or of this module
        self._threads = [self._thread_of(slot, worker) for slot, worker in enumerate(workers)]

    @property
    def serving(self) -> int:
        """How many workers there are, those included that have not opened yet."""
        return self._serving

    def begin(self) -> None:
        """Start all workers."""
        for thread in self._threads:
            thread.start()

    def open(self, tick: Callable[[], None] = lambda: None) -> Any:
        """Wait until the first worker has opened; what it said. Raises MachineError where it cannot be started."""
        while not self._opened.wait(TICK_SECONDS) and self._threads[0].is_alive():
            tick()
        if not self._ready:
            self.close()
            raise self._error or self.fault or MachineError("the worker process cannot be started")
        return self._about

    def run(self, queue: JobQueue, tick: Callable[[], None] = lambda: None) -> None:
        """Give every job of the queue its outcome, with `tick` a few times a second.

        Where no worker is left, the rest is `lost`, and `fault` says why. Where the pool is closed, or `tick` raises,
        the rest is `cancelled`. What `settle` raises is raised, and the rest gets no outcome.
        """
        self._queue = queue
        self._go.set()
        try:
            while self._serving and not self._ended.wait(TICK_SECONDS):
                tick()
            tick()
        except BaseException:
            self._stop.set()
            raise
        finally:
            status = JobStatus.cancelled if self._stop.is_set() else JobStatus.lost
            self.close()
            for thread in [*self._threads]:
                thread.join(JOIN_SECONDS)
            for batch in queue.drain():
                for job in batch.jobs:
                    reason = self.fault.message if self.fault is not None else CLOSED
                    self._settle_job(JobOutcome(job, status, reason=reason, shared=batch.shared))
        if self._error is not None:
            raise self._error

    def close(self) -> None:
        """No more work, and no workers."""
        self._stop.set()
        self._go.set()
        with self._queueing:
            self._queueing.notify_all()
        for worker in [*self._workers]:
            worker.close()

    def _thread_of(self, slot: int, worker: Worker) -> threading.Thread:
        return threading.Thread(target=self._serve, args=(slot, worker), name=f"worker-{slot}", daemon=True)

    def _serve(self, slot: int, worker: Worker) -> None:
        try:
            self._open_slot(slot, worker)
            self._go.wait()
            while (batch := self._next_batch()) is not None:
                try:
                    self._run_batch(slot, worker, batch)
                finally:
                    with self._queueing:
                        self._busy -= 1
                        if not self._busy:
                            self._queueing.notify_all()
            worker.finish()
        except _NoWorker as none:
            self._give_up_slot(slot, none.args[0])
        except BaseException as error:
            if not self._stop.is_set():
                self._error = error
                self._stop.set()
        finally:
            worker.close()
            with self._queueing:
                self._serving -= 1
                if self._stop.is_set():  # those that wait for work to come back end, too
                    self._queueing.notify_all()
                if not self._serving:
                    self._ended.set()

    def _open_slot(self, slot: int, worker: Worker) -> None:
        """Start the worker of a slot; all but the first wait for what the first one says."""
        try:
            about = self._start(worker, first=slot == 0)
            if slot == 0:
                self._about, self._ready = about, True
        finally:
            if slot == 0:
                self._opened.set()
        if slot:
            self._opened.wait()
            if self._ready:
                try:
                    self._check(slot, about, self._about)
                except MachineError as fault:
                    raise _NoWorker(fault) from fault

    def _next_batch(self) -> Batch | None:
        """What this worker does next; None where nothing is left."""
        while not self._stop.is_set() and self._queue is not None:
            with self._queueing:
                left = len(self._queue)
                if not left and not (self._moves and self._busy):  # what another has may come back
                    return None
                if left and (batch := self._queue.take()) is not None:
                    self._busy += 1
                    return batch
                if not left:
                    self._queueing.wait(IDLE_SECONDS)
                    continue
            self._queue.wait(WAIT_SECONDS)
        return None

    def _run_batch(self, slot: int, worker: Worker, batch: Batch) -> None:
        """Give every job of the batch its outcome; one that ends its worker is settled by that.

        Raises _NoWorker where none can be started; what is left of the batch is then in the queue again.
        """
        progress = BatchProgress(batch)
        while progress.left and not self._stop.is_set():
            begin = monotonic()
            progress.send(fresh=not worker.running)
            try:
                if not worker.running:
                    self._start(worker)
                complained = False
                for message in worker.run(progress.rest, self._timeout):
                    if progress.begin(message):
                        begin = monotonic()
                        continue
                    complained = message["event"] == "error"
                    self._settle_message(progress, message, slot, monotonic() - begin)
                if progress.left and not complained:
                    raise WorkerEnded(JobStatus.crash, "its process answered less than it was asked")
            except _NoWorker:
                with self._queueing:
                    assert self._queue is not None
                    self._queue.put_back(progress.rest)
                    self._queueing.notify_all()
                raise
            except MachineError as fault:
                if self._stop.is_set():
                    break
                self._give_back(slot, progress, fault)
                raise _NoWorker(fault) from fault
            except WorkerEnded as ended:
                worker.kill()
                if self._stop.is_set():
                    break
                for job in progress.responsible():
                    progress.finish(job.key)
                    spent = monotonic() - begin
                    self._settle_job(
                        JobOutcome(job, ended.status, None, str(ended), spent, slot, progress.shared)
                    )
        for job in progress.rest.jobs:
            self._settle_job(JobOutcome(job, JobStatus.cancelled, None, CLOSED, 0.0, slot, progress.shared))

    def _give_back(self, slot: int, progress: BatchProgress, fault: MachineError) -> None:
        """The batch of a worker that is lost, for another; what was running is tried once more, and only once.

        That it had begun may be what was lost: then it is the next one.
        """
        for job in progress.responsible() or progress.rest.jobs[:1]:
            name = (json.dumps(progress.shared), job.key)
            if name in self._lost:
                progress.finish(job.key)
                self._settle_job(
                    JobOutcome(job, JobStatus.lost, None, fault.message, 0.0, slot, progress.shared)
                )
            self._lost.add(name)
        with self._queueing:
            if progress.left and self._queue is not None:
                self._queue.put_back(progress.rest)
                self._queueing.notify_all()

    def _settle_message(
        self, progress: BatchProgress, message: dict[str, Any], slot: int, seconds: float
    ) -> None:
        """The outcome that a message tells. Raises WorkerEnded for one that was not asked for."""
        if message["event"] == "error":
            status = JobStatus.out_of_memory if message.get("memory") else JobStatus.error
            jobs: Sequence[Job | None] = (
                progress.rest.jobs if message.get("key") is None else [progress.finish(message["key"])]
            )
        else:
            status, jobs = JobStatus.ok, [progress.finish(message.get("key"))]
        for job in jobs:
            if job is None or message["event"] not in ("error", "result"):
                raise WorkerEnded(JobStatus.crash, "its process answered what it was not asked")
            progress.finish(job.key)
            value, reason = message.get("value"), message.get("reason", "")
            self._settle_job(JobOutcome(job, status, value, reason, seconds, slot, progress.shared))

    def _settle_job(self, outcome: JobOutcome) -> None:
        with self._settling:
            if self._error is None:
                try:
                    self._settle(outcome)
                except BaseException as error:
                    self._error = error
                    self._stop.set()

    def _give_up_slot(self, slot: int, fault: MachineError) -> None:
        """A slot has no worker any more: the others go on without it."""
        if self._stop.is_set():
            return
        remaining = [t for t in [*self._threads] if t is not threading.current_thread() and t.is_alive()]
        with self._settling:
            self.fault = self.fault or fault
            if remaining and (slot or self._ready):
                self._note(f"worker {slot} is gone, the others go on: {fault.message}")
        if slot == 0 and not self._ready:
            self._stop.set()

    def _start(self, worker: Worker, *, first: bool = False) -> Json:
        reason = ""
        for _ in range(MOST_STARTS):
            try:
                return worker.open({**self._settings, "first": first}, START_SECONDS)
            except MachineError as fault:
                raise _NoWorker(fault) from fault
            except WorkerEnded as ended:
                reason = str(ended)
            if self._stop.is_set():
                break
        missing = re.search(r"No module named '(\w+)'", reason)
        fix = f"pip install {missing[1]}" if missing else None
        raise _NoWorker(MachineError(f"the worker process cannot be started: {reason}", fix))


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
