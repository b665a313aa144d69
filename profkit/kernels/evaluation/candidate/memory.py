"""What judge and kernel process share, as each of them needs it: one interface for every kind of device.

The judge makes its side (`JudgeMemory`) and describes it to the process, which makes its own (`KernelMemory`) of that.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Protocol, TypeAlias

import torch

from profkit.core.types import Json
from profkit.kernels.evaluation.candidate import malloc
from profkit.kernels.evaluation.candidate.cuda_gate import JudgeGate

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

    def unknown(self, addresses: Sequence[int]) -> list[int]:
        """Those of the process's addresses that cannot be read before it has made handles for them."""

    def foreign(self, addresses: Sequence[int]) -> list[int]:
        """Those that are read by handles, which are old once the process has given that memory back."""

    def open(self, segments: Sequence[tuple[int, int, str]]) -> bool:
        """Open what the process has made handles for, while it runs; whether one that was open is another now."""

    def settle(self) -> None:
        """Wait until all is there that was written here: the process is to run now. Raises BusyDevice."""

    def finish(self) -> None:
        """Wait for what the process has launched on a device, which stopping it does not stop. Raises BusyDevice."""

    def arrive(self) -> None:
        """Wait until all is there that was written here, and nothing of it in a cache."""

    @property
    def is_idle(self) -> bool:
        """Whether the device does nothing, as far as a look can tell."""

    @property
    def gate(self) -> JudgeGate | None:
        """What calls on a device may wait at until they are to run; None where there is none."""

    def forget(self) -> None:
        """The process is to give back what it has allocated: nothing of it stays open here."""

    def lose(self) -> None:
        """The process was killed."""

    def recover(self) -> None:
        """Another one is to be started: wait until the killed one is gone. Raises MachineError."""

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

    def export(self, addresses: Sequence[int]) -> list[tuple[int, int, str]]:
        """Address, bytes and handle of the allocations that have these addresses."""


def fill_new_memory(device: torch.device) -> AbstractContextManager[None]:
    """New memory of this process on the device holds garbage at first."""
    if device.type == "cuda":
        from profkit.kernels.evaluation.candidate.cuda_memory import fill_new_device_memory

        return fill_new_device_memory()
    return malloc.fill_new_memory()


def join_memory(description: Json) -> KernelMemory:
    """The kernel process's side of what the judge described."""
    if isinstance(description, dict) and "cuda" in description:
        from profkit.kernels.evaluation.candidate.cuda_memory import CudaKernelMemory

        return CudaKernelMemory(description)
    from profkit.kernels.evaluation.candidate.host import HostKernelMemory

    return HostKernelMemory(description)
