"""The judge's side of a kernel process: it sends requests, stops the process, and reads its memory.

Between two requests the process is stopped (SIGSTOP), so that it computes nothing while nobody measures:
neither before the clock runs, nor after it has stopped. Outputs are read out of its memory while it is
stopped.
"""

from __future__ import annotations

import json
import os
import random
import sys
import tempfile
from array import array
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from struct import unpack
from time import perf_counter, sleep
from typing import Any, NoReturn

from profkit.core.errors import MachineError
from profkit.core.files.safe_folder import TemporaryFolder, user_cache
from profkit.execution.child import ChildProcess, JobStatus, WorkerEnded
from profkit.kernels.evaluation.candidate.arguments import (
    KernelCall,
    KernelError,
    Recipe,
    Tensor,
    addresses_in,
    is_description,
    is_segment,
    storage_views,
)
from profkit.kernels.evaluation.candidate.confinement import ProcessPause, cpu_seconds
from profkit.kernels.evaluation.candidate.cuda_memory import BusyDevice
from profkit.kernels.evaluation.candidate.memory import JudgeMemory
from profkit.kernels.evaluation.candidate.process import TINY_KERNEL
from profkit.kernels.evaluation.sources.source import SourceRequest
from profkit.runtime.passes.processor import ProcessorWatch

# By these the memory of kernels may come to lie where no other process can read it.
ALLOCATORS = ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF")
START_SECONDS = 120.0
LAUNCH_SECONDS = 0.5  # for calls that wait for no device
LOOK_SECONDS = 1e-4
LOST_SECONDS = 0.25  # of a batch, after which the judge looks whether the device still works
SPREAD_BYTES, SPREAD_GRAIN = 1 << 20, 512  # where arguments begin, at random
_ROOT = str(Path(__file__).resolve().parents[4])
_BOOT = (
    "import sys; sys.path[:] = [path for path in sys.path if path] + [sys.argv[1]]; "
    "import profkit.core.library_first; "
    "from profkit.kernels.evaluation.candidate.process import main; main(sys.argv[2:])"
)


class KernelProcess:
    """A process that runs the kernels of one source, on `threads` threads of torch (0: torch's default).

    Arguments are written to `memory`, which is closed with the process.

    `kept` are folders below which a candidate must not write; without any the process runs PyTorch's own kernels.

    Every method may raise WorkerEnded: the process crashed, was out of memory, or took longer than `timeout`
    seconds.
    """

    def __init__(
        self,
        source: SourceRequest,
        memory: JudgeMemory,
        *,
        threads: int,
        timeout: float,
        log: Path,
        kept: Sequence[Path] = (),
    ) -> None:
        self.memory = memory
        self.region: Tensor | None = None  # where the arguments lie that were placed last
        self._timeout = timeout
        caches = user_cache("kernels")
        own = filter(None, (_ROOT, sys.prefix, sys.base_prefix, caches and caches.parent))
        folders = [str(folder) for folder in (*kept, *own)] if kept else []
        arguments = json.dumps([asdict(source), memory.describe(), threads, folders])
        argv = [sys.executable, "-c", _BOOT, _ROOT, str(os.getpid()), arguments]
        self._scratch = TemporaryFolder("kernels") if kept else None
        env = {
            "PYTHONHASHSEED": "0",
            "TMPDIR": self._scratch.name if self._scratch else tempfile.gettempdir(),
            **{name: "" for name in ALLOCATORS if name in os.environ},
        }  # the layout of both is alike
        self._child = ChildProcess(argv, env, log, inherited=memory.inherited, starts_others=bool(kept))
        self._number = 0  # requests
        # whether a handle that was open was another one, when it was asked for last
        self._has_changed = False
        self._scheduling = _scheduling(0)
        self._pause = ProcessPause(self._child)
        self._random = random.SystemRandom()
        self.operation = ""  # that is loaded

    @property
    def running(self) -> bool:
        """Return whether there is a process that takes requests."""
        return self._child.running

    @property
    def pid(self) -> int:
        """Return the process id. Raises WorkerEnded where there is no process."""
        return self._child.pid

    def start(self) -> None:
        """Start the process unless it runs."""
        if not self._child.running:
            self.operation = ""
            self.memory.recover()
            self._child.start()
            self.memory.meet(self._child.pid, int(self._message(START_SECONDS)["arena"]))
            self._stop()

    def load(self, operation: str) -> None:
        """Load the kernel of the operation. Raises KernelError.

        A process that an earlier kernel has damaged is replaced, since that is not the fault of this kernel.
        """
        is_used = self._child.running and self.operation != TINY_KERNEL
        self.start()
        if self.operation == operation and not self._child.has_unread:
            return
        self.operation = ""
        try:
            self._ask({"ask": "load", "operation": operation})
        except WorkerEnded:
            if not is_used:
                raise
            self.kill()
            self.start()
            self._ask({"ask": "load", "operation": operation})
        self.operation = operation

    def place(self, recipe: Recipe, count: int, order: Sequence[int] = ()) -> list[list[Tensor]]:
        """Make room for the arguments of `count` calls; return each call's storages as bytes to fill.

        They begin at another address each time, in the given `order` or a random one; `region` are the bytes of all
        of them. Raises MachineError where the memory is too small.
        """
        offsets = self._choose_offsets(recipe, count, order)
        self.region = self.memory.bytes_at(min(offsets), count * recipe.slot_bytes)
        self._ask({"ask": "slots_at", "recipe": vars(recipe), "offsets": offsets})
        return [storage_views(recipe, self.memory.bytes_at, offset) for offset in offsets]

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
        request = {"ask": "call", "recipe": vars(recipe), "offsets": offsets, "garbage": garbage}
        calls = self._ask(request).get("calls")
        if not isinstance(calls, list) or not calls or len(calls) > len(slots):
            self._refuse()
        described = [self._describe_call(slot, call) for slot, call in zip(slots, calls, strict=False)]
        self.refresh([address for call in described for address in addresses_in(call.description)])
        return described

    def introduce(self, addresses: Sequence[int]) -> None:
        """Have the process export handles for the memory at these addresses, where they are needed to read it."""
        if unknown := self.memory.unknown(addresses):
            self._ask({"ask": "export", "addresses": unknown}, self._open_segments)

    def refresh(self, addresses: Sequence[int]) -> bool:
        """Export handles again, also for readable memory; return whether any of that memory had been freed.

        torch's allocator frees memory when a graph is captured, and when there is too little.
        """
        self._has_changed = False
        if foreign := self.memory.foreign(addresses):
            self._ask({"ask": "export", "addresses": foreign}, self._open_segments)
        if self._has_changed:  # it is not known what else it has given back
            self.memory.forget()
            self.introduce(addresses)
        return self._has_changed

    def trace(self) -> list[tuple[str, float]]:
        """Call the kernel on every slot; return (name, seconds) of what ran on the device. Raises KernelError."""
        traced = self._ask({"ask": "trace"}).get("trace")
        if not isinstance(traced, dict) or not all(type(seconds) is float for seconds in traced.values()):
            self._refuse()
        return [(str(name), seconds) for name, seconds in traced.items() if seconds >= 0]

    def watch(self) -> ProcessorWatch:
        """Return a watch that tells whether the process's threads wait for a processor."""
        return ProcessorWatch(self._child.pid)

    def cpu_seconds(self) -> float:
        """Return the CPU seconds of all its threads so far, and of the processes that it has started."""
        return cpu_seconds([self._child.pid, *self._pause.elsewhere])

    def use_processors(self, processors: Sequence[int]) -> None:
        """Restrict all of its threads to these processors."""
        with suppress(OSError, AttributeError):
            for thread in os.listdir(f"/proc/{self._child.pid}/task"):
                os.sched_setaffinity(int(thread), processors)
        with suppress(OSError):
            self._scheduling = _scheduling(self._child.pid)

    def renew(self) -> None:
        """Drop the arguments: those that are laid out next lie in other memory."""
        self._ask({"ask": "renew"})
        self.memory.clear()

    def release(self) -> None:
        """Drop arguments and outputs, and give back the memory that is kept for later calls."""
        if self._child.running:
            self.memory.forget()
            self._ask({"ask": "release"})

    def check_scheduling(self) -> None:
        """Raise MachineError where a thread's priority or the processors it may use have been changed."""
        with suppress(OSError):
            threads = os.listdir(f"/proc/{self._child.pid}/task")
            for thread in [self._child.pid, *map(int, threads)]:
                with suppress(ProcessLookupError):
                    if _scheduling(thread) != self._scheduling:
                        self.kill()
                        raise MachineError(
                            "another process changed how the process of PyTorch's kernels is scheduled"
                        )

    def prepare_timing(self) -> None:
        """Make its malloc keep what is freed."""
        self._ask({"ask": "prepare_timing"})

    def run_slots(self, outputs: int) -> tuple[float, Sequence[int]]:
        """Call the kernel on every slot; return wall seconds and the addresses of all `outputs`. Raises KernelError.

        The clock runs from before the process is woken until its answer has arrived; then it is stopped. What it
        computes in processes of other groups counts until those are stopped, too.
        """
        child = self._child
        self._refuse_unasked()
        self._settle(self.memory.settle)
        self._pause.begin()
        begin = perf_counter()
        self._pause.wake()
        child.send(b"go\n")
        count, addresses = self._read_addresses(outputs)
        self._pause.stop_group()
        self._settle(self.memory.finish)
        seconds = perf_counter() - begin
        if count < 0:
            self._pause.wake()
            message = self._message(self._timeout)
            self._stop()
            raise self._make_error(message)
        if count != outputs:
            self._refuse()
        self._stop()
        self._settle(self.memory.finish)  # also what processes of other groups have launched until now
        if self._pause.has_computed_elsewhere():
            seconds = perf_counter() - begin
        return seconds, addresses

    def launch_slots(self, outputs: int) -> tuple[float, Sequence[int]] | None:
        """Launch the kernel on every slot behind the gate; return the host's seconds and the addresses of `outputs`.

        Returns None where the calls cannot wait there, and have run: the kernel waits for the device itself, launches
        more than a device queues, or fails; or the device looks busy meanwhile, as it does where several streams
        wait.
        """
        gate, child = self.memory.gate, self._child
        if gate is None:
            return None
        self._refuse_unasked()
        self._settle(self.memory.settle)
        number = gate.next_batch()
        begin = perf_counter()
        self._pause.wake()
        child.send(b"gate %d\n" % number)
        while not (is_launched := child.has_unread) and perf_counter() - begin < LAUNCH_SECONDS:
            sleep(LOOK_SECONDS)
        seconds = perf_counter() - begin
        if not is_launched:
            gate.open()
        count, addresses = self._read_addresses(outputs)
        if count < 0:
            gate.open()
        elif count != outputs:
            self._refuse()
        self._stop()
        if count >= 0 and is_launched and not self.memory.is_idle:
            is_launched = False
            gate.open()
        if count < 0 or not is_launched:
            self._settle(self.memory.finish)
            gate.leave()
            return None
        return seconds, addresses

    def _read_addresses(self, outputs: int) -> tuple[int, Sequence[int]]:
        """Read how many outputs it reports (-1 where it has failed), and their addresses if the number is right."""
        (count,) = unpack("<q", self._child.read_bytes(8, self._timeout))
        addresses = array("Q")
        if count == outputs:
            addresses.frombytes(self._child.read_bytes(8 * count, self._timeout))
        return count, addresses

    def run_launched(self, write: Callable[[], object] | None = None) -> float:
        """Write the arguments and open the gate; return the seconds until the device is idle again.

        The process is stopped meanwhile. The clock runs from before the arguments are written: work that waits on the
        device for them, and not at the gate, gains nothing.
        """
        gate = self.memory.gate
        assert gate is not None
        self._settle(self.memory.settle)
        begin = perf_counter()
        if write is not None:
            write()
            self.memory.arrive()
        look = perf_counter() + LOST_SECONDS
        gate.open()
        while not gate.is_done:
            now = perf_counter()
            if now > look:
                self._check_launched(now - begin)
                look = perf_counter() + LOST_SECONDS
        self._settle(self.memory.finish)  # who says that it is done need not be believed
        gate.leave()
        return perf_counter() - begin

    def _check_launched(self, seconds: float) -> None:
        """Raise WorkerEnded where it takes too long, or the device is idle without having reported that it is done."""
        gate = self.memory.gate
        assert gate is not None
        if seconds > self._timeout:
            self.kill()
            raise WorkerEnded(JobStatus.timeout, f"it took longer than {self._timeout:g} s, and was ended")
        if self.memory.is_idle and not gate.is_done:
            self.kill()
            raise WorkerEnded(JobStatus.crash, "the GPU has stopped before all calls were done")

    def kill(self) -> None:
        """Kill the process; the next request starts it again."""
        self._child.kill()
        self.memory.lose()
        self.operation = ""
        self._pause.forget()

    def close(self) -> None:
        """End the process for good, and free what belongs to it."""
        self._child.close()
        self.memory.close()
        if self._scratch:
            self._scratch.cleanup()

    def _choose_offsets(self, recipe: Recipe, count: int, order: Sequence[int] = ()) -> list[int]:
        """Return an offset for each call, from a random begin, in the given or a random order."""
        step = recipe.slot_bytes
        spare = self.memory.size - count * step
        if spare < 0:
            raise MachineError(f"{count} x {step} bytes of arguments do not fit into the shared memory")
        grain = min(step & -step, SPREAD_GRAIN)
        begin = self._random.randrange(min(spare, SPREAD_BYTES) + 1) // grain * grain
        order = order or self._random.sample(range(count), count)
        return [begin + place * step for place in order]

    def _describe_call(self, slot: Sequence[Tensor], call: Any) -> KernelCall:
        """Return a call's result from its JSON; ends the process where that has another form."""
        if isinstance(call, dict) and "error" in call:
            return KernelCall(slot, error=self._make_error(call))
        if not isinstance(call, dict) or not is_description(call.get("value")):
            self._refuse()
        return KernelCall(slot, call.get("value"))

    def _ask(
        self, request: dict[str, Any], while_running: Callable[[dict[str, Any]], None] = lambda _: None
    ) -> dict[str, Any]:
        """Wake the process for a request and return its answer; it is stopped again then.

        Raises KernelError where the answer is an error. `while_running` gets the answer before the process is
        stopped.
        """
        self._child.cut_log()
        self._refuse_unasked()
        self._settle(self.memory.settle)
        self._pause.wake()
        self._number += 1
        self._child.send_message({**request, "number": self._number})
        message = self._message(self._timeout)
        if message.get("number") != self._number:
            self._refuse()
        while_running(message)
        self._stop()
        self._settle(self.memory.finish)
        if "error" in message:
            raise self._make_error(message)
        return message

    def _settle(self, memory_settles: Callable[[], None]) -> None:
        """Wait for the device by `memory_settles`; end the process where its work on the device does not end."""
        try:
            memory_settles()
        except BusyDevice as busy:
            self.kill()
            raise WorkerEnded(JobStatus.crash, str(busy)) from busy

    def _open_segments(self, message: dict[str, Any]) -> None:
        """Open the allocations for which an answer has handles; ends the process where it has another form."""
        segments = message.get("segments")
        if not isinstance(segments, list) or not all(map(is_segment, segments)):
            self._refuse()
        self._has_changed |= self.memory.open([(address, size, handle) for address, size, handle in segments])

    def _make_error(self, message: dict[str, Any]) -> KernelError:
        """Return the error in an answer. Raises WorkerEnded where the device accepts no more work from the process."""
        error = KernelError(
            str(message.get("error")),
            str(message.get("message", "")),
            str(message.get("traceback", "")),
            memory=bool(message.get("memory")),
            needs_gpu=bool(message.get("needs_gpu")),
        )
        if message.get("lost"):
            self.kill()
            raise WorkerEnded(JobStatus.crash, str(error)) from error
        return error

    def _message(self, timeout: float) -> dict[str, Any]:
        """Read a line of the process, which must be a JSON object."""
        message = self._child.read_message(timeout)
        return message if isinstance(message, dict) else self._refuse()

    def _refuse(self) -> NoReturn:
        """End the process, since it wrote something that profkit's code never answers: a kernel wrote it.

        Raises WorkerEnded.
        """
        self.kill()
        raise WorkerEnded(JobStatus.crash, "its process wrote what is not an answer")

    def _stop(self) -> None:
        """Stop the process and whatever it has started. Raises WorkerEnded where that cannot be done."""
        if not self._pause.stop():
            self.kill()
            raise WorkerEnded(JobStatus.crash, "it starts processes faster than they can be stopped")

    def _refuse_unasked(self) -> None:
        """End the process if an answer precedes its request: it was not measured."""
        if self._child.has_unread:
            self._refuse()


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
