"""One test of a bisection: two commits run in turn, in full or only until it is clear which end one of them is like."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from math import log, sqrt
from pathlib import Path

from profkit.core.errors import UsageError
from profkit.core.progress import Progress
from profkit.core.types import Change, Scope
from profkit.regression.bisect.search import Observation
from profkit.regression.paired.decide import MetricFloor, confirm, trimmed_mean
from profkit.regression.paired.interleave import LEAST_SECONDS, TIME, PairedOptions, PairedRuns
from profkit.regression.paired.version import Version

FEW = 4  # pairs, after which it is asked whether more of them are needed
Pairs = tuple[tuple[float, ...], ...]  # seconds of the earlier and of the later commit


class NotTimed(Exception):
    """Two versions time nothing in common, or not what the search is about."""


class TooFewPairs(UsageError):
    """The budget has no room for the pairs that a test needs."""


@dataclass(frozen=True)
class Measured:
    """The pairs of one time, and what they say of it."""

    pairs: Pairs
    change: Change


def run_in_full(
    first: Version, second: Version, options: PairedOptions, folder: Path, progress: Progress
) -> tuple[Measured, ...]:
    """The paired test of `compare --base`: each time that both have, as soon as all are decided. Raises NotTimed."""
    result = PairedRuns(first, second, options, folder, progress).run()
    if result.interrupted:
        raise KeyboardInterrupt
    times = [change for change in result.changes if change.unit == "s"]
    if not times and result.pairing.pairs >= FEW:
        raise NotTimed
    if not times:
        raise TooFewPairs(
            f"{result.pairing.pairs} pairs of runs fit into {options.budget:.0f} s; {FEW} are needed",
            f"--budget {3 * FEW * result.pairing.seconds / max(1, result.pairing.pairs):.0f}",
        )
    return tuple(Measured(_pairs_of(change), change) for change in times)


def run_until_enough(
    first: Version,
    second: Version,
    options: PairedOptions,
    scope: Scope,
    is_enough: Callable[[Pairs], bool],
    folder: Path,
    progress: Progress,
) -> Measured:
    """Four pairs, and four more until it `is_enough` or the budget is spent. Raises NotTimed."""
    began, found = time.monotonic(), Pairs()
    while True:
        start = time.monotonic()
        seed = None if options.seed is None else options.seed + len(found) // FEW
        few = replace(options, budget=options.budget - (start - began), most=FEW, seed=seed)
        try:
            measured = run_in_full(first, second, few, folder, progress)
        except TooFewPairs:
            if not found:
                raise
            break
        found += next((one.pairs for one in measured if one.change.scope == scope), ())
        if not found:
            raise NotTimed
        now = time.monotonic()
        if is_enough(found) or options.budget - (now - began) < 1.5 * (now - start):
            break
    return Measured(found, change_of(found, options.floor, scope))


def _pairs_of(change: Change) -> Pairs:
    both = zip(change.baseline.groups, change.candidate.groups, strict=True)
    return tuple((old[0], new[0]) for old, new in both)


def change_of(pairs: Pairs, floor: float, scope: Scope) -> Change:
    """What the pairs say, as the paired test says it after its last one. At least four."""
    rounds = [(new, old) for old, new in pairs]
    metric = MetricFloor(TIME, floor, LEAST_SECONDS)
    told = confirm(rounds, metric, "lower", "s", len(rounds), spent=True, scope=scope)
    assert told.change is not None
    return told.change


def observed(pairs: Pairs, reference: Pairs, earlier: int, later: int) -> Observation:
    """The trimmed mean of the logarithms of the ratios, with its error and how well that is known.

    Few pairs can agree by chance: their variance is averaged with that of the first test's pairs, which count as at
    most four further ones since the machine may be noisier by now (as Smyth, "Linear models and empirical Bayes
    methods", Stat. Appl. Genet. Mol. Biol. 3, 2004, does with the variances of many small samples).
    """
    mean, error, freedom = _trimmed(pairs)
    _, first_error, first_freedom = _trimmed(reference)
    known = min(FEW, first_freedom)
    expected = first_error**2 * len(reference) / len(pairs)
    variance = (freedom * error**2 + known * expected) / (freedom + known)
    return Observation(earlier, later, mean, sqrt(variance), freedom + known)


def _trimmed(pairs: Pairs) -> tuple[float, float, float]:
    """Without the largest ratios and the smallest: a quarter each, as soon as six are left."""
    logs = [log(max(new, 1e-12) / max(old, 1e-12)) for old, new in pairs]
    return trimmed_mean(logs, len(pairs) // 4 if len(pairs) > 8 else len(pairs) // 6)
