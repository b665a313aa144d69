"""What judge and kernel process share: on the CPU, and what every kind of device has.

The judge makes its side (`JudgeMemory`) and describes it to the process, which makes its own (`KernelMemory`) of that.

A gate before the calls of a batch: the device waits at it until the judge, whose clock then runs, opens it.

To launch a short kernel takes the host longer than the device takes to run it, and how long differs from process to
process by a tenth and more. So a process launches all calls of a batch behind the gate, says where their outputs lie,
and is stopped. Only then are their arguments written: no code on a processor ever sees them. From the moment in which
the gate opens the device alone works, and a number that it writes behind the last call says when it is done. Nobody
needs to believe that number: the judge looks whether the device is idle then.

Both numbers lie in a page of the host that judge, process and device share, so opening it and looking at it disturb
nothing (cuda.h: stream memory operations).
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import cache
from typing import Any

import torch

from profkit.core.errors import MachineError
from profkit.core.types import Json
from profkit.kernels.evaluation.candidate.arguments import Arena, Tensor
from profkit.runtime.region.cuda import CudaDriver

# glibc's mallopt(3)
_PERTURB, _MMAP_MAX, _TRIM_THRESHOLD = -6, -4, -1
_FILLED = 1  # new memory has bytes of its complement then, 0xFE: large negative numbers, or NaN
_KEPT = 1 << 30  # bytes that malloc keeps rather than gives back
GARBAGE = 0xFE

# of the gate
PAGE = 4096
OPEN, DONE = 0, 64  # where the numbers lie: of the last batch that may run, and of the last one that is done
PORTABLE, DEVICE_MAP = 1, 2  # CU_MEMHOSTREGISTER_*
AT_LEAST = 0  # CU_STREAM_WAIT_VALUE_GEQ


class JudgeMemory:
    """Memory that the judge shares with one kernel process: of the CPU, where all of a process can be read.

    Of its `size` bytes only what was written takes memory. What a device needs beside, it does in methods of its own.
    """

    gate: JudgeGate | None = None  # what calls on a device may wait at until they are to run

    def __init__(self, size: int) -> None:
        self._arena = Arena(size)
        self.size = size
        self.inherited: tuple[int, ...] = (self._arena.fd,)  # descriptors that the process is started with
        self._own_base = self.bytes_at(0, 1).data_ptr()
        self._pid = self._base = 0

    def describe(self) -> Json:
        """What the process needs to have it, too."""
        return {"fd": self._arena.fd, "size": self.size}

    def meet(self, pid: int, base: int) -> None:
        """A process has started, in which the shared memory lies at `base`."""
        self._pid, self._base = pid, base

    def bytes_at(self, offset: int, size: int) -> Tensor:
        """A part of it as a tensor with a storage of its own: nothing reaches beyond."""
        return _bytes_at(self._arena, offset, size)

    def address_of(self, storage: Tensor) -> tuple[int, int]:
        """Where these bytes lie in the process's address space: begin and end."""
        begin = self._base + storage.data_ptr() - self._own_base if storage.numel() else 0
        return begin, begin + storage.numel()

    def read(self, address: int, count: int) -> Tensor | None:
        """Bytes of the process, which stands still; None where there is nothing at its address.

        By process_vm_readv(2). Raises MachineError where the system does not let us.
        """
        data = torch.empty(count, dtype=torch.uint8)
        if count and _read_process(self._pid, address, data.data_ptr(), count) != count:
            return None
        return data

    def clear(self) -> None:
        """Nothing of it is needed: what is written next lies elsewhere."""
        self._arena.clear()

    def close(self) -> None:
        """It is needed no more. Tensors on it must be gone."""
        self._arena.close()

    @property
    def is_idle(self) -> bool:
        """Whether the device does nothing, as far as a look can tell."""
        return True

    def unknown(self, addresses: Sequence[int]) -> list[int]:  # noqa: ARG002
        """Those of the process's addresses that cannot be read before it has made handles for them."""
        return []

    def foreign(self, addresses: Sequence[int]) -> list[int]:  # noqa: ARG002
        """Those that are read by handles, which are old once the process has given that memory back."""
        return []

    def open(self, segments: Sequence[tuple[int, int, str]]) -> bool:  # noqa: ARG002
        """Open what the process has made handles for, while it runs; whether one that was open is another now."""
        return False

    def settle(self) -> None:
        """Wait until all is there that was written here: the process is to run now. Raises BusyDevice."""

    def finish(self) -> None:
        """Wait for what the process has launched on a device, which stopping it does not stop. Raises BusyDevice."""

    def arrive(self) -> None:
        """Wait until all is there that was written here, and nothing of it in a cache."""

    def forget(self) -> None:
        """The process is to give back what it has allocated: nothing of it stays open here."""

    def lose(self) -> None:
        """The process was killed."""

    def recover(self) -> None:
        """Another one is to be started: wait until the killed one is gone. Raises MachineError."""


class KernelMemory:
    """The same memory in the kernel process, and how memory is given there to whoever asks for it.

    On the CPU a function that has returned is done, and its threads are stopped with it.
    """

    def __init__(self, description: Any) -> None:
        self._arena = Arena.inherited(description["fd"], description["size"])
        self.base = self.bytes_at(0, 1).data_ptr()  # its address

    def bytes_at(self, offset: int, size: int) -> Tensor:
        """A part of it as a tensor with a storage of its own."""
        return _bytes_at(self._arena, offset, size)

    def fill_new(self, *, filled: bool) -> AbstractContextManager[None]:
        """New memory holds garbage at first, where `filled`, so that what nobody writes shows."""
        return fill_new_memory(filled=filled)

    def keep_freed(self) -> None:
        """What is freed stays here: no later call is charged with getting it again."""
        _set_malloc(_MMAP_MAX, 0)
        _set_malloc(_TRIM_THRESHOLD, _KEPT)

    def release(self) -> None:
        """Give back what is freed: others need it."""

    def wait(self) -> None:
        """Until all is done that kernels have begun. Raises what they failed with."""

    def begin_gated(self, number: int) -> None:
        """What is launched from now on waits at the gate, as batch `number`."""

    def end_gated(self, number: int) -> None:
        """The device tells when all of it is done."""

    def touch(self) -> None:
        """Launch the least there is: what it takes until a device works for this process is no kernel's time."""

    def has_failed(self) -> bool:
        """Whether the device takes nothing more from this process."""
        return False

    def export(self, addresses: Sequence[int]) -> list[tuple[int, int, str]]:  # noqa: ARG002
        """Address, bytes and handle of the allocations that have these addresses."""
        return []


def _bytes_at(arena: Arena, offset: int, size: int) -> Tensor:
    if not size:
        return torch.empty(0, dtype=torch.uint8, device="cpu")
    return torch.frombuffer(arena.memory, dtype=torch.uint8, count=size, offset=offset)


@contextmanager
def fill_new_memory(*, filled: bool = True) -> Iterator[None]:
    """Memory that malloc gives holds GARBAGE at first, so that what nobody writes shows."""
    _set_malloc(_PERTURB, _FILLED if filled else 0)
    try:
        yield
    finally:
        _set_malloc(_PERTURB, 0)


@cache
def _load_mallopt() -> Any:
    with suppress(OSError, AttributeError):
        return ctypes.CDLL(None).mallopt
    return None


def _set_malloc(parameter: int, value: int) -> None:
    if (mallopt := _load_mallopt()) is not None:
        mallopt(parameter, value)


class _Range(ctypes.Structure):
    _fields_ = (("address", ctypes.c_void_p), ("size", ctypes.c_size_t))


@cache
def _load_reader() -> Any:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.process_vm_readv.restype = ctypes.c_ssize_t
    return libc.process_vm_readv


def _read_process(pid: int, address: int, into: int, count: int) -> int:
    """Bytes that were read."""
    mine, other = _Range(into, count), _Range(address, count)
    done: int = _load_reader()(pid, ctypes.byref(mine), 1, ctypes.byref(other), 1, 0)
    if done < 0 and ctypes.get_errno() in (1, 38):  # EPERM, ENOSYS
        raise MachineError(
            "the memory of a kernel's process cannot be read: the container forbids process_vm_readv",
            "docker run --cap-add SYS_PTRACE",
        )
    return done


# ---------------------------------------------------------------- the gate


class JudgeGate:
    """The judge's side. `waiting`: the numbers of all gates at which something waits."""

    def __init__(self, waiting: set[int]) -> None:
        self._page = Arena(PAGE)
        self._number = 0
        self._waiting = waiting

    @property
    def fd(self) -> int:
        """What the process inherits."""
        return self._page.fd

    def next_batch(self) -> int:
        """The number of a new batch, before which the gate is closed."""
        self._number += 1
        self._waiting.add(self.fd)
        return self._number

    def leave(self) -> None:
        """Nothing waits any more: the batch has run, or its process is gone."""
        self._waiting.discard(self.fd)

    def open(self) -> None:
        """Let the batch run."""
        struct.pack_into("<I", self._page.memory, OPEN, self._number)

    @property
    def is_done(self) -> bool:
        """Whether its process's device has said so."""
        return bool(struct.unpack_from("<I", self._page.memory, DONE)[0] == self._number)

    def close(self) -> None:
        """It is needed no more."""
        self.leave()
        self._page.close()


class DeviceGate:
    """The side of the kernel process, on the stream that kernels are launched to. Raises DriverError."""

    def __init__(self, driver: CudaDriver, fd: int) -> None:
        self._driver = driver
        self._page = Arena.inherited(fd, PAGE)
        begin = ctypes.addressof(ctypes.c_char.from_buffer(self._page.memory))
        flags = ctypes.c_uint(PORTABLE | DEVICE_MAP)
        driver.check("cuMemHostRegister_v2", ctypes.c_void_p(begin), ctypes.c_size_t(PAGE), flags)
        self._address = ctypes.c_uint64()
        driver.check(
            "cuMemHostGetDevicePointer_v2",
            ctypes.byref(self._address),
            ctypes.c_void_p(begin),
            ctypes.c_uint(0),
        )

    def wait(self, stream: int, number: int) -> None:
        """What is launched to the stream from now on waits until this batch may run."""
        self._on("cuStreamWaitValue32_v2", stream, OPEN, number, AT_LEAST)

    def tell_done(self, stream: int, number: int) -> None:
        """When all that was launched to the stream is done, say so."""
        self._on("cuStreamWriteValue32_v2", stream, DONE, number, 0)

    def _on(self, name: str, stream: int, offset: int, number: int, flags: int) -> None:
        address = ctypes.c_uint64(self._address.value + offset)
        self._driver.check(
            name, ctypes.c_void_p(stream), address, ctypes.c_uint32(number), ctypes.c_uint(flags)
        )
