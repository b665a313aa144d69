"""Every function of the profiles that both runs have: simulated instructions, and shares of the samples."""

from __future__ import annotations

import os
from collections.abc import Iterator
from math import sqrt

from profkit.core.formatting import figures, quantity
from profkit.core.types import FunctionChange, Hotspot, KernelChangeWord, Profile, RunDocument

LEAST = 0.005  # of all instructions: a function below it moves nothing
SHARE = 0.02  # of all samples
SIGMAS = 2.6  # 99 % of the differences of two equal shares
MOST = 200  # functions of one profile that are told, largest change first


def function_changes(baseline: RunDocument, candidate: RunDocument) -> tuple[FunctionChange, ...]:
    """What changed, by own values, largest change of a profile first. What stayed the same is left out.

    Instructions that were simulated are counts per iteration and exact. Of samples only shares are compared, with the
    error that their number leaves (binomial); a profile under a tracer has no such error, so 2 % of all must differ.
    """
    after = {(profile.title, profile.unit): profile for profile in candidate.profiles}
    found: list[FunctionChange] = []
    for profile in baseline.profiles:
        other = after.get((profile.title, profile.unit))
        if other is None or profile.total <= 0 or other.total <= 0:
            continue
        if profile.unit == "instructions":
            found += sorted(_counted(profile, other), key=_size)[:MOST]
        elif profile.title.endswith("by function") and not profile.title.startswith(("cumulative", "calls")):
            found += sorted(_sampled(profile, other), key=_size)[:MOST]
    return tuple(found)


def _size(change: FunctionChange) -> float:
    return -abs((change.candidate or 0.0) - (change.baseline or 0.0))


def _counted(before: Profile, after: Profile) -> Iterator[FunctionChange]:
    limit = LEAST * max(before.total, after.total)
    for first, second, spot in _paired(before, after):
        if abs((second or 0.0) - (first or 0.0)) < limit:
            continue
        unit = before.unit
        reason = f"{quantity(first, '')} became {quantity(second, '')} {unit}, simulated"
        if first is None or second is None:
            reason = f"{quantity(first or second, '')} {unit}, simulated"
        yield _change(before, unit, first, second, spot, reason)


def _sampled(before: Profile, after: Profile) -> Iterator[FunctionChange]:
    noise = _sample_count(before), _sample_count(after)
    for first, second, spot in _paired(before, after):
        one, two = (first or 0.0) / before.total, (second or 0.0) / after.total
        middle = (one + two) / 2
        error = SIGMAS * sqrt(middle * (1 - min(1.0, middle)) * sum(1 / count for count in noise))
        if abs(two - one) - error < SHARE:
            continue
        shares = [None if value is None else 100 * part for value, part in ((first, one), (second, two))]
        reason = f"{figures(100 * one)} % became {figures(100 * two)} % of {_of(before)}"
        yield _change(before, "%", shares[0], shares[1], spot, reason)


def _of(profile: Profile) -> str:
    return "the time under cProfile" if profile.title.startswith("own time") else "the samples"


def _sample_count(profile: Profile) -> float:
    """About how many samples a profile is made of: the smallest value is one. Infinite where it was not sampled."""
    if profile.title.startswith("own time"):
        return float("inf")
    values = [spot.own for spot in profile.hotspots if spot.own > 0]
    return max(1.0, profile.total / min(values)) if values else 1.0


def _paired(before: Profile, after: Profile) -> Iterator[tuple[float | None, float | None, Hotspot]]:
    first, second = _by_name(before), _by_name(after)
    for key in dict.fromkeys((*first, *second)):
        one, two = first.get(key), second.get(key)
        spot = two or one
        assert spot is not None
        yield (one.own if one else None), (two.own if two else None), spot


def _by_name(profile: Profile) -> dict[tuple[str, str], Hotspot]:
    """By name and library; of two of one name the larger."""
    found: dict[tuple[str, str], Hotspot] = {}
    for spot in profile.hotspots:
        key = (spot.function, os.path.basename(spot.library or ""))
        if key not in found or found[key].own < spot.own:
            found[key] = spot
    return found


def _change(
    profile: Profile, unit: str, first: float | None, second: float | None, spot: Hotspot, reason: str
) -> FunctionChange:
    word: KernelChangeWord
    if first is None:
        word = "appeared"
    elif second is None:
        word = "vanished"
    else:
        word = "slower" if second > first else "faster"
    library = os.path.basename(spot.library) if spot.library else None
    return FunctionChange(spot.function, profile.title, unit, word, reason, first, second, library)
