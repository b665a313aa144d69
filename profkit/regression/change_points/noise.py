"""How much a series moves where nothing changes, how long it remembers, and how small a change it could show."""

from __future__ import annotations

from collections.abc import Sequence
from math import erfc, exp, inf, log, pi, sqrt
from typing import TYPE_CHECKING

from profkit.regression.change_points.audit import LIMIT, REACH, effective
from profkit.regression.change_points.pelt import PENALTY, SHORTEST
from profkit.regression.change_points.scan import BACK, FORE
from profkit.regression.change_points.scan import LIMIT as SCAN_LIMIT

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MAD_TO_SIGMA = 1.4826  # 1 / quantile(0.75) of the normal distribution
MEAN_TO_SIGMA = 1.2533  # sqrt(pi / 2): sigma over the mean absolute deviation, normal distribution
POWER = (
    0.84  # standard errors above a limit at which four of five changes are seen: the normal quantile of 0.8
)
BAND = 4.0  # sigmas by which a single night must differ to be suspect at all
WILD = 6.0  # sigmas at which a wild value is cut off
ASIDE = 3  # values on either side of one that say where it should be
ENERGY_T = 4.9  # Student's t of p = 1e-5 with 48 degrees of freedom, a whole window


def step_scale(values: NDArray[np.float64]) -> float:
    """Standard deviation by the differences of neighbours, which a few level shifts do not move.

    1.4826 times the median absolute deviation of the differences, over sqrt(2). Where more than half of the differences
    are equal (a coarse clock, a counter) their mean absolute deviation stands in. 0 for a constant series.
    """
    import numpy as np

    if len(values) < 2:
        return 0.0
    steps = np.diff(values)
    away = np.abs(steps - np.median(steps))
    return float(MAD_TO_SIGMA * np.median(away) or MEAN_TO_SIGMA * away.mean()) / sqrt(2)


def tamed(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The values, none farther than `WILD` sigmas from the median of the seven around it (Hampel's filter).

    A night among other work must not make a real change beside it look like chance. Changes that last stay as they are.
    """
    import numpy as np

    if len(values) <= ASIDE:
        return values
    around = np.pad(values, ASIDE, mode="reflect")
    centre = np.median(np.lib.stride_tricks.sliding_window_view(around, 2 * ASIDE + 1), axis=1)
    reach = WILD * step_scale(values)
    return np.clip(values, centre - reach, centre + reach)


def residuals(values: NDArray[np.float64], places: Sequence[int]) -> list[NDArray[np.float64]]:
    """The values about the median of their stretch, stretch by stretch; `places` begin all but the first."""
    import numpy as np

    return [part - np.median(part) for part in np.split(values, list(places)) if len(part)]


def sigma(values: NDArray[np.float64], places: Sequence[int] = ()) -> float:
    """Robust standard deviation about the stretches' medians, in the unit of the values; 0 where they are constant."""
    import numpy as np

    if len(values) < 2:
        return 0.0
    rest = np.abs(np.concatenate(residuals(values, places)))
    return float(MAD_TO_SIGMA * np.median(rest) or MEAN_TO_SIGMA * rest.mean())


def autocorrelation(
    values: Sequence[float] | NDArray[np.float64], places: Sequence[int] = ()
) -> float | None:
    """Correlation of neighbours, 0 to 0.95, about the medians of the stretches that begin at `places`.

    Without the places of changes a step would pass for memory. Wild values are clipped at 3 sigma, and the bias of
    short stretches is given back. None below 10 values, or where nothing varies.
    """
    import numpy as np

    from profkit.regression.change_points.audit import memory

    series = np.asarray(values, dtype=float)
    if len(series) < 10 or sigma(series, places) == 0:
        return None
    return memory(residuals(series, places))


def noise(values: Sequence[float] | NDArray[np.float64], places: Sequence[int] = ()) -> float | None:
    """Relative standard deviation about the stretches' medians, 0.01 for 1 %; relative to the last stretch's median.

    None below 4 values, or where that median is 0, or as good as that beside the largest value.
    """
    import numpy as np

    series = np.asarray(values, dtype=float)
    if len(series) < 4:
        return None
    level = abs(float(np.median(series[places[-1] if places else 0 :])))
    return sigma(series, places) / level if level > 1e-12 * np.abs(series).max() else None


def smallest_detectable(
    values: Sequence[float] | NDArray[np.float64], places: Sequence[int] = (), nights: int = 1
) -> float | None:
    """The smallest relative step that is seen four times of five, `nights` nights after it; None as for `noise`.

    For fewer than 5 nights: outside of the band of 4 sigma about the last 24. From 5 on: what the second-best of the
    three detectors sees, and the audit lets pass with the correlation that this series has.
    """
    import numpy as np

    series = np.asarray(values, dtype=float)
    spread = noise(series, places)
    if not spread:
        return spread
    if nights < SHORTEST:
        return spread * (BAND + POWER) * sqrt(1 + 1 / BACK)
    rest = np.minimum(np.abs(np.concatenate(residuals(series, places))) / sigma(series, places), WILD)
    mean = float(MEAN_TO_SIGMA * rest.mean())  # the spread as absolute deviations have it, and as squares
    square = float(np.sqrt((rest**2).mean()))
    correlation = autocorrelation(series, places) or 0.0
    before = min(REACH, len(series) - (places[-1] if places else 0))
    error = sqrt(1 / effective(before, correlation) + 1 / effective(min(nights, REACH), correlation))
    by_audit = mean * (LIMIT + MEAN_TO_SIGMA * POWER) * error
    by_fit = mean * _step_of_gain((PENALTY * log(max(2, len(series))) + POWER * sqrt(nights)) / nights)
    by_energy = square * (ENERGY_T + POWER) * sqrt(1 / min(before, 25) + 1 / min(nights, 25))
    by_scan = square * (SCAN_LIMIT + 1.155 * POWER) * sqrt(1 / BACK + 1 / FORE) if nights >= FORE else inf
    return spread * max(by_audit, sorted((by_fit, by_energy, by_scan))[1])


def _step_of_gain(gain: float) -> float:
    """The step d, in sigmas, that brings a Gaussian value nearer to its new level than to the old by `gain` on average.

    E|z + d| - E|z| = d (1 - 2 P(Z > d)) + 2 phi(d) - 2 phi(0), found by halving.
    """
    low, high = 0.0, gain + 2
    for _ in range(50):
        d = (low + high) / 2
        mean = d * (1 - erfc(d / sqrt(2))) + sqrt(2 / pi) * (exp(-d * d / 2) - 1)
        low, high = (d, high) if mean < gain else (low, d)
    return high
