"""What judge and kernel process share, as each of them needs it: one interface for every kind of device.

The judge makes its side (`JudgeMemory`) and describes it to the process, which makes its own (`KernelMemory`) of that.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Protocol, TypeAlias

import torch

from profkit.core.types import Json
from profkit.kernels.evaluation.candidate import malloc

Tensor: TypeAlias = torch.Tensor


class JudgeMemory(Protocol):
    """Memory that the judge shares with one kernel process, and its look at what that process has beside it."""

    @property
    def size(self) -> int:
        """Bytes that are shared."""

    @property
    def inherited(self) -> tuple[int, ...]:
        """Descriptors that the process is started with."""

    def describe(self) -> Json:
        """What the process needs to have it, too."""

    def meet(self, pid: int, base: int) -> None:
        """A process has started, in which the shared memory lies at `base`."""

    def bytes_at(self, offset: int, size: int) -> Tensor:
        """A part of it as a tensor with a storage of its own: nothing reaches beyond."""

    def address_of(self, storage: Tensor) -> tuple[int, int]:
        """Where these bytes lie in the process's address space: begin and end."""

    def read(self, address: int, count: int) -> Tensor | None:
        """Bytes of the process, which stands still; None where there is nothing at its address."""

    def settle(self) -> None:
        """Wait until all is there that was written here: the process is to run now."""

    def clear(self) -> None:
        """Nothing of it is needed: what is written next lies elsewhere."""

    def close(self) -> None:
        """It is needed no more."""


class KernelMemory(Protocol):
    """The same memory in the kernel process, and how memory is given there to whoever asks for it."""

    @property
    def base(self) -> int:
        """Its address."""

    def bytes_at(self, offset: int, size: int) -> Tensor:
        """A part of it as a tensor with a storage of its own."""

    def fill_new(self, *, filled: bool) -> AbstractContextManager[None]:
        """New memory holds garbage at first, where `filled`, so that what nobody writes shows."""

    def keep_freed(self) -> None:
        """What is freed stays here: no later call is charged with getting it again."""

    def wait(self) -> None:
        """Until all is done that kernels have begun. Raises what they failed with."""


def fill_new_memory(device: torch.device) -> AbstractContextManager[None]:
    """New memory of this process on the device holds garbage at first."""
    del device  # there is no other one than the CPU
    return malloc.fill_new_memory()


def join_memory(description: Json) -> KernelMemory:
    """The kernel process's side of what the judge described."""
    from profkit.kernels.evaluation.candidate.host import HostKernelMemory

    return HostKernelMemory(description)
