"""The caches of the CPU miss more often, or branches are guessed wrong more often."""

from __future__ import annotations

from collections.abc import Iterator

from profkit.core.types import Cause
from profkit.regression.compare.causes.words import became
from profkit.regression.compare.view import View

_SAYS = {
    "cache.l1.miss_rate": "A larger share of the accesses misses the L1 cache.",
    "cache.l2.miss_rate": "A larger share of what reaches the L2 cache misses it.",
    "cache.l3.miss_rate": "A larger share of what reaches the L3 cache misses it.",
    "branch.miss_rate": "A larger share of the branches is mispredicted.",
}

_TITLES = {
    "cache.l1.miss_rate": "accesses that miss L1",
    "cache.l2.miss_rate": "accesses to L2 that miss it",
    "cache.l3.miss_rate": "accesses to L3 that miss it",
    "branch.miss_rate": "branches mispredicted",
}


def find(view: View) -> Iterator[Cause]:
    """Where a rate rose."""
    for metric, says in _SAYS.items():
        change = view.rose(metric)
        if change is not None:
            yield Cause(
                "misses",
                says,
                change.scope,
                (became(_TITLES[metric], change.baseline.value, change.candidate.value, "%"),),
            )
