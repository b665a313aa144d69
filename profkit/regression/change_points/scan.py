"""The weighted Welch scan: before and after every place, is there another mean?

After Mozilla's Perfherder (treeherder, perfalert): the values nearest to the place weigh most, so that a step is seen
at its own place and not beside it. Strong where a change lasts; blind in the first 24 and the last 11 values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

BACK, FORE = 24, 12  # values before and after a place
LIMIT = 5.0  # t from which on a place counts; Perfherder's own 7 finds a third less on practitioners' series
APART = 6  # of two places nearer than this the stronger one stands


def scan(values: NDArray[np.float64], limit: float = LIMIT) -> list[int]:
    """Places (the first index after a change) whose t is at least `limit`, ascending; none below 36 values."""
    import numpy as np

    t = statistic(values)
    candidates = np.flatnonzero(t >= limit)
    taken = np.zeros(len(values), dtype=bool)
    kept = []
    for place in candidates[np.argsort(-t[candidates], kind="stable")].tolist():
        if not taken[place]:
            kept.append(place)
            taken[max(0, place - APART) : place + APART + 1] = True
    return sorted(kept)


def statistic(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """t at every place: difference of the weighted means over its standard error, 0 where a window does not fit.

    Weights fall linearly from 1 to 1/m; the variances are unweighted sums of squares about the weighted means, over
    m - 1. Where both windows are constant t is infinite if they differ, and 0 if they do not.
    """
    import numpy as np

    t = np.zeros(len(values))
    if len(values) < BACK + FORE:
        return t
    windows = np.lib.stride_tricks.sliding_window_view
    before = _centre_and_error(windows(values, BACK)[: len(values) - BACK - FORE + 1], np.arange(1, BACK + 1))
    after = _centre_and_error(windows(values, FORE)[BACK:], np.arange(FORE, 0, -1))
    step = np.abs(after[0] - before[0])
    step[step <= 1e-12 * np.abs(before[0])] = 0.0  # what rounding makes of two equal means
    error = np.sqrt(before[1] + after[1])
    with np.errstate(divide="ignore", invalid="ignore"):
        t[BACK : len(values) - FORE + 1] = np.where(step > 0, step / error, 0.0)
    return t


def _centre_and_error(
    windows: NDArray[np.float64], weights: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Of every window its weighted mean, and the square of that mean's standard error."""
    size = len(weights)
    means = windows @ (weights / weights.sum())
    return means, ((windows - means[:, None]) ** 2).sum(axis=1) / (size - 1) / size
