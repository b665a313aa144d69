"""What a source of kernels is: which operations it has a kernel for, and how each is loaded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

Kernel: TypeAlias = Callable[..., Any]  # called with exactly the arguments of the operation


@dataclass(frozen=True)
class SourceRequest:
    """Where kernels come from, as plain data: it travels to the process that loads them.

    `kind` is aten, flag_gems, directory, file or source (`text` of one operation); `paths` are absolute.
    """

    kind: str
    paths: tuple[str, ...] = ()
    text: str = ""
    operation: str = ""


class KernelSource(Protocol):
    """Kernels by operation. Only the candidate's process loads one: a file may do anything."""

    def has_kernel(self, operation: str) -> bool:
        """Whether there is a kernel for the overload (`add.Tensor`), by names alone: no kernel is loaded."""

    def load(self, operation: str) -> Kernel:
        """The kernel. Raises LoadError, or whatever its file raises."""

    def where(self, operation: str) -> str:
        """The file of the kernel, or the name of the package; empty where there is none."""


class LoadError(Exception):
    """There is no such kernel: its file cannot be read, or does not define it."""
