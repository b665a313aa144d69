"""The devices on which kernels are judged, the CPU or one CUDA device, and how they differ apart from memory."""

from __future__ import annotations

import contextlib
import ctypes
import os
from dataclasses import dataclass
from time import monotonic, sleep

import torch

from profkit.core.errors import MachineError, Silent, UsageError
from profkit.core.types import Fact, MeasuredCeilings
from profkit.execution.worker import DeviceError
from profkit.hardware.gpu_locks import lock_gpus
from profkit.kernels.evaluation.worker.memory import JudgeMemory
from profkit.kernels.sweep.device import free_memory, measure_ceilings

ARENA_SHARE = 0.5  # of the machine's memory: only what is used of it is taken
DEVICE_ARENA_SHARE = 1 / 16  # of the device's: all of it is taken, by candidate and reference each
SPARE_SHARE = 1 / 16  # what each allocator of judge, candidate and reference may keep for later
TRUTH = 20  # times its bytes: float64 copies of arguments and results, several of them
# of all checks, of which the candidate has half: fewer are a judge that waited for a processor
EARLY_SHARE = 0.2
PATIENCE, LOOK_SECONDS = 20.0, 0.5  # seconds that a judge waits for a device, and between two looks
MAX_ANSWER_SECONDS = 2e-3  # seconds; a device that takes longer for an empty request is used by somebody else


@dataclass(frozen=True)
class BatchLimits:
    """How large a timed batch of calls is: seconds that suffice, and the largest numbers of calls and bytes.

    `with_results`: the bytes include those of results, which are kept until the batch is over.
    """

    seconds: float
    calls: int
    bytes: int
    with_results: bool = False


def cuda_batch_limits(arena_bytes: int) -> BatchLimits:
    """Return the limits of a CUDA device, in whose memory a batch may have three quarters of `arena_bytes`.

    Waking a process and waiting for the device take some 0.2 ms; of small kernels 512 fill 3 ms and more.
    """
    return BatchLimits(0.010, 512, min(1 << 32, arena_bytes // 4 * 3), with_results=True)


class JudgedDevice:
    """A device, and what the judge knows of it. This one is the CPU, where a stopped process computes nothing."""

    device = torch.device("cpu")
    batch = BatchLimits(0.002, 256, 1 << 28)  # of timed calls; seconds: waking a process is little of it

    def make_memory(self) -> JudgeMemory:
        """Return memory to share with one kernel process: half of what is free, of which only used pages are taken.

        Raises MachineError.
        """
        free = free_memory(self.device) or 8 << 30
        return JudgeMemory(int(free * ARENA_SHARE) // 4096 * 4096)

    @property
    def units(self) -> int:
        """Return how many processors may store results at once."""
        return os.cpu_count() or 1

    def cached_bytes(self) -> int:
        """Return the bytes that may lie in its caches: four times the largest cache."""
        from profkit.hardware.machine import read_machine

        return 4 * max((cache.size for cache in read_machine().caches), default=1 << 30)

    def measure_ceilings(self) -> dict[str, MeasuredCeilings]:
        """Measure the most it can do, by dtype; the key '' is for all that have no ceilings of their own."""
        return {"": measure_ceilings(self.device)}

    def begin_timing(self) -> None:
        """Note that a test is timed from now on."""

    def remarks(self) -> tuple[Fact, ...]:
        """Return what a reader must know to judge the times since `begin_timing`."""
        return ()

    def find_early_work(self) -> Fact | None:
        """Return why the times since then cannot be believed: kernels ran before they were called; else None."""
        return None

    def is_large(self, call_bytes: int) -> bool:  # noqa: ARG002
        """Return whether calls of that many bytes fill allocators' caches so far that other processes lack memory."""
        return False

    def check(self) -> None:
        """Raise DeviceError where the device accepts no more work from this process."""

    def close(self) -> None:
        """Release the device for others."""


class CudaDevice(JudgedDevice):
    """The first CUDA device that this process sees.

    Raises UsageError where another judge holds it, or it is busy.
    """

    def __init__(self) -> None:
        from profkit.kernels.evaluation.worker.cuda_memory import DEVICE, IdleProbe
        from profkit.runtime.passes.device_samples import DeviceClock, DeviceWatch
        from profkit.runtime.region.cuda import CudaDriver

        self.device = DEVICE
        try:
            torch.cuda.init()
        except (AssertionError, RuntimeError) as error:
            raise UsageError(
                f"torch {torch.__version__} sees no GPU: {str(error).splitlines()[0]}",
                "--device cpu, or a torch that was built with CUDA in the Python that runs profkit",
            ) from error
        self._cell = torch.zeros(1, dtype=torch.uint8, device=DEVICE)
        self._properties = torch.cuda.get_device_properties(DEVICE)
        self._lock = _lock_device(str(self._properties.uuid))
        self._arena_bytes = int(self._properties.total_memory * DEVICE_ARENA_SHARE) >> 21 << 21
        self.batch = cuda_batch_limits(self._arena_bytes)
        self._spare_bytes = int(self._properties.total_memory * SPARE_SHARE)
        self._driver = CudaDriver()
        self._watch = DeviceWatch(DeviceClock(self._driver, 0, 0).address())
        self._slowdowns = set[str]()
        self._checks = self._early = 0
        self._probe = IdleProbe(self._make_request)
        deadline = monotonic() + PATIENCE
        while self._probe.idle_seconds > MAX_ANSWER_SECONDS and monotonic() < deadline:
            sleep(LOOK_SECONDS)
            self._probe.calibrate()
        if self._probe.idle_seconds > MAX_ANSWER_SECONDS:
            self.close()
            raise UsageError(
                f"another program uses the GPU: an empty request takes {self._probe.idle_seconds * 1e3:.1f} ms",
                "nvidia-smi shows what uses it; --gpus N uses another one",
            )

    def make_memory(self) -> JudgeMemory:
        """Return a share of the device's memory."""
        from profkit.kernels.evaluation.worker.cuda_memory import CudaJudgeMemory

        return CudaJudgeMemory(self._driver, self._arena_bytes, self._probe)

    @property
    def units(self) -> int:
        """Return the number of its multiprocessors."""
        return int(self._properties.multi_processor_count)

    def cached_bytes(self) -> int:
        """Return twice the size of its L2, which was flushed before."""
        return 2 * int(self._properties.L2_cache_size)

    def measure_ceilings(self) -> dict[str, MeasuredCeilings]:
        """Measure the ceilings of float32, and of half precision, which has units of its own."""
        half = measure_ceilings(self.device, torch.bfloat16)
        return {"": measure_ceilings(self.device), **dict.fromkeys(("bfloat16", "float16"), half)}

    def begin_timing(self) -> None:
        """Count from now on whatever slows the device down, or works on it too early."""
        self._slowdowns = set()
        self._checks, self._early = self._probe.checks, self._probe.early

    def remarks(self) -> tuple[Fact, ...]:
        """Return a remark if the device was throttled."""
        self._slowdowns |= set(self._watch.look().words)
        if not self._slowdowns:
            return ()
        return (Fact.of("slowed-down", names=", ".join(sorted(self._slowdowns))),)

    def find_early_work(self) -> Fact | None:
        """Return a fact where work waited on the GPU itself for new arguments (stream memory operations)."""
        checks, early = self._probe.checks - self._checks, self._probe.early - self._early
        if early <= EARLY_SHARE * checks:
            return None
        return Fact.of("worked-early", early=early, checks=checks)

    def is_large(self, call_bytes: int) -> bool:
        """Return whether the largest batch of such calls takes more than each process may keep."""
        return min(self.batch.calls * call_bytes, self.batch.bytes) + TRUTH * call_bytes > self._spare_bytes

    def check(self) -> None:
        """Raise DeviceError where the device accepts no more work from this process."""
        try:
            torch.cuda.synchronize(self.device)
            if torch.cuda.memory_reserved(self.device) > self._spare_bytes:
                torch.cuda.empty_cache()
        except Exception as error:
            raise DeviceError(f"{type(error).__name__}: {str(error).splitlines()[0]}") from error

    def close(self) -> None:
        """Release the device for another judge."""
        self._lock.close()

    def _make_request(self) -> None:
        """Have the device do a tiny piece of work, and wait for it."""
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        address = ctypes.c_uint64(self._cell.data_ptr())
        self._driver.check("cuMemsetD8Async", address, ctypes.c_ubyte(0), ctypes.c_size_t(1), stream)
        self._driver.check("cuStreamSynchronize", stream)


def find_device(device: str) -> JudgedDevice:
    """Return the device of that name: cpu, or cuda:0. Raises UsageError where somebody else holds it."""
    return CudaDevice() if torch.device(device).type == "cuda" else JudgedDevice()


def _lock_device(uuid: str) -> contextlib.ExitStack:
    """Lock the device until the result is closed. Raises UsageError where another run keeps it.

    Mostly the process that started this judge holds the lock already; a judge that was killed may need seconds to
    leave its device.
    """
    lock = contextlib.ExitStack()
    try:
        lock.enter_context(lock_gpus([uuid], Silent(), PATIENCE))
    except MachineError as busy:
        raise UsageError(busy.message, busy.fix) from busy
    return lock
