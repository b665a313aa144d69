"""Find where a series changes its level: the best piecewise constant fit, tested against the noise.

Pure functions on values in order, one per night or build. numpy is imported where it is used, never on
import.

The fit is by absolute deviations with a penalty per change (Killick, Fearnhead and Eckley, JASA 107 (2012)
1590): a spike costs its height once and makes no piece. It goes over levels instead of over pieces, as
Storath, Weinmann and Unser do for the L1 Potts functional (IEEE Signal Process. Lett. 24 (2017) 6).

Where neighbouring values are correlated, a quiet series wanders, and every detector takes a long excursion
for a change: at a correlation of .6 the bare fit alarms in most quiet years. So the correlation is measured
about the stretches between the candidates, and a change must exceed `STRENGTH_LIMIT` standard errors, for
which correlated values count for as many as they are worth.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf, log, sqrt
from typing import TYPE_CHECKING, NamedTuple

from profkit.core.statistics import MAD_TO_SIGMA
from profkit.core.types.history import ChangePoint

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SHORTEST = 5  # values of a piece: with fewer a pair of spikes is a level
MIN_VALUES = 2 * SHORTEST  # values; with fewer there are no two stretches
PENALTY = 4.0  # times ln n, for values in units of their noise
MAX_LEVELS = 128  # quantiles stand for the values above; on 410 real series no place moves by that
ROUNDING = 1e-12  # of the level: sums of doubles in another order differ by so much, and nothing changed
NEAR = 3  # values by which the fit misses the best place at most
STRENGTH_LIMIT = 5.0  # standard errors that a change must have
REACH = 40  # values on either side that are compared: older ones belong to another time
MAX_CORRELATION = 0.95
CLIP = 3.0  # sigmas: a wild value must not hide the correlation of the rest
MEAN_TO_SIGMA = 1.2533  # sqrt(pi / 2): sigma over the mean absolute deviation, normal distribution
# Of (1 + 3 r) / n, the bias of a correlation about a mean (Kendall, Biometrika 41 (1954) 403): a median has less.
MEDIAN_BIAS = 0.5
SPIKE = 6.0  # sigmas at which a wild value is cut off
SPIKE_NEIGHBOURS = 3  # values on either side of one that say where it should be


@dataclass(frozen=True)
class SeriesFindings:
    """What was found in a series. Relative figures are fractions of the level, None if there is none."""

    change_points: tuple[ChangePoint, ...] = ()
    noise: float | None = None  # standard deviation about the stretches between changes
    autocorrelation: float | None = None  # of neighbours, about these stretches


def examine_series(values: Sequence[float | None]) -> SeriesFindings:
    """Return the change points of the best fit, tested against the noise, and the noise that remains.

    `values` are one per night or build, oldest first, in any unit; None, NaN and infinities are nights without a
    value. A change point's `index` counts all of them and names the first value after the change; `before` and
    `after` are the medians of the stretches that it separates. Below 10 values there is none.
    """
    series, indices = _finite_values(values)
    changes = _significant_changes(series, indices)
    series = _rescale(series)  # what follows is relative
    places = [indices.index(change.index) for change in changes]
    return SeriesFindings(changes, relative_noise(series, places), autocorrelation(series, places))


def find_candidates(values: NDArray[np.float64]) -> list[int]:
    """Return the places of the best fit, before they are tested against the noise."""
    spread = _step_scale(values)
    return best_fit(values, PENALTY * log(len(values)) * spread) if spread > 0 else []


def _significant_changes(series: NDArray[np.float64], indices: list[int]) -> tuple[ChangePoint, ...]:
    import numpy as np

    if len(series) < MIN_VALUES or np.ptp(scaled := _rescale(series)) <= ROUNDING:
        return ()
    steady = _without_spikes(scaled)
    tested = _significant_places(steady, find_candidates(scaled))
    places = _at_their_best([place for place, _ in tested], steady)
    levels = [float(np.median(part)) for part in np.split(series, places)]
    return tuple(
        ChangePoint(indices[place], before, after)
        for place, (before, after) in zip(places, pairwise(levels), strict=True)
    )


def _finite_values(values: Sequence[float | None]) -> tuple[NDArray[np.float64], list[int]]:
    """Return the values that are numbers, and the index of each."""
    import numpy as np

    whole = np.array([np.nan if value is None else value for value in values], dtype=float)
    positions = np.flatnonzero(np.isfinite(whole))
    return whole[positions], positions.tolist()


def _rescale(series: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scale the series by a power of two, which loses no digit, so that no square overflows or vanishes."""
    import numpy as np

    _, exponent = np.frexp(np.abs(series).max(initial=0.0))
    return np.ldexp(series, -int(exponent))


# ---------------------------------------------------------------- the fit


def best_fit(values: NDArray[np.float64], penalty: float) -> list[int]:
    """Return the places (first index of each piece but the first) of the cheapest fit, ascending.

    `values` and `penalty` in one unit. The best level of a piece is one of its values, so it is enough to know,
    for every level, what the best fit costs that ends on it: with S[t] the summed distances of values[:t] to each
    level, a piece that began at s costs cost[s] + penalty + S[t] - S[s]. The costs of the next `SHORTEST` places
    depend on costs before them only, so these are computed in one go.
    """
    import numpy as np

    n = len(values)
    if n < MIN_VALUES:
        return []
    levels = np.unique(values)
    if len(levels) > MAX_LEVELS:
        levels = np.unique(np.quantile(values, np.linspace(0, 1, MAX_LEVELS), method="nearest"))
    sums = np.zeros((n + 1, len(levels)))
    np.abs(np.subtract.outer(values, levels, out=sums[1:]), out=sums[1:])
    np.cumsum(sums, axis=0, out=sums)
    cost, chosen = np.full(n + 1, inf), np.zeros(n + 1, dtype=int)
    cost[0] = -penalty  # the first piece is free
    entry = np.full(len(levels), inf)  # the best cost[s] + penalty - S[s] of all beginnings so far
    for first in range(SHORTEST, n + 1, SHORTEST):
        begins = slice(first - SHORTEST, min(first, n + 1 - SHORTEST))
        ends = slice(first, begins.stop + SHORTEST)
        block = (cost[begins] + penalty)[:, None] - sums[begins]
        np.minimum(block[0], entry, out=block[0])
        np.minimum.accumulate(block, axis=0, out=block)
        entry = block[-1]
        whole = block + sums[ends]
        chosen[ends] = whole.argmin(axis=1)
        cost[ends] = whole.min(axis=1)
    places, end = [], n
    while end:
        last = end - SHORTEST  # where its last piece may begin; of several that cost the same the latest
        costs = cost[: last + 1] - sums[: last + 1, chosen[end]]
        end = last - int(np.argmin(costs[::-1]))
        places.append(end)
    return places[-2::-1]


# ---------------------------------------------------------------- the test against the noise


def _significant_places(values: NDArray[np.float64], places: Sequence[int]) -> list[tuple[int, float]]:
    """Return the places that exceed the correlated noise, with their strength in standard errors.

    The weakest that does not is dropped, and its neighbours are measured again, until all do.
    """
    import numpy as np

    edges = [0, *places, len(values)]
    clip = CLIP * _sigma(values, places)
    stretches = [_lag_sums(values[a:b], clip) for a, b in pairwise(edges)]
    steps = [_Step.at(values, *edges[k : k + 3]) for k in range(len(places))]
    products, powers = (float(sum(part)) for part in zip(*stretches, strict=True))
    while steps:
        correlation = _unbiased_correlation(products, powers, len(values), len(steps) + 1)
        strengths = [step.strength(correlation) for step in steps]
        weakest = int(np.argmin(strengths))
        if strengths[weakest] >= STRENGTH_LIMIT:
            return list(zip(edges[1:-1], strengths, strict=True))
        del edges[weakest + 1], steps[weakest]
        joined = _lag_sums(values[edges[weakest] : edges[weakest + 1]], clip)
        products += joined[0] - stretches[weakest][0] - stretches[weakest + 1][0]
        powers += joined[1] - stretches[weakest][1] - stretches[weakest + 1][1]
        stretches[weakest : weakest + 2] = [joined]
        for beside in (weakest - 1, weakest):
            if 0 <= beside < len(steps):
                steps[beside] = _Step.at(values, *edges[beside : beside + 3])
    return []


def _at_their_best(places: Sequence[int], values: NDArray[np.float64]) -> list[int]:
    """Move each place to the near one that leaves the smallest deviation from the medians of both sides.

    A commit is blamed for it, and the fit sees levels only, not where the nearest values lie.
    """
    import numpy as np

    edges = [0, *places, len(values)]
    for k, place in enumerate(places, start=1):
        first, last = edges[k - 1], edges[k + 1]
        low, high = max(first + 1, place - NEAR), min(last - 1, place + NEAR)
        before = float(np.median(values[max(first, place - REACH) : place]))
        after = float(np.median(values[place : min(last, place + REACH)]))
        # What each value between them adds if it lies before the change and not after it, summed up.
        moved = np.cumsum(np.abs(values[low:high] - before) - np.abs(values[low:high] - after))
        edges[k] = low + int(np.argmin([0.0, *moved]))
    return edges[1:-1]


class _Step(NamedTuple):
    """One change between its neighbours: its height, the spread around it, and the values on either side."""

    height: float
    spread: float
    before: int
    after: int

    @staticmethod
    def at(values: NDArray[np.float64], first: int, place: int, last: int) -> _Step:
        import numpy as np

        before, after = values[max(first, place - REACH) : place], values[place : min(last, place + REACH)]
        a, b = float(np.median(before)), float(np.median(after))
        count = len(before) + len(after)
        deviation = float(np.abs(before - a).sum() + np.abs(after - b).sum()) / count
        spread = MEAN_TO_SIGMA * deviation * sqrt(count / max(1, count - 2))
        return _Step(abs(a - b), spread, len(before), len(after))

    def strength(self, correlation: float) -> float:
        """Return the height in standard errors of a difference of two means; infinite where nothing else varies.

        n values of an AR(1) process are worth n (1 - r) / (1 + r) independent ones, and at least 1.
        """
        worth = (1 - correlation) / (1 + correlation)
        error = self.spread * sqrt(1 / max(1.0, self.before * worth) + 1 / max(1.0, self.after * worth))
        if self.height <= 1e-9 * error or self.height == 0:
            return 0.0
        return self.height / error if error > 0 else inf


# ---------------------------------------------------------------- the noise


def autocorrelation(values: NDArray[np.float64], places: Sequence[int] = ()) -> float | None:
    """Return the correlation of neighbours, 0 to 0.95, about the medians of the stretches that begin at `places`.

    Without the places of changes a step would pass for correlation. None below 10 values, or where nothing
    varies.
    """
    sigma = _sigma(values, places)
    if len(values) < MIN_VALUES or sigma == 0:
        return None
    stretches = _residuals(values, places)
    products, powers = (
        sum(part) for part in zip(*(_lag_sums(s, CLIP * sigma) for s in stretches), strict=True)
    )
    return _unbiased_correlation(products, powers, len(values), len(stretches))


def relative_noise(values: NDArray[np.float64], places: Sequence[int] = ()) -> float | None:
    """Return the standard deviation about the stretches' medians over the last stretch's median: 0.01 for 1 %.

    None below 4 values, or where that median is 0, or as good as that beside the largest value.
    """
    import numpy as np

    if len(values) < 4:
        return None
    level = abs(float(np.median(values[places[-1] if places else 0 :])))
    return _sigma(values, places) / level if level > 1e-12 * np.abs(values).max() else None


def _step_scale(values: NDArray[np.float64]) -> float:
    """Estimate the standard deviation from the differences of neighbours, which a few level shifts do not move."""
    import numpy as np

    steps = np.diff(values)
    return _robust_sigma(np.abs(steps - np.median(steps))) / sqrt(2) if len(steps) else 0.0


def _without_spikes(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Clip values farther than `SPIKE` sigmas from the median of the seven around them (Hampel's filter)."""
    import numpy as np

    around = np.pad(values, SPIKE_NEIGHBOURS, mode="reflect")
    centre = np.median(np.lib.stride_tricks.sliding_window_view(around, 2 * SPIKE_NEIGHBOURS + 1), axis=1)
    reach = SPIKE * _step_scale(values)
    return np.clip(values, centre - reach, centre + reach)


def _residuals(values: NDArray[np.float64], places: Sequence[int]) -> list[NDArray[np.float64]]:
    """Subtract its median from each stretch; `places` begin all stretches but the first."""
    import numpy as np

    return [part - np.median(part) for part in np.split(values, list(places)) if len(part)]


def _sigma(values: NDArray[np.float64], places: Sequence[int]) -> float:
    """Return the robust standard deviation about the stretches' medians; 0 where they are constant."""
    import numpy as np

    return _robust_sigma(np.abs(np.concatenate(_residuals(values, places)))) if len(values) > 1 else 0.0


def _robust_sigma(deviations: NDArray[np.float64]) -> float:
    """Estimate sigma from the median of absolute deviations, or from their mean if that is 0.

    It is 0 with a coarse clock, or a counter.
    """
    import numpy as np

    return float(MAD_TO_SIGMA * np.median(deviations) or MEAN_TO_SIGMA * deviations.mean())


def _lag_sums(part: NDArray[np.float64], clip: float) -> tuple[float, float]:
    """Sum the products of neighbours, and the squares, about the median of one stretch."""
    import numpy as np

    if not len(part):
        return 0.0, 0.0
    about = np.clip(part - np.median(part), -clip, clip)
    return float(about[1:] @ about[:-1]), float(about @ about)


def _unbiased_correlation(products: float, powers: float, n: int, stretches: int) -> float:
    """Return the correlation without the bias of centring each stretch (`MEDIAN_BIAS`)."""
    if powers <= 0:
        return 0.0
    r = products / powers
    return min(MAX_CORRELATION, max(0.0, r + MEDIAN_BIAS * stretches * (1 + 3 * r) / n))
