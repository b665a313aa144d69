"""Reads what passes left: regions and benchmarks of the workload's processes, and allocations, which may be a leak."""

from __future__ import annotations

import glob
import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from profkit.core import statistics
from profkit.core.codec import check_schema, from_plain_data, read_document
from profkit.core.errors import UnreadableReport
from profkit.core.files.regular import read_bounded
from profkit.core.types import (
    AllocationLine,
    Allocations,
    Fact,
    Frame,
    Hotspot,
    MemoryGrowth,
    PassPlan,
    Profile,
    SampleSet,
    Timing,
)
from profkit.runtime.passes import timing
from profkit.runtime.region.record import MAX_BYTES, RegionRecord, RegionTimes, decode_record

MAX_RECORDS = 8  # of one step, for what the ranks of a node have in common


def read_record(path: Path) -> RegionRecord:
    """Read one process's record. Raises UnreadableReport, with the file's name and what is wrong with it."""
    return read_document(path, decode_record, MAX_BYTES)


def read_packages(plan: PassPlan) -> dict[str, str]:
    """Return the versions of what a pass's processes had loaded, as far as their records can be read."""
    packages: dict[str, str] = {}
    for directive in (step.directive for step in plan.steps if step.directive is not None):
        prefix = Path(directive.record)
        for path in sorted(prefix.parent.glob(f"{glob.escape(prefix.name)}.*.json"))[:MAX_RECORDS]:
            with suppress(UnreadableReport):
                packages |= read_record(path).packages
    return packages


def read_window_begin(path: Path) -> float | None:
    """Return the seconds into its program at which a simulation's window began; None where it did not say."""
    try:
        began = json.loads(read_bounded(path)).get("began")
    except (OSError, ValueError, AttributeError):
        return None
    return float(began) if isinstance(began, (int, float)) and 0 <= began < 1e6 else None


def region_timings(records: Iterable[RegionRecord]) -> tuple[Timing, ...]:
    """Return the timing pass's samples by name, one SampleSet per process.

    A name that one process benchmarks again is numbered: `mlp`, `mlp (2)`. Benchmarks come first and win over a region
    of the same name. Of a region, each entry is a sample; entries from before it settled are its warm-up.
    """
    records = tuple(records)
    timings: dict[str, Timing] = {}
    for record in records:
        counts: dict[str, int] = {}
        for benchmark in record.benchmarks:
            if benchmark.sample_set.seconds:
                # one process may benchmark two things under one name: they are not two processes of one thing
                counts[benchmark.name] = number = counts.get(benchmark.name, 0) + 1
                name = benchmark.name if number == 1 else f"{benchmark.name} ({number})"
                known = timings.get(name) or Timing(
                    name, "benchmark", (), record.precision, benchmark.flops, benchmark.bytes
                )
                timings[name] = replace(known, processes=(*known.processes, benchmark.sample_set))
    for record in records:
        for region in record.regions:
            known = timings.get(region.name) or Timing(region.name, "region", (), record.precision)
            if known.kind == "region" and region.seconds:
                timings[region.name] = replace(
                    known, processes=(*known.processes, _sample_set(region, record))
                )
    return tuple(timings.values())


def _sample_set(region: RegionTimes, record: RegionRecord) -> SampleSet:
    assessment = timing.assess_samples(region.seconds, record.precision)
    return SampleSet(
        seconds=region.seconds[assessment.warmup :],
        warmup=region.seconds[: assessment.warmup],
        warm=assessment.warm and len(region.seconds) > 1,
        precise=assessment.precise,
        pid=record.pid,
        spent=sum(region.seconds) * region.every,
        clocks=record.clocks,
        throttle_reasons=record.held_by,
        reference_loop=record.reference_loop,
    )


# ------------------------------------------------------------ allocations

SCHEMA = "profkit.tracemalloc/2"
MAX_RESULT_BYTES = 64 * 1024 * 1024
MIN_POINTS = 8  # below, Kendall's interval spans nearly all slopes
MAX_POINTS = 200  # the slope takes time in the square of these
MIN_LEAK_BYTES = 8.0  # bytes per iteration: one pointer; nothing that is kept per iteration is smaller


@dataclass(frozen=True)
class _RegionPeak:
    peak: int


@dataclass(frozen=True)
class _Result:
    """What the pass writes: sizes in bytes; `points` are (iteration, held after it)."""

    peak: int
    points: tuple[tuple[int, ...], ...]
    top: tuple[AllocationLine, ...]
    growth: tuple[AllocationLine, ...]
    notes: tuple[Fact, ...]
    region: _RegionPeak | None = None

    def __post_init__(self) -> None:
        if any(len(point) != 2 for point in self.points) or min(self.peak, *map(min, self.points), 0) < 0:
            raise ValueError("a size that is none")


def read_tracemalloc(path: Path) -> Allocations:
    """Return what the pass found. Raises UnreadableReport where the file is not one of its own or is damaged."""

    def decode(data: object) -> _Result:
        return from_plain_data(_Result, check_schema(data, SCHEMA, "a tracemalloc result"))

    result = read_document(path, decode, MAX_RESULT_BYTES)
    growth = judge_growth([(iteration, held) for iteration, held in result.points])
    if result.region is None and any(note.code == "ended-early" for note in result.notes):
        growth = replace(growth, reason=Fact("ended-before-region"))  # whether one comes it has not seen
    return Allocations(
        peak=result.peak,
        region_peak=result.region.peak if result.region is not None else None,
        growth=growth,
        top=result.top,
        growing=result.growth,
        notes=result.notes,
    )


def read_raises(path: Path) -> Profile | None:
    """Return what the program's functions raised in the part of the run that was looked at; None where that is nothing.

    A hotspot has the function's calls, its own value is how often it raised its callee there.
    """
    try:
        rows = json.loads(read_bounded(path, MAX_RESULT_BYTES).decode()).get("raises", ())
        spots = tuple(
            Hotspot(
                str(name), float(count), None, int(calls), str(file), int(line), callee=Frame(str(kind), None)
            )
            for name, file, line, kind, count, calls in rows
        )
    except (OSError, ValueError, TypeError, AttributeError, RecursionError, OverflowError):
        return None
    total = sum(spot.own for spot in spots)
    return Profile("raised exceptions", "exceptions", total, spots, "raises") if total > 0 else None


def judge_growth(points: Sequence[tuple[int, int]]) -> MemoryGrowth:
    """Return what (iteration, bytes held after it) says of leaks.

    The first tenth, at least two iterations, is left out: caches fill there. A leak is a Theil-Sen slope
    whose whole 95 % interval is above 8 bytes per iteration.
    """
    if not points:
        return MemoryGrowth(None, None, None, 0, None, Fact("no-iterations"))
    settled = list(points[max(2, len(points) // 10) :])
    if len(settled) < MIN_POINTS:
        few = Fact.of("few-iterations", count=len(points), needed=MIN_POINTS + 2)
        return MemoryGrowth(None, None, None, len(settled), None, few)
    stride = -(-len(settled) // MAX_POINTS)
    thin = settled[::stride]
    value, low, high = statistics.theil_sen_slope([(float(x), float(y)) for x, y in thin]) or (
        0.0,
        None,
        None,
    )
    if low is None:
        return MemoryGrowth(None, None, None, len(settled), None, Fact("iterations-not-apart"))
    leak = low > MIN_LEAK_BYTES
    seen = settled[-1][0] - settled[0][0] + 1
    return MemoryGrowth(value, low, high, seen, leak, Fact("keeps-growing" if leak else "keeps-its-size"))
