"""The noise of a series, and the audit of the detectors' vote: is a change more than what the noise does by itself?

Where neighbouring values follow each other, a quiet series wanders, and every detector takes a long wander for a
change: at a correlation of .6 the bare vote alarms in half of all quiet years. So the correlation is measured about the
stretches between the candidates, and a change must stand out by `AUDIT_LIMIT` standard errors that count correlated
values for as many as they are worth. The weakest that does not is dropped, and its neighbours are measured again, until
all pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import inf, sqrt
from typing import TYPE_CHECKING, NamedTuple

from profkit.regression.change_points.detectors import BACK

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

TOGETHER = 3  # detectors that point to places no farther apart speak of one change
AUDIT_LIMIT = 4.25  # standard errors that a change must have which two detectors see
AUDIT_LIMIT_ALONE = (
    8.0  # and one that a single detector sees: a stretch of five nights, or one among wild values
)
REACH = 40  # values on either side that are compared: older ones belong to another time
MOST_CORRELATION = 0.95
CLIP = 3.0  # sigmas: a wild value must not hide the correlation of the rest
MAD_SIGMA = 1.4826  # 1 / quantile(0.75) of the normal distribution
MEAN_TO_SIGMA = 1.2533  # sqrt(pi / 2): sigma over the mean absolute deviation, normal distribution
# Of (1 + 3 r) / n, the bias of a correlation about a mean (Kendall, Biometrika 41 (1954) 403): a median has less.
MEDIAN_BIAS = 0.5
SPIKE = 6.0  # sigmas at which a wild value is cut off
SPIKE_NEIGHBOURS = 3  # values on either side of one that say where it should be
NIGHT_SIGMAS = 4.0  # by which a single night must differ to be a candidate at all
POWER = 0.84  # standard errors above a limit at which 4 of 5 changes are seen: the normal quantile of 0.8


# ---------------------------------------------------------------- noise


def step_scale(values: NDArray[np.float64]) -> float:
    """Standard deviation by the differences of neighbours, which a few level shifts do not move.

    1.4826 times the median absolute deviation of the differences, over sqrt(2). Where more than half of the differences
    are equal (a coarse clock, a counter) their mean absolute deviation stands in. 0 for a constant series.
    """
    import numpy as np

    if len(values) < 2:
        return 0.0
    steps = np.diff(values)
    return _robust_sigma(np.abs(steps - np.median(steps))) / sqrt(2)


def without_spikes(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The values, none farther than `SPIKE` sigmas from the median of the seven around it (Hampel's filter)."""
    import numpy as np

    if len(values) <= SPIKE_NEIGHBOURS:
        return values
    around = np.pad(values, SPIKE_NEIGHBOURS, mode="reflect")
    centre = np.median(np.lib.stride_tricks.sliding_window_view(around, 2 * SPIKE_NEIGHBOURS + 1), axis=1)
    reach = SPIKE * step_scale(values)
    return np.clip(values, centre - reach, centre + reach)


def autocorrelation(values: NDArray[np.float64], places: Sequence[int] = ()) -> float | None:
    """Correlation of neighbours, 0 to 0.95, about the medians of the stretches that begin at `places`.

    Without the places of changes a step would pass for correlation. None below 10 values, or where nothing varies.
    """
    stretches = _residuals(values, places)
    if len(values) < 10 or _sigma(values, places) == 0:
        return None
    edges = [0, *places, len(values)]
    clip = _clip_limit(values, edges)
    products, powers = (sum(part) for part in zip(*(_lag_sums(s, clip) for s in stretches), strict=True))
    return _unbiased_correlation(products, powers, len(values), len(stretches))


def relative_noise(values: NDArray[np.float64], places: Sequence[int] = ()) -> float | None:
    """Relative standard deviation about the stretches' medians, 0.01 for 1 %; relative to the last stretch's median.

    None below 4 values, or where that median is 0, or as good as that beside the largest value.
    """
    import numpy as np

    if len(values) < 4:
        return None
    level = abs(float(np.median(values[places[-1] if places else 0 :])))
    return _sigma(values, places) / level if level > 1e-12 * np.abs(values).max() else None


def smallest_detectable(values: NDArray[np.float64], places: Sequence[int] = ()) -> float | None:
    """The smallest relative step that one night shows 4 times of 5: beyond 4 sigma about the last 24."""
    noise = relative_noise(values, places)
    return noise * (NIGHT_SIGMAS + POWER) * sqrt(1 + 1 / BACK) if noise else noise


def _residuals(values: NDArray[np.float64], places: Sequence[int]) -> list[NDArray[np.float64]]:
    """The values about the median of their stretch, stretch by stretch; `places` begin all but the first."""
    import numpy as np

    return [part - np.median(part) for part in np.split(values, list(places)) if len(part)]


def _sigma(values: NDArray[np.float64], places: Sequence[int]) -> float:
    """Robust standard deviation about the stretches' medians; 0 where they are constant."""
    import numpy as np

    return _robust_sigma(np.abs(np.concatenate(_residuals(values, places)))) if len(values) > 1 else 0.0


def _robust_sigma(deviations: NDArray[np.float64]) -> float:
    """By the median of absolute deviations, or their mean where the median is 0."""
    import numpy as np

    return float(MAD_SIGMA * np.median(deviations) or MEAN_TO_SIGMA * deviations.mean())


# ---------------------------------------------------------------- the vote and its audit


class Candidate(NamedTuple):
    """A place and the names of the detectors that point to it; `strength` in standard errors once it was audited."""

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
        Candidate(_lower_median([p for p, _ in group]), tuple(sorted({n for _, n in group})))
        for group in groups
    ]


def audit(values: NDArray[np.float64], candidates: Sequence[Candidate]) -> list[Candidate]:
    """The candidates that stand out of the correlated noise, with their strength; the weakest was dropped first."""
    import numpy as np

    edges = [0, *(c.place for c in candidates), len(values)]
    kept = list(candidates)
    clip = _clip_limit(values, edges)
    stretches = [_lag_sums(values[a:b], clip) for a, b in pairwise(edges)]
    steps = [_Step.at(values, *edges[k : k + 3]) for k in range(len(kept))]
    products, powers = (float(sum(part)) for part in zip(*stretches, strict=True))
    while kept:
        correlation = _unbiased_correlation(products, powers, len(values), len(kept) + 1)
        strengths = [step.strength(correlation) for step in steps]
        margins = [
            s / (AUDIT_LIMIT if len(c.votes) > 1 else AUDIT_LIMIT_ALONE)
            for s, c in zip(strengths, kept, strict=True)
        ]
        weakest = int(np.argmin(margins))
        if margins[weakest] >= 1:
            return [c._replace(strength=s) for c, s in zip(kept, strengths, strict=True)]
        del kept[weakest], edges[weakest + 1], steps[weakest]
        joined = _lag_sums(values[edges[weakest] : edges[weakest + 1]], clip)
        products += joined[0] - stretches[weakest][0] - stretches[weakest + 1][0]
        powers += joined[1] - stretches[weakest][1] - stretches[weakest + 1][1]
        stretches[weakest : weakest + 2] = [joined]
        for beside in (weakest - 1, weakest):
            if 0 <= beside < len(kept):
                steps[beside] = _Step.at(values, *edges[beside : beside + 3])
    return []


class _Step(NamedTuple):
    """One change between its neighbours: how high, out of how much spread, with how many values on either side."""

    height: float
    spread: float
    before: int
    after: int

    @staticmethod
    def at(values: NDArray[np.float64], first: int, place: int, last: int) -> _Step:
        import numpy as np

        left, right = values[max(first, place - REACH) : place], values[place : min(last, place + REACH)]
        a, b = float(np.median(left)), float(np.median(right))
        count = len(left) + len(right)
        deviation = float(np.abs(left - a).sum() + np.abs(right - b).sum()) / count
        spread = MEAN_TO_SIGMA * deviation * sqrt(count / max(1, count - 2))
        return _Step(abs(a - b), spread, len(left), len(right))

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


def _clip_limit(values: NDArray[np.float64], edges: Sequence[int]) -> float:
    """Where values are clipped for the correlation: 3 sigma about the medians of the stretches."""
    import numpy as np

    parts = [values[a:b] for a, b in pairwise(edges) if b > a]
    return CLIP * _robust_sigma(np.abs(np.concatenate([part - np.median(part) for part in parts])))


def _lag_sums(part: NDArray[np.float64], clip: float) -> tuple[float, float]:
    """Sum of the products of neighbours, and of squares, about the median of one stretch."""
    import numpy as np

    if not len(part):
        return 0.0, 0.0
    about = np.clip(part - np.median(part), -clip, clip)
    return float(about[1:] @ about[:-1]), float(about @ about)


def _unbiased_correlation(products: float, powers: float, n: int, stretches: int) -> float:
    """The correlation without the bias of centring each stretch (`MEDIAN_BIAS`)."""
    if powers <= 0:
        return 0.0
    r = products / powers
    return min(MOST_CORRELATION, max(0.0, r + MEDIAN_BIAS * stretches * (1 + 3 * r) / n))


def _lower_median(places: list[int]) -> int:
    half = len(places) // 2
    return places[half] if len(places) % 2 else (places[half - 1] + places[half]) // 2
