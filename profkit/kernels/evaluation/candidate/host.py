"""Memory of the CPU that judge and kernel process share, and how the judge reads the rest of that process."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from contextlib import AbstractContextManager
from functools import cache
from typing import Any, TypeAlias

import torch

from profkit.core.errors import MachineError
from profkit.core.types import Json
from profkit.kernels.evaluation.candidate import malloc
from profkit.kernels.evaluation.candidate.arena import Arena
from profkit.kernels.evaluation.candidate.cuda_gate import JudgeGate

Tensor: TypeAlias = torch.Tensor


class HostJudgeMemory:
    """`size` bytes, of which only what was written takes memory; see `JudgeMemory`."""

    def __init__(self, size: int) -> None:
        self._arena = Arena(size)
        self._own_base = _bytes_at(self._arena, 0, 1).data_ptr()
        self._pid = self._base = 0

    @property
    def size(self) -> int:
        """Bytes that are shared."""
        return self._arena.size

    @property
    def inherited(self) -> tuple[int, ...]:
        """The arena's descriptor."""
        return (self._arena.fd,)

    def describe(self) -> Json:
        """Its descriptor and size."""
        return {"fd": self._arena.fd, "size": self.size}

    def meet(self, pid: int, base: int) -> None:
        """A process has started, in which the shared memory lies at `base`."""
        self._pid, self._base = pid, base

    def bytes_at(self, offset: int, size: int) -> Tensor:
        """A part of it as a tensor with a storage of its own."""
        return _bytes_at(self._arena, offset, size)

    def address_of(self, storage: Tensor) -> tuple[int, int]:
        """Where these bytes lie in the process's address space: begin and end."""
        begin = self._base + storage.data_ptr() - self._own_base if storage.numel() else 0
        return begin, begin + storage.numel()

    def read(self, address: int, count: int) -> Tensor | None:
        """Bytes of the process; None where there is nothing at that address. Raises MachineError."""
        data = torch.empty(count, dtype=torch.uint8)
        if count and _read_process(self._pid, address, data.data_ptr(), count) != count:
            return None
        return data

    def unknown(self, addresses: Sequence[int]) -> list[int]:  # noqa: ARG002
        """None: all of a process can be read."""
        return []

    def foreign(self, addresses: Sequence[int]) -> list[int]:  # noqa: ARG002
        """None: no handle is needed."""
        return []

    def open(self, segments: Sequence[tuple[int, int, str]]) -> bool:  # noqa: ARG002
        """There is nothing to open."""
        return False

    def settle(self) -> None:
        """What a processor has written is there."""

    def finish(self) -> None:
        """What stands still does nothing."""

    def arrive(self) -> None:
        """A processor's writes are there."""

    @property
    def is_idle(self) -> bool:
        """A process that stands still does nothing."""
        return True

    @property
    def gate(self) -> JudgeGate | None:
        """None: a processor calls and computes at once."""
        return None

    def forget(self) -> None:
        """Nothing is open."""

    def lose(self) -> None:
        """What is killed is gone."""

    def recover(self) -> None:
        """There is nothing to wait for."""

    def clear(self) -> None:
        """Give the memory back: what is written next lies elsewhere."""
        self._arena.clear()

    def close(self) -> None:
        """It is needed no more."""
        self._arena.close()


class HostKernelMemory:
    """The same memory in the kernel process; see `KernelMemory`."""

    def __init__(self, description: Json) -> None:
        assert isinstance(description, dict)
        fd, size = description["fd"], description["size"]
        assert isinstance(fd, int)
        assert isinstance(size, int)
        self._arena = Arena.inherited(fd, size)

    @property
    def base(self) -> int:
        """Its address."""
        return int(_bytes_at(self._arena, 0, 1).data_ptr())

    def bytes_at(self, offset: int, size: int) -> Tensor:
        """A part of it as a tensor with a storage of its own."""
        return _bytes_at(self._arena, offset, size)

    def fill_new(self, *, filled: bool) -> AbstractContextManager[None]:
        """What malloc gives holds garbage at first."""
        return malloc.fill_new_memory(filled=filled)

    def keep_freed(self) -> None:
        """malloc keeps what is freed: no call is charged with new pages."""
        malloc.keep_freed_memory()

    def release(self) -> None:
        """The system takes what it needs."""

    def wait(self) -> None:
        """A function that has returned is done; what its threads still do, the process is stopped at."""

    def begin_gated(self, number: int) -> None:
        """There is no gate."""

    def end_gated(self, number: int) -> None:
        """There is no gate."""

    def touch(self) -> None:
        """A processor works for whoever runs."""

    def has_failed(self) -> bool:
        """A CPU takes whatever it is given."""
        return False

    def export(self, addresses: Sequence[int]) -> list[tuple[int, int, str]]:  # noqa: ARG002
        """Nobody asks for it."""
        return []


def _bytes_at(arena: Arena, offset: int, size: int) -> Tensor:
    if not size:
        return torch.empty(0, dtype=torch.uint8, device="cpu")
    return torch.frombuffer(arena.memory, dtype=torch.uint8, count=size, offset=offset)


class _Range(ctypes.Structure):
    _fields_ = (("address", ctypes.c_void_p), ("size", ctypes.c_size_t))


@cache
def _load_reader() -> Any:
    """process_vm_readv(2). Raises MachineError where the system has none."""
    libc = ctypes.CDLL(None, use_errno=True)
    if not hasattr(libc, "process_vm_readv"):
        raise MachineError(
            "kernels can be evaluated on Linux alone: nothing else reads another process's memory"
        )
    libc.process_vm_readv.restype = ctypes.c_ssize_t
    return libc.process_vm_readv


def _read_process(pid: int, address: int, into: int, count: int) -> int:
    """Bytes that were read. Raises MachineError where the system does not let us."""
    mine, other = _Range(into, count), _Range(address, count)
    done: int = _load_reader()(pid, ctypes.byref(mine), 1, ctypes.byref(other), 1, 0)
    if done < 0 and ctypes.get_errno() in (1, 38):  # EPERM, ENOSYS
        raise MachineError(
            "the memory of a kernel's process cannot be read: the container forbids process_vm_readv",
            "docker run --cap-add SYS_PTRACE",
        )
    return done
