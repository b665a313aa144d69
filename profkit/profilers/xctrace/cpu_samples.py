"""Samples of one table of Instruments: its rows, whatever it lacks, and their sums by stack, function and thread."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from profkit.analysis.stacks import merge
from profkit.analysis.stacks.merge import KERNEL, PYTHON, UNKNOWN, FrameTable, StackMerger, keep_python_frames
from profkit.core.types import Frame, Hotspot, Profile, Stacks
from profkit.profilers.xctrace.cells import Backtrace, Process, Thread
from profkit.profilers.xctrace.tables import ExportTable

RAW = "time-sample"
RUNNING = "Running"
_HEX = re.compile(r"0x[0-9a-fA-F]+")
# The kernel's own image ("kernel", "kernel.release.t8103") and its extensions, as Instruments names binaries.
_KERNEL_IMAGE = re.compile(r"kernel(\.(release|development|kasan)\S*)?|mach_kernel")


def frame_of(name: str | None, binary: str | None) -> Frame:
    """The frame of one function of a backtrace; `binary` is the image it is in, by name or path.

    A function that Instruments could not name is called by its address there. That differs from run to run and
    would only keep equal things apart, so it is `[unknown]` here, with its library where that is known.
    `py::FUNCTION:FILE` is how CPython 3.12 and later name the trampolines of Python functions.
    """
    if name is not None and name.startswith("py::"):
        function, _, file = name[4:].partition(":")
        return Frame(function or UNKNOWN, PYTHON, file or None)
    if not name or _HEX.fullmatch(name):
        name = UNKNOWN
    return Frame(name, library_of(binary))


def library_of(binary: str | None) -> str | None:
    """The library's name without its folder; None where Instruments does not know the image."""
    name = (binary or "").rstrip("/").rpartition("/")[2]
    if not name or _HEX.fullmatch(name):
        return None
    if _KERNEL_IMAGE.fullmatch(name):
        return KERNEL
    return f"[{name.removesuffix('.kext')}]" if name.endswith(".kext") else name


@dataclass(frozen=True)
class WeightUnit:
    """What the weights of a table are: `title` of its profiles, their unit, and the divisor into it."""

    title: str
    unit: str
    per: float = 1


TIME = WeightUnit("CPU time", "s", 1e9)
CYCLES = WeightUnit("CPU cycles", "cycles")
WAITING = WeightUnit("waiting", "s", 1e9)
SAMPLES = WeightUnit("samples", "samples")


class SampleTally:
    """What the samples of one table come to; weights are in the table's own unit until the end.

    Samples of a running thread are work, those of any other state are time spent waiting and kept apart.
    """

    def __init__(self, frames: FrameTable, unit: WeightUnit, events: Sequence[str] = ()) -> None:
        self._frames = frames
        self.unit = unit
        self._events = tuple(events)
        self._running = StackMerger(frames)
        self._waiting = StackMerger(frames)
        self._threads: dict[str, float] = {}
        self._counts: dict[str | None, list[int]] = {}  # by kind of core
        self._kinds: dict[str | None, float] = {}  # kind of core -> weight
        self._of_function: dict[int, list[int]] = {}
        self.without_stack = 0
        self.uneven = 0  # samples with another number of counts than there are events, or with less than none

    def add(
        self,
        ids: tuple[int, ...],
        weight: float,
        thread: str,
        state: str | None = RUNNING,
        counts: Sequence[int] | None = None,
        core: str | None = None,
    ) -> None:
        """Count one sample: its frames innermost first, none where the tool caught no stack; `core` is a kind of it."""
        if not ids:
            self.without_stack += 1
        if state is not None and state != RUNNING:
            self._waiting.add(ids, weight)
            return
        self._running.add(ids, weight)
        self._threads[thread] = self._threads.get(thread, 0) + weight
        self._kinds[core] = self._kinds.get(core, 0) + weight
        if counts is None:
            return
        if len(counts) != len(self._events) or min(counts, default=0) < 0:
            self.uneven += 1
            return
        none = [0] * len(counts)
        self._counts[core] = [a + b for a, b in zip(self._counts.get(core, none), counts, strict=True)]
        if ids:
            own = self._of_function.get(ids[0], none)
            self._of_function[ids[0]] = [a + b for a, b in zip(own, counts, strict=True)]

    @property
    def samples(self) -> int:
        """Samples of running threads."""
        return self._running.samples

    @property
    def waiting(self) -> int:
        """Samples of threads that did not run."""
        return self._waiting.samples

    @property
    def cut(self) -> float:
        """The share (0..1) of the weight whose inner frames were not kept apart."""
        return self._running.cut / self._running.weight if self._running.cut else 0.0

    def counts(self) -> dict[tuple[str, str | None], int]:
        """What each event counted over all samples of running threads, for each kind of core that they ran on.

        Empty where the arrays do not fit the names. The kind is None where there is but one.
        """
        if self.uneven:
            return {}
        counts = self._counts or {None: [0] * len(self._events)}
        return {
            (event, kind if len(counts) > 1 else None): counts[kind][place]
            for kind in sorted(counts, key=str)
            for place, event in enumerate(self._events)
        }

    def weights(self) -> dict[str | None, float]:
        """The weight of running threads for each kind of core; the kind is None where there is but one."""
        return {None: self._running.weight} if len(self._kinds) < 2 else dict(self._kinds)

    def stacks(self) -> tuple[Stacks, ...]:
        """The stacks of running threads, then those of waiting ones."""
        both = ((self._running, self.unit), (self._waiting, WAITING))
        return tuple(
            merger.stacks(unit.title, unit.unit, unit.per) for merger, unit in both if merger.samples
        )

    def profiles(self) -> tuple[Profile, ...]:
        """Tables by function (with the events counted in each) and library, by thread and Python function where any.

        Of threads that waited there is one by function, after those of running ones.
        """
        unit = self.unit
        profiles: list[Profile] = []
        if self._running.samples:
            by_function, by_library = self._running.profiles(unit.title, unit.unit, unit.per)
            profiles = [self._with_events(by_function), by_library]
            if len(self._threads) > 1:
                profiles.append(_by_thread(unit, self._threads))
            python = keep_python_frames(self._running.stacks(unit.title, unit.unit, unit.per))
            if python is not None:
                title = f"{unit.title} by Python function"
                profiles.append(replace(merge.by_function(python), title=title, kind="python-functions"))
        if self._waiting.samples:
            profiles.append(self._waiting.profiles(WAITING.title, WAITING.unit, WAITING.per)[0])
        return tuple(profiles)

    def _with_events(self, profile: Profile) -> Profile:
        if not self._of_function or self.uneven:
            return profile
        counted = {
            (frame.function, frame.library, frame.file): dict(
                zip(self._events, map(float, counts), strict=True)
            )
            for frame, counts in ((self._frames.frames[n], counts) for n, counts in self._of_function.items())
        }
        spots = tuple(
            replace(spot, counters=own)
            if (own := counted.get((spot.function, spot.library, spot.file))) is not None
            else spot
            for spot in profile.hotspots
        )
        return replace(profile, hotspots=spots)


def _by_thread(unit: WeightUnit, weights: dict[str, float]) -> Profile:
    """The table by thread. A thread has no callers, so own and inclusive weight are the same."""
    rows = sorted(weights.items(), key=lambda row: (-row[1], row[0]))
    spots = tuple(Hotspot(name, own=weight / unit.per, total=weight / unit.per) for name, weight in rows)
    return Profile(f"{unit.title} by thread", unit.unit, sum(weights.values()) / unit.per, spots, "threads")


_OWNER = ("time", "thread", "process", "thread-state")
_WANTED = (*_OWNER, "weight", "stack", "counters-array", "weight/@fmt", "core/@fmt")
_WANTED_RAW = (*_OWNER, "cp-kernel-callstack", "cp-user-callstack")
_KIND = re.compile(r"\((\w+ Core)\)")


class CpuSample(NamedTuple):
    """One sample; what its table lacks is None."""

    time: int | None  # ns
    thread: Thread | None
    process: Process | None
    state: str | None  # of the thread
    weight: int | None
    stack: Backtrace | None
    counts: tuple[int, ...] | None = None
    shown: str | None = None  # the weight as Instruments shows it
    core: str | None = None  # its kind


def read_samples(table: ExportTable) -> Iterator[CpuSample]:
    """The samples of a table. Raises UnreadableReport as its rows do.

    Raw ones are as the kernel took them: addresses without names, and no weight; each stands for itself. There a state
    other than running is of a stack shot taken of all threads at once, no sample of time.
    """
    if table.schema == RAW:
        for time, thread, process, state, kernel, user in table.rows(_WANTED_RAW):
            if state is None or state == RUNNING:
                frames = tuple(
                    frame for part in (kernel, user) if isinstance(part, Backtrace) for frame in part.frames
                )
                yield CpuSample(
                    *_owner_cells(time, thread, process, state), 1, Backtrace(frames) if frames else None
                )
        return
    kinds: dict[object, str | None] = {}
    cells: Any
    for cells in table.rows(_WANTED):
        weight, stack, counts, shown, core = cells[4:]
        if core not in kinds:
            kinds[core] = _core_kind(core)
        yield CpuSample(
            *_owner_cells(*cells[:4]),
            weight if isinstance(weight, int) and weight >= 0 else None,
            stack if isinstance(stack, Backtrace) else None,
            counts if isinstance(counts, tuple) else None,
            shown if isinstance(shown, str) else None,
            kinds[core],
        )


def _owner_cells(
    time: object, thread: object, process: object, state: object
) -> tuple[int | None, Thread | None, Process | None, str | None]:
    owner = thread if isinstance(thread, Thread) else None
    return (
        time if isinstance(time, int) else None,
        owner,
        process if isinstance(process, Process) else None if owner is None else owner.process,
        state if isinstance(state, str) else None,
    )


def _core_kind(shown: object) -> str | None:
    """The kind of a core as Instruments shows it, "CPU 4 (P Core)"; an SMT core is half of one, and no kind."""
    match = _KIND.search(shown) if isinstance(shown, str) else None
    return match[1] if match is not None and match[1] != "SMT Core" else None
