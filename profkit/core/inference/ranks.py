"""Tests by ranks, and corrections for many looks at one pair of runs: what share of the alarms may be false."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import comb, sqrt

from profkit.core.inference.tails import normal_two_sided

# Up to here all arrangements are counted. Beyond, the normal approximation gives too large a p far out, which is the
# safe side: at 80 values by 1 % at 0.04, by 11 % at 0.003, by 64 % at 3e-5.
EXACT_MOST = 80


def mann_whitney(a: Sequence[float], b: Sequence[float]) -> float:
    """Two-sided p of the Mann-Whitney test: how likely ranks as unequal as these are if a and b are alike.

    Exact for up to 80 values in all, ties included: the distribution of the sum of midranks over all arrangements of
    the values that were seen, doubled smaller tail. Beyond, the normal approximation with the correction for ties and
    for continuity. 1.0 where one side is empty or all values are equal.
    Mann and Whitney, Ann. Math. Stat. 18 (1947) 50; ties after Lehmann, "Nonparametrics", section 1.4.
    """
    n, m = len(a), len(b)
    if not n or not m:
        return 1.0
    ranks = _double_midranks([*a, *b])
    rank_sum = sum(ranks[:n])
    if len(set(ranks)) == 1:
        return 1.0
    if n + m > EXACT_MOST:
        return _normal_p(ranks, n, m, rank_sum)
    counts = _rank_sum_counts(tuple(sorted(ranks)), min(n, m))
    rest = rank_sum if n <= m else sum(ranks) - rank_sum
    below = sum(count for total, count in counts if total <= rest)
    above = sum(count for total, count in counts if total >= rest)
    return min(1.0, 2 * min(below, above) / comb(n + m, n))


def shift_interval(a: Sequence[float], b: Sequence[float], confidence: float) -> tuple[float, float] | None:
    """The interval of the shift from a to b that a Mann-Whitney test does not reject: of all differences b - a.

    Hodges and Lehmann, Ann. Math. Stat. 34 (1963) 598. None where so few values cannot reach `confidence` at all:
    below 4 and 4 at 95 %. Takes time in len(a) * len(b).
    """
    n, m = len(a), len(b)
    cut = _interval_rank(n, m, confidence) if n and m else 0
    if cut == 0:
        return None
    shifts = sorted(y - x for x in a for y in b)
    return shifts[cut - 1], shifts[len(shifts) - cut]


def signed_rank_interval(values: Sequence[float], confidence: float) -> tuple[float, float, float] | None:
    """The middle of differences that lie evenly around it, with the interval that the signed-rank test does not reject.

    Low, middle, high: all of means of two of the values, each with itself, too. It is nearly as narrow as that of a
    mean, and one value in four may lie anywhere. None where so few cannot reach `confidence`: below 6 at 95 %.
    Hodges and Lehmann, Ann. Math. Stat. 34 (1963) 598; Wilcoxon, Biometrics Bulletin 1 (1945) 80.
    """
    n = len(values)
    cut = _signed_rank(n, confidence) if n else 0
    if cut == 0:
        return None
    means = sorted((values[i] + values[k]) / 2 for i in range(n) for k in range(i, n))
    half = len(means) // 2
    middle = means[half] if len(means) % 2 else (means[half - 1] + means[half]) / 2
    return means[cut - 1], middle, means[len(means) - cut]


@lru_cache(maxsize=1024)
def _signed_rank(n: int, confidence: float) -> int:
    """Of the ordered means of two the `cut`-th from each end bounds the interval; 0 where none reaches `confidence`."""
    tail = (1 - confidence) / 2
    if n > EXACT_MOST:
        from profkit.core.inference.tails import normal_quantile

        reach = n * (n + 1) / 4 + normal_quantile(tail) * sqrt(n * (n + 1) * (2 * n + 1) / 24)
        return max(0, int(reach))
    counts = [1]  # of the signs of ranks 1 to n, those with which sum of positive ranks
    for rank in range(1, n + 1):
        counts = [
            (counts[total] if total < len(counts) else 0) + (counts[total - rank] if total >= rank else 0)
            for total in range(len(counts) + rank)
        ]
    passed = 0
    for total, count in enumerate(counts):
        passed += count
        if passed / 2**n > tail:
            return total
    return 0


def _double_midranks(values: Sequence[float]) -> list[int]:
    """Twice the rank of each value, 2 to 2 n, equal values sharing the mean: doubled, so that all are whole."""
    order = sorted(range(len(values)), key=values.__getitem__)
    ranks = [0] * len(values)
    start = 0
    while start < len(order):
        end = start
        while end + 1 < len(order) and values[order[end + 1]] == values[order[start]]:
            end += 1
        for place in order[start : end + 1]:
            ranks[place] = start + end + 2
        start = end + 1
    return ranks


@lru_cache(maxsize=256)
def _rank_sum_counts(ranks: tuple[int, ...], size: int) -> tuple[tuple[int, int], ...]:
    """How many choices of `size` of the ranks have which sum.

    A polynomial for each number of ranks chosen, its coefficients side by side in one whole number: so to add a rank
    is a shift and a sum, which Python does at the speed of memory.
    """
    bits = len(ranks) + 1  # a coefficient is at most 2^n
    chosen = [1] + [0] * size
    for number, rank in enumerate(ranks, start=1):
        for k in range(min(size, number), 0, -1):
            chosen[k] += chosen[k - 1] << (rank * bits)
    packed, mask, total, sum_counts = chosen[size], (1 << bits) - 1, 0, []
    width = max(1, packed.bit_length() // bits + 1)
    raw = packed.to_bytes((width * bits + 7) // 8 + 8, "little")
    for total in range(width):
        at = total * bits
        piece = int.from_bytes(raw[at // 8 : (at + bits) // 8 + 1], "little") >> (at % 8)
        if count := piece & mask:
            sum_counts.append((total, count))
    return tuple(sum_counts)


def _normal_p(ranks: Sequence[int], n: int, m: int, rank_sum: int) -> float:
    total = n + m
    ties: dict[int, int] = {}
    for rank in ranks:
        ties[rank] = ties.get(rank, 0) + 1
    tied = sum(count**3 - count for count in ties.values())
    variance = n * m / 12 * (total + 1 - tied / (total * (total - 1)))
    distance = abs(rank_sum / 2 - n * (total + 1) / 2)
    return normal_two_sided(max(0.0, distance - 0.5) / sqrt(variance))


@lru_cache(maxsize=1024)
def _interval_rank(n: int, m: int, confidence: float) -> int:
    """Of the ordered differences the `cut`-th from each end bounds the interval; 0 where none reaches `confidence`."""
    tail = (1 - confidence) / 2
    if n + m > EXACT_MOST:
        from profkit.core.inference.tails import normal_quantile

        reach = n * m / 2 + normal_quantile(tail) * sqrt(n * m * (n + m + 1) / 12)
        return max(0, int(reach))
    few = min(n, m)
    counts = _rank_sum_counts(tuple(range(1, n + m + 1)), few)
    least, whole, passed = few * (few + 1) // 2, comb(n + m, few), 0
    for total, count in counts:
        passed += count
        if passed / whole > tail:
            return total - least
    return 0


def benjamini_hochberg(p: Sequence[float]) -> tuple[float, ...]:
    """Adjusted p-values: those at or below q, taken for real, are false in a share of q at most, on average.

    Holds where the tests are independent or vary together, as the times of one run do.
    Benjamini and Hochberg, J. R. Stat. Soc. B 57 (1995) 289; in the order given. ValueError for what is no p.
    """
    if not all(0 <= value <= 1 for value in p):
        raise ValueError("a p-value lies between 0 and 1")
    order = sorted(range(len(p)), key=p.__getitem__, reverse=True)
    adjusted, least = [1.0] * len(p), 1.0
    for steps, place in enumerate(order):
        least = min(least, p[place] * len(p) / (len(p) - steps))
        adjusted[place] = least
    return tuple(adjusted)


def coverage_of_selected(selected: int, looked_at: int, q: float = 0.05) -> float:
    """The confidence at which the intervals of `selected` of `looked_at` cover in a share of 1 - q, on average.

    Intervals of what was picked out because it looked large must be wider: 1 - q * selected / looked_at.
    Benjamini and Yekutieli, J. Am. Stat. Assoc. 100 (2005) 71. Where nothing was selected: as if one had been.
    """
    return 1 - q * max(1, selected) / max(1, looked_at)
