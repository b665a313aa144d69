"""Change points: the best piecewise constant fit, of which only those steps count that are more than noise does.

Where neighbouring values are correlated, a quiet series wanders, and every detector takes a long wander for a change:
at a correlation of .6 the bare fit alarms in most quiet years. So the correlation is measured about the stretches
between the candidates, and a change must stand out by `STRENGTH_LIMIT` standard errors that count correlated values for
as many as they are worth.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf, isfinite, log, sqrt
from typing import TYPE_CHECKING, NamedTuple

from profkit.core.formatting import plural
from profkit.core.types.history import ChangePoint
from profkit.regression.change_points.noise import (
    MEAN_TO_SIGMA,
    autocorrelation,
    clip_limit,
    lag_sums,
    relative_noise,
    smallest_detectable,
    step_scale,
    unbiased_correlation,
    without_spikes,
)
from profkit.regression.change_points.partition import PENALTY, SHORTEST, l1_partition

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

FEWEST = 2 * SHORTEST  # values; with fewer there are no two stretches
ROUNDING = 1e-12  # of the level: sums of doubles in another order differ by so much, and nothing changed
NEAR = 3  # values by which the fit misses the best place at most
STRENGTH_LIMIT = 5.0  # standard errors that a change must have
REACH = 40  # values on either side that are compared: older ones belong to another time
STRONG_CORRELATION = 0.5  # from here a note says what the correlation of neighbours costs


@dataclass(frozen=True)
class SeriesFindings:
    """What a series says of itself. Relative figures are fractions of the level, None where there is none."""

    change_points: tuple[ChangePoint, ...] = ()
    noise: float | None = None  # standard deviation about the stretches between changes
    autocorrelation: float | None = None  # of neighbours, about these stretches
    detectable: float | None = None  # the smallest relative change that one night could show
    notes: tuple[str, ...] = ()


def find_changes(values: Sequence[float | None]) -> tuple[ChangePoint, ...]:
    """The change points of the best fit, tested against the noise; nothing below 10 values.

    `values` are one per night or build, oldest first, in any unit; None, NaN and infinities are nights without a value.
    A change point's `index` counts all of them and names the first value after the change; `before` and `after` are
    the medians of the stretches that it parts; `strength` is in standard errors, None where nothing else varies.
    """
    series, indices = _finite_values(values)
    return _significant_changes(series, indices)


def examine_series(values: Sequence[float | None]) -> SeriesFindings:
    """`find_changes` with the remaining noise, its autocorrelation, what one night could show, and notes."""
    series, indices = _finite_values(values)
    changes = _significant_changes(series, indices)
    series = _rescale(series)  # what follows is relative
    positions = {index: place for place, index in enumerate(indices)}
    places = [positions[change.index] for change in changes]
    correlation, noise = autocorrelation(series, places), relative_noise(series, places)
    return SeriesFindings(
        change_points=changes,
        noise=noise,
        autocorrelation=correlation,
        detectable=smallest_detectable(noise),
        notes=_notes(len(values), len(series), correlation),
    )


def find_candidates(values: NDArray[np.float64]) -> list[int]:
    """The places of the best fit, before they are tested against the noise."""
    spread = step_scale(values)
    return l1_partition(values, PENALTY * log(len(values)) * spread) if spread > 0 else []


def _significant_changes(series: NDArray[np.float64], indices: list[int]) -> tuple[ChangePoint, ...]:
    import numpy as np

    if len(series) < FEWEST or np.ptp(scaled := _rescale(series)) <= ROUNDING:
        return ()
    steady = without_spikes(scaled)
    tested = significant_places(steady, find_candidates(scaled))
    places = at_their_best([place for place, _ in tested], steady)
    levels = [float(np.median(part)) for part in np.split(series, places)]
    return tuple(
        ChangePoint(indices[place], before, after, strength=strength if isfinite(strength) else None)
        for place, (_, strength), (before, after) in zip(places, tested, pairwise(levels), strict=True)
    )


def _finite_values(values: Sequence[float | None]) -> tuple[NDArray[np.float64], list[int]]:
    """The values that are there, and the index of each."""
    import numpy as np

    whole = np.array([np.nan if value is None else value for value in values], dtype=float)
    positions = np.flatnonzero(np.isfinite(whole))
    return whole[positions], positions.tolist()


def _rescale(series: NDArray[np.float64]) -> NDArray[np.float64]:
    """The series in a unit in which no square overflows or vanishes: a power of two, so that no digit is lost."""
    import numpy as np

    _, exponent = np.frexp(np.abs(series).max(initial=0.0))
    return np.ldexp(series, -int(exponent))


def _notes(nights: int, present: int, correlation: float | None) -> tuple[str, ...]:
    notes = []
    if present < nights:
        notes.append(
            f"{nights - present} of {nights} values are missing or no finite number, and were left out"
        )
    if present < FEWEST:
        notes.append(f"{plural(present, 'value')}: too few to look for a change, which takes {FEWEST}")
    if correlation is not None and correlation >= STRONG_CORRELATION:
        worth = round(100 * (1 - correlation) / (1 + correlation))
        notes.append(
            f"neighbouring values follow each other (correlation {correlation:.2f}): a hundred of them say as much as "
            f"{worth} independent ones, and a change must be larger to stand out"
        )
    return tuple(notes)


# ---------------------------------------------------------------- the test against the noise


def significant_places(values: NDArray[np.float64], places: Sequence[int]) -> list[tuple[int, float]]:
    """The places that stand out of the correlated noise, with their strength in standard errors.

    The weakest that does not is dropped, and its neighbours are measured again, until all do.
    """
    import numpy as np

    edges = [0, *places, len(values)]
    clip = clip_limit(values, places)
    stretches = [lag_sums(values[a:b], clip) for a, b in pairwise(edges)]
    steps = [_Step.at(values, *edges[k : k + 3]) for k in range(len(places))]
    products, powers = (float(sum(part)) for part in zip(*stretches, strict=True))
    while steps:
        correlation = unbiased_correlation(products, powers, len(values), len(steps) + 1)
        strengths = [step.strength(correlation) for step in steps]
        weakest = int(np.argmin(strengths))
        if strengths[weakest] >= STRENGTH_LIMIT:
            return list(zip(edges[1:-1], strengths, strict=True))
        del edges[weakest + 1], steps[weakest]
        joined = lag_sums(values[edges[weakest] : edges[weakest + 1]], clip)
        products += joined[0] - stretches[weakest][0] - stretches[weakest + 1][0]
        powers += joined[1] - stretches[weakest][1] - stretches[weakest + 1][1]
        stretches[weakest : weakest + 2] = [joined]
        for beside in (weakest - 1, weakest):
            if 0 <= beside < len(steps):
                steps[beside] = _Step.at(values, *edges[beside : beside + 3])
    return []


def at_their_best(places: Sequence[int], values: NDArray[np.float64]) -> list[int]:
    """Each place moved to the near one that leaves the smallest deviation from the medians of both sides.

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
    """One change between its neighbours: how high, out of how much spread, with how many values on either side."""

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
        """The height in standard errors of a difference of two means; infinite where nothing else varies."""
        error = self.spread * sqrt(
            1 / _effective_count(self.before, correlation) + 1 / _effective_count(self.after, correlation)
        )
        if self.height <= 1e-9 * error or self.height == 0:
            return 0.0
        return self.height / error if error > 0 else inf


def _effective_count(count: float, correlation: float) -> float:
    """How many independent values these are worth: n (1 - r) / (1 + r) for an AR(1) process, at least 1."""
    return max(1.0, count * (1 - correlation) / (1 + correlation))
