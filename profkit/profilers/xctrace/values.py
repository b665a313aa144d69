"""Values of an export that have parts: a process, a thread, a stack with its frames. Equal ones are one object."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Process:
    """A process by name; `pid` is None where the export does not tell it."""

    name: str
    pid: int | None = None


@dataclass(frozen=True, slots=True)
class Thread:
    """A thread: its name ("Main Thread", "" where it has none), the kernel's number of it, and whose it is."""

    name: str
    tid: int | None = None
    process: Process | None = None


@dataclass(frozen=True, slots=True)
class Binary:
    """A program or a library as it lay in memory."""

    name: str
    path: str | None = None
    uuid: str | None = None
    arch: str | None = None
    load_address: int | None = None


@dataclass(frozen=True, slots=True)
class Frame:
    """One function of a stack. Of one without symbols `name` is its address as text ("0x1050a4f40")."""

    name: str
    address: int | None = None
    binary: Binary | None = None
    file: str | None = None
    line: int | None = None
    inlined: bool = False


@dataclass(frozen=True, slots=True)
class Backtrace:
    """A stack, innermost frame first, as xctrace writes it. A raw one (`kperf-bt`) has addresses for names."""

    frames: tuple[Frame, ...]
    process: Process | None = None  # of a raw one


# What a cell holds: numbers for times (ns), ids, sizes (bytes) and counts, text elsewhere; None for no value.
Value: TypeAlias = int | float | str | Process | Thread | Binary | Frame | Backtrace | tuple[int, ...] | None
