"""Sampled stacks: how a frame is called, merging samples in bounded memory, and tables by function and library."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace

from profkit.core.types import Frame, Hotspot, Profile, Stacks

PYTHON = "python"
KERNEL = "[kernel]"
JIT = "[jit]"
UNKNOWN = "[unknown]"

NO_STACK = Frame("[no stack recorded]")
MORE_STACKS = Frame("[deeper frames not kept apart]")


def is_python(frame: Frame) -> bool:
    """Return whether a function belongs to the interpreted program; False for native and kernel code."""
    return frame.library == PYTHON


def frame_label(frame: Frame) -> str:
    """Return one line of text for a frame: `inner (model.py)`, `memcpy`, `do_syscall_64_[k]`, `[unknown] (a.so)`.

    The suffix `_[k]` is what flame graph scripts colour as kernel code.
    """
    if frame.library == PYTHON:
        file = (frame.file or "").rpartition("/")[2]
        return f"{frame.function} ({file})" if file else frame.function
    if frame.library == KERNEL:
        return f"{frame.function}_[k]"
    if frame.function == UNKNOWN and frame.library:
        return f"{UNKNOWN} ({frame.library})"
    return frame.function


class Tally:
    """Adds up own and inclusive weight per function and per library.

    A stack is given as indices into `frames`, innermost first. A function that occurs more than once in a
    stack (recursion) is counted once, so that no inclusive weight exceeds the whole.
    """

    def __init__(self, frames: Sequence[Frame], before: Tally | None = None) -> None:
        """Start from `before`, the counts of another tally over the same frames."""
        self._frames = frames
        self._libraries: list[str] = []  # of frames[:len(self._libraries)]
        self.own: dict[int, float] = defaultdict(float, before.own if before else ())
        self.total: dict[int, float] = defaultdict(float, before.total if before else ())
        self._library_own: dict[str, float] = defaultdict(float, before._library_own if before else ())
        self._library_total: dict[str, float] = defaultdict(float, before._library_total if before else ())
        self.weight: float = before.weight if before else 0

    def add(self, ids: Sequence[int], weight: float) -> None:
        """Count one stack, innermost frame first."""
        if len(self._libraries) < len(self._frames):
            self._libraries += [f.library or UNKNOWN for f in self._frames[len(self._libraries) :]]
        library = self._libraries
        self.weight += weight
        self.own[ids[0]] += weight
        self._library_own[library[ids[0]]] += weight
        functions = set(ids)
        for index in functions:
            self.total[index] += weight
        for name in {library[index] for index in functions}:
            self._library_total[name] += weight

    def by_function(self, title: str, unit: str, per: float = 1) -> Profile:
        """Return a profile by function; weights are divided by `per` to be in `unit`."""
        hotspots = [
            Hotspot(
                function=self._frames[index].function,
                own=self.own.get(index, 0) / per,
                total=total / per,
                file=self._frames[index].file,
                library=self._frames[index].library,
            )
            for index, total in self.total.items()
        ]
        return Profile(title, unit, self.weight / per, _sorted(hotspots), "functions")

    def by_library(self, title: str, unit: str, per: float = 1) -> Profile:
        """Return a profile by library; `Hotspot.function` and `Hotspot.library` are both the library's name.

        Every weight is divided by `per` to be in `unit`.
        """
        hotspots = [
            Hotspot(name, own=self._library_own.get(name, 0) / per, total=total / per, library=name)
            for name, total in self._library_total.items()
        ]
        return Profile(title, unit, self.weight / per, _sorted(hotspots), "libraries")


def _sorted(hotspots: list[Hotspot]) -> tuple[Hotspot, ...]:
    hotspots.sort(key=lambda h: (-h.own, -(h.total or 0), h.function, h.library or "", h.file or ""))
    return tuple(hotspots)


# Bounds, so that a hostile or endless file cannot fill memory: a frame costs some 400 bytes, a slot (one
# frame of one distinct stack) 8 while merging and 8 in the answer. A program has some 10 000 functions and
# seldom more than 20 000 distinct stacks of 50 frames; a flame graph of more cannot be looked at.
MAX_FRAMES = 200_000
MAX_SLOTS = 2_000_000
# Frames kept of a stack that came after the bound: enough to see which thread and which entry point
OUTER_FRAMES = 8


class FrameTable:
    """Frames numbered in the order in which they were first seen."""

    def __init__(self, limit: int = MAX_FRAMES) -> None:
        self.frames: list[Frame] = []
        self._ids: dict[Frame, int] = {}
        self._limit = limit
        self.full = False

    def add(self, frame: Frame) -> int:
        """Return the number of `frame`. Past the bound, functions of one library are merged."""
        index = self._ids.get(frame)
        if index is None:
            if len(self.frames) >= self._limit and frame.function != "[more functions]":
                self.full = True
                # A library's name could be new each time too: past twice the bound there is but one.
                library = frame.library if len(self.frames) < 2 * self._limit else None
                return self.add(Frame("[more functions]", library))
            index = len(self.frames)
            self.frames.append(frame)
            self._ids[frame] = index
        return index

    def stack(self, frames: Iterable[Frame]) -> tuple[int, ...]:
        """Return the numbers of `frames`, in the order given."""
        return tuple(self.add(frame) for frame in frames)


class StackMerger:
    """Distinct stacks of one event and their weights. The tables stay exact even where stacks were cut."""

    def __init__(self, table: FrameTable, most_slots: int = MAX_SLOTS) -> None:
        self._table = table
        self._free = most_slots
        self._weights: dict[tuple[int, ...], float] = {}
        self._cut: Tally | None = None
        self.samples = 0

    def add(self, ids: tuple[int, ...], weight: float) -> None:
        """Count one sample: numbers from the table, innermost first; none is `[no stack recorded]`."""
        self.samples += 1
        weights = self._weights
        if ids in weights:
            weights[ids] += weight
        elif ids and self._free >= len(ids):
            self._free -= len(ids)
            weights[ids] = weight
        else:
            self._add_rare(ids, weight)

    def _add_rare(self, ids: tuple[int, ...], weight: float) -> None:
        if not ids:
            ids = (self._table.add(NO_STACK),)
        else:
            if self._cut is None:
                self._cut = Tally(self._table.frames)
            self._cut.add(ids, weight)
            ids = (self._table.add(MORE_STACKS), *ids[-OUTER_FRAMES:])
        self._weights[ids] = self._weights.get(ids, 0) + weight

    @property
    def cut(self) -> float:
        """Return the weight of the samples whose inner frames were not kept apart."""
        return 0 if self._cut is None else self._cut.weight

    @property
    def weight(self) -> float:
        """Return the weight of all samples."""
        return sum(self._weights.values())

    def stacks(self, title: str, unit: str, per: float = 1) -> Stacks:
        """Return what was merged, outermost frame first; weights are divided by `per` to be in `unit`."""
        frames = self._table.frames
        return Stacks(
            title,
            unit,
            {
                tuple([frames[index] for index in reversed(ids)]): weight / per
                for ids, weight in self._weights.items()
            },
        )

    def profiles(self, title: str, unit: str, per: float = 1) -> tuple[Profile, Profile]:
        """Return the tables by function and by library; every weight is divided by `per` to be in `unit`."""
        tally = Tally(self._table.frames, self._cut)
        marker = self._table.add(MORE_STACKS) if self._cut is not None else -1
        for ids, weight in self._weights.items():
            if ids[0] != marker:
                tally.add(ids, weight)
        return (
            tally.by_function(f"{title} by function", unit, per),
            tally.by_library(f"{title} by library", unit, per),
        )


NATIVE_ONLY = Frame("[no Python frame]")  # threads of a library, the interpreter's own start-up


def python_functions(stacks: Stacks) -> Profile | None:
    """Return the table by Python function, where native code is charged to who called it; None where no sample
    has one.
    """
    table = FrameTable()
    tally = Tally(table.frames)
    for stack, weight in stacks.weights.items():
        tally.add(
            table.stack([frame for frame in reversed(stack) if is_python(frame)] or [NATIVE_ONLY]), weight
        )
    if not any(map(is_python, table.frames)):
        return None
    profile = tally.by_function(f"{stacks.title} by Python function", stacks.unit)
    return replace(profile, kind="python-functions")
