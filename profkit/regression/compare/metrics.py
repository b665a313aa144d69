"""Every metric that both runs have, decided, with a correction for how many were looked at."""

from __future__ import annotations

from collections.abc import Sequence

from profkit.core.inference import benjamini_hochberg, coverage_of_selected, ratio_of
from profkit.core.types import Change
from profkit.regression.compare.decide import decide_sampled, decide_single
from profkit.regression.compare.pairs import Pair

FALSE_SHARE = 0.05  # of what is called different, on average


def changes_of(pairs: Sequence[Pair], floor: float | None = None) -> tuple[Change, ...]:
    """One change for each pair, in their order.

    Those with samples are tested together: p is Benjamini and Hochberg's, and the intervals of those that it picks out
    are as much wider as the picking asks for. `floor` takes the place of every metric's own relative floor.
    """
    ratios = {
        place: ratio_of(pair.baseline.groups, pair.candidate.groups, pair.between)
        for place, pair in enumerate(pairs)
        if pair.sampled
    }
    places = [place for place, ratio in ratios.items() if ratio is not None]
    p = benjamini_hochberg([ratio.p for ratio in ratios.values() if ratio is not None])
    adjusted = dict(zip(places, p, strict=True))
    picked = {place for place in places if adjusted[place] <= FALSE_SHARE}
    narrow, wide = 1 - FALSE_SHARE, coverage_of_selected(len(picked), len(places), FALSE_SHARE)
    changes = []
    for place, pair in enumerate(pairs):
        if place not in ratios:
            changes.append(decide_single(pair, floor))
            continue
        found, own = ratios[place], adjusted.get(place)
        change = decide_sampled(pair, found, wide if place in picked else narrow, own, floor)
        if change.word == "different" and place not in picked:
            change = decide_sampled(
                pair, found, wide, own, floor
            )  # by itself it would be; of so many it is chance
        changes.append(change)
    return tuple(changes)


def tested(changes: Sequence[Change]) -> int:
    """How many of them were tested, and so had a chance to be called different by luck."""
    return sum(change.p is not None for change in changes)
