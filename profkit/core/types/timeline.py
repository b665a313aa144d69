"""What ran when: one typical step of a device's work, or the whole run of a program's threads, as lanes of marks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

# Of what a timeline shows: one step of those that repeat, one entry of a marked region, all of a trace in which nothing
# repeats, or the whole run by its threads.
TimelineKind = Literal["step", "region", "trace", "threads"]
LaneKind = Literal[
    "kernels",  # of one stream
    "copies",  # of one device, memsets among them
    "idle",  # in which one device did nothing, by what the host did
    "range",  # regions and ranges that the program marks
    "line",  # lines of the program around calls of a framework
    "operation",  # operations of a framework
    "calls",  # of one thread into the device's library
    "thread",
    "task",  # what one coroutine did in the thread of its event loop
]
MarkKind = Literal[
    "kernel",
    "copy",
    "range",
    "line",
    "operation",
    # what a host does: calls that launch, wait for the device, allocate or free memory, all other calls; and
    "launch",
    "wait",
    "memory",
    "call",
    "program",  # no call at all: the program itself, or a framework
    "queued",  # of an idle device: its next work was launched already, and waits for a copy, an event or its launch
    # what a thread does: it runs Python or machine code, could run and has no processor, or waits
    "python",
    "native",
    "processor-wait",
    "gpu",
    "lock",
    "network",
    "input",
    "file",
    "pipe",
    "sync",
    "sleep",
    "child",
    "await",
    "waiting",
]


@dataclass(frozen=True)
class MarkLabel:
    """What a mark stands for: a kernel, a call, a line.

    `what`: for a call that launches, the kernel; for an idle stretch, the call that the host was in for its
    longest part.
    """

    kind: MarkKind
    name: str
    what: str = ""
    shape: str = ""  # of a kernel, its launch configuration
    operation: str | None = None
    file: str | None = None
    line: int | None = None
    function: str | None = None


@dataclass(frozen=True)
class Lane:
    """One line of a timeline. Times in whole ns from its begin, in the order of the starts.

    `labels` are indices into the timeline's own. `counts` is the number of things that each mark stands for,
    which is labelled after the longest of them, and `busy` their total in ns; both are empty where nothing was
    merged.
    """

    kind: LaneKind
    starts: tuple[int, ...]
    lengths: tuple[int, ...]
    labels: tuple[int, ...]
    counts: tuple[int, ...] = ()
    busy: tuple[int, ...] = ()
    process: int = 0  # counted from 0, in the order in which they are met
    device: int | None = None
    number: int | None = None  # of the stream, or the thread
    name: str = ""  # of the thread, the process or the task


@dataclass(frozen=True)
class ActivityBins:
    """How busy one device or thread was in each of equal parts of the whole recording, in %."""

    shares: tuple[int, ...]
    process: int = 0
    device: int | None = None
    name: str = ""


@dataclass(frozen=True)
class Timeline:
    """A bounded record of what ran when. Times in seconds, except those of the lanes."""

    kind: TimelineKind
    begin: float  # from the begin of the recording
    seconds: float
    whole: float  # length of the recording
    labels: tuple[MarkLabel, ...]
    lanes: tuple[Lane, ...]
    activity: tuple[ActivityBins, ...] = ()
    of: int = 1  # so many steps or entries, of which this is the one with the median length
    name: str = ""  # of the region
    merged: int = 0  # things that are no mark of their own: next to each other, and each shorter than
    shortest: float = 0.0  # so many seconds; of threads, within which the order of what they did is not known
    left_out: int = 0  # lanes with least time, where there are more than are kept
    processes: tuple[str, ...] = ()  # their names, as far as they are told
