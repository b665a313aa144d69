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
from profkit.analysis.summaries.readings import (
    absent_reading,
    best_reading,
    find_reading,
    is_surer,
    main_scopes,
    merge_readings,
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
    brought = _stored_memory(document)
    document = replace(
        document, readings=merge_readings(document.readings, brought.readings if brought else ())
    )
    fresh = [reading for timing in document.timings for reading in time_readings(timing)]
    document = replace(document, readings=merge_readings(document.readings, fresh))
    return _with_python(backend.enrich(document))


def enrich_cpu(document: RunDocument, simulator: str) -> RunDocument:
    """What follows from the counters of a processor: functions (by the tool `simulator`), bandwidth, roofline."""
    if not any(r.scope.kind == "function" for r in document.readings):
        fresh = list(function_readings(document.profiles, simulator))
        document = replace(document, readings=merge_readings(document.readings, fresh))
    if (
        document.timings and document.timings[0].group is None
    ):  # of a sweep the first case is one of thousands
        work, limit = work_of(document)
        scopes = set(main_scopes(document))
        known: dict[str, Reading] = {}
        for told in document.readings:
            if told.value is not None and told.scope in scopes:
                before = known.get(told.metric)
                known[told.metric] = told if before is None or is_surer(told, before) else before
        limits = (*bandwidth_readings(work, limit), *roofline_readings(work, limit))
        fresh = [reading for reading in limits if reading.metric not in known]
        # What a simulation told stays; what follows from measured counters stands beside it and is preferred.
        finer = [r for r in limits if r.metric in known and is_surer(r, known[r.metric])]
        document = replace(document, readings=(*merge_readings(document.readings, fresh), *finer))
    return document


def _with_python(document: RunDocument) -> RunDocument:
    python = summarize_python(document.profiles) if _has_python(document) else None
    return replace(document, readings=merge_readings(document.readings, python.readings if python else ()))


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
    found: list[Summary | None] = [_time_summary(document), *backend.summarize(document)]
    found.append(summarize_triton(document.triton, document.timings, document.trace))
    always = backend.report_concerns
    made = [s for s in found if s is not None and (is_run or s.concern in always or _says_something(s))]
    concerns = {summary.concern for summary in made}
    return (*made, *(s for s in document.summaries if s.concern not in concerns))


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


def _time_summary(document: RunDocument) -> Summary:
    scopes = main_scopes(document)
    names = dict.fromkeys(r.metric for r in document.readings if r.metric.startswith("time."))
    apart = (
        "time.python",
        "time.import",
        "time.gpu",
        "time.gpu.idle",
    )  # cProfile's and the timeline's, told there
    others = [
        r for name in names if name not in apart and (r := best_reading(document.readings, name, scopes))
    ]
    if not document.timings and not others:
        others = [absent_reading(document, "time.median", "timing", scopes[0])]
    return summarize_time(document.timings, others, document.moments)


def _counted_summaries(document: RunDocument) -> list[Summary]:
    def told(names: Sequence[str], always: Sequence[str]) -> list[Reading]:
        scopes = main_scopes(document)
        found = {name: best_reading(document.readings, name, scopes) for name in names}
        missing = {name: find_reading(document, name) for name in always if found[name] is None}
        chosen = [r for name in names if (r := found[name] or missing.get(name)) is not None]
        return [r for r in chosen if r.value is not None or r.metric in always]

    return [
        cpu.summarize_cache(told(cpu.CACHE, cpu.CACHE[:3])),
        cpu.summarize_branches(told(cpu.BRANCHES, cpu.BRANCHES[1:])),
        cpu.summarize_instructions(told(cpu.INSTRUCTIONS, ("instructions", "ipc", "simd.utilization"))),
    ]


def _limit_summaries(document: RunDocument) -> list[Summary]:
    """Bandwidth and roofline, of what `enrich` derived (or a report told)."""
    work, limit = work_of(document)

    # Rates are counts over the time: without a timing pass it is the time that is missing.
    behind: PassName = "counters" if document.timings or document.plan is None else "timing"

    def told(names: Sequence[str]) -> list[Reading]:
        return [find_reading(document, name, behind) for name in names]

    bandwidth = told(("bandwidth.dram", "bandwidth.dram.share"))
    declared = best_reading(document.readings, "bandwidth.declared", main_scopes(document))
    rows = [*bandwidth, declared] if declared is not None else bandwidth
    roofline = told(
        ("arithmetic_intensity", "flops.rate", "flops.share", "roofline.attainable", "roofline.share")
    )
    return [
        summarize_bandwidth(rows, limit, work.dram),
        summarize_roofline(roofline, limit, document.peaks, work),
    ]


def _has_python(document: RunDocument) -> bool:
    return any(profile.kind in CPROFILE_KINDS for profile in document.profiles)


def _python_summary(document: RunDocument) -> Summary:
    missing = (
        None
        if _has_python(document)
        else absent_reading(document, "time.python", "cprofile", main_scopes(document)[-1])
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
