"""The order in which a grid is measured: point by point, but for what waits for its compiler. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from profkit.core.types import GridPoint
from profkit.kernels.sweep.forecast import work as size

Work: TypeAlias = tuple[GridPoint, tuple[str, ...]]  # a point, and the implementations that are left of it
TAIL = 8  # points for each of several workers that come last, the largest of them first


class Order:
    """What is left to do. All implementations of a point are measured one after the other, so that a drift of the
    device's clock or heat is in none of them alone.

    An implementation in `late` may have to wait until it is compiled; the others of the point go ahead then, and it
    follows as soon as it can be, before any other point: seconds later, and in the first seconds of a sweep only where
    compiling keeps up. To wait would leave the device idle, to compile in the worker takes ten times as long.
    """

    def __init__(self, work: Sequence[Work], late: str = "", workers: int = 1) -> None:
        self._work = list(small_last(work, workers))
        self._late = late

    def __len__(self) -> int:
        return len(self._work)

    def take(self, ready: Callable[[GridPoint], bool]) -> Work | None:
        """The next thing to do: the first point of which all can be done, else the first of which something can.

        None where all that is left waits for its compiler, or nothing is left.
        """
        part: int | None = None
        for place, (point, names) in enumerate(self._work):
            if self._late not in names or ready(point):
                return self._work.pop(place)
            if part is None and len(names) > 1:
                part = place
        if part is None:
            return None
        point, names = self._work[part]
        self._work[part] = (point, (self._late,))
        return point, tuple(name for name in names if name != self._late)

    def put_back(self, point: GridPoint, names: tuple[str, ...]) -> None:
        """What was taken and not done comes first."""
        self._work.insert(0, (point, names))


def small_last(work: Sequence[Work], workers: int) -> tuple[Work, ...]:
    """Where workers share the points, the last ones by falling size: none begins a large one when others are done."""
    count = TAIL * workers if workers > 1 else 0
    split = max(0, len(work) - count)
    return (*work[:split], *sorted(work[split:], key=lambda each: -size(each[0]) * len(each[1])))
