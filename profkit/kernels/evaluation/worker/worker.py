"""The process that runs kernels, as the judge's side sees it: here kernels are called, and here they are timed.

`Worker.call` has a kernel called and says what it returned; `Worker.time` is the only place where the clock of an
evaluation runs. How requests travel, and how the process is stopped between them, is in `connection`; what it may
do to the system in `isolation`; its own side in `server`.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from time import perf_counter, sleep
from typing import Any

from profkit.core.errors import MachineError
from profkit.execution.child import JobStatus, WorkerEnded
from profkit.kernels.evaluation.worker.arguments import (
    KernelCall,
    Recipe,
    Tensor,
    addresses_in,
    is_description,
    is_segment,
    storage_views,
)
from profkit.kernels.evaluation.worker.connection import WorkerConnection
from profkit.kernels.evaluation.worker.isolation import cpu_seconds
from profkit.kernels.evaluation.worker.server import TINY_KERNEL
from profkit.runtime.passes.processor import ProcessorWatch

MAX_LAUNCH_SECONDS = 0.5  # for calls that do not wait for the device
LOOK_SECONDS = 1e-4  # between two looks whether all calls are launched
LOST_SECONDS = 0.25  # of a batch, after which the judge looks whether the device still works
SPREAD_BYTES, SPREAD_GRAIN = 1 << 20, 512  # where arguments begin, at random


@dataclass(frozen=True)
class TimedBatch:
    """What was seen of one timed batch of calls: the judge's clock, and where the results lie."""

    seconds: float
    addresses: Sequence[int]  # of all outputs, call by call
    cpu_seconds: float = 0.0  # of all threads of the worker, and of what it has started
    waited: float = 0.0  # seconds in which its main thread was ready to run and had no processor


class Worker:
    """A process that runs the kernels of one source, at the other end of `connection`.

    Every method may raise WorkerEnded: the process crashed, was out of memory, or took longer than the
    connection's time limit.
    """

    def __init__(self, connection: WorkerConnection) -> None:
        self.memory = connection.memory
        self.region: Tensor | None = None  # where the arguments lie that were laid out last
        self.operation = ""  # that is loaded
        self._connection = connection
        self._watch: ProcessorWatch | None = None  # of the process that runs now
        self._scheduling = _scheduling(0)
        self._has_replaced = False  # whether the last export gave another handle for an open allocation
        self._random = random.SystemRandom()

    @property
    def running(self) -> bool:
        """Return whether there is a process that takes requests."""
        return self._connection.running

    @property
    def pid(self) -> int:
        """Return the process id. Raises WorkerEnded where there is no process."""
        return self._connection.pid

    def start(self) -> None:
        """Start the process unless it runs."""
        if not self.running:
            self._close_watch()
            self.operation = ""
            self._connection.start()

    def load(self, operation: str) -> None:
        """Load the kernel of the operation. Raises KernelError.

        A process that an earlier kernel has damaged is replaced, since that is not the fault of this kernel.
        """
        is_used = self.running and self.operation != TINY_KERNEL
        self.start()
        if self.operation == operation and not self._connection.has_unread:
            return
        self.operation = ""
        try:
            self._connection.request({"request": "load", "operation": operation})
        except WorkerEnded:
            if not is_used:
                raise
            self.kill()
            self.start()
            self._connection.request({"request": "load", "operation": operation})
        self.operation = operation

    # ------------------------------------------------------------ calling

    def call(
        self, recipe: Recipe, contents: Sequence[Sequence[Tensor]], *, garbage: bool = False
    ) -> list[KernelCall]:
        """Call the kernel once on each of the `contents` (the bytes of a call's storages), in one request.

        The first call that raises is the last one. With `garbage`, memory that the first call allocates holds
        garbage. Raises MachineError where the memory is too small.
        """
        offsets = self._choose_offsets(recipe, len(contents))
        slots = [storage_views(recipe, self.memory.bytes_at, offset) for offset in offsets]
        for sources, targets in zip(contents, slots, strict=True):
            copy_storages(sources, targets)
        request = {"request": "call", "recipe": vars(recipe), "offsets": offsets, "garbage": garbage}
        calls = self._connection.request(request).get("calls")
        if not isinstance(calls, list) or not calls or len(calls) > len(slots):
            self._connection.refuse()
        described = [self._describe_call(slot, call) for slot, call in zip(slots, calls, strict=False)]
        self.refresh([address for call in described for address in addresses_in(call.description)])
        return described

    def trace(self) -> list[tuple[str, float]]:
        """Call the kernel on every slot; return (name, seconds) of what ran on the device. Raises KernelError."""
        traced = self._connection.request({"request": "trace"}).get("trace")
        if not isinstance(traced, dict) or not all(type(seconds) is float for seconds in traced.values()):
            self._connection.refuse()
        return [(str(name), seconds) for name, seconds in traced.items() if seconds >= 0]

    def introduce(self, addresses: Sequence[int]) -> None:
        """Have the process export handles for the memory at these addresses, where they are needed to read it."""
        if unknown := self.memory.unknown(addresses):
            self._export(unknown)

    def refresh(self, addresses: Sequence[int]) -> bool:
        """Export handles again, also for readable memory; return whether any of that memory had been freed.

        torch's allocator frees memory when a graph is captured, and when there is too little.
        """
        self._has_replaced = False
        if foreign := self.memory.foreign(addresses):
            self._export(foreign)
        if self._has_replaced:  # it is not known what else it has given back
            self.memory.forget()
            self.introduce(addresses)
        return self._has_replaced

    # ------------------------------------------------------------ timing

    def lay_out(self, recipe: Recipe, count: int, order: Sequence[int] = ()) -> list[list[Tensor]]:
        """Make room for the arguments of `count` calls; return each call's storages as bytes to fill.

        They begin at another address each time, in the given `order` or a random one; `region` are the bytes of all
        of them. Raises MachineError where the memory is too small.
        """
        offsets = self._choose_offsets(recipe, count, order)
        self.region = self.memory.bytes_at(min(offsets), count * recipe.slot_bytes)
        self._connection.request({"request": "lay_out", "recipe": vars(recipe), "offsets": offsets})
        return [storage_views(recipe, self.memory.bytes_at, offset) for offset in offsets]

    def renew(self) -> None:
        """Drop the arguments: those that are laid out next lie in other memory."""
        self._connection.request({"request": "renew"})
        self.memory.clear()

    def prepare_timing(self) -> None:
        """Make its malloc keep what is freed."""
        self._connection.request({"request": "prepare_timing"})

    def launch(self, outputs: int) -> tuple[float, Sequence[int]] | None:
        """Launch the kernel on every slot behind the latch; return the host's seconds and the addresses of `outputs`.

        Returns None where the calls cannot wait there, and have run: the kernel waits for the device itself, launches
        more than a device queues, or fails; or the device looks busy meanwhile, as it does where several streams
        wait.
        """
        latch, connection = self.memory.latch, self._connection
        if latch is None:
            return None
        connection.refuse_early_answer()
        connection.settle(self.memory.settle)
        number = latch.next_batch()
        begin = perf_counter()
        connection.send(b"latch %d\n" % number)
        while not (is_launched := connection.has_unread) and perf_counter() - begin < MAX_LAUNCH_SECONDS:
            sleep(LOOK_SECONDS)
        seconds = perf_counter() - begin
        if not is_launched:
            latch.open()  # the kernel itself waits for the device: without this it would wait forever
        count, addresses = connection.read_addresses(outputs)
        if count < 0:
            latch.open()
        elif count != outputs:
            connection.refuse()
        connection.stop()
        # Behind one latch a device has nothing else to do: where it works, calls run past the latch on other streams.
        if count >= 0 and is_launched and not self.memory.is_idle:
            is_launched = False
            latch.open()
        if count < 0 or not is_launched:
            connection.settle(self.memory.finish)
            latch.leave()
            return None
        return seconds, addresses

    def time(
        self,
        outputs: int,
        *,
        launched: Sequence[int] | None = None,
        write: Callable[[], object] | None = None,
    ) -> TimedBatch:
        """Run the kernel on every slot that was laid out; return its time, and the addresses of all `outputs`.

        `launched`: the addresses that `launch` returned. Then the calls wait at the latch, and the time is that of the
        device alone, with that of `write`, which brings their arguments.

        The process is stopped before and after. Processor time and waits are looked at outside of what is timed.
        Raises KernelError.
        """
        watch = self._watch = self._watch or ProcessorWatch(self.pid)
        watch.begin()
        busy = self._cpu_seconds()
        if launched is None:
            seconds, addresses = self._time_process(outputs)
        else:
            seconds, addresses = self._time_device(write), launched
        return TimedBatch(seconds, addresses, self._cpu_seconds() - busy, watch.longest_wait(self.pid))

    def _time_process(self, outputs: int) -> tuple[float, Sequence[int]]:
        """Return the wall seconds of the batch, and the addresses of its outputs.

        The clock runs from before the process is woken until its answer has arrived; then it is stopped. What it
        computes in processes of other groups counts until those are stopped, too.
        """
        connection = self._connection
        connection.refuse_early_answer()
        connection.settle(self.memory.settle)
        connection.pause.begin()
        begin = perf_counter()
        connection.send(b"go\n")
        count, addresses = connection.read_addresses(outputs)
        connection.pause.stop_group()
        connection.settle(self.memory.finish)
        seconds = perf_counter() - begin
        if count < 0:
            raise connection.read_failure()
        if count != outputs:
            connection.refuse()
        connection.stop()
        connection.settle(self.memory.finish)  # also what processes of other groups have launched until now
        # To find and stop those takes longer than a short batch: it is added only where one of them has computed.
        if connection.pause.has_computed_elsewhere():
            seconds = perf_counter() - begin
        return seconds, addresses

    def _time_device(self, write: Callable[[], object] | None) -> float:
        """Write the arguments and open the latch; return the seconds until the device is idle again.

        The clock includes the writing: work that waits for arguments, and not at the latch, gains nothing.
        """
        latch, connection = self.memory.latch, self._connection
        assert latch is not None
        connection.settle(self.memory.settle)
        begin = perf_counter()
        if write is not None:
            write()
            self.memory.arrive()
        look = perf_counter() + LOST_SECONDS
        latch.open()
        while not latch.is_done:
            now = perf_counter()
            if now > look:
                self._check_launched(now - begin)
                look = perf_counter() + LOST_SECONDS
        connection.settle(self.memory.finish)  # who says that it is done need not be believed
        latch.leave()
        return perf_counter() - begin

    def _check_launched(self, seconds: float) -> None:
        """Raise WorkerEnded where it takes too long, or the device is idle without having reported that it is done."""
        latch, timeout = self.memory.latch, self._connection.timeout
        assert latch is not None
        if seconds > timeout:
            self._connection.end(JobStatus.timeout, f"it took longer than {timeout:g} s, and was ended")
        if self.memory.is_idle and not latch.is_done:
            self._connection.end(JobStatus.crash, "the GPU has stopped before all calls were done")

    def _cpu_seconds(self) -> float:
        """Return the CPU seconds of all its threads so far, and of the processes that it has started."""
        return cpu_seconds([self.pid, *self._connection.pause.elsewhere])

    # ------------------------------------------------------------ where it runs, and its end

    def use_processors(self, processors: Sequence[int]) -> None:
        """Restrict all of its threads to these processors."""
        with suppress(OSError, AttributeError):
            for thread in os.listdir(f"/proc/{self.pid}/task"):
                os.sched_setaffinity(int(thread), processors)
        with suppress(OSError):
            self._scheduling = _scheduling(self.pid)

    def check_scheduling(self) -> None:
        """Raise MachineError where a thread's priority or the processors it may use have been changed."""
        with suppress(OSError):
            threads = os.listdir(f"/proc/{self.pid}/task")
            for thread in [self.pid, *map(int, threads)]:
                with suppress(ProcessLookupError):
                    if _scheduling(thread) != self._scheduling:
                        self.kill()
                        raise MachineError(
                            "another process changed how the process of PyTorch's kernels is scheduled"
                        )

    def release(self) -> None:
        """Drop arguments and outputs, and give back the memory that is kept for later calls."""
        if self.running:
            self.memory.forget()
            self._connection.request({"request": "release"})

    def kill(self) -> None:
        """Kill the process; `load` starts it again."""
        self._close_watch()
        self._connection.kill()
        self.operation = ""

    def close(self) -> None:
        """End the process for good, and free what belongs to it."""
        self._close_watch()
        self._connection.close()

    def _close_watch(self) -> None:
        """Close the files by which the process that ends was observed."""
        if self._watch is not None:
            self._watch.__exit__()
            self._watch = None

    def _choose_offsets(self, recipe: Recipe, count: int, order: Sequence[int] = ()) -> list[int]:
        """Return an offset for each call, from a random begin, in the given or a random order."""
        step = recipe.slot_bytes
        spare = self.memory.size - count * step
        if spare < 0:
            raise MachineError(f"{count} x {step} bytes of arguments do not fit into the shared memory")
        # A slot is a multiple of what its arguments are aligned to, and they must stay so.
        grain = min(step & -step, SPREAD_GRAIN)
        begin = self._random.randrange(min(spare, SPREAD_BYTES) + 1) // grain * grain
        order = order or self._random.sample(range(count), count)
        return [begin + place * step for place in order]

    def _describe_call(self, slot: Sequence[Tensor], call: Any) -> KernelCall:
        """Return a call's result from its JSON; ends the process where that has another form."""
        if isinstance(call, dict) and "error" in call:
            return KernelCall(slot, error=self._connection.make_error(call))
        if not isinstance(call, dict) or not is_description(call.get("value")):
            self._connection.refuse()
        return KernelCall(slot, call.get("value"))

    def _export(self, addresses: Sequence[int]) -> None:
        """Have the process export the allocations at these addresses, and open them while it runs."""
        self._connection.request({"request": "export", "addresses": addresses}, self._open_segments)

    def _open_segments(self, message: dict[str, Any]) -> None:
        """Open the allocations for which an answer has handles; ends the process where it has another form."""
        segments = message.get("segments")
        if not isinstance(segments, list) or not all(map(is_segment, segments)):
            self._connection.refuse()
        self._has_replaced |= self.memory.open(
            [(address, size, handle) for address, size, handle in segments]
        )


def copy_storages(sources: Sequence[Tensor], targets: Sequence[Tensor]) -> None:
    """Copy the bytes of each storage."""
    for source, target in zip(sources, targets, strict=True):
        target.copy_(source)


def _scheduling(pid: int) -> tuple[object, ...]:
    """Return priority, policy and processors of a process.

    The processors are left out where OpenMP is configured to choose them itself.
    """
    is_bound = any(name in os.environ for name in ("OMP_PROC_BIND", "GOMP_CPU_AFFINITY", "KMP_AFFINITY"))
    priority = os.getpriority(os.PRIO_PROCESS, pid)
    return priority, os.sched_getscheduler(pid), is_bound or os.sched_getaffinity(pid)
