"""Medians of many groups of durations at once, in flat memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_VALUE_BITS = 40  # of a duration in ns: 18 minutes; a longer one counts as that
MOST_DISTINCT = 1 << 19  # pairs of group and duration that are kept apart
_KEPT_BITS = 11  # of a duration once there are more: 1 in 2048, below what a kernel's time varies by


class Medians:
    """Counts how often each duration came in each group.

    Exact until there are more than half a million distinct pairs; then durations are rounded to 11 bits (0.05 %).
    """

    def __init__(self) -> None:
        self._pending: list[tuple[Any, Any]] = []
        self._waiting = 0
        self._keys: Any = None
        self._counts: Any = None
        self._rounded = False

    def add(self, groups: NDArray[np.integer[Any]], durations: NDArray[np.int64]) -> None:
        """One duration in ns per entry, with the number of its group."""
        import numpy as np

        if not len(groups):
            return
        values = np.clip(durations, 0, (1 << _VALUE_BITS) - 1)
        if self._rounded:
            values = _round(values)
        keys, counts = np.unique((groups.astype(np.int64) << _VALUE_BITS) | values, return_counts=True)
        self._pending.append((keys, counts))
        self._waiting += len(keys)
        if self._waiting > MOST_DISTINCT:
            self._merge()

    def medians(self) -> dict[int, float]:
        """The median of each group, in ns; of an even number the mean of the middle two."""
        import numpy as np

        self._merge()
        if self._keys is None:
            return {}
        groups, values = self._keys >> _VALUE_BITS, self._keys & ((1 << _VALUE_BITS) - 1)
        starts = np.flatnonzero(np.r_[True, groups[1:] != groups[:-1]])
        sums = np.cumsum(self._counts)
        ends = np.r_[starts[1:], len(groups)] - 1
        before = np.r_[0, sums[ends[:-1]]]
        total = sums[ends] - before
        low = np.searchsorted(sums, before + (total + 1) // 2)
        high = np.searchsorted(sums, before + total // 2 + 1)
        middle = (values[low] + values[high]) / 2
        return {int(group): float(value) for group, value in zip(groups[starts], middle, strict=True)}

    def _merge(self) -> None:
        import numpy as np

        parts = [*self._pending, *([] if self._keys is None else [(self._keys, self._counts)])]
        self._pending, self._waiting = [], 0
        if not parts:
            return
        keys = np.concatenate([part[0] for part in parts])
        counts = np.concatenate([part[1] for part in parts])
        keys, counts = _sum_by_key(keys, counts)
        if len(keys) > MOST_DISTINCT // 2 and not self._rounded:
            self._rounded = True
            mask = (1 << _VALUE_BITS) - 1
            keys, counts = _sum_by_key((keys & ~np.int64(mask)) | _round(keys & mask), counts)
        self._keys, self._counts = keys, counts
        # What is kept counts as waiting, so that merging again waits for as much news as there is old.
        self._waiting = 0


def _sum_by_key(keys: Any, counts: Any) -> tuple[Any, Any]:
    import numpy as np

    distinct, where = np.unique(keys, return_inverse=True)
    return distinct, np.bincount(where, weights=counts, minlength=len(distinct)).astype(np.int64)


def _round(values: Any) -> Any:
    """The upper 11 bits of each value, in the middle of what they stand for."""
    import numpy as np

    bits = np.zeros_like(values)
    large = values >= (1 << _KEPT_BITS)
    bits[large] = np.frexp(values[large].astype(np.float64))[1] - _KEPT_BITS
    rounded = (values >> bits) << bits
    return rounded + np.where(bits > 0, (np.int64(1) << bits) >> 1, 0)
