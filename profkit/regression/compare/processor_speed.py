"""Which changes of a time the processor may have made: by the reference loop, which is timed between the samples."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import exp, log

from profkit.core.statistics import median, median_interval
from profkit.core.types import Change, RunDocument, Scope, Timing
from profkit.regression.compare.decisions import percent_text, signed_percent

# How much of the loop's slowdown a program may have, in logarithms: one that waits for the disk has none of it. Of one
# that copies 8 MB a fifth run was 1.8 times slower where the loop was 1.3 times slower (docs/measurements.md).
MOST_SENSITIVE = 2.0
FIX = "profile both once more, one right after the other, on a machine that nobody else uses"


@dataclass(frozen=True)
class SpeedChange:
    """How many times as long the loop took in the candidate: its medians' ratio, and that ratio's interval."""

    ratio: float
    low: float
    high: float

    @property
    def sentence(self) -> str:
        """`the same arithmetic took 52 % longer in the candidate`."""
        if self.ratio >= 1:
            return f"the same arithmetic took {percent_text(self.ratio - 1)} longer in the candidate"
        return f"the same arithmetic took {percent_text(1 / self.ratio - 1)} longer in the baseline"


def speed_change(
    baseline: RunDocument, candidate: RunDocument, scope: Scope | None = None
) -> SpeedChange | None:
    """By the loops of the timing of `scope`, or of all timings.

    None where a run has none, or where another version of Python ran them: then it is another loop.
    """
    if baseline.packages.get("python") != candidate.packages.get("python"):
        return None
    turns = [_turns(_timings_of(document, scope)) for document in (baseline, candidate)]
    if not all(turns):
        return None
    (low, centre, high), (low_after, centre_after, high_after) = map(_interval_of, turns)
    return SpeedChange(centre_after / centre, low_after / high, high_after / low)


def _timings_of(document: RunDocument, scope: Scope | None) -> Iterable[Timing]:
    if scope is None:
        return document.timings
    if scope.kind == "run":
        return [timing for timing in document.timings if timing.kind == "process"] or document.timings
    return [timing for timing in document.timings if timing.name == scope.name]


def _turns(timings: Iterable[Timing]) -> list[float]:
    return [s for timing in timings for p in timing.processes for s in p.reference_loop if s > 0]


def _interval_of(turns: Sequence[float]) -> tuple[float, float, float]:
    """Low, median and high; of too few for an interval the smallest and the largest."""
    bounds = median_interval(turns)
    if bounds is None:
        return min(turns), median(turns), max(turns)
    return bounds.low, median(turns), bounds.high


def without_speed_effects(change: Change, speed: SpeedChange | None) -> Change:
    """The change of a time; AMBIGUOUS where it says something else with the speed of the processor taken out of it.

    How much of it the program has is not known: from nothing to MOST_SENSITIVE times as much. A time that is the SAME
    on a processor of another speed is no better known, since then the program may have changed by as much.
    """
    if speed is None or change.low is None or change.high is None or change.low <= 0:
        return change
    floor = log(1 + change.floor)
    low, high = log(change.low), log(change.high)
    if change.word == "different":
        low -= max(0.0, MOST_SENSITIVE * log(speed.high))
        high -= min(0.0, MOST_SENSITIVE * log(speed.low))
        if low > floor or high < -floor:
            return change
        lowest, highest = (signed_percent(exp(bound) - 1) for bound in (low, high))
        rest = f"without it the change is anything from {lowest} to {highest}"
    elif change.word == "same" and (log(speed.low) > floor or log(speed.high) < -floor):
        rest = "a program as fast as before would have changed with it"
    else:
        return change
    return replace(
        change,
        word="ambiguous",
        course="neither",
        reason=f"{change.reason}; but {speed.sentence}: {rest}",
        fix=FIX,
    )
