"""How much slower or faster the processor was: by the reference loop, which is timed between the samples."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from profkit.core.statistics import median, median_interval
from profkit.core.types import RunDocument, Scope, Timing
from profkit.regression.compare.decisions import percent_text


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
