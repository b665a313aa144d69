"""A sweep as a run like any other: one timing for each case, so that history, compare and load know it already."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from profkit.analysis.ranking.ranking import faulty_cases, geometric_mean
from profkit.core.formatting import plural
from profkit.core.types import (
    RUN,
    CaseResult,
    Gpu,
    Machine,
    Reading,
    RunDocument,
    SampleSet,
    Scope,
    Source,
    SweepDocument,
    Timing,
    Workload,
)


def run_of(
    document: SweepDocument,
    command: tuple[str, ...],
    name: str,
    folder: str,
    machine: Machine | None,
    gpus: tuple[Gpu, ...],
    precision: float,
) -> RunDocument:
    """The run. What was not measured is told by its notes, one for each kind and reason."""
    cuda = any(result.clock == "cuda-events" for result in document.results)
    measured = [result for result in document.results if result.median]
    return RunDocument(
        name=name,
        backend="cuda" if cuda else "cpu",
        state="complete" if document.complete else "interrupted",
        workload=Workload(command, name, folder),
        started=document.started,
        machine=machine,
        timings=tuple(_timing(result, precision) for result in measured),
        gpus=gpus,
        readings=(_faulty(document), *_means(measured), *(_median(result) for result in measured)),
        packages=dict(document.versions),
        notes=_notes(document),
    )


def _name(result: CaseResult) -> str:
    return f"{result.implementation}: {result.point.name}"


def _faulty(document: SweepDocument) -> Reading:
    """How many cases are not right, and which is the first."""
    found = faulty_cases(document)
    told = "none"
    if found:
        first = found[0]
        told = f"{first.implementation}, {first.point.name}: {first.state}"
        told += f", {first.reason}" if first.reason else ""
    source = Source("profkit", "cases", formula="cases that are wrong by float64, failed, crashed or hung")
    return Reading("cases.faulty", float(len(found)), "count", "measured", RUN, source, reason=told)


def _group(result: CaseResult) -> str:
    point = result.point
    return f"{result.implementation}: {point.operation} {point.direction} {point.dtype}"


def _means(measured: Sequence[CaseResult]) -> Iterator[Reading]:
    """One implementation of one operation over all shapes that it has a time of: a series of a history by itself.

    The number of shapes is part of its name, so that a mean over fewer is held against none over more.
    """
    groups: dict[str, list[float]] = defaultdict(list)
    for result in measured:
        groups[_group(result)].append(result.median or 0.0)
    for name, medians in groups.items():
        scope = Scope("region", f"{name}, {plural(len(medians), 'shape')}")
        source = Source("profkit", "seconds", formula="geometric mean of the shapes' medians")
        mean = geometric_mean(medians)
        yield Reading("time.geometric_mean", mean, "s", "measured", scope, source)


def _timing(result: CaseResult, precision: float) -> Timing:
    samples = SampleSet(
        seconds=result.seconds,
        loops=result.calls,
        precise=result.precise,
        clock=result.clock or "wall",
        cache=result.cache if result.clock == "cuda-events" else None,
        clocks=result.clocks,
        throttle_reasons=result.throttled,
        remarks=result.remarks,
    )
    # What the work is stands in the command. Declared for each case it would be part of what must be alike in two runs:
    # one case that is missing in one of them, and nothing could be compared.
    return Timing(_name(result), "benchmark", (samples,), precision, group=_group(result))


def _median(result: CaseResult) -> Reading:
    source = Source("profkit", "seconds", formula=f"median of {result.samples} samples")
    return Reading("time.median", result.median, "s", "measured", Scope("region", _name(result)), source)


def _notes(document: SweepDocument) -> tuple[str, ...]:
    counts: dict[str, int] = {}
    for result in document.results:
        if result.state != "measured":
            said = f"{result.implementation} {result.point.operation}: {result.state}" + (
                f", {result.reason}" if result.reason else ""
            )
            counts[said] = counts.get(said, 0) + 1
    return tuple(f"{said} ({count} cases)" if count > 1 else said for said, count in counts.items())
