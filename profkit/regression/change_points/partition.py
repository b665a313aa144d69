"""The best piecewise constant fit by absolute deviations, with a penalty per change, exactly.

The penalised cost is Killick, Fearnhead and Eckley's (JASA 107 (2012) 1590). A spike costs its height once and makes no
piece. The fit goes over levels instead of over pieces (as Storath, Weinmann and Unser do for the L1 Potts functional,
IEEE Signal Process. Lett. 24 (2017) 6): the best level of a piece is one of its values, so it is enough to know, for
every level, what the best fit costs that ends on it.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SHORTEST = 5  # values of a piece: with fewer a pair of spikes is a level
PENALTY = 4.0  # times ln n, for values in units of their noise
MOST_LEVELS = 128  # quantiles stand for the values above; on 410 real series no place moves by that
CHUNK = 100  # values whose distances to all levels are in memory at a time; a multiple of SHORTEST


def l1_partition(values: NDArray[np.float64], penalty: float) -> list[int]:
    """Places (the first index of each piece but the first) of the cheapest fit, ascending.

    `values` and `penalty` in one unit. Takes 8 bytes for each of `MOST_LEVELS` times `CHUNK` at most, whatever n is.
    """
    import numpy as np

    n = len(values)
    if n < 2 * SHORTEST:
        return []
    levels = np.unique(values)
    if len(levels) > MOST_LEVELS:
        levels = np.unique(np.quantile(values, np.linspace(0, 1, MOST_LEVELS), method="nearest"))
    cost, sums = _fit_costs(values, levels, penalty)
    if cost[n] >= float(sums.min()) * (1 - 1e-12):
        return []  # nothing is cheaper than one piece
    places: list[int] = []
    end = n
    while (end := _begin_of_last_piece(values, levels, penalty, cost, end)) > 0:
        places.append(end)
    return places[::-1]


def _fit_costs(
    values: NDArray[np.float64], levels: NDArray[np.float64], penalty: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """cost[t]: of the cheapest fit of values[:t], infinite where no piece is so short; and of one piece on each level.

    With S[t] the summed distances of values[:t] to each level, a piece that began at s costs cost[s] + penalty + S[t] -
    S[s] on its level. So all that must be kept is the smallest cost[s] + penalty - S[s] so far. The costs of the next
    `SHORTEST` places depend on costs before them only, so these are made in one go.
    """
    import numpy as np

    n = len(values)
    cost = np.full(n + 1, inf)
    cost[0] = -penalty  # the first piece is free
    entries = np.full((SHORTEST + 1, len(levels)), inf)  # its first row: the best of all beginnings so far
    sums = np.zeros((1, len(levels)))  # S of the places at which a piece may begin next, and of the ends
    done = 0
    for first in range(SHORTEST, n + 1, SHORTEST):
        # beginnings first - SHORTEST .. first - 1, ends first .. first + SHORTEST - 1
        begin = first - SHORTEST
        count = min(SHORTEST, n + 1 - first)
        if first + count - 1 > done:
            further = _distance_sums(values[done : done + CHUNK], levels, sums[-1])
            sums = np.concatenate([sums[begin - done - 1 :], further])
            done = min(n, done + CHUNK)
            offset = done - len(sums) + 1  # the place of the first row of sums
        block = entries[: count + 1]
        np.subtract(
            (cost[begin : begin + count] + penalty)[:, None], sums[begin - offset :][:count], out=block[1:]
        )
        np.minimum.accumulate(block, axis=0, out=block)
        cost[first : first + count] = (block[1:] + sums[first - offset :][:count]).min(axis=1)
        entries[0] = block[-1]
    return cost, sums[-1]


def _begin_of_last_piece(
    values: NDArray[np.float64],
    levels: NDArray[np.float64],
    penalty: float,
    cost: NDArray[np.float64],
    end: int,
) -> int:
    """Where the last piece of the cheapest fit of values[:end] begins, found by going backwards from its end."""
    import numpy as np

    total = np.zeros(len(levels))
    best, place = inf, 0
    upper = end
    while upper > 0:
        lower = max(0, upper - CHUNK)
        sums = _distance_sums(
            values[lower:upper][::-1], levels, total
        )  # of pieces that begin at upper - 1, .., lower
        total = sums[-1]
        whole = cost[lower:upper][::-1] + penalty + sums.min(axis=1)
        whole[: max(0, SHORTEST - 1 - (end - upper))] = inf
        nearest = int(whole.argmin())
        if whole[nearest] < best:
            best, place = float(whole[nearest]), upper - 1 - nearest
        if best <= cost[end] + 1e-9 * (abs(cost[end]) + penalty):
            break
        upper = lower
    return place


def _distance_sums(
    values: NDArray[np.float64], levels: NDArray[np.float64], before: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Row k: `before`, and the distances of the first k + 1 values to each level; summed by level, which is faster."""
    import numpy as np

    away = values - levels[:, None]
    np.abs(away, out=away)
    away[:, 0] += before
    return np.ascontiguousarray(np.cumsum(away, axis=1, out=away).T)
