"""Signposts one by one, as templates without intervals of them list them: Time Profiler and CPU Counters do.

Columns as Apple's modeler of Points of Interest reads them: time, thread, name, type ("Start", "End", "Point"), four
arguments. No export with rows of it is known.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from profkit.profilers.xctrace.alignment import Window
from profkit.runtime.region.mps import MARK

TABLE = "kdebug-signpost"
COLUMNS = ("time", "type", "type/@fmt", "name", "arg1", "arg2")
_STARTS, _ENDS = ("start", "begin", "1"), ("end", "2")  # and the kernel's own numbers of them


def pair_signposts(rows: Iterable[Sequence[object]]) -> tuple[Window, ...]:
    """The signposts of profkit's regions among rows with the cells of COLUMNS, in any order, each begin with its end.

    An entry has a number, which both its signposts have; one of which only one is there is left out.
    """
    begins: dict[tuple[object, object], int] = {}
    ends: dict[tuple[object, object], int] = {}
    for time, kind, shown, name, entry, mark in rows:
        if mark != MARK or not isinstance(time, int):
            continue
        words = {str(word).strip().lower() for word in (kind, shown) if word is not None}
        side = begins if words & set(_STARTS) else ends if words & set(_ENDS) else None
        if side is not None:
            side[name, entry] = time
    return tuple(sorted((begin, ends[key]) for key, begin in begins.items() if ends.get(key, -1) >= begin))
