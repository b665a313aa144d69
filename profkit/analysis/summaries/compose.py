"""All concerns of one document: first what can be derived from what is there, then a summary of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from profkit.analysis.summaries import cpu
from profkit.analysis.summaries.cpu import function_readings, summarize_functions, summarize_trace
from profkit.analysis.summaries.gpu import summarize_gpu_run
from profkit.analysis.summaries.metal import summarize_metal_run
from profkit.analysis.summaries.python import (
    CPROFILE_KINDS,
    summarize_memory,
    summarize_python,
    summarize_triton,
)
from profkit.analysis.summaries.python_samples import has_samples, sample_readings, summarize_samples
from profkit.analysis.summaries.readings import (
    absent_reading,
    add_readings,
    best_reading,
    find_reading,
    is_surer,
    main_scopes,
)
from profkit.analysis.summaries.roofline import (
    bandwidth_readings,
    roofline_readings,
    summarize_bandwidth,
    summarize_roofline,
    work_of,
)
from profkit.analysis.summaries.time import summarize_time, time_readings
from profkit.core.types import GpuToolLines, PassName, Reading, RunDocument, Summary

_PYTHON = ("memory.python_peak", "memory.python_growth")


class Concerns(Protocol):
    """What differs between backends (a `profkit.backends.Backend` has it)."""

    @property
    def report_concerns(self) -> frozenset[str]:
        """Summaries that a report shows even where it knows none of their values."""

    def enrich(self, document: RunDocument) -> RunDocument:
        """The document with what follows from its readings."""

    def summarize(self, document: RunDocument) -> list[Summary | None]:
        """The summaries beside that of the time."""


def enrich(document: RunDocument, backend: Concerns) -> RunDocument:
    """The document with all that follows from it: time, bandwidth, roofline, functions.

    What a tool told itself is kept; what it could not tell is replaced where it can be derived. Doing it
    twice changes nothing.
    """
    stored = _stored_memory(document)
    document = add_readings(document, stored.readings if stored is not None else ())
    document = add_readings(document, [r for timing in document.timings for r in time_readings(timing)])
    document = backend.enrich(document)
    return add_readings(
        document,
        summarize_python(document.profiles).readings
        if _has_python(document)
        else sample_readings(document.profiles),
    )


def enrich_cpu(document: RunDocument, simulator: str) -> RunDocument:
    """What follows from the counters of a processor: functions (by the tool `simulator`), bandwidth, roofline."""
    if not any(r.scope.kind == "function" for r in document.readings):
        document = add_readings(document, function_readings(document.profiles, simulator))
    if not document.timings or document.timings[0].group is not None:
        return document  # of a sweep the first case is one of thousands
    work, limit = work_of(document)
    scopes = set(main_scopes(document))
    known: dict[str, Reading] = {}
    for reading in document.readings:
        if reading.value is not None and reading.scope in scopes:
            before = known.get(reading.metric)
            known[reading.metric] = reading if before is None or is_surer(reading, before) else before
    derived = (*bandwidth_readings(work, limit), *roofline_readings(work, limit))
    document = add_readings(document, [reading for reading in derived if reading.metric not in known])
    # What was simulated stays; what follows from measured counters stands beside it and is preferred.
    finer = [r for r in derived if r.metric in known and is_surer(r, known[r.metric])]
    return replace(document, readings=(*document.readings, *finer))


def _stored_memory(document: RunDocument) -> Summary | None:
    """What tracemalloc said, where it said something: only its pass can, so it is kept from then on."""
    stored = [s for s in document.summaries if s.concern == "memory"]
    names = [r.metric for s in stored for r in s.readings if r.value is not None]
    return stored[0] if "memory.python_peak" in names else None


def summarize(document: RunDocument, backend: Concerns) -> tuple[Summary, ...]:
    """One summary for every concern of a run; of a report only those that it says something about.

    `document` should be enriched first. Summaries that a pass brought itself are kept.
    """
    is_run = document.plan is not None or bool(document.passes)
    of_run = [
        _time_summary(document),
        *backend.summarize(document),
        summarize_triton(document.triton, document.timings, document.trace),
    ]
    always = backend.report_concerns
    shown = [s for s in of_run if s is not None and (is_run or s.concern in always or _says_something(s))]
    concerns = {summary.concern for summary in shown}
    return (*shown, *(s for s in document.summaries if s.concern not in concerns))


def summarize_cpu(document: RunDocument) -> list[Summary | None]:
    """What was counted, its limits, Python, memory, and where the time goes."""
    return [
        *_counted_summaries(document),
        *_limit_summaries(document),
        summarize_functions(document.profiles),
        _python_summary(document),
        _memory_summary(document),
        _trace_summary(document),
    ]


def summarize_cuda(document: RunDocument, lines: GpuToolLines) -> list[Summary | None]:
    """The GPU, then the host's Python and memory."""
    return [*summarize_gpu_run(document, lines), _python_summary(document), _memory_summary(document)]


def summarize_mps(document: RunDocument) -> list[Summary | None]:
    """The GPU, then the CPU's hot spots of the same recording."""
    functions, samples = summarize_functions(document.profiles), _trace_summary(document)
    if samples is not None and samples.tables:
        samples = replace(samples, headline=f"On the CPU {samples.headline}")
    return [
        *summarize_metal_run(document),
        functions,
        _python_summary(document),
        _memory_summary(document),
        samples,
    ]


def _says_something(summary: Summary) -> bool:
    return (
        summary.concern in ("unknown", "cost")
        or bool(summary.tables)
        or any(r.value is not None for r in summary.readings)
    )


# Of cProfile and of the timeline, whose summaries show them.
_SHOWN_ELSEWHERE = ("time.python", "time.import", "time.gpu", "time.gpu.idle")


def _time_summary(document: RunDocument) -> Summary:
    scopes = main_scopes(document)
    names = dict.fromkeys(r.metric for r in document.readings if r.metric.startswith("time."))
    reported = [
        reading
        for name in names
        if name not in _SHOWN_ELSEWHERE and (reading := best_reading(document.readings, name, scopes))
    ]
    if not document.timings and not reported:
        reported = [absent_reading(document, "time.median", "timing", scopes[0])]
    return summarize_time(document.timings, reported, document.moments)


def _counted_summaries(document: RunDocument) -> list[Summary]:
    def readings(names: Sequence[str], always: Sequence[str]) -> list[Reading]:
        """Those with a value, and of the metrics that are `always` shown why there is none."""
        best = [find_reading(document, name) for name in names]
        return [reading for reading in best if reading.value is not None or reading.metric in always]

    return [
        cpu.summarize_cache(readings(cpu.CACHE, cpu.CACHE[:3])),
        cpu.summarize_branches(readings(cpu.BRANCHES, cpu.BRANCHES[1:])),
        cpu.summarize_instructions(readings(cpu.INSTRUCTIONS, ("instructions", "ipc", "simd.utilization"))),
    ]


def _limit_summaries(document: RunDocument) -> list[Summary]:
    """Bandwidth and roofline, of what `enrich` derived (or a report told)."""
    work, limit = work_of(document)
    # Rates are counts over the time: without a timing pass it is the time that is missing.
    behind: PassName = "counters" if document.timings or document.plan is None else "timing"
    bandwidth = [find_reading(document, name, behind) for name in ("bandwidth.dram", "bandwidth.dram.share")]
    declared = best_reading(document.readings, "bandwidth.declared", main_scopes(document))
    names = ("arithmetic_intensity", "flops.rate", "flops.share", "roofline.attainable", "roofline.share")
    roofline = [find_reading(document, name, behind) for name in names]
    return [
        summarize_bandwidth([*bandwidth, *([declared] if declared else [])], limit, work.dram),
        summarize_roofline(roofline, limit, document.peaks, work),
    ]


def _has_python(document: RunDocument) -> bool:
    return any(profile.kind in CPROFILE_KINDS for profile in document.profiles)


def _python_summary(document: RunDocument) -> Summary | None:
    """By sampled stacks where there are any. None of a program in another language: its passes say why."""
    if has_samples(document.profiles):
        summary = summarize_samples(document.profiles)
        known = [find_reading(document, reading.metric) for reading in summary.readings]
        return replace(summary, readings=tuple(known))
    skipped = any(done.name in ("stacks", "cprofile") and done.state == "skipped" for done in document.passes)
    if skipped and document.workload.python is None and not _has_python(document):
        return None
    asked = {planned.name for planned in document.plan.passes} if document.plan is not None else set()
    source: PassName = "stacks" if "stacks" in asked and "cprofile" not in asked else "cprofile"
    missing = (
        None
        if _has_python(document)
        else absent_reading(document, "time.python", source, main_scopes(document)[-1])
    )
    return summarize_python(document.profiles, missing)


def _memory_summary(document: RunDocument) -> Summary:
    scopes = main_scopes(document)
    stored = _stored_memory(document)
    names = dict.fromkeys(r.metric for r in document.readings if r.metric.startswith("memory."))
    readings = [r for name in names if (r := best_reading(document.readings, name, scopes)) is not None]
    missing = [absent_reading(document, n, "tracemalloc", scopes[-1]) for n in _PYTHON if n not in names]
    return summarize_memory(readings, stored, missing)


def _trace_summary(document: RunDocument) -> Summary | None:
    missing = absent_reading(document, "time.cpu", "trace", main_scopes(document)[-1])
    return summarize_trace(document.profiles, missing if document.plan is not None else None)
