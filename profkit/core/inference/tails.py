"""Tails of the normal distribution and of Student's t: how likely it is that chance alone goes so far.

Standard library only. Relative errors stay below 1e-10 for Student's t of 1e-3 to 1e8 degrees of freedom, and below
1e-14 for the normal distribution, as long as the probability is a normal floating-point number (above 1e-308).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import erfc, exp, inf, isinf, isnan, lgamma, log, log1p, pi, sqrt

_LARGE = 10.0  # from here Stirling's series gives the logarithm of gamma to the last bit
_TINY = 1e-300  # stands for 0 in Lentz' continued fraction
_EXACT = 1e-15
_MOST_TERMS = 100_000  # it takes about the square root of the larger parameter; 1e8 needs some thousands


def normal_upper(z: float) -> float:
    """P(Z >= z) of the standard normal distribution; NaN gives ValueError."""
    return erfc(_require_number(z) / sqrt(2)) / 2


def normal_two_sided(z: float) -> float:
    """P(|Z| >= |z|) of the standard normal distribution; NaN gives ValueError."""
    return erfc(abs(_require_number(z)) / sqrt(2))


def normal_quantile(p: float) -> float:
    """z with P(Z <= z) = p, for p between 0 and 1 (ends: -inf, inf); else ValueError."""
    if not 0 <= p <= 1:
        raise ValueError(f"a probability lies between 0 and 1, not {p}")
    if p in (0.0, 1.0):
        return inf if p else -inf
    if p > 0.5:
        return -normal_quantile(1 - p)  # 1 - p is exact from 0.5 on
    return -_quantile(normal_upper, p)


def student_upper(t: float, freedom: float) -> float:
    """P(T >= t) for Student's t with `freedom` degrees of freedom (any positive number; inf is the normal)."""
    tail = student_two_sided(t, freedom) / 2
    return tail if t >= 0 else 1 - tail


def student_two_sided(t: float, freedom: float) -> float:
    """P(|T| >= |t|) for Student's t: the incomplete beta I_x(freedom / 2, 1 / 2) at x = freedom / (freedom + t^2).

    Abramowitz and Stegun, 26.7.1 with 26.5.27. ValueError where t is NaN or freedom is not positive.
    """
    t = abs(_require_number(t))
    if not freedom > 0:
        raise ValueError(f"degrees of freedom are positive, not {freedom}")
    if isinf(freedom):
        return normal_two_sided(t)
    if isinf(t):
        return 0.0
    # t^2 / freedom by way of t / sqrt(freedom), which does not overflow where t^2 would
    ratio = (t / sqrt(freedom)) ** 2 if t < 1e150 else inf
    if isinf(ratio):
        return 0.0
    return _beta(1 / (1 + ratio), ratio / (1 + ratio), -log1p(ratio), freedom / 2, 0.5)


@lru_cache(maxsize=4096)
def student_quantile(p: float, freedom: float) -> float:
    """t with P(T <= t) = p: 2.228 for p = 0.975 and 10 degrees of freedom; ends and errors as `normal_quantile`."""
    if not 0 <= p <= 1:
        raise ValueError(f"a probability lies between 0 and 1, not {p}")
    if p in (0.0, 1.0):
        return inf if p else -inf
    if p > 0.5:
        return -student_quantile(1 - p, freedom)
    return -_quantile(lambda t: student_upper(t, freedom), p)


def _beta(x: float, y: float, log_x: float, a: float, b: float) -> float:
    """I_x(a, b) with y = 1 - x and log x given apart, since x next to 1 has lost its digits."""
    if x <= 0:
        return 0.0
    if y <= 0:
        return 1.0
    scale = exp(a * log_x + b * log(y) - _log_beta(a, b))
    if x < (a + 1) / (a + b + 2):
        return scale * _beta_fraction(x, y, a, b)
    return 1 - scale * _beta_fraction(y, x, b, a)


def _beta_fraction(x: float, y: float, a: float, b: float) -> float:
    """The continued fraction that makes x^a y^b / B(a, b) the incomplete beta: contracted, so that nothing cancels.

    DiDonato and Morris, "Algorithm 708", ACM TOMS 18 (1992) 360, their equation for BFRAC; evaluated by Lentz' method.
    """
    # of x from the mean, by whichever of x and y has kept its digits
    distance = a - (a + b) * x if x < y else (a + b) * y - b
    term = _nonzero(a * (distance + 1) / (a + 1))
    result, c, d = term, term, 0.0
    for n in range(1, _MOST_TERMS):
        odd = a + 2 * n - 1
        upper = (a + n - 1) / odd * ((a + b + n - 1) / odd) * n * (b - n) * x * x
        lower = n + n * (b - n) * x / odd + (a + n) * ((distance + 1 + n * (1 + y)) / (odd + 2))
        d, c = 1 / _nonzero(lower + upper * d), _nonzero(lower + upper / c)
        result *= d * c
        if abs(d * c - 1) < _EXACT:
            break
    return 1 / result


def _nonzero(value: float) -> float:
    return value if abs(value) > _TINY else _TINY


def _log_beta(a: float, b: float) -> float:
    """log B(a, b). For large a or b the logarithms of gamma would cancel: Stirling's terms are cancelled first."""
    small, large = min(a, b), max(a, b)
    if large < _LARGE:
        return lgamma(a) + lgamma(b) - lgamma(a + b)
    both = _stirling(large) - _stirling(small + large)
    if small < _LARGE:
        return (
            lgamma(small) + both + small - (large - 0.5) * log1p(small / large) - small * log(small + large)
        )
    half_log_tau = log(2 * pi) / 2
    return (
        half_log_tau
        + _stirling(small)
        + both
        - log(small) / 2
        + small * log(small / (small + large))
        - (large - 0.5) * log1p(small / large)
    )


def _stirling(x: float) -> float:
    """log gamma(x) less (x - 1/2) log x - x + log(2 pi) / 2: Stirling's series (Abramowitz and Stegun, 6.1.41)."""
    s = 1 / (x * x)
    return (1 / 12 - s * (1 / 360 - s * (1 / 1260 - s * (1 / 1680 - s * (1 / 1188 - s * 691 / 360360))))) / x


def _quantile(upper: Callable[[float], float], tail: float) -> float:
    """t >= 0 with upper(t) = tail, for a tail of at most one half: bracketed, then halved to the last bit."""
    if tail >= 0.5:
        return 0.0
    low, high = 0.0, 1.0
    while upper(high) > tail:
        low, high = high, high * 2
        if isinf(high):
            return inf
    while True:
        middle = low + (high - low) / 2
        if not low < middle < high:
            return high
        if upper(middle) > tail:
            low = middle
        else:
            high = middle


def _require_number(value: float) -> float:
    if isnan(value):
        raise ValueError("a tail beyond a number that is not one")
    return value
