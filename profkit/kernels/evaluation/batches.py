"""One pair of timed batches: new arguments for both workers, and the time of each on them.

A batch calls a kernel once on each of several arguments, which were written into its memory right before,
while the process was stopped: each call has other values, and results of one batch are no help to the next.
The judge's clock runs from before the process is woken until it says where its outputs lie (`Worker.time`); then it
is stopped, and the outputs of a call chosen at random are read and verified. The baseline, PyTorch's own kernels,
runs in a process of the same kind, under the same clock, on the same values. The time of such a batch without a
kernel is measured, too, and subtracted from both. Of two pairs each process is first in one, and its arguments are
written first in one.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from math import inf

import torch

from profkit.execution.child import WorkerEnded
from profkit.hardware.machine import usable_cores
from profkit.kernels.evaluation.devices import BatchLimits
from profkit.kernels.evaluation.fresh_values import FreshValues
from profkit.kernels.evaluation.judging.judge import BaselineFailed, Pair, WholeBatch
from profkit.kernels.evaluation.worker.arguments import KernelError, Recipe, Tensor
from profkit.kernels.evaluation.worker.worker import TimedBatch, Worker, copy_storages
from profkit.runtime.passes.processor import MAX_WAITING_SHARE

EMPTY_BATCHES = 7
MIN_LATCHED_SECONDS = 6e-4  # of a batch: beside it what a process may pretend is within the floor
# The least that is lost to another program; waking a processor takes 0.1 ms, and is its own.
SLICE_SECONDS = 1e-3


class Unlaunched(Exception):
    """A batch could not wait at the latch: it has run, and nothing is known of its time."""


@dataclass(frozen=True)
class FreshCall:
    """The call that is timed: its arguments get new values each time, and it has that many `outputs`."""

    recipe: Recipe
    contents: Sequence[Tensor]  # of the arguments that it was checked on
    fresh: FreshValues
    outputs: int


@contextmanager
def blame_baseline(baseline: Worker) -> Iterator[None]:
    """Turn failures inside the block into the baseline's own. Raises BaselineFailed."""
    try:
        yield
    except (KernelError, WorkerEnded) as error:
        baseline.kill()
        raise BaselineFailed(str(error)) from error


def calls_in_batch(estimate: float, call_bytes: int, limits: BatchLimits) -> int:
    """Return how many calls are timed together. `estimate`: seconds of a call; `call_bytes`: the bytes it needs."""
    by_time = int(limits.seconds / max(estimate, 1e-7)) + 1
    return max(1, min(limits.calls, by_time, limits.bytes // max(1, call_bytes)))


def fit_latch(candidate: Worker, baseline: Worker, call: FreshCall, count: int) -> int:
    """Return how many calls of both can wait at the latch: at most `count`, 0 where not even a single call can.

    A device queues some 1,000 launches, and a kernel that waits for the device never returns behind the latch. A
    batch that is over at once cannot be measured: 0, too.

    Raises KernelError and WorkerEnded of the candidate, and BaselineFailed.
    """

    def run(worker: Worker, calls: int) -> float | None:
        """Return the seconds of that many calls; None where they cannot wait."""
        for slot in worker.lay_out(call.recipe, calls):
            copy_storages(call.contents, slot)
        outputs = calls * call.outputs
        launched = worker.launch(outputs)
        return None if launched is None else worker.time(outputs, launched=launched[1]).seconds

    of_a_call = 0.0  # of the baseline
    for worker in (baseline, candidate):
        with blame_baseline(baseline) if worker is baseline else nullcontext():
            while (seconds := run(worker, count)) is None:
                if count == 1 or run(worker, 1) is None:
                    return 0
                count = max(1, count // 4)
        of_a_call = of_a_call or seconds / count
    return count if of_a_call * count >= MIN_LATCHED_SECONDS else 0


class PairedBatches:
    """Both workers with the arguments of `count` calls, which are laid out anew for each round of pairs.

    On a device the arguments of all calls are written at once, not call by call. `latched`: the calls are launched
    before their arguments are written, and the device's time alone is measured (see `fit_latch`).
    """

    def __init__(
        self,
        candidate: Worker,
        baseline: Worker,
        call: FreshCall,
        count: int,
        cleanup: ExitStack,
        *,
        latched: bool,
    ) -> None:
        self._call, self._count, self._latched = call, count, latched
        self._candidate, self._baseline, self._both = candidate, baseline, (baseline, candidate)
        self.launching: dict[Worker, list[float]] = {
            baseline: [],
            candidate: [],
        }  # seconds of the host a call
        self.whole: dict[Worker, list[WholeBatch]] = {baseline: [], candidate: []}
        self._secret = random.SystemRandom()  # what a kernel could guess it could prepare for
        self._slots: dict[Worker, list[list[Tensor]]] = {}
        self._empty = inf  # seconds of an empty batch
        self._chosen = 0  # the call of the last pair that may be verified
        self._kept: list[Tensor] = []  # its arguments, as they were before it
        self._addresses: Sequence[int] = ()
        self._launched: dict[Worker, Sequence[int]] = {}  # addresses of what waits at the latch
        self._staged: Tensor | None = None  # the arguments of all calls, until they are due
        self._staged_slots: Sequence[Sequence[Tensor]] = ()
        self._order: Sequence[int] = ()  # of calls in memory, the same for both
        self._processors = usable_cores()
        cleanup.callback(_use_processors, self._processors)

    def renew(self, *, pinned: bool) -> None:
        """Lay the arguments out in other memory.

        The place of pages decides which of them a cache holds, which changes a time by up to a tenth for as long as
        they lie there. `pinned`: both processes get the same processor, and the judge the others.
        """
        if pinned and len(self._processors) > 1:
            processor = self._secret.choice(self._processors)
            _use_processors([each for each in self._processors if each != processor])
            for worker in self._both:
                worker.use_processors([processor])
        self._order = self._secret.sample(range(self._count), self._count)
        with blame_baseline(self._baseline):
            self._lay_out(self._baseline)
            self._stage()
            # The same is subtracted from both: how far two such measurements lie apart would be in the ratio.
            self._empty = min(self._empty, self._empty_batch_seconds(self._baseline))
        self._lay_out(self._candidate)
        self._kept = [torch.empty_like(storage) for storage in self._slots[self._baseline][0]]

    def _stage(self) -> None:
        """Make the memory where arguments wait until they are due, laid out as in both processes."""
        region, slots = self._baseline.region, self._slots[self._baseline]
        assert region is not None
        if not self._latched:
            return
        if self._staged is None:
            self._staged = torch.empty_like(region)
            self._call.fresh.write_rows(self._staged, self._call.recipe)
        begin = region.data_ptr()
        self._staged_slots = [
            [self._staged[at : at + part.numel()] for part in slot for at in (part.data_ptr() - begin,)]
            for slot in slots
        ]

    def _lay_out(self, worker: Worker) -> None:
        """Lay the arguments out anew for one worker."""
        worker.renew()
        self._slots[worker] = worker.lay_out(self._call.recipe, self._count, self._order)
        worker.prepare_timing()
        if self._staged is not None and worker.region is not None:
            worker.region.copy_(self._staged)  # what lies there is an argument, whatever runs too early

    def run_pairs(self, number: int) -> list[Pair]:
        """Run two pairs of round `number`: each process runs first once, and is written first once.

        Where a process waited for a processor in either, neither is a fair pair.
        """
        written, run = (self._secret.sample(self._both, 2) for _ in range(2))
        pairs = [self._run_pair(number, written, run), self._run_pair(number, written[::-1], run[::-1])]
        waited = any(pair.waited for pair in pairs)
        return [pair._replace(waited=waited) for pair in pairs]

    def _run_pair(self, number: int, written: Sequence[Worker], run: Sequence[Worker]) -> Pair:
        """Write new values, and time both on them; the process that is written later has warmer caches."""
        try:
            return self._time_pair(number, written, run)
        except Exception:
            self._open_latches()
            raise

    def _time_pair(self, number: int, written: Sequence[Worker], run: Sequence[Worker]) -> Pair:
        """Return the pair; where it raises, calls may still wait at a latch."""
        self._chosen = self._secret.randrange(self._count)
        self._write(written, run)
        # Both processes run as one user: a kernel may lower the priority of the baseline.
        self._baseline.check_scheduling()
        times: dict[Worker, float] = {}
        waited = False
        for worker in run:
            batch = self._time(worker)
            self.whole[worker].append(WholeBatch(batch.seconds, batch.cpu_seconds))
            waited |= batch.waited > max(SLICE_SECONDS, MAX_WAITING_SHARE * batch.seconds)
            # Of a call that takes no longer than none, at most 98 % are subtracted: a time is above 0.
            times[worker] = max(batch.seconds - self._empty, batch.seconds / 50) / self._count
            if worker is self._candidate:
                self._addresses = batch.addresses
        return Pair(number, times[self._baseline], times[self._candidate], waited)

    def _write(self, written: Sequence[Worker], run: Sequence[Worker]) -> None:
        """Write new values for both in the order `written`, or where they wait until the latch opens."""
        if self._latched:
            self._launch(run)
            staged = self._staged
            assert staged is not None
            self._call.fresh.write_rows(staged, self._call.recipe)
            copy_storages(self._staged_slots[self._chosen], self._kept)
        elif self._candidate.memory.latch is not None:
            first, second = (each.region for each in written)
            assert first is not None
            assert second is not None
            self._call.fresh.write_rows(first, self._call.recipe)
            second.copy_(first)
            copy_storages(self._slots[written[0]][self._chosen], self._kept)
        else:
            self._write_call_by_call(written)

    def _time(self, worker: Worker) -> TimedBatch:
        """Time the batch of one worker."""
        outputs = self._count * self._call.outputs
        with self._blame(worker):
            if self._latched:
                return self._time_latched(worker, self._launched.pop(worker))
            return worker.time(outputs)

    def _launch(self, run: Sequence[Worker]) -> None:
        """Let both launch their calls behind the latch. Raises Unlaunched."""
        for worker in run:
            with self._blame(worker):
                launched = worker.launch(self._count * self._call.outputs)
            if launched is None:
                raise Unlaunched
            self.launching[worker].append(launched[0] / self._count)
            self._launched[worker] = launched[1]
        # Before the arguments are written it may run once more: so that its outputs can be read, new as they are.
        self._candidate.introduce(self._launched[self._candidate])

    def _open_latches(self) -> None:
        """Let what still waits run: all that its process launched later would wait behind it, until a time limit."""
        for worker, addresses in self._launched.items():
            with suppress(KernelError, WorkerEnded):
                worker.time(len(addresses), launched=addresses)
        self._launched = {}

    def _time_latched(self, worker: Worker, launched: Sequence[int]) -> TimedBatch:
        """Time a batch with the copying of its arguments, which both and an empty batch share."""
        region, staged = worker.region, self._staged
        assert region is not None
        assert staged is not None
        return worker.time(len(launched), launched=launched, write=lambda: region.copy_(staged))

    def _blame(self, worker: Worker) -> AbstractContextManager[None]:
        """Return a context that blames failures on the baseline if `worker` is the baseline."""
        return blame_baseline(self._baseline) if worker is self._baseline else nullcontext()

    def _empty_batch_seconds(self, worker: Worker) -> float:
        """Return the seconds of a batch whose kernel returns its first argument."""
        operation = worker.operation
        worker.load("")
        times = []
        for _ in range(EMPTY_BATCHES):
            if not self._latched:
                times.append(worker.time(self._count).seconds)
            elif (launched := worker.launch(self._count)) is not None:
                times.append(self._time_latched(worker, launched[1]).seconds)
        worker.load(operation)
        if not times:
            raise Unlaunched
        return min(times)  # one that was disturbed would be subtracted from every time

    def _write_call_by_call(self, workers: Sequence[Worker]) -> None:
        """Write new values call by call, to both workers in that order."""
        for place, (values, copies) in enumerate(zip(*(self._slots[each] for each in workers), strict=True)):
            self._call.fresh.write(values)
            copy_storages(values, copies)
            if place == self._chosen:
                copy_storages(values, self._kept)

    def can_verify(self) -> bool:
        """Return whether the results of the last pair lie in readable memory of the candidate."""
        return not self._candidate.memory.unknown(self._own_addresses())

    def introduce(self) -> None:
        """Make the results readable from now on.

        Those of the last pair prove nothing any more, since the candidate has run meanwhile.
        """
        self._candidate.introduce(self._addresses)

    def _own_addresses(self) -> Sequence[int]:
        """Return the addresses of the outputs of the chosen call."""
        outputs = self._call.outputs
        return self._addresses[self._chosen * outputs : (self._chosen + 1) * outputs]

    def chosen_call(self) -> tuple[Sequence[Tensor], Sequence[Tensor], Sequence[int]]:
        """Return a call of the last pair, for `Verify`, which must come after both were timed: it uses their caches."""
        return self._kept, self._slots[self._candidate][self._chosen], self._own_addresses()


def _use_processors(processors: Sequence[int]) -> None:
    """Restrict this process to these processors."""
    with suppress(OSError, AttributeError):
        os.sched_setaffinity(0, processors)
