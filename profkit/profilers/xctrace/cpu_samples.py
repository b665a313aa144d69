"""Samples of one table of Instruments, added up as they stream by: stacks, functions, threads, and their counts."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from profkit.analysis.stacks import merge
from profkit.analysis.stacks.merge import FrameTable, StackMerger, keep_python_frames
from profkit.core.types import Hotspot, Profile, Stacks

RUNNING = "Running"
MOST_THREADS = 10_000
# Stacks that came first name the functions whose events are kept: a program has some 10,000 functions.
MOST_EVENT_ROWS = 100_000


@dataclass(frozen=True)
class Unit:
    """What the weights of a table are: `title` of its profiles, their unit, and the divisor into it."""

    title: str
    unit: str
    per: float = 1


TIME = Unit("CPU time", "s", 1e9)
CYCLES = Unit("CPU cycles", "cycles")
WAITING = Unit("waiting", "s", 1e9)
SAMPLES = Unit("samples", "samples")


class Windows:
    """Half-open stretches [begin, end) of trace time in ns, in which samples count; none given: always."""

    def __init__(self, windows: Iterable[tuple[int, int]] | None) -> None:
        ordered = sorted(windows) if windows is not None else None
        self._begins = [begin for begin, _ in ordered] if ordered is not None else None
        self._ends: list[int] = []
        for _, end in ordered or ():  # of nested and overlapping ones the latest end so far
            self._ends.append(max(end, self._ends[-1]) if self._ends else end)

    def hold(self, time: int | None) -> bool:
        """Whether a sample at `time` counts; one without a time does only where all do."""
        if self._begins is None:
            return True
        if time is None:
            return False
        place = bisect_right(self._begins, time) - 1
        return place >= 0 and time < self._ends[place]


class SampleTally:
    """What the samples of one table come to; weights are in the table's own unit until the end.

    Samples of a running thread are work, those of any other state are time spent waiting and kept apart.
    """

    def __init__(self, frames: FrameTable, unit: Unit, events: Sequence[str] = ()) -> None:
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
        if thread not in self._threads and len(self._threads) >= MOST_THREADS:
            thread = "[more threads]"
        self._threads[thread] = self._threads.get(thread, 0) + weight
        self._kinds[core] = self._kinds.get(core, 0) + weight
        if counts is not None:
            self._count(ids, counts, core)

    def _count(self, ids: tuple[int, ...], counts: Sequence[int], core: str | None) -> None:
        if len(counts) != len(self._events) or min(counts, default=0) < 0:
            self.uneven += 1
            return
        totals = self._counts.get(core)
        if totals is None:
            totals = self._counts[core] = [0] * len(self._events)
        for place, count in enumerate(counts):
            totals[place] += count
        if not ids:
            return
        own = self._of_function.get(ids[0])
        if own is None:
            if len(self._of_function) >= MOST_EVENT_ROWS:
                return
            own = self._of_function[ids[0]] = [0] * len(counts)
        for place, count in enumerate(counts):
            own[place] += count

    @property
    def samples(self) -> int:
        """Samples of running threads."""
        return self._running.samples

    @property
    def waiting(self) -> int:
        """Samples of threads that did not run."""
        return self._waiting.samples

    @property
    def weight(self) -> float:
        """All weight of running threads, in the table's own unit."""
        return self._running.weight

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
        kinds: list[str | None] = sorted(self._counts, key=str) or [None]
        alone = len(kinds) == 1
        return {
            (event, None if alone else kind): self._counts[kind][place] if kind in self._counts else 0
            for kind in kinds
            for place, event in enumerate(self._events)
        }

    def weights(self) -> dict[str | None, float]:
        """The weight of running threads for each kind of core; the kind is None where there is but one."""
        return {None: self.weight} if len(self._kinds) < 2 else dict(self._kinds)

    def stacks(self) -> tuple[Stacks, ...]:
        """The stacks of running threads, then those of waiting ones."""
        found = []
        if self._running.samples:
            found.append(self._running.stacks(self.unit.title, self.unit.unit, self.unit.per))
        if self._waiting.samples:
            found.append(self._waiting.stacks(WAITING.title, WAITING.unit, WAITING.per))
        return tuple(found)

    def profiles(self) -> tuple[Profile, ...]:
        """Tables by function (with the events counted in each) and library, by thread and Python function where any.

        Of threads that waited there is one by function, after those of running ones.
        """
        unit = self.unit
        found: list[Profile] = []
        if self._running.samples:
            by_function, by_library = self._running.profiles(unit.title, unit.unit, unit.per)
            found = [self._with_events(by_function), by_library]
            if len(self._threads) > 1:
                found.append(_by_thread(unit, self._threads))
            python = keep_python_frames(self._running.stacks(unit.title, unit.unit, unit.per))
            if python is not None:
                found.append(replace(merge.by_function(python), title=f"{unit.title} by Python function"))
        if self._waiting.samples:
            found.append(self._waiting.profiles(WAITING.title, WAITING.unit, WAITING.per)[0])
        return tuple(found)

    def _with_events(self, profile: Profile) -> Profile:
        if not self._of_function or self.uneven:
            return profile
        counted: dict[tuple[str, str | None, str | None], list[int]] = {}
        for index, counts in self._of_function.items():
            frame = self._frames.frames[index]
            counted[frame.function, frame.library, frame.file] = counts
        spots = tuple(
            spot
            if (own := counted.get((spot.function, spot.library, spot.file))) is None
            else replace(spot, counters=dict(zip(self._events, map(float, own), strict=True)))
            for spot in profile.hotspots
        )
        return Profile(profile.title, profile.unit, profile.total, spots)


def _by_thread(unit: Unit, weights: dict[str, float]) -> Profile:
    """The table by thread. A thread has no callers, so own and inclusive weight are the same."""
    rows = sorted(weights.items(), key=lambda row: (-row[1], row[0]))
    spots = tuple(Hotspot(name, own=weight / unit.per, total=weight / unit.per) for name, weight in rows)
    return Profile(f"{unit.title} by thread", unit.unit, sum(weights.values()) / unit.per, spots)
