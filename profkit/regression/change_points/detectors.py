"""Three detectors of change points. Each takes values in order and returns places: the first index after a change.

Weighted Welch scan, after Mozilla's Perfherder (treeherder, perfalert): before and after every place, is there another
mean? The nearest values weigh most. Strong where a change lasts; blind in the first 24 and the last 11 values.

E-divisive with Student's t: the split of two stretches whose distributions differ most. The statistic is Matteson and
James' energy distance (JASA 109 (2014) 334); that t decides in place of permutations, the windows and the two passes
are Hunter's (Fleming et al., ICPE 2023, arXiv 2301.03034). The details are those of its descendant Apache Otava 0.8:
for the same limits the places are the same.

L1 partition: the best piecewise constant fit by absolute deviations, with a penalty per change (the penalised cost of
Killick, Fearnhead and Eckley, JASA 107 (2012) 1590), exactly. A spike costs its height once and makes no piece. The fit
goes over levels instead of over pieces (as Storath, Weinmann and Unser do for the L1 Potts functional, IEEE Signal
Process. Lett. 24 (2017) 6): the best level of a piece is one of its values, so it is enough to know, for every level,
what the best fit costs that ends on it.
"""

from __future__ import annotations

from functools import lru_cache
from math import inf, sqrt
from typing import TYPE_CHECKING, NamedTuple

from profkit.core.inference.tails import student_two_sided

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


BACK, FORE = 24, 12  # values before and after a place
# The statistic t from which on a place counts; Perfherder's own 7 finds a third less on practitioners' series.
SCAN_LIMIT = 5.0
SCAN_APART = 6  # of two places nearer than this the stronger one stands


def welch_scan(values: NDArray[np.float64]) -> list[int]:
    """Places (the first index after a change) whose t is at least `SCAN_LIMIT`, ascending; none below 36 values."""
    import numpy as np

    t = welch_statistic(values)
    candidates = np.flatnonzero(t >= SCAN_LIMIT)
    taken = np.zeros(len(values), dtype=bool)
    strongest = []
    for place in candidates[np.argsort(-t[candidates], kind="stable")].tolist():
        if not taken[place]:
            strongest.append(place)
            taken[max(0, place - SCAN_APART) : place + SCAN_APART + 1] = True
    return sorted(strongest)


def welch_statistic(values: NDArray[np.float64]) -> NDArray[np.float64]:
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


# Values that are searched at a time; the next window begins at the last change, or half a window on.
WINDOW = 50
# The value p, two-sided, uncorrected for the search; Otava's own .001 alarms every fifth series of pure noise.
ENERGY_LIMIT = 1e-5
FIRST_ENERGY_LIMIT = 10 * ENERGY_LIMIT  # what may stand until the neighbours of all places are known


class _Split(NamedTuple):
    q: float
    place: int
    first: int
    last: int


def e_divisive(values: NDArray[np.float64]) -> list[int]:
    """Places (the first index after a change) whose p between the changes beside it is below the limit; ascending."""
    import numpy as np

    if len(values) < 4:
        return []
    test = _StudentTest(values - np.median(values))
    return _drop_weakest(_search_splits(values, test), test, len(values))


def _search_splits(values: NDArray[np.float64], test: _StudentTest) -> list[int]:
    """Window by window the places that split a stretch into two that differ, until the best split of all is none."""
    n, start = len(values), 0
    places: set[int] = set()
    while start < n:
        end = min(n, start + WINDOW)
        pieces = [_best_split(values, start, end)]
        cuts: list[int] = []
        while pieces:
            best = max(pieces)
            if best.q == -inf or test.p(best.first, best.place, best.last) > FIRST_ENERGY_LIMIT:
                break
            cuts.append(best.place)
            pieces.remove(best)
            pieces += [
                _best_split(values, best.first, best.place),
                _best_split(values, best.place, best.last),
            ]
        places.update(cuts)
        start = max(max(cuts, default=0), start + WINDOW // 2)
    return sorted(places)


def _drop_weakest(places: list[int], test: _StudentTest, n: int) -> list[int]:
    """The weakest place goes, and its neighbours are tested anew, until each that is left is below the limit."""
    edges = [0, *places, n]
    ps = [test.p(*edges[k : k + 3]) for k in range(len(places))]
    while ps and (worst := max(ps)) >= ENERGY_LIMIT:
        k = ps.index(worst)
        del ps[k], edges[k + 1]
        for neighbour in (k - 1, k):
            if 0 <= neighbour < len(ps):
                ps[neighbour] = test.p(*edges[neighbour : neighbour + 3])
    return edges[1:-1]


def _best_split(values: NDArray[np.float64], first: int, last: int) -> _Split:
    """The place in values[first:last] of the largest energy statistic Q, over all places and ends of the right part.

    For X = values[first:tau] (n of them) and Y = values[tau:kappa] (m): Q = 2 / (m + n) times the sum of |x - y|,
    less 2m / ((m + n)(n - 1)) times the sum of |x - x'| over pairs, less 2n / ((m + n)(m - 1)) times that of Y. All
    sums come out of one table of cumulative distances.
    """
    import numpy as np

    size = last - first
    if size < 2:
        return _Split(-inf, first, first, last)
    part = values[first:last]
    sums = np.abs(part[:, None] - part).cumsum(axis=0).cumsum(axis=1)
    whole = np.diagonal(sums)  # every pair twice
    weights, outside = _statistic_weights(size)
    left = whole[:-1, None] / 2
    between = sums[:-1, 1:] - 2 * left
    right = (whole[1:] - 2 * left - 2 * between) / 2
    q = weights[0] * between - weights[1] * left - weights[2] * right
    q[outside] = -inf
    best = int(q.argmax())
    return _Split(float(q.flat[best]), first + 1 + best // (size - 1), first, last)


@lru_cache(maxsize=WINDOW)
def _statistic_weights(size: int) -> tuple[tuple[NDArray[np.float64], ...], NDArray[np.bool_]]:
    """For all tau (rows) and kappa (columns) the factors of the sums of Q, and where kappa is not beyond tau."""
    import numpy as np

    n = np.arange(1, size)[:, None]
    m = np.arange(2, size + 1) - n
    both = (n + m).astype(float)
    with np.errstate(divide="ignore", invalid="ignore"):
        inside_x = np.where(n > 1, 2 * m / (both * (n - 1)), 0.0)
        inside_y = np.where(m > 1, 2 * n / (both * (m - 1)), 0.0)
    return (2 / both, inside_x, inside_y), m < 1


class _StudentTest:
    """Student's t of two neighbouring stretches, with the standard deviations over n (not n - 1), as in Otava."""

    def __init__(self, values: NDArray[np.float64]) -> None:
        import numpy as np

        self._sums = np.concatenate([[0.0], np.cumsum(values)]).tolist()
        self._squares = np.concatenate([[0.0], np.cumsum(values * values)]).tolist()

    def p(self, first: int, place: int, last: int) -> float:
        """The two-sided p of values[first:place] against values[place:last]."""
        freedom = last - first - 2
        if freedom <= 0:
            return 1.0
        n, m = place - first, last - place
        a, variance_a = self._centre(first, place)
        b, variance_b = self._centre(place, last)
        pooled = ((n - 1) * variance_a + (m - 1) * variance_b) / freedom
        step = abs(a - b)
        if pooled <= 0:
            return 0.0 if step > 1e-12 * (abs(a) + abs(b)) else 1.0
        return student_two_sided(step / sqrt(pooled * (1 / n + 1 / m)), freedom)

    def _centre(self, first: int, last: int) -> tuple[float, float]:
        count = last - first
        mean = (self._sums[last] - self._sums[first]) / count
        return mean, max(0.0, (self._squares[last] - self._squares[first]) / count - mean * mean)


SHORTEST = 5  # values of a piece: with fewer a pair of spikes is a level
PENALTY = 3.0  # times ln n, for values in units of their noise
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
