"""Series with a known truth: noise of several kinds, and steps put into it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]


def noise(kind: str, nights: int, seed: int) -> Values:
    """Stationary noise of about unit spread: gauss, t3, exp, or ar.3 for an AR(1) process of coefficient .3."""
    random = np.random.default_rng([seed, nights])
    if kind == "gauss":
        return random.normal(size=nights)
    if kind == "t3":
        return random.standard_t(3, size=nights)
    if kind == "exp":
        return random.exponential(size=nights)
    coefficient, settle = float(kind.removeprefix("ar")), 50
    values = random.normal(size=nights + settle) * np.sqrt(1 - coefficient**2)
    for k in range(1, len(values)):
        values[k] += coefficient * values[k - 1]
    return values[settle:]


def with_steps(values: Values, *steps: tuple[int, float]) -> Values:
    """The values with every (index, height) added from that index on."""
    stepped = values.copy()
    for index, height in steps:
        stepped[index:] += height
    return stepped
