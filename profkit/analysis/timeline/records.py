"""The columns in which a reader hands over what it read, and the tables that their numbers point into.

Imports numpy, so import it where a trace is read.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Columns: TypeAlias = "NDArray[np.void]"
else:
    Columns: TypeAlias = Any

# One thing that a device did. `key` joins it with the call that asked for it; `launch` (when that call began) and
# `call` (how long it took) and `thread` (which made it) are -1 until `launches.LaunchBook` has found it, or where
# there is none. `what` is the number of a configuration (kernel) or of a kind of transfer, by `kind`.
ACTIVITY = [
    ("start", "i8"),
    ("end", "i8"),
    ("key", "i8"),
    ("launch", "i8"),
    ("call", "i8"),
    ("bytes", "i8"),
    ("what", "i4"),
    ("thread", "i4"),
    ("process", "i2"),
    ("device", "i2"),
    ("kind", "i1"),
    ("graph", "?"),
]
# One call of the host into CUDA.
CALL = [("start", "i8"), ("end", "i8"), ("key", "i8"), ("name", "i4"), ("thread", "i4"), ("process", "i2")]

KERNEL, TRANSFER, GRAPH = 0, 1, 2  # kinds of activity; GRAPH is a CUDA graph that was traced as a whole
MOST_CONFIGURATIONS = 1 << 17  # kept apart; a trace of more has shapes that never come again
OTHER = "[more launch configurations]"  # and these are one


@dataclass(frozen=True)
class Configuration:
    """A kernel as it was launched. Finer than `model.Kernel.id`: what registers and memory tell apart stays apart."""

    name: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    mangled: str | None = None
    registers: int | None = None
    shared: int | None = None


@dataclass(frozen=True)
class Range:
    """One entry of a marked range. `end` None: it was still open. `thread` None: it is the whole process'."""

    name: str
    domain: str | None
    start: int
    end: int | None
    process: int
    thread: int | None


@dataclass
class Tables:
    """What the numbers in the columns mean. Grows while the columns are read."""

    configurations: list[Configuration] = field(default_factory=list)
    transfers: list[str] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Recording:
    """All that a reader knows of a trace. `activities` and `calls` come in blocks, in the order of their starts.

    `profiler` are the times between which the workload had the profiler switched on (cudaProfilerStart to Stop), empty
    where it did not; `captured`: nothing but that was recorded.
    """

    tool: str
    activities: Iterable[Columns]
    calls: Iterable[Columns]
    tables: Tables
    ranges: tuple[Range, ...] = ()
    profiler: tuple[tuple[int, int | None], ...] = ()
    captured: bool = False
