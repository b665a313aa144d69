"""Many looks at one pair of runs: what share of the alarms may be false."""

from __future__ import annotations

from collections.abc import Sequence


def benjamini_hochberg(p: Sequence[float]) -> tuple[float, ...]:
    """Adjusted p-values: those at or below q, taken for real, are false in a share of q at most, on average.

    Holds where the tests are independent or vary together, as the times of one run do.
    Benjamini and Hochberg, J. R. Stat. Soc. B 57 (1995) 289; in the order given. ValueError for what is no p.
    """
    return _step_up(p, 1.0)


def benjamini_yekutieli(p: Sequence[float]) -> tuple[float, ...]:
    """The same under any dependence at all, at the price of a factor of 1 + 1/2 + ... + 1/n.

    Benjamini and Yekutieli, Ann. Stat. 29 (2001) 1165.
    """
    return _step_up(p, sum(1 / rank for rank in range(1, len(p) + 1)))


def coverage_of_selected(selected: int, looked_at: int, q: float = 0.05) -> float:
    """The confidence at which the intervals of `selected` of `looked_at` cover in a share of 1 - q, on average.

    Intervals of what was picked out because it looked large must be wider: 1 - q * selected / looked_at.
    Benjamini and Yekutieli, J. Am. Stat. Assoc. 100 (2005) 71. Where nothing was selected: as if one had been.
    """
    return 1 - q * max(1, selected) / max(1, looked_at)


def _step_up(p: Sequence[float], factor: float) -> tuple[float, ...]:
    if not all(0 <= value <= 1 for value in p):
        raise ValueError("a p-value lies between 0 and 1")
    order = sorted(range(len(p)), key=p.__getitem__, reverse=True)
    adjusted, least = [1.0] * len(p), 1.0
    for steps, place in enumerate(order):
        least = min(least, p[place] * factor * len(p) / (len(p) - steps))
        adjusted[place] = least
    return tuple(adjusted)
