"""A sweep's results: one record for each case, who wins where and by how much, which cases are wrong. Pure functions.

Speed-ups are ratios, and the mean of ratios is the geometric one: the arithmetic mean of 2 and 1/2 says that an
implementation that is as often twice as fast as half as fast is 25 % faster. `guide_records` has the keys of the
comprehensive benchmarking guide, each computed as its name says, followed by what makes them believable.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from profkit.core.codec import to_plain_data
from profkit.core.inference import Interval, decide, ratio_interval
from profkit.core.statistics import geometric_mean, median
from profkit.core.types import CaseResult, CaseState, GridPoint, MeasuredCeilings, SweepDocument

FILE = "benchmark_results.json"


def guide_records(document: SweepDocument) -> list[dict[str, Any]]:
    """Return all cases, in the order of the sweep. What was not measured is null, with `state` and `reason`."""
    return [guide_record(result, document) for result in document.results]


def guide_record(result: CaseResult, document: SweepDocument) -> dict[str, Any]:
    """Return the record of one case.

    time_ms: median time of a call in ms. memory_mb: most memory during a call in 10^6 bytes. inference_speed: calls per
    second, 1000 / time_ms. throughput_gbps: 10^9 bytes per second, of those that a call must move at least.
    gpu_efficiency: % of the measured roofline: the time that the call must take, by its bytes and FLOPs and what the
    device was measured to do, over the time that it took (Williams, Waterman and Patterson, "Roofline", 2009). On a
    device that is not a GPU it is that device's.
    """
    point, seconds = result.point, result.median
    share = efficiency(result, document.roofs)
    return {
        "operation": point.operation,
        "implementation": result.implementation,
        "batch_size": point.batch,
        "sequence_length": point.sequence,
        "tensor_dimension": point.dimension,
        "time_ms": seconds * 1e3 if seconds is not None else None,
        "memory_mb": result.memory / 1e6 if result.memory is not None else None,
        "inference_speed": 1 / seconds if seconds else None,
        "gpu_efficiency": 100 * share if share is not None else None,
        "throughput_gbps": throughput(result) / 1e9 if seconds else None,
        "dtype": point.dtype,
        "direction": point.direction,
        "state": result.state,
        "reason": to_plain_data(result.reason),
        "interval_percent": 100 * result.half_width if result.half_width is not None else None,
        "samples": result.samples,
        "calls_per_sample": result.calls,
        "cache": result.cache,
        "clock": result.clock,
        "first_call_ms": result.first * 1e3 if result.first is not None else None,
        "error_of_tolerance": result.error,
        "sm_clock_mhz": sorted(result.clocks)[len(result.clocks) // 2] / 1e6 if result.clocks else None,
        "throttled": list(result.throttled),
        "device": document.device,
        "versions": dict(document.versions),
    }


def throughput(result: CaseResult) -> float:
    """Return the bytes per second that the operation must move at least; 0.0 if it was not timed."""
    return (result.bytes or 0.0) / result.median if result.median else 0.0


def efficiency(result: CaseResult, ceilings: MeasuredCeilings) -> float | None:
    """Return the least time by the roofline over the measured one: a share, above 1 where caches serve for memory."""
    least = least_time(result, ceilings)
    return least / result.median if least is not None and result.median else None


def least_time(result: CaseResult, ceilings: MeasuredCeilings) -> float | None:
    """Return the least time that the device can need for a case, by its bytes and FLOPs, in s; None where it is
    not known.
    """
    if not ceilings.bandwidth or not ceilings.flops:
        return None
    return max((result.bytes or 0.0) / ceilings.bandwidth, (result.flops or 0.0) / ceilings.flops)


BASELINE = "PyTorch"
UNKNOWN = 0.5  # half the interval of a single sample: who is three times as fast by one of each is faster


@dataclass(frozen=True)
class ComparisonGroup:
    """All cases of one operation in one direction and dtype: the shapes, and who does it."""

    operation: str
    direction: str
    dtype: str
    results: tuple[CaseResult, ...]

    @property
    def title(self) -> str:
        """Return `LayerNorm forward float32`."""
        return f"{self.operation} {self.direction} {self.dtype}"

    @property
    def implementations(self) -> tuple[str, ...]:
        """Return the implementations in the order of the sweep."""
        return tuple(dict.fromkeys(result.implementation for result in self.results))

    @property
    def points(self) -> tuple[GridPoint, ...]:
        """Return the shapes, in the order of the sweep."""
        return tuple(dict.fromkeys(result.point for result in self.results))


@dataclass(frozen=True)
class ImplementationRanking:
    """One implementation over all shapes of a group. What is None is not known.

    `speedup` is the geometric mean over shapes of the baseline's time over its own, and `compared` their number; at
    `wins` shapes it is alone.
    """

    implementation: str
    measured: int
    cases: int
    time: float | None  # geometric mean, s
    memory: int | None  # most, bytes
    efficiency: float | None  # median, a share of the roofline
    speedup: float | None = None
    compared: int = 0
    wins: int = 0


def comparison_groups(document: SweepDocument) -> tuple[ComparisonGroup, ...]:
    """Return the sweep by operation, direction and dtype, in the order of the sweep."""
    groups: dict[tuple[str, str, str], list[CaseResult]] = defaultdict(list)
    for result in document.results:
        groups[result.point.operation, result.point.direction, result.point.dtype].append(result)
    return tuple(ComparisonGroup(*key, tuple(results)) for key, results in groups.items())


def rank_implementations(
    group: ComparisonGroup, ceilings: MeasuredCeilings, baseline: str = BASELINE
) -> tuple[ImplementationRanking, ...]:
    """Return every implementation of the group, in the order of the sweep."""
    base = {r.point: r.median for r in group.results if r.implementation == baseline and r.median}
    shared = _shared(group)
    alone = [shape.alone for shape in results_by_shape(group).values()]
    ranking = []
    for name in group.implementations:
        own = [result for result in group.results if result.implementation == name]
        timed = [result for result in own if result.median]
        ratios = [base[r.point] / r.median for r in timed if r.median and base.get(r.point)]
        shares = [share for r in timed if (share := efficiency(r, ceilings)) is not None]
        memory = [result.memory for result in timed if result.memory is not None]
        ranking.append(
            ImplementationRanking(
                implementation=name,
                measured=len(timed),
                cases=len(own),
                time=geometric_mean(
                    [r.median for r in timed if r.median and (not shared or r.point in shared)]
                ),
                memory=max(memory, default=None),
                efficiency=median(shares) if shares else None,
                speedup=geometric_mean(ratios) if name != baseline else None,
                compared=len(ratios),
                wins=alone.count(name),
            )
        )
    return tuple(ranking)


@dataclass(frozen=True)
class ShapeResult:
    """One shape where two or more were timed.

    `winners` are alone, or several whose intervals overlap. `lead` is the time of the first behind them over the
    fastest one, at least 1; None where there is none behind them.
    """

    winners: tuple[str, ...]
    lead: float | None

    @property
    def alone(self) -> str | None:
        """Return the one that is faster than all others; None where several are alike."""
        return self.winners[0] if len(self.winners) == 1 else None


def results_by_shape(group: ComparisonGroup) -> dict[GridPoint, ShapeResult]:
    """Return every shape of the group where two or more were timed."""
    timed: dict[GridPoint, list[CaseResult]] = defaultdict(list)
    for result in group.results:
        if result.median:
            timed[result.point].append(result)
    return {point: _shape_result(results) for point, results in timed.items() if len(results) > 1}


def _shape_result(results: Sequence[CaseResult]) -> ShapeResult:
    fastest = min(results, key=lambda result: result.median or 0.0)
    best = _time_interval(fastest)
    slower = [
        result
        for result in results
        if result is not fastest and decide(ratio_interval(best, _time_interval(result)), 0.0) == "different"
    ]
    winners = tuple(r.implementation for r in results if r not in slower)
    behind = min((r.median or 0.0 for r in slower), default=None)
    return ShapeResult(winners, behind / fastest.median if behind and fastest.median else None)


def _time_interval(result: CaseResult) -> Interval:
    centre, half = result.median or 0.0, _half_width(result)
    return Interval(centre * (1 - half), centre, centre * (1 + half))


def _half_width(result: CaseResult) -> float:
    """Return the half-width of the interval as a share of the median.

    If there are too few samples for one, it is the distance of the farthest; for one sample it is not known.
    """
    if result.half_width is not None:
        return result.half_width
    centre = result.median or 0.0
    if len(result.seconds) < 2 or centre <= 0:
        return UNKNOWN
    return max(abs(seconds - centre) for seconds in result.seconds) / centre


def _shared(group: ComparisonGroup) -> frozenset[GridPoint]:
    """Return the shapes at which everybody has a time who has one anywhere: a mean over others could not be
    compared.
    """
    of: dict[str, set[GridPoint]] = defaultdict(set)
    for result in group.results:
        if result.median:
            of[result.implementation].add(result.point)
    return frozenset(set.intersection(*of.values())) if of else frozenset()


ALIKE = 1.005  # means of medians that are known to 1 % each and are nearer than this count as equal


def whole_sweep(document: SweepDocument) -> ComparisonGroup:
    """Return all of a sweep as one group, in which each shape counts once."""
    return ComparisonGroup("", "", "", document.results)


def leaders(
    scores: Sequence[ImplementationRanking], baseline: str = BASELINE
) -> tuple[ImplementationRanking, ...]:
    """Return those with the largest geometric mean, the baseline's being 1: several where they are alike, the
    fastest first.

    Nobody where nothing was compared.
    """
    speeds = {
        score: score.speedup if score.speedup is not None else 1.0
        for score in scores
        if score.speedup is not None or score.implementation == baseline
    }
    if not any(score.speedup is not None for score in scores):
        return ()
    order = sorted(speeds, key=lambda score: -speeds[score])
    return tuple(score for score in order if speeds[score] * ALIKE >= speeds[order[0]])


BAD: tuple[CaseState, ...] = ("wrong", "failed", "crashed", "timed out")
# What the framework itself brings: a sweep compares others with it, and its user cannot mend it.
FRAMEWORK = ("PyTorch", "torch.compile")


def failed_cases(document: SweepDocument) -> tuple[CaseResult, ...]:
    """Return the cases that are wrong, failed, crashed or hung, in the order of the sweep."""
    return tuple(result for result in document.results if result.state in BAD)


def is_tolerated(result: CaseResult) -> bool:
    """Return whether a case is wrong by the framework's own arithmetic, which is reported but fails no sweep.

    The gradient of a mean over 2^26 elements is less than float16 can hold: PyTorch gives 0 there. What failed,
    crashed or hung is a fault of the machine or of the sweep, whoever's implementation it is.
    """
    return result.state == "wrong" and result.implementation in FRAMEWORK


def faulty_cases(document: SweepDocument) -> tuple[CaseResult, ...]:
    """Return the cases for which a sweep fails: all wrong and failed ones, without those that are tolerated."""
    return tuple(result for result in failed_cases(document) if not is_tolerated(result))
