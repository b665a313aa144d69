"""Which slices fit on one track: a viewer of trace events wants those of a track nested, or one after the other."""

from __future__ import annotations


class Tracks:
    """Gives every slice a track of its kind. Slices come in the order of their starts; memory is what is open at once.

    Kernels of several streams overlap, and so do ranges that were not pushed and popped. Each goes to the first track
    on which it nests; a further track is opened where there is none.
    """

    def __init__(self) -> None:
        self._open: list[list[int]] = []  # of each track the ends of what is open, the outermost first

    def place(self, start: int, end: int) -> int:
        """The number of the track, from 0, for a slice from `start` to `end`."""
        for number, ends in enumerate(self._open):
            while ends and ends[-1] <= start:
                ends.pop()
            if not ends or end <= ends[-1]:
                ends.append(end)
                return number
        self._open.append([end])
        return len(self._open) - 1
