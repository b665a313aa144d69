"""E-divisive with Student's t: the split of two stretches that differ most, as a distribution, and then in their mean.

The statistic is Matteson and James' energy distance (JASA 109 (2014) 334); that t decides in place of permutations, the
windows and the two passes are Hunter's (Fleming et al., ICPE 2023, arXiv 2301.03034). The details are those of its
descendant Apache Otava 0.8: for the same limits the places are the same.
"""

from __future__ import annotations

from functools import lru_cache
from math import inf, sqrt
from typing import TYPE_CHECKING, NamedTuple

from profkit.core.inference.tails import student_two_sided

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

WINDOW = (
    50  # values that are searched at a time; the next window begins at the last change, or half a window on
)
LIMIT = (
    1e-5  # p, two-sided, uncorrected for the search; Otava's own .001 alarms every fifth series of pure noise
)
FIRST_LIMIT = 10 * LIMIT  # what may stand until the neighbours of all places are known


class _Split(NamedTuple):
    q: float
    place: int
    first: int
    last: int


def divide(values: NDArray[np.float64], limit: float = LIMIT) -> list[int]:
    """Places (the first index after a change) whose p, between the changes beside it, is below `limit`; ascending."""
    import numpy as np

    if len(values) < 4:
        return []
    test = _Test(values - np.median(values))
    places = _search(values, test, limit * FIRST_LIMIT / LIMIT)
    return _thin(places, test, len(values), limit)


def _search(values: NDArray[np.float64], test: _Test, limit: float) -> list[int]:
    """Window by window the places that split a stretch into two that differ, until the best split of all is none."""
    n, start = len(values), 0
    found: set[int] = set()
    while start < n:
        end = min(n, start + WINDOW)
        pieces = [_best_split(values, start, end)]
        cuts: list[int] = []
        while pieces:
            best = max(pieces)
            if best.q == -inf or test.p(best.first, best.place, best.last) > limit:
                break
            cuts.append(best.place)
            pieces.remove(best)
            pieces += [
                _best_split(values, best.first, best.place),
                _best_split(values, best.place, best.last),
            ]
        found.update(cuts)
        start = max(max(cuts, default=0), start + WINDOW // 2)
    return sorted(found)


def _thin(places: list[int], test: _Test, n: int, limit: float) -> list[int]:
    """The weakest place goes, and its neighbours are tested anew, until each that is left is below the limit."""
    edges = [0, *places, n]
    ps = [test.p(*edges[k : k + 3]) for k in range(len(places))]
    while ps and (worst := max(ps)) >= limit:
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
    weights, outside = _shares(size)
    left = whole[:-1, None] / 2
    between = sums[:-1, 1:] - 2 * left
    right = (whole[1:] - 2 * left - 2 * between) / 2
    q = weights[0] * between - weights[1] * left - weights[2] * right
    q[outside] = -inf
    best = int(q.argmax())
    return _Split(float(q.flat[best]), first + 1 + best // (size - 1), first, last)


@lru_cache(maxsize=WINDOW)
def _shares(size: int) -> tuple[tuple[NDArray[np.float64], ...], NDArray[np.bool_]]:
    """For all tau (rows) and kappa (columns) the factors of the sums of Q, and where kappa is not beyond tau."""
    import numpy as np

    n = np.arange(1, size)[:, None]
    m = np.arange(2, size + 1) - n
    both = (n + m).astype(float)
    with np.errstate(divide="ignore", invalid="ignore"):
        inside_x = np.where(n > 1, 2 * m / (both * (n - 1)), 0.0)
        inside_y = np.where(m > 1, 2 * n / (both * (m - 1)), 0.0)
    return (2 / both, inside_x, inside_y), m < 1


class _Test:
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
