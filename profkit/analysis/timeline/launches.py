"""Which call of the host asked for what the device did: joined by key, in blocks, in flat memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from profkit.analysis.timeline.records import Columns

# Calls that are kept while what they asked for has not been seen. A device queue holds about a thousand launches, so
# this is hundreds of full queues.
MOST_KEPT = 1 << 18


class LaunchBook:
    """The calls seen so far, by key. Keys are unique in a recording (a process and its correlation number)."""

    def __init__(self) -> None:
        self._kept: Columns | None = None  # sorted by key

    def add(self, calls: Columns) -> None:
        """Remember `calls` (columns CALL), and forget the oldest where there are too many."""
        import numpy as np

        calls = calls[calls["key"] >= 0]
        if not len(calls):
            return
        kept = calls if self._kept is None else np.concatenate([self._kept, calls])
        if len(kept) > MOST_KEPT:
            kept = kept[np.argsort(kept["start"], kind="stable")][-(MOST_KEPT // 2) :]
        self._kept = kept[np.argsort(kept["key"], kind="stable")]

    def join(self, activities: Columns) -> None:
        """Fill in `launch`, `call` and `thread` of `activities` (columns ACTIVITY) where their call is known."""
        import numpy as np

        kept = self._kept
        if kept is None or not len(activities):
            return
        keys = kept["key"]
        at = np.searchsorted(keys, activities["key"])
        at[at == len(keys)] = 0
        found = (keys[at] == activities["key"]) & (activities["key"] >= 0)
        at = at[found]
        activities["launch"][found] = kept["start"][at]
        activities["call"][found] = kept["end"][at] - kept["start"][at]
        activities["thread"][found] = kept["thread"][at]
