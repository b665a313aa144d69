"""Merges samples by stack as they come, in bounded memory, however long the recording is."""

from __future__ import annotations

from collections.abc import Iterable

from profkit.analysis.stacks.labels import MORE_STACKS, NO_STACK
from profkit.analysis.stacks.tables import Tally
from profkit.core.types import Frame, Profile, Stacks

# Bounds, so that a hostile or endless file cannot fill memory: a frame costs some 400 bytes, a slot (one
# frame of one distinct stack) 8 while merging and 8 in the answer. A program has some 10 000 functions and
# seldom more than 20 000 distinct stacks of 50 frames; a flame graph of more cannot be looked at.
MOST_FRAMES = 200_000
MOST_SLOTS = 2_000_000
OUTER_FRAMES = (
    8  # kept of a stack that came after the bound; enough to see which thread and which entry point
)


class FrameTable:
    """Frames numbered in the order in which they were first seen."""

    def __init__(self, limit: int = MOST_FRAMES) -> None:
        self.frames: list[Frame] = []
        self._ids: dict[Frame, int] = {}
        self._limit = limit
        self.full = False

    def add(self, frame: Frame) -> int:
        """The number of `frame`. Past the bound, functions of one library are no longer told apart."""
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
        """The numbers of `frames`, in the order given."""
        return tuple(self.add(frame) for frame in frames)


class StackMerger:
    """Distinct stacks of one event and their weights. The tables stay exact even where stacks were cut."""

    def __init__(self, table: FrameTable, most_slots: int = MOST_SLOTS) -> None:
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
        """The weight of the samples whose inner frames were not kept apart."""
        return 0 if self._cut is None else self._cut.weight

    @property
    def weight(self) -> float:
        """The weight of all samples."""
        return sum(self._weights.values())

    def stacks(self, title: str, unit: str, per: float = 1) -> Stacks:
        """What was merged, outermost frame first; weights are divided by `per` to be in `unit`."""
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
        """The tables by function and by library; every weight is divided by `per` to be in `unit`."""
        tally = Tally(self._table.frames)
        if self._cut is not None:
            tally.merge(self._cut)
        marker = self._table.add(MORE_STACKS) if self._cut is not None else -1
        for ids, weight in self._weights.items():
            if ids[0] != marker:
                tally.add(ids, weight)
        return (
            tally.by_function(f"{title} by function", unit, per),
            tally.by_library(f"{title} by library", unit, per),
        )
