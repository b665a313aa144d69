"""One test of a bisection: two commits run in turn, in full or only until it is clear which end one of them is like."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from math import log, sqrt
from pathlib import Path

from profkit.core.errors import UnreadableReport, UsageError
from profkit.core.progress import Progress
from profkit.core.types import BisectStep, Change, Scope
from profkit.regression.bisect.posterior import Observation
from profkit.regression.bisect.worth import FEW
from profkit.regression.paired.decide import MetricFloor, confirm, trimmed_mean
from profkit.regression.paired.interleave import LEAST_SECONDS, TIME, PairedOptions, PairedRuns
from profkit.regression.paired.version import Version

Pairs = tuple[tuple[float, float], ...]  # seconds of the earlier and of the later commit


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
    result = _run(first, second, options, folder, progress)
    return tuple(Measured(pairs_of(change), change) for change in result)


def run_until_enough(
    first: Version,
    second: Version,
    options: PairedOptions,
    scope: Scope,
    is_enough: Callable[[Pairs, float], bool],
    folder: Path,
    progress: Progress,
) -> Measured:
    """Four pairs, and four more until it `is_enough` or the budget is spent. Raises NotTimed.

    `is_enough` is asked with the pairs so far and the seconds that they took.
    """
    began, batch = time.monotonic(), 0
    found: Pairs = ()
    while True:
        start = time.monotonic()
        left = options.budget - (start - began)
        seed = None if options.seed is None else options.seed + batch
        few = replace(options, budget=left, most=FEW, seed=seed)
        try:
            changes = _run(first, second, few, folder, progress)
        except TooFewPairs:
            if not found:
                raise
            break
        found += next((pairs_of(change) for change in changes if change.scope == scope), ())
        if not found:
            raise NotTimed
        batch += 1
        took = time.monotonic() - start
        gone = time.monotonic() - began
        if is_enough(found, gone) or options.budget - gone < 1.5 * took:
            break
    return Measured(found, change_of(found, options.floor, scope))


def _run(
    first: Version, second: Version, options: PairedOptions, folder: Path, progress: Progress
) -> list[Change]:
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
    return times


def pairs_of(change: Change) -> Pairs:
    """The seconds of both sides in each pair."""
    both = zip(change.baseline.groups, change.candidate.groups, strict=True)
    return tuple((old[0], new[0]) for old, new in both)


def change_of(pairs: Pairs, floor: float, scope: Scope) -> Change:
    """What the pairs say, as the paired test says it after its last one. At least four."""
    rounds = [(new, old) for old, new in pairs]
    told = confirm(
        rounds, MetricFloor(TIME, floor, LEAST_SECONDS), "lower", "s", len(rounds), spent=True, scope=scope
    )
    assert told.change is not None
    return told.change


def observed(pairs: Pairs, reference: Pairs, earlier: int, later: int) -> Observation:
    """The trimmed mean of the logarithms of the ratios, with its error and how well that is known.

    Few pairs can agree by chance: their variance is averaged with that of the first test's pairs, which count as at
    most four further ones since the machine may be noisier by now (as Smyth, "Linear models and empirical Bayes
    methods", Stat. Appl. Genet. Mol. Biol. 3, 2004, does with the variances of many small samples).
    """
    mean, error, freedom = trimmed_mean(_logs(pairs), _cut(pairs))
    _, first_error, first_freedom = trimmed_mean(_logs(reference), _cut(reference))
    known = min(FEW, first_freedom)
    expected = first_error**2 * len(reference) / len(pairs)
    variance = (freedom * error**2 + known * expected) / (freedom + known)
    return Observation(earlier, later, mean, sqrt(variance), freedom + known, len(pairs))


def checked_pairs(step: BisectStep) -> Pairs:
    """The pairs of a step that was read from a file. Raises UnreadableReport for what are no seconds."""
    if len(step.pairs) < FEW or any(len(p) != 2 or not all(1e-12 < v < 1e9 for v in p) for p in step.pairs):
        raise UnreadableReport("a step's pairs are not pairs of seconds")
    return tuple((p[0], p[1]) for p in step.pairs)


def _logs(pairs: Pairs) -> list[float]:
    return [log(max(new, 1e-12) / max(old, 1e-12)) for old, new in pairs]


def _cut(pairs: Pairs) -> int:
    """How many of the largest ratios, and of the smallest, are left out: a quarter each, as soon as six are left."""
    return len(pairs) // 4 if len(pairs) > 8 else len(pairs) // 6
