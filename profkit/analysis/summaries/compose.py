"""All concerns of one document: first what can be derived from what is there, then the readings of each concern."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from profkit.analysis.summaries import host
from profkit.analysis.summaries.gpu import check_consistency
from profkit.analysis.summaries.host import (
    allocation_readings,
    has_cprofile,
    has_samples,
    python_readings,
    time_readings,
)
from profkit.analysis.summaries.metal import summarize_metal
from profkit.analysis.summaries.readings import (
    absent_reading,
    add_readings,
    best_reading,
    find_reading,
    main_scopes,
    surest_readings,
)
from profkit.analysis.summaries.roofline import bandwidth_readings, roofline_readings, work_of
from profkit.core.types import QUALITY_ORDER, Fact, PassName, Reading, RunDocument, Summary

_PYTHON = ("memory.python_peak", "memory.python_growth")
# Of cProfile and of the timeline, whose concerns have them.
_ELSEWHERE = ("time.python", "time.import", "time.gpu", "time.gpu.idle")


class Concerns(Protocol):
    """What differs between backends (a `profkit.backends.Backend` has it)."""

    @property
    def report_concerns(self) -> frozenset[str]:
        """Return the concerns that a report has even if none of their values are known."""

    def enrich(self, document: RunDocument) -> RunDocument:
        """Return the document with what follows from its readings."""

    def summarize(self, document: RunDocument) -> list[Summary]:
        """Return the concerns of this hardware."""


def enrich(document: RunDocument, backend: Concerns) -> RunDocument:
    """Return the document with all that follows from it: time, bandwidth, roofline, functions.

    What a tool reported itself is kept; what it could not report is replaced where it can be derived. Doing it
    twice changes nothing.
    """
    if document.allocations is not None:
        document = add_readings(document, allocation_readings(document.allocations))
    document = add_readings(document, [r for timing in document.timings for r in time_readings(timing)])
    return add_readings(backend.enrich(document), python_readings(document.profiles))


def enrich_cpu(document: RunDocument, simulator: str) -> RunDocument:
    """Return what follows from a processor's counters: functions (by the tool `simulator`), bandwidth, roofline."""
    if not any(r.scope.kind == "function" for r in document.readings):
        document = add_readings(document, host.function_readings(document.profiles, simulator))
    document = check_consistency(host.without_small_part(document, simulator))
    document = add_readings(document, host.refill_readings(document))
    if not document.timings or document.timings[0].group is not None:
        return document  # of a sweep the first case is one of thousands
    work, limit = work_of(document)
    known = surest_readings(document)
    derived = (*bandwidth_readings(work, limit), *roofline_readings(work, limit))
    if host.is_disturbed(document):
        doubt = Fact.of("other-programs-ran", share=host.share_of_others(document))
        derived = tuple(
            replace(reading, doubt=doubt) if _is_over_time(reading) else reading for reading in derived
        )
    document = add_readings(document, [reading for reading in derived if reading.metric not in known])
    # What was simulated stays; what follows from measured counters is added and preferred.
    finer = [
        reading
        for reading in derived
        if reading.metric in known
        and QUALITY_ORDER[reading.quality] < QUALITY_ORDER[known[reading.metric].quality]
    ]
    return replace(document, readings=(*document.readings, *finer))


def _is_over_time(reading: Reading) -> bool:
    """Return whether it is a rate, or a share of one: what depends on how long the work took."""
    return reading.value is not None and reading.metric in _OVER_TIME


_OVER_TIME = ("bandwidth.dram", "bandwidth.dram.share", "flops.rate", "flops.share", "roofline.share")


def summarize(document: RunDocument, backend: Concerns) -> tuple[Summary, ...]:
    """Return the readings of every concern of a run; for a report only those that it has values for.

    `document` should be enriched first.
    """
    concerns = [
        Summary("time", _time_concern(document)),
        *backend.summarize(document),
        *_host_concerns(document),
    ]
    is_run, always = document.plan is not None or bool(document.passes), backend.report_concerns
    return tuple(
        summary
        for summary in concerns
        if is_run
        or summary.concern in always
        or any(reading.value is not None for reading in summary.readings)
    )


def summarize_cpu(document: RunDocument) -> list[Summary]:
    """Return what was counted and its limits."""

    def best(names: Sequence[str], always: Sequence[str]) -> tuple[Reading, ...]:
        """Return those with a value, and of the metrics that are `always` there why there is none."""
        found = [find_reading(document, name) for name in names]
        return tuple(reading for reading in found if reading.value is not None or reading.metric in always)

    # Rates are counts over the time: without a timing pass it is the time that is missing.
    behind: PassName = "counters" if document.timings or document.plan is None else "timing"
    declared = best_reading(document.readings, "bandwidth.declared", main_scopes(document))
    moved = work_of(document)[0].dram
    traffic = (moved,) if moved.value is not None else ()
    bandwidth, roofline = (
        tuple(find_reading(document, name, behind) for name in names)
        for names in (
            ("bandwidth.dram", "bandwidth.dram.share"),
            ("arithmetic_intensity", "flops.rate", "flops.share", "roofline.attainable", "roofline.share"),
        )
    )
    return [
        Summary("cache", best(host.CACHE, host.CACHE[:3])),
        Summary("branches", best(host.BRANCHES, host.BRANCHES[1:])),
        Summary("instructions", best(host.INSTRUCTIONS, ("instructions", "ipc", "simd.utilization"))),
        Summary("bandwidth", (*traffic, *bandwidth, *([declared] if declared else []))),
        Summary("roofline", roofline),
        *trace_concern(document),
    ]


def summarize_mps(document: RunDocument) -> list[Summary]:
    """Return the GPU, and the processor's samples of the same recording."""
    return [*summarize_metal(document), *trace_concern(document)]


def trace_concern(document: RunDocument) -> list[Summary]:
    """Return why there are no samples, for a run without them."""
    if document.plan is None or any(map(host.is_sampled, document.profiles)):
        return []
    missing = absent_reading(document, "time.cpu", "trace", main_scopes(document)[-1])
    return [Summary("trace", (missing,))]


def _time_concern(document: RunDocument) -> tuple[Reading, ...]:
    if document.timings:
        return tuple(reading for timing in document.timings for reading in time_readings(timing))
    scopes = main_scopes(document)
    names = dict.fromkeys(r.metric for r in document.readings if r.metric.startswith("time."))
    reported = [
        reading
        for name in names
        if name not in _ELSEWHERE and (reading := best_reading(document.readings, name, scopes))
    ]
    return tuple(reported) or (absent_reading(document, "time.median", "timing", scopes[0]),)


def _host_concerns(document: RunDocument) -> list[Summary]:
    """Return the concerns Python (not for a program in another language, whose passes say why) and memory."""
    scopes = main_scopes(document)
    skipped = any(done.name in ("stacks", "cprofile") and done.state == "skipped" for done in document.passes)
    known = python_readings(document.profiles)
    python = [find_reading(document, reading.metric) for reading in known]
    if not has_samples(document.profiles) and has_cprofile(document.profiles):
        python = list(known)
    elif not python and not (skipped and document.workload.python is None):
        planned_names = (
            {planned.name for planned in document.plan.passes} if document.plan is not None else set()
        )
        source: PassName = (
            "stacks" if "stacks" in planned_names and "cprofile" not in planned_names else "cprofile"
        )
        python = [absent_reading(document, "time.python", source, scopes[-1])]
    names = dict.fromkeys(r.metric for r in document.readings if r.metric.startswith("memory."))
    memory = [r for name in names if (r := best_reading(document.readings, name, scopes)) is not None]
    memory += [absent_reading(document, n, "tracemalloc", scopes[-1]) for n in _PYTHON if n not in names]
    of_python = [Summary("python", tuple(python))] if python else []
    return [*of_python, Summary("memory", tuple(memory))]
