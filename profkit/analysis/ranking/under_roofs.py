"""All cases of a sweep by what they reach of the roofline: pure numbers, for views that cannot show each one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from math import floor, log10

from profkit.analysis.ranking.guide import efficiency
from profkit.core.statistics import median
from profkit.core.types import SweepDocument

PER_DECADE = 2  # sizes that are told apart


@dataclass(frozen=True)
class Size:
    """Cases that must move about as much: from `low` bytes up to `high`; by implementation the median share."""

    low: float
    high: float
    shares: Mapping[str, float]


def by_traffic(document: SweepDocument) -> tuple[Size, ...]:
    """The share of the roofline (1: all of it) by the bytes that a call must move, the smallest first."""
    found: dict[int, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for result in document.results:
        share = efficiency(result, document.roofs)
        if result.bytes and share:
            found[floor(PER_DECADE * log10(result.bytes))][result.implementation].append(share)
    return tuple(
        Size(
            10 ** (size / PER_DECADE),
            10 ** ((size + 1) / PER_DECADE),
            {name: median(shares) for name, shares in own.items()},
        )
        for size, own in sorted(found.items())
    )


def places_under(document: SweepDocument) -> dict[str, tuple[tuple[float, float], ...]]:
    """By implementation every case that has a time, as (FLOP per byte that must be moved, FLOP/s)."""
    found: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for result in document.results:
        if result.median and result.bytes and result.flops:
            found[result.implementation].append((result.flops / result.bytes, result.flops / result.median))
    return {name: tuple(dots) for name, dots in found.items()}
