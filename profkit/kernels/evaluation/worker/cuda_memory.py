"""Memory of one CUDA device that judge and kernel process share, by the driver's interprocess handles.

The judge allocates it and gives its handle to the process. What the process allocates itself the judge opens
by handles that the process exports while it runs: the driver of the process answers for them. Once a segment
is open, its bytes are read while the process is stopped, as on the CPU: nothing computes when a result is
read.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from time import perf_counter
from typing import Any, NamedTuple

import torch

from profkit.core.codec import without_collector
from profkit.core.errors import MachineError
from profkit.core.types import Json
from profkit.kernels.evaluation.worker.arguments import Tensor
from profkit.kernels.evaluation.worker.latch import JudgeLatch, StreamLatch
from profkit.kernels.evaluation.worker.memory import GARBAGE, JudgeMemory, WorkerMemory
from profkit.runtime.region.cuda import L2_BYTES, CudaDriver, DriverError

DEVICE = torch.device("cuda", 0)  # a judge sees one device alone
HANDLE_BYTES = 64  # CU_IPC_HANDLE_SIZE
LAZY_PEER_ACCESS = 1  # CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS, which is all that cuda.h allows
FLUSH_TIMES = 2  # of the L2
# Blocks that are freed again so that the allocator has some to give: of both of its pools, for small and large ones.
SPARE_BLOCKS = (1 << 10, 1 << 14, 1 << 18, 1 << 20, 1 << 26)
# of the probe
CALIBRATIONS = 50
# Slower than so many times an idle device's answer, and seconds above it: busy.
TIMES_IDLE, ABOVE_IDLE = 5.0, 150e-6
WAITING = 1.5e-3  # seconds that an answer may take while processes wait at a latch: the device looks after them in turn
IN_A_ROW = 2  # fast answers: one alone may have come between two time slices
LOOKS = 3  # slow answers in a row: a single one is a judge that waited for a processor
STILL_BUSY = 0.02  # seconds of slow answers alone, of a process that is stopped: ten time slices
PATIENCE = 5.0  # seconds for work that was launched before the process was stopped
RECOVERY = 30.0  # seconds for a process that was killed inside of a kernel


class IpcHandle(ctypes.Structure):
    """A CUipcMemHandle, sent between processes as hexadecimal digits."""

    _fields_ = (("reserved", ctypes.c_ubyte * HANDLE_BYTES),)

    @classmethod
    def of_text(cls, text: str) -> IpcHandle:
        """Parse hexadecimal digits. Raises ValueError where the text is no handle."""
        data = bytes.fromhex(text)
        if len(data) != HANDLE_BYTES:
            raise ValueError(f"{len(data)} bytes are no handle")
        return cls.from_buffer_copy(data)

    def to_text(self) -> str:
        """Return the handle as hexadecimal digits."""
        return bytes(self.reserved).hex()


class _Block:
    """Bytes of a device for `torch.as_tensor`, which makes a tensor with a storage of just them."""

    def __init__(self, address: int, size: int) -> None:
        self.__cuda_array_interface__ = {
            "shape": (size,),
            "typestr": "|u1",
            "data": (address, False),
            "strides": None,
            "version": 3,
        }


def tensor_at(address: int, size: int) -> Tensor:
    """Return the bytes at an address of the device as a tensor; nothing is copied."""
    if not size:
        return torch.empty(0, dtype=torch.uint8, device=DEVICE)
    return torch.as_tensor(_Block(address, size), device=DEVICE)


class CudaJudgeMemory(JudgeMemory):
    """Shared memory of `size` bytes of the device; see `JudgeMemory`. `probe` tells when the device is idle.

    Raises MachineError where it cannot be allocated or shared.
    """

    def __init__(self, driver: CudaDriver, size: int, probe: IdleProbe) -> None:
        self._driver, self.size, self._probe = driver, size, probe
        self._base, self._is_lost = 0, False
        self._segments: dict[int, _Segment] = {}  # by their address in the process
        self._own = ctypes.c_uint64()
        handle = IpcHandle()
        try:
            driver.check("cuMemAlloc_v2", ctypes.byref(self._own), ctypes.c_size_t(size))
            driver.check("cuIpcGetMemHandle", ctypes.byref(handle), self._own)
        except DriverError as error:
            raise MachineError(
                f"{size / 1e9:.1f} GB of the GPU cannot be shared with another process: {error}",
                "nvidia-smi shows what else uses it",
            ) from error
        self._handle = handle.to_text()
        self.latch = self._latch = JudgeLatch(probe.waiting)
        self.inherited = (self._latch.fd,)  # for memory the handle is enough
        l2 = ctypes.c_int()
        driver.call("cuDeviceGetAttribute", ctypes.byref(l2), L2_BYTES, 0)
        self._flush = torch.empty(max(1, FLUSH_TIMES * l2.value), dtype=torch.uint8, device=DEVICE)

    @property
    def is_idle(self) -> bool:
        """Return whether the device answers at once, twice."""
        return self._probe.is_idle

    def describe(self) -> Json:
        """Return the handle, the size, and the latch's descriptor."""
        return {"cuda": self._handle, "size": self.size, "latch": self._latch.fd}

    def meet(self, pid: int, base: int) -> None:  # noqa: ARG002
        """Note that the memory lies at `base` in the process."""
        self._base = base

    def forget(self) -> None:
        """Close all open segments: only then may the process free them (cuIpcCloseMemHandle)."""
        for address in list(self._segments):
            self._close_segment(address)

    def lose(self) -> None:
        """Close all segments of a process that was killed, so that its allocations are freed."""
        self.forget()
        self._latch.leave()
        self._is_lost = True

    def recover(self) -> None:
        """Wait until the driver has removed the killed process from the device. Raises MachineError if it does not."""
        if self._is_lost and not self._probe.recover():
            raise MachineError(
                f"the GPU is still busy {RECOVERY:g} s after its process was killed",
                "nvidia-smi shows what uses it; --gpus N uses another one",
            )
        self._is_lost = False

    def bytes_at(self, offset: int, size: int) -> Tensor:
        """Return a part of the memory as a tensor with its own storage."""
        return tensor_at(self._own.value + offset, size)

    def address_of(self, storage: Tensor) -> tuple[int, int]:
        """Return where these bytes begin and end in the process's address space."""
        begin = self._base + storage.data_ptr() - self._own.value if storage.numel() else 0
        return begin, begin + storage.numel()

    def unknown(self, addresses: Sequence[int]) -> list[int]:
        """Return the addresses that lie in no open segment: the process must export handles for them."""
        return [address for address in addresses if address and self._find(address, 1) is None]

    def foreign(self, addresses: Sequence[int]) -> list[int]:
        """Return the addresses outside of the shared memory."""
        return [each for each in addresses if each and not self._base <= each < self._base + self.size]

    def open(self, segments: Sequence[tuple[int, int, str]]) -> bool:
        """Open allocations that the process has exported: address, bytes and handle of each. It must run meanwhile.

        What cannot be opened stays unknown. Returns whether a handle has changed, which means another allocation at
        that address.
        """
        has_changed = False
        for address, size, text in segments:
            if (known := self._segments.get(address)) is not None:
                if (known.size, known.handle) == (size, text):
                    continue
                self._close_segment(address)
                has_changed = True
            for overlapping in self._within(address, size):
                self._close_segment(overlapping)
                has_changed = True
            with suppress(DriverError, ValueError):
                mapped = ctypes.c_uint64()
                handle = IpcHandle.of_text(text)
                self._driver.check(
                    "cuIpcOpenMemHandle_v2", ctypes.byref(mapped), handle, ctypes.c_uint(LAZY_PEER_ACCESS)
                )
                self._segments[address] = _Segment(mapped.value, size, text)
        return has_changed

    def read(self, address: int, count: int) -> Tensor | None:
        """Copy bytes of the process; None where they lie in no open segment."""
        if not count:
            return torch.empty(0, dtype=torch.uint8, device=DEVICE)
        mapped = self._find(address, count)
        return None if mapped is None else tensor_at(mapped, count).clone()

    def settle(self) -> None:
        """Wait until everything written here has arrived, the L2 holds none of it, and the device is idle.

        Raises BusyDevice where the device works although the process is stopped.
        """
        self.arrive()
        self._probe.check()

    def arrive(self) -> None:
        """Wait until everything written here has arrived, and flush it from the L2."""
        self._flush.fill_(0)
        torch.cuda.synchronize(DEVICE)

    def finish(self) -> None:
        """Wait until the device is idle: stopping a process does not stop what it has launched.

        Raises BusyDevice where it does not become idle.
        """
        self._probe.wait()

    def clear(self) -> None:
        """Do nothing: this memory keeps its pages."""

    def close(self) -> None:
        """Free the memory. Tensors on it must be gone."""
        self.lose()
        self._latch.close()
        with suppress(DriverError):
            self._driver.call("cuMemFree_v2", self._own)

    def _find(self, address: int, count: int) -> int | None:
        """Return the address in this process of bytes of the kernel process; None where they are not open."""
        if self._base <= address and address + count <= self._base + self.size:
            return self._own.value + address - self._base
        for begin, segment in self._segments.items():
            if begin <= address and address + count <= begin + segment.size:
                return segment.mapped + address - begin
        return None

    def _within(self, address: int, size: int) -> list[int]:
        """Return the open segments that overlap these bytes: they were freed."""
        return [
            begin
            for begin, segment in self._segments.items()
            if begin < address + size and address < begin + segment.size
        ]

    def _close_segment(self, address: int) -> None:
        segment = self._segments.pop(address)
        with suppress(DriverError):
            self._driver.call("cuIpcCloseMemHandle", ctypes.c_uint64(segment.mapped))


class _Segment(NamedTuple):
    """An allocation of the kernel process that is open in the judge's."""

    mapped: int
    size: int
    handle: str


class CudaWorkerMemory(WorkerMemory):
    """The same memory in the kernel process; see `WorkerMemory`. Raises DriverError."""

    def __init__(self, description: Json) -> None:
        assert isinstance(description, dict)
        torch.cuda.init()
        torch.zeros(1, device=DEVICE)  # the context is made, and is this thread's
        self._driver = CudaDriver()
        mapped = ctypes.c_uint64()
        handle = IpcHandle.of_text(str(description["cuda"]))
        self._driver.check(
            "cuIpcOpenMemHandle_v2", ctypes.byref(mapped), handle, ctypes.c_uint(LAZY_PEER_ACCESS)
        )
        self.base = mapped.value
        self._cell = torch.zeros(1, dtype=torch.uint8, device=DEVICE)
        self._latch = StreamLatch(self._driver, int(str(description["latch"])))

    def bytes_at(self, offset: int, size: int) -> Tensor:
        """Return a part of the memory as a tensor with its own storage."""
        return tensor_at(self.base + offset, size)

    @contextmanager
    def fill_new(self, *, filled: bool) -> Iterator[None]:
        """Fill the free blocks of torch's allocator with garbage, if `filled`, before the block runs."""
        with without_collector():
            if filled:
                fill_free_blocks(self._driver)
            yield

    def keep_freed(self) -> None:
        """Do nothing: torch's allocator keeps what is freed anyway."""

    def release(self) -> None:
        """Give back what torch's allocator keeps."""
        torch.cuda.empty_cache()

    def wait(self) -> None:
        """Wait for all streams of this process. Raises DriverError, also for what a kernel did before."""
        self._driver.check("cuCtxSynchronize")

    def begin_latched(self, number: int) -> None:
        """Make what is launched to the current stream from now on wait at the latch."""
        self._latch.wait(torch.cuda.current_stream(DEVICE).cuda_stream, number)

    def end_latched(self, number: int) -> None:
        """Have the device write the number when the last call is done."""
        self._latch.report_done(torch.cuda.current_stream(DEVICE).cuda_stream, number)

    def touch(self) -> None:
        """Launch a tiny kernel: a device needs some 0.5 ms to switch from another process to this one."""
        self._cell.zero_()

    def has_failed(self) -> bool:
        """Return whether the device accepts no more work from this process: an illegal address, a trap."""
        try:
            self.wait()
        except DriverError:
            return True
        return False

    def export(self, addresses: Sequence[int]) -> list[tuple[int, int, str]]:
        """Return address, bytes and handle of the allocations at these addresses, where they have handles.

        Allocations of cudaMallocAsync, and those mapped by hand, have none.
        """
        allocations: dict[int, tuple[int, int, str]] = {}
        for address in addresses:
            with suppress(DriverError):
                base, size, handle = ctypes.c_uint64(), ctypes.c_size_t(), IpcHandle()
                self._driver.check(
                    "cuMemGetAddressRange_v2",
                    ctypes.byref(base),
                    ctypes.byref(size),
                    ctypes.c_uint64(address),
                )
                if base.value not in allocations:
                    self._driver.check("cuIpcGetMemHandle", ctypes.byref(handle), base)
                    allocations[base.value] = (base.value, size.value, handle.to_text())
        return list(allocations.values())


@contextmanager
def fill_new_device_memory() -> Iterator[None]:
    """Make memory from torch's allocator hold garbage inside the block, and zeros after it.

    So a value that nobody writes differs inside and after the block. Python's collector is off meanwhile: it
    would free tensors of old results after the free blocks were listed, and these would be given next.
    """
    driver = CudaDriver()
    with without_collector():
        fill_free_blocks(driver)
        yield
        fill_free_blocks(driver, 0)


def fill_free_blocks(driver: CudaDriver, byte: int = GARBAGE) -> None:
    """Write to all memory of the device that torch's allocator holds and nobody uses. Raises DriverError."""
    blocks = [torch.empty(size, dtype=torch.uint8, device=DEVICE) for size in SPARE_BLOCKS]
    del blocks
    torch.cuda.synchronize(DEVICE)
    for address, size in free_blocks(torch.cuda.memory_snapshot()):
        garbage = ctypes.c_ubyte(byte)
        driver.check("cuMemsetD8_v2", ctypes.c_uint64(address), garbage, ctypes.c_size_t(size))
    driver.check("cuCtxSynchronize")


def free_blocks(snapshot: Iterable[dict[str, Any]]) -> Iterator[tuple[int, int]]:
    """Yield address and bytes of each unused block in the allocator's snapshot."""
    for segment in snapshot:
        address = int(segment["address"])
        for block in segment["blocks"]:
            if block["state"] == "inactive":
                yield int(block.get("address", address)), int(block["size"])
            address += int(block["size"])


# ---------------------------------------------------------------- is the device idle?


class BusyDevice(Exception):
    """The device works, although the process that may use it is stopped."""


class IdleProbe:
    """Tells whether a device is idle by how fast it answers.

    `ask` has the device do a tiny piece of work, and waits for it.
    """

    def __init__(self, ask: Callable[[], object], clock: Callable[[], float] = perf_counter) -> None:
        self._ask, self._clock = ask, clock
        self.idle_seconds = 0.0  # of an answer
        self.checks = self.early = 0  # before a process is woken, and how often there was work already
        self.waiting: set[int] = set()  # processes with work that waits at a latch
        self.calibrate()

    def calibrate(self) -> None:
        """Measure how fast an idle device answers; nothing of profkit may run on it."""
        self._ask()
        answers = sorted(self._answer_seconds() for _ in range(CALIBRATIONS))
        self.idle_seconds = answers[len(answers) // 2]

    @property
    def busy_seconds(self) -> float:
        """Return the seconds above which an answer is that of a busy device."""
        min_seconds = WAITING if self.waiting else self.idle_seconds + ABOVE_IDLE
        return max(TIMES_IDLE * self.idle_seconds, min_seconds)

    @property
    def is_idle(self) -> bool:
        """Return whether some answers in a row are fast, now or soon."""
        fast = 0
        for _ in range(LOOKS + IN_A_ROW):
            fast = fast + 1 if self._answer_seconds() <= self.busy_seconds else 0
            if fast == IN_A_ROW:
                return True
        return False

    def check(self) -> None:
        """Raise BusyDevice where the device works, and does not stop at once."""
        self.checks += 1
        slow: list[float] = []
        while len(slow) < LOOKS or sum(slow) < STILL_BUSY:
            seconds = self._answer_seconds()
            if seconds <= self.busy_seconds:
                self.early += len(slow) > 0
                return
            slow.append(seconds)
        median = sorted(slow)[len(slow) // 2]
        raise BusyDevice(
            "the GPU is busy although the process of the kernels is stopped: an empty request takes "
            f"{median * 1e6:.0f} us, and {self.idle_seconds * 1e6:.0f} us when it is idle"
        )

    def wait(self, patience: float = PATIENCE) -> None:
        """Wait until the device is idle. Raises BusyDevice where it is not within `patience` seconds."""
        end = self._clock() + patience
        fast = 0
        while fast < IN_A_ROW:
            fast = fast + 1 if self._answer_seconds() <= self.busy_seconds else 0
            if not fast and self._clock() > end:
                raise BusyDevice(f"the GPU is still busy after {patience:g} s")

    def recover(self) -> bool:
        """Wait until the device is idle after its process was killed; return whether it became so."""
        try:
            self.wait(RECOVERY)
        except BusyDevice:
            return False
        return True

    def _answer_seconds(self) -> float:
        """Return the seconds that one answer takes."""
        begin = self._clock()
        self._ask()
        return self._clock() - begin
