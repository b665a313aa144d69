"""Reads what the workload's processes recorded of their regions and benchmarks."""

from __future__ import annotations

import glob
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from profkit.core.errors import UnreadableReport
from profkit.core.files.regular import read_bounded_text
from profkit.core.types import PassPlan, SampleSet, Timing, TritonWork
from profkit.runtime.passes import sampling
from profkit.runtime.region.record import MOST_BYTES, RegionRecord, RegionTimes, decode_record

MOST_RECORDS = 8  # of one step, for what the ranks of a node have in common


def read_record(path: Path) -> RegionRecord:
    """One process's record. Raises UnreadableReport, with the file's name and what is wrong with it."""
    try:
        text = read_bounded_text(path, MOST_BYTES)
    except OSError as error:
        raise UnreadableReport(f"{path.name} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UnreadableReport(f"{path.name} is not a region record: it is not text") from error
    return decode_record(text, path.name)


def read_records(paths: Iterable[Path]) -> tuple[RegionRecord, ...]:
    """Several processes' records, in the order given."""
    return tuple(read_record(path) for path in paths)


def read_triton(plan: PassPlan) -> tuple[TritonWork, ...]:
    """What Triton did in the processes of a pass that was carried out, as far as their records can be read."""
    works = (record.triton for record in _find_records(plan))
    return tuple(work for work in works if work is not None)[:MOST_RECORDS]


def read_packages(plan: PassPlan) -> dict[str, str]:
    """Versions of what the processes of a pass had loaded, as far as their records can be read."""
    packages: dict[str, str] = {}
    for record in _find_records(plan):
        packages |= record.packages
    return packages


def _find_records(plan: PassPlan) -> Iterator[RegionRecord]:
    for step in plan.steps:
        if step.directive is not None:
            prefix = Path(step.directive.record)
            for path in sorted(prefix.parent.glob(f"{glob.escape(prefix.name)}.*.json"))[:MOST_RECORDS]:
                with suppress(UnreadableReport):
                    yield read_record(path)


def region_timings(records: Iterable[RegionRecord]) -> tuple[Timing, ...]:
    """The timing pass's samples by name, one SampleSet per process.

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
    assessment = sampling.assess_samples(region.seconds, record.precision)
    return SampleSet(
        seconds=region.seconds[assessment.warmup :],
        warmup=region.seconds[: assessment.warmup],
        warm=assessment.warm and len(region.seconds) > 1,
        precise=assessment.precise,
        pid=record.pid,
        spent=sum(region.seconds) * region.every,
        reference_loop=record.reference_loop,
    )
