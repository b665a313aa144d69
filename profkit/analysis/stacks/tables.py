"""From stacks to tables: where the weight went by function and by library."""

from __future__ import annotations

from collections.abc import Sequence

from profkit.analysis.stacks.labels import UNKNOWN
from profkit.core.types import Frame, Hotspot, Profile, Stacks


class Tally:
    """Adds up own and inclusive weight per function and per library.

    A stack is given as indices into `frames`, innermost first. A function that occurs more than once in a
    stack (recursion) is counted once, so that no inclusive weight exceeds the whole.
    """

    def __init__(self, frames: Sequence[Frame]) -> None:
        self._frames = frames
        self._libraries: list[str] = []  # of frames[:len(self._libraries)]
        self.own: dict[int, float] = {}
        self.total: dict[int, float] = {}
        self._library_own: dict[str, float] = {}
        self._library_total: dict[str, float] = {}
        self.weight: float = 0

    def add(self, ids: Sequence[int], weight: float) -> None:
        """Count one stack, innermost frame first."""
        if len(self._libraries) < len(self._frames):
            self._libraries += [f.library or UNKNOWN for f in self._frames[len(self._libraries) :]]
        library = self._libraries
        leaf = ids[0]
        self.weight += weight
        self.own[leaf] = self.own.get(leaf, 0) + weight
        self._library_own[library[leaf]] = self._library_own.get(library[leaf], 0) + weight
        functions = set(ids)
        total = self.total
        for index in functions:
            total[index] = total.get(index, 0) + weight
        for name in {library[index] for index in functions}:
            self._library_total[name] = self._library_total.get(name, 0) + weight

    def merge(self, other: Tally) -> None:
        """Add what another tally over the same frames has counted."""
        self.weight += other.weight
        for mine, theirs in ((self.own, other.own), (self.total, other.total)):
            for index, weight in theirs.items():
                mine[index] = mine.get(index, 0) + weight
        for named, more in (
            (self._library_own, other._library_own),
            (self._library_total, other._library_total),
        ):
            for name, weight in more.items():
                named[name] = named.get(name, 0) + weight

    def by_function(self, title: str, unit: str, per: float = 1) -> Profile:
        """A profile by function; weights are divided by `per` to be in `unit`."""
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
        return Profile(title, unit, self.weight / per, _sorted(hotspots))

    def by_library(self, title: str, unit: str, per: float = 1) -> Profile:
        """A profile by library; `Hotspot.function` and `Hotspot.library` are both the library's name.

        Every weight is divided by `per` to be in `unit`.
        """
        hotspots = [
            Hotspot(name, own=self._library_own.get(name, 0) / per, total=total / per, library=name)
            for name, total in self._library_total.items()
        ]
        return Profile(title, unit, self.weight / per, _sorted(hotspots))


def by_function(stacks: Stacks) -> Profile:
    """Own and inclusive weight of every function (name, library and file; lines together)."""
    return _tally(stacks).by_function(f"{stacks.title} by function", stacks.unit)


def by_library(stacks: Stacks) -> Profile:
    """Own and inclusive weight of every library, largest own first. Frames without one are `[unknown]`."""
    return _tally(stacks).by_library(f"{stacks.title} by library", stacks.unit)


def _tally(stacks: Stacks) -> Tally:
    functions: dict[Frame, int] = {}
    frames: list[Frame] = []
    tally = Tally(frames)
    seen: dict[int, int] = {}  # id(frame) -> index: hashing a Frame costs more than everything else here
    for stack, weight in stacks.weights.items():
        ids = []
        for frame in reversed(stack):
            index = seen.get(id(frame))
            if index is None:
                function = Frame(frame.function, frame.library, frame.file)
                index = functions.setdefault(function, len(frames))
                if index == len(frames):
                    frames.append(function)
                seen[id(frame)] = index
            ids.append(index)
        if ids:
            tally.add(ids, weight)
    return tally


def _sorted(hotspots: list[Hotspot]) -> tuple[Hotspot, ...]:
    hotspots.sort(key=lambda h: (-h.own, -(h.total or 0), h.function, h.library or "", h.file or ""))
    return tuple(hotspots)
