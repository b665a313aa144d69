"""The vote of the detectors, and the audit of what they agree on: is it more than a correlated series does by itself?

Noise that remembers (a warm room, a busy neighbour) wanders, and every detector takes a long wander for a change: at a
correlation of .6 between neighbours the bare vote alarms half of all quiet years. So the correlation is measured, about
the stretches that the candidates make, and a change must stand out by `LIMIT` standard errors that count correlated
values for as many as they are worth. The weakest that does not is dropped, and its neighbours are measured anew, until
all hold.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import inf, sqrt
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

TOGETHER = 3  # detectors that point to places no farther apart speak of one change
LIMIT = 4.25  # standard errors that a change must have which two detectors see
LIMIT_ALONE = 8.0  # and one that a single detector sees: a stretch of five nights, or one among wild values
REACH = 40  # values on either side that are held against each other: older ones belong to another time
MOST_CORRELATION = 0.95
CLIP = 3.0  # sigmas: a wild value must not hide the correlation of the rest
MEAN_TO_SIGMA = 1.2533
MEDIAN_BIAS = (
    0.5  # of (1 + 3 r) / n, which a mean takes (Kendall, Biometrika 41 (1954) 403): a median takes less
)


class Candidate(NamedTuple):
    """A place and the names of the detectors that point to it; `strength` in standard errors once it was audited."""

    place: int
    votes: tuple[str, ...]
    strength: float = 0.0


def gather(found: dict[str, Sequence[int]]) -> list[Candidate]:
    """All places of all detectors, those within `TOGETHER` of the first of them as one, at their (lower) median."""
    pool = sorted((place, name) for name, places in found.items() for place in places)
    groups: list[list[tuple[int, str]]] = []
    for place, name in pool:
        if groups and place <= groups[-1][0][0] + TOGETHER:
            groups[-1].append((place, name))
        else:
            groups.append([(place, name)])
    return [
        Candidate(_middle([p for p, _ in group]), tuple(sorted({n for _, n in group}))) for group in groups
    ]


def audit(values: NDArray[np.float64], candidates: Sequence[Candidate]) -> list[Candidate]:
    """The candidates that stand out of the correlated noise, with their strength; the weakest was dropped first."""
    import numpy as np

    edges = [0, *(c.place for c in candidates), len(values)]
    kept = list(candidates)
    clip = _clip(values, edges)
    stretches = [_memory_sums(values[a:b], clip) for a, b in pairwise(edges)]
    steps = [_Step.at(values, *edges[k : k + 3]) for k in range(len(kept))]
    products, powers = (float(sum(part)) for part in zip(*stretches, strict=True))
    while kept:
        correlation = _unbiased(products, powers, len(values), len(kept) + 1)
        strengths = [step.strength(correlation) for step in steps]
        margins = [
            s / (LIMIT if len(c.votes) > 1 else LIMIT_ALONE) for s, c in zip(strengths, kept, strict=True)
        ]
        weakest = int(np.argmin(margins))
        if margins[weakest] >= 1:
            return [c._replace(strength=s) for c, s in zip(kept, strengths, strict=True)]
        del kept[weakest], edges[weakest + 1], steps[weakest]
        one = _memory_sums(values[edges[weakest] : edges[weakest + 1]], clip)
        products += one[0] - stretches[weakest][0] - stretches[weakest + 1][0]
        powers += one[1] - stretches[weakest][1] - stretches[weakest + 1][1]
        stretches[weakest : weakest + 2] = [one]
        for beside in (weakest - 1, weakest):
            if 0 <= beside < len(kept):
                steps[beside] = _Step.at(values, *edges[beside : beside + 3])
    return []


def memory(stretches: Sequence[NDArray[np.float64]]) -> float:
    """Correlation of neighbours, 0 to 0.95, within stretches that lie about 0."""
    import numpy as np

    whole = np.concatenate(stretches)
    clip = _limit(np.abs(whole))
    sums = [_memory_sums(part, clip) for part in stretches]
    products, powers = (float(sum(part)) for part in zip(*sums, strict=True))
    return _unbiased(products, powers, len(whole), len(stretches))


def effective(count: float, correlation: float) -> float:
    """How many independent values these are worth: n (1 - r) / (1 + r) for an AR(1) process, at least 1."""
    return max(1.0, count * (1 - correlation) / (1 + correlation))


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
        away = float(np.abs(left - a).sum() + np.abs(right - b).sum()) / count
        return _Step(
            abs(a - b), MEAN_TO_SIGMA * away * sqrt(count / max(1, count - 2)), len(left), len(right)
        )

    def strength(self, correlation: float) -> float:
        """The height in standard errors of a difference of two means; infinite where nothing else varies."""
        error = self.spread * sqrt(
            1 / effective(self.before, correlation) + 1 / effective(self.after, correlation)
        )
        if self.height <= 1e-9 * error or self.height == 0:
            return 0.0
        return self.height / error if error > 0 else inf


def _clip(values: NDArray[np.float64], edges: Sequence[int]) -> float:
    import numpy as np

    parts = [values[a:b] for a, b in pairwise(edges) if b > a]
    return _limit(np.abs(np.concatenate([part - np.median(part) for part in parts])))


def _limit(away: NDArray[np.float64]) -> float:
    import numpy as np

    return CLIP * float(1.4826 * np.median(away) or MEAN_TO_SIGMA * away.mean())


def _memory_sums(part: NDArray[np.float64], clip: float) -> tuple[float, float]:
    """Sum of the products of neighbours, and of squares, about the median of one stretch."""
    import numpy as np

    if not len(part):
        return 0.0, 0.0
    about = np.clip(part - np.median(part), -clip, clip)
    return float(about[1:] @ about[:-1]), float(about @ about)


def _unbiased(products: float, powers: float, n: int, stretches: int) -> float:
    """The correlation with what centring takes from it given back, for each stretch (`MEDIAN_BIAS`)."""
    if powers <= 0:
        return 0.0
    r = products / powers
    return min(MOST_CORRELATION, max(0.0, r + MEDIAN_BIAS * stretches * (1 + 3 * r) / n))


def _middle(places: list[int]) -> int:
    half = len(places) // 2
    return places[half] if len(places) % 2 else (places[half - 1] + places[half]) // 2
