"""Change points by the vote of three detectors, of which only those count that are more than the noise does by itself.

Where neighbouring values are correlated, a quiet series wanders, and every detector takes a long wander for a change:
at a correlation of .6 the bare vote alarms in half of all quiet years. So the correlation is measured about the
stretches between the candidates, and a change must stand out by `STRENGTH_LIMIT` standard errors that count correlated
values for as many as they are worth.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf, isfinite, log, sqrt
from typing import TYPE_CHECKING, NamedTuple

from profkit.core.formatting import plural
from profkit.core.statistics import median
from profkit.core.types.history import ChangePoint
from profkit.regression.change_points.detectors import (
    BACK,
    FORE,
    PENALTY,
    SHORTEST,
    e_divisive,
    l1_partition,
    welch_scan,
)
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

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

FEWEST = 2 * SHORTEST  # values; with fewer there are no two stretches
ROUNDING = 1e-12  # of the level: sums of doubles in another order differ by so much, and nothing changed
TOGETHER = 3  # detectors that point to places no farther apart mean one change
STRENGTH_LIMIT = 4.25  # standard errors that a change must have which two detectors see
ALONE_LIMIT = 8.0  # and one that a single detector sees: a stretch of five nights, or one among wild values
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
    """The change points by the vote of three detectors, tested against the noise; nothing below 10 values.

    `values` are one per night or build, oldest first, in any unit; None, NaN and infinities are nights without a value.
    A change point's `index` counts all of them and names the first value after the change; `before` and `after` are
    the medians of the stretches that it parts; `votes` name the detectors, `strength` is in standard
    errors, None where nothing else varies.
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


def find_candidates(values: NDArray[np.float64]) -> list[Candidate]:
    """What the detectors point to, before they are tested against the noise.

    E-divisive never decides alone (on tailed noise it would alarm one series in ten): it is asked where another spoke.
    """
    spread = step_scale(values)
    places: dict[str, Sequence[int]] = {"scan": welch_scan(values)}
    places["pelt"] = l1_partition(values, PENALTY * log(len(values)) * spread) if spread > 0 else []
    if places["scan"] or places["pelt"]:
        places["e-divisive"] = e_divisive(values)
    return [c for c in gather_votes(places) if c.votes != ("e-divisive",)]


def _significant_changes(series: NDArray[np.float64], indices: list[int]) -> tuple[ChangePoint, ...]:
    import numpy as np

    if len(series) < FEWEST or np.ptp(scaled := _rescale(series)) <= ROUNDING:
        return ()
    candidates = find_candidates(scaled)
    steady = without_spikes(scaled)
    changes = significant_candidates(steady, candidates) if candidates else []
    changes = at_their_best_places(steady, changes)
    edges = [0, *(c.place for c in changes), len(series)]
    levels = [float(np.median(series[a:b])) for a, b in pairwise(edges)]
    return tuple(
        ChangePoint(
            indices[c.place],
            before,
            after,
            votes=c.votes,
            strength=c.strength if isfinite(c.strength) else None,
        )
        for c, before, after in zip(changes, levels, levels[1:], strict=False)
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
    elif present < BACK + FORE:
        notes.append(
            f"with fewer than {BACK + FORE} values ({present}) one of the three detectors cannot be used"
        )
    if correlation is not None and correlation >= STRONG_CORRELATION:
        worth = round(100 * (1 - correlation) / (1 + correlation))
        notes.append(
            f"neighbouring values follow each other (correlation {correlation:.2f}): a hundred of them say as much as "
            f"{worth} independent ones, and a change must be larger to stand out"
        )
    return tuple(notes)


# ---------------------------------------------------------------- the vote, and its test against the noise


class Candidate(NamedTuple):
    """A place and the names of the detectors that point to it; `strength` in standard errors once it was tested."""

    place: int
    votes: tuple[str, ...]
    strength: float = 0.0


def gather_votes(places_by_detector: dict[str, Sequence[int]]) -> list[Candidate]:
    """All places of all detectors, those within `TOGETHER` of the first of them as one, at their (lower) median."""
    votes = sorted((place, name) for name, places in places_by_detector.items() for place in places)
    groups: list[list[tuple[int, str]]] = []
    for place, name in votes:
        if groups and place <= groups[-1][0][0] + TOGETHER:
            groups[-1].append((place, name))
        else:
            groups.append([(place, name)])
    return [
        Candidate(int(median([p for p, _ in group])), tuple(sorted({n for _, n in group})))
        for group in groups
    ]


def significant_candidates(values: NDArray[np.float64], candidates: Sequence[Candidate]) -> list[Candidate]:
    """The candidates that stand out of the correlated noise, with their strength.

    The weakest that does not is dropped, and its neighbours are measured again, until all do.
    """
    import numpy as np

    edges = [0, *(c.place for c in candidates), len(values)]
    left = list(candidates)
    clip = clip_limit(values, edges[1:-1])
    stretches = [lag_sums(values[a:b], clip) for a, b in pairwise(edges)]
    steps = [_Step.at(values, *edges[k : k + 3]) for k in range(len(left))]
    products, powers = (float(sum(part)) for part in zip(*stretches, strict=True))
    while left:
        correlation = unbiased_correlation(products, powers, len(values), len(left) + 1)
        strengths = [step.strength(correlation) for step in steps]
        margins = [
            s / (STRENGTH_LIMIT if len(c.votes) > 1 else ALONE_LIMIT)
            for s, c in zip(strengths, left, strict=True)
        ]
        weakest = int(np.argmin(margins))
        if margins[weakest] >= 1:
            return [c._replace(strength=s) for c, s in zip(left, strengths, strict=True)]
        del left[weakest], edges[weakest + 1], steps[weakest]
        joined = lag_sums(values[edges[weakest] : edges[weakest + 1]], clip)
        products += joined[0] - stretches[weakest][0] - stretches[weakest + 1][0]
        powers += joined[1] - stretches[weakest][1] - stretches[weakest + 1][1]
        stretches[weakest : weakest + 2] = [joined]
        for beside in (weakest - 1, weakest):
            if 0 <= beside < len(left):
                steps[beside] = _Step.at(values, *edges[beside : beside + 3])
    return []


def at_their_best_places(values: NDArray[np.float64], changes: Sequence[Candidate]) -> list[Candidate]:
    """Each change at the place near its votes that leaves the smallest deviation from the medians of both sides.

    Detectors that agree on a change differ by a value or two on where it is, and a commit is blamed for it.
    """
    import numpy as np

    edges = [0, *(change.place for change in changes), len(values)]
    for k, change in enumerate(changes, start=1):
        first, last = edges[k - 1], edges[k + 1]
        low, high = max(first + 1, change.place - TOGETHER), min(last - 1, change.place + TOGETHER)
        before = float(np.median(values[max(first, change.place - REACH) : change.place]))
        after = float(np.median(values[change.place : min(last, change.place + REACH)]))
        # What each value between them adds if it lies before the change and not after it, summed up.
        moved = np.cumsum(np.abs(values[low:high] - before) - np.abs(values[low:high] - after))
        edges[k] = low + int(np.argmin([0.0, *moved]))
    return [change._replace(place=place) for change, place in zip(changes, edges[1:-1], strict=True)]


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
