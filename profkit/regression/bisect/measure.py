"""One test of a bisection: two commits run in turn, in full or only until it is clear which end one of them is like."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import log, sqrt
from pathlib import Path

from profkit.core.errors import UnreadableReport, UsageError
from profkit.core.inference.tails import student_quantile
from profkit.core.progress import Progress
from profkit.core.types import BisectStep, Change, Scope
from profkit.regression.bisect.search import Observation
from profkit.regression.paired.decide import MetricFloor, confirm
from profkit.regression.paired.interleave import LEAST_SECONDS, TIME, PairedOptions, PairedRuns
from profkit.regression.paired.version import Version

FEW = 4  # pairs, after which it is asked whether it is clear
_NORMAL = 1.96  # standard errors in half of a 95 % interval
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


def run_until_clear(
    first: Version,
    second: Version,
    options: PairedOptions,
    scope: Scope,
    is_clear: Callable[[Pairs], bool],
    folder: Path,
    progress: Progress,
) -> Measured:
    """Four pairs, and four more as long as it `is_clear` not and the budget lasts. Raises NotTimed."""
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
        if is_clear(found) or options.budget - (time.monotonic() - began) < 1.5 * took:
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
    """The mean of the logarithms with its error, which is not less than the pairs of the first test make likely.

    Four pairs can agree by chance; the first test has more. The error is that of a normal distribution with the same
    95 % interval as Student's.
    """
    values = _logs(pairs)
    mean = sum(values) / len(values)
    own, first = _squares(values), _squares(_logs(reference))
    freedom = max(1, len(values) - 1 + len(reference) - 1)
    variance = max(own / max(1, len(values) - 1), (own + first) / freedom)
    widened = student_quantile(0.975, freedom) / _NORMAL
    return Observation(earlier, later, mean, widened * sqrt(variance / len(values)))


def checked_pairs(step: BisectStep) -> Pairs:
    """The pairs of a step that was read from a file. Raises UnreadableReport for what are no seconds."""
    if len(step.pairs) < FEW or any(len(p) != 2 or not all(1e-12 < v < 1e9 for v in p) for p in step.pairs):
        raise UnreadableReport("a step's pairs are not pairs of seconds")
    return tuple((p[0], p[1]) for p in step.pairs)


def _logs(pairs: Pairs) -> list[float]:
    return [log(max(new, 1e-12) / max(old, 1e-12)) for old, new in pairs]


def _squares(values: Sequence[float]) -> float:
    mean = sum(values) / len(values)
    return sum((value - mean) ** 2 for value in values)
