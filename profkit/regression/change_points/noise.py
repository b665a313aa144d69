"""The noise of a series: its spread, and how much neighbouring values are correlated."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MOST_CORRELATION = 0.95
CLIP = 3.0  # sigmas: a wild value must not hide the correlation of the rest
MAD_SIGMA = 1.4826  # 1 / quantile(0.75) of the normal distribution
MEAN_TO_SIGMA = 1.2533  # sqrt(pi / 2): sigma over the mean absolute deviation, normal distribution
# Of (1 + 3 r) / n, the bias of a correlation about a mean (Kendall, Biometrika 41 (1954) 403): a median has less.
MEDIAN_BIAS = 0.5
SPIKE = 6.0  # sigmas at which a wild value is cut off
SPIKE_NEIGHBOURS = 3  # values on either side of one that say where it should be
BACK = 24  # nights that one night is compared with
NIGHT_SIGMAS = 4.0  # by which a single night must differ to be a candidate at all
POWER = 0.84  # standard errors above a limit at which 4 of 5 changes are seen: the normal quantile of 0.8


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
    clip = clip_limit(values, places)
    products, powers = (sum(part) for part in zip(*(lag_sums(s, clip) for s in stretches), strict=True))
    return unbiased_correlation(products, powers, len(values), len(stretches))


def relative_noise(values: NDArray[np.float64], places: Sequence[int] = ()) -> float | None:
    """Relative standard deviation about the stretches' medians, 0.01 for 1 %; relative to the last stretch's median.

    None below 4 values, or where that median is 0, or as good as that beside the largest value.
    """
    import numpy as np

    if len(values) < 4:
        return None
    level = abs(float(np.median(values[places[-1] if places else 0 :])))
    return _sigma(values, places) / level if level > 1e-12 * np.abs(values).max() else None


def smallest_detectable(noise: float | None) -> float | None:
    """The smallest relative step that one night shows 4 times of 5: beyond 4 sigma about the last 24."""
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


def clip_limit(values: NDArray[np.float64], places: Sequence[int]) -> float:
    """Where values are clipped for the correlation: 3 sigma about the medians of the stretches."""
    return CLIP * _sigma(values, places)


def lag_sums(part: NDArray[np.float64], clip: float) -> tuple[float, float]:
    """Sum of the products of neighbours, and of squares, about the median of one stretch."""
    import numpy as np

    if not len(part):
        return 0.0, 0.0
    about = np.clip(part - np.median(part), -clip, clip)
    return float(about[1:] @ about[:-1]), float(about @ about)


def unbiased_correlation(products: float, powers: float, n: int, stretches: int) -> float:
    """The correlation without the bias of centring each stretch (`MEDIAN_BIAS`)."""
    if powers <= 0:
        return 0.0
    r = products / powers
    return min(MOST_CORRELATION, max(0.0, r + MEDIAN_BIAS * stretches * (1 + 3 * r) / n))
