"""The caches of the CPU miss more often, or branches are guessed wrong more often."""

from __future__ import annotations

from collections.abc import Iterator

from profkit.compare.causes.words import became
from profkit.compare.view import View
from profkit.model import Cause

_SAYS = {
    "cache.l1.miss_rate": "More accesses miss the L1 cache.",
    "cache.l2.miss_rate": "More accesses miss the L2 cache.",
    "cache.l3.miss_rate": "More accesses miss the L3 cache.",
    "branch.miss_rate": "More branches are mispredicted.",
}


def find(view: View) -> Iterator[Cause]:
    """Where a rate rose."""
    for metric, says in _SAYS.items():
        change = view.rose(metric)
        if change is not None:
            title = says.rstrip(".").replace("More ", "").replace(" are", "")
            yield Cause(
                "misses",
                says,
                change.scope,
                (became(title, change.baseline.value, change.candidate.value, "%"),),
            )
