"""Memory that judge and kernel process share: on the CPU, and what every kind of device has.

The judge makes its side (`JudgeMemory`) and describes it to the process, which makes its own (`WorkerMemory`)
from that.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import cache
from typing import Any

import torch

from profkit.core.errors import MachineError
from profkit.core.types import Json
from profkit.kernels.evaluation.worker.arguments import SharedBlock, Tensor
from profkit.kernels.evaluation.worker.latch import JudgeLatch

# glibc's mallopt(3)
_PERTURB, _MMAP_MAX, _TRIM_THRESHOLD = -6, -4, -1
_FILLED = 1  # new memory has bytes of its complement then, 0xFE: large negative numbers, or NaN
_KEPT = 1 << 30  # bytes that malloc keeps rather than gives back
GARBAGE = 0xFE


class JudgeMemory:
    """Memory that the judge shares with one kernel process: of the CPU, where all of a process can be read.

    Of its `size` bytes only written pages take memory. What a device needs besides is done by subclasses'
    methods.
    """

    latch: JudgeLatch | None = None  # what calls on a device may wait at until they are to run

    def __init__(self, size: int) -> None:
        self._arena = SharedBlock(size)
        self.size = size
        self.inherited: tuple[int, ...] = (self._arena.fd,)  # descriptors that the process is started with
        self._own_base = self.bytes_at(0, 1).data_ptr()
        self._pid = self._base = 0

    def describe(self) -> Json:
        """Return what the process needs to map the same memory."""
        return {"fd": self._arena.fd, "size": self.size}

    def meet(self, pid: int, base: int) -> None:
        """Note that a process has started, in which the shared memory lies at `base`."""
        self._pid, self._base = pid, base

    def bytes_at(self, offset: int, size: int) -> Tensor:
        """Return a part of the memory as a tensor with its own storage: nothing reaches beyond it."""
        return _bytes_at(self._arena, offset, size)

    def address_of(self, storage: Tensor) -> tuple[int, int]:
        """Return where these bytes begin and end in the process's address space."""
        begin = self._base + storage.data_ptr() - self._own_base if storage.numel() else 0
        return begin, begin + storage.numel()

    def read(self, address: int, count: int) -> Tensor | None:
        """Read bytes of the process, which is stopped; None where there is nothing at that address.

        By process_vm_readv(2). Raises MachineError where the system does not allow it.
        """
        data = torch.empty(count, dtype=torch.uint8)
        if count and _read_process(self._pid, address, data.data_ptr(), count) != count:
            return None
        return data

    def clear(self) -> None:
        """Drop the content: what is written next gets other pages."""
        self._arena.clear()

    def close(self) -> None:
        """Free the memory. Tensors on it must be gone."""
        self._arena.close()

    @property
    def is_idle(self) -> bool:
        """Return whether the device does nothing, as far as a look can tell."""
        return True

    def unknown(self, addresses: Sequence[int]) -> list[int]:  # noqa: ARG002
        """Return the process's addresses that cannot be read before it has exported handles for them."""
        return []

    def foreign(self, addresses: Sequence[int]) -> list[int]:  # noqa: ARG002
        """Return the addresses that are read by handles, which are invalid once the process has freed that memory."""
        return []

    def open(self, segments: Sequence[tuple[int, int, str]]) -> bool:  # noqa: ARG002
        """Open allocations that the process has exported, while it runs; return whether a known one was replaced."""
        return False

    def settle(self) -> None:
        """Wait until everything written here has arrived, before the process runs. Raises BusyDevice."""

    def finish(self) -> None:
        """Wait for what the process has launched on a device, which stopping it does not stop. Raises BusyDevice."""

    def arrive(self) -> None:
        """Wait until everything written here has arrived, and no cache holds any of it."""

    def forget(self) -> None:
        """Close all that is open of the process, which is going to free its allocations."""

    def lose(self) -> None:
        """Clean up after the process was killed."""

    def recover(self) -> None:
        """Wait until the killed process is gone, before another one is started. Raises MachineError."""


class WorkerMemory:
    """The same memory in the kernel process, and how memory is given there to whoever allocates it.

    On the CPU a function that has returned is done, and its threads are stopped with the process.
    """

    def __init__(self, description: Any) -> None:
        self._arena = SharedBlock.inherited(description["fd"], description["size"])
        self.base = self.bytes_at(0, 1).data_ptr()  # its address

    def bytes_at(self, offset: int, size: int) -> Tensor:
        """Return a part of the memory as a tensor with its own storage."""
        return _bytes_at(self._arena, offset, size)

    def fill_new(self, *, filled: bool) -> AbstractContextManager[None]:
        """Make new memory hold garbage at first, where `filled`, so that what a kernel leaves unwritten shows."""
        return fill_new_memory(filled=filled)

    def keep_freed(self) -> None:
        """Make malloc keep what is freed, so that no later call pays for getting it again."""
        _set_malloc(_MMAP_MAX, 0)
        _set_malloc(_TRIM_THRESHOLD, _KEPT)

    def release(self) -> None:
        """Give freed memory back to the system, for others."""

    def wait(self) -> None:
        """Wait until all that kernels have begun is done. Raises what they failed with."""

    def begin_latched(self, number: int) -> None:
        """Make what is launched from now on wait at the latch, as batch `number`."""

    def end_latched(self, number: int) -> None:
        """Have the device report when the batch is done."""

    def touch(self) -> None:
        """Launch the least there is, so that the device's switch to this process is not counted as a kernel's time."""

    def has_failed(self) -> bool:
        """Return whether the device accepts no more work from this process."""
        return False

    def export(self, addresses: Sequence[int]) -> list[tuple[int, int, str]]:  # noqa: ARG002
        """Return address, bytes and handle of the allocations at these addresses."""
        return []


def _bytes_at(arena: SharedBlock, offset: int, size: int) -> Tensor:
    """Return a part of the arena as a tensor; nothing is copied."""
    if not size:
        return torch.empty(0, dtype=torch.uint8, device="cpu")
    return torch.frombuffer(arena.memory, dtype=torch.uint8, count=size, offset=offset)


@contextmanager
def fill_new_memory(*, filled: bool = True) -> Iterator[None]:
    """Make memory from malloc hold GARBAGE at first, so that what a kernel leaves unwritten shows."""
    _set_malloc(_PERTURB, _FILLED if filled else 0)
    try:
        yield
    finally:
        _set_malloc(_PERTURB, 0)


@cache
def _load_mallopt() -> Any:
    """Return glibc's mallopt; None where the C library has none."""
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
    """Return the C library's process_vm_readv."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.process_vm_readv.restype = ctypes.c_ssize_t
    return libc.process_vm_readv


def _read_process(pid: int, address: int, into: int, count: int) -> int:
    """Read memory of another process into our own; return the number of bytes.

    Raises MachineError where the system forbids it.
    """
    ours, theirs = _Range(into, count), _Range(address, count)
    done: int = _load_reader()(pid, ctypes.byref(ours), 1, ctypes.byref(theirs), 1, 0)
    if done < 0 and ctypes.get_errno() in (1, 38):  # EPERM, ENOSYS
        raise MachineError(
            "the memory of a kernel's process cannot be read: the container forbids process_vm_readv",
            "docker run --cap-add SYS_PTRACE",
        )
    return done
