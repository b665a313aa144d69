"""What a source of kernels is: which operations it has a kernel for, and how each is loaded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeAlias

Kernel: TypeAlias = Callable[..., Any]  # called with exactly the arguments of the operation


@dataclass(frozen=True)
class SourceRequest:
    """Where kernels come from, as plain data: it travels to the process that loads them.

    `kind` is aten, compiled, flag_gems, directory, file, source (`text` of one operation), function or functions (of a
    running program, as `text` says); `paths` are absolute.
    """

    kind: str
    paths: tuple[str, ...] = ()
    text: str = ""
    operation: str = ""

    @property
    def names(self) -> str:
        """The names of its files or folders, without those above."""
        return ", ".join(Path(path).name for path in self.paths)


class KernelSource(Protocol):
    """Kernels by operation. Only the candidate's process loads one: a file may do anything."""

    def has_kernel(self, operation: str) -> bool:
        """Whether there is a kernel for the overload (`add.Tensor`), by names alone: no kernel is loaded."""

    def load(self, operation: str) -> Kernel:
        """The kernel. Raises LoadError, or whatever its file raises."""

    def where(self, operation: str) -> str:
        """The file of the kernel, or the name of the package; empty where there is none."""

    def operations(self) -> tuple[str, ...]:
        """The overloads that there is a kernel for, sorted: those of which `has_kernel` is true."""

    def remarks(self) -> tuple[str, ...]:
        """What the user should know: names of no operation, which of several files was taken, what was not."""


class LoadError(RuntimeError):
    """There is no such kernel: its file cannot be read, or does not define it."""


class ListedSource:
    """A source that knows its kernels from the beginning: by overload where each is, and what the user should know."""

    def __init__(self, places: Mapping[str, str], remarks: tuple[str, ...] = ()) -> None:
        self._places = places
        self._remarks = remarks

    def has_kernel(self, operation: str) -> bool:
        """Whether there is a kernel for the overload."""
        return operation in self._places

    def where(self, operation: str) -> str:
        """The file of the kernel, or its name in a package; empty where there is none."""
        return self._places.get(operation, "")

    def operations(self) -> tuple[str, ...]:
        """The overloads that there is a kernel for, sorted."""
        return tuple(sorted(self._places))

    def remarks(self) -> tuple[str, ...]:
        """What the user should know of the source."""
        return self._remarks
