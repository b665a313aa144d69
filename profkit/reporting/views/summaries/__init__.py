"""The section of each concern of a run: a headline, tables and notes, made from the document when it is shown."""

from __future__ import annotations

from collections.abc import Mapping

from profkit.analysis.summaries.kernels import kernel_rows
from profkit.analysis.summaries.roofline import Ceilings, work_of
from profkit.backends import Backend, backend_named
from profkit.core.formatting import format_quantity
from profkit.core.types import RunDocument
from profkit.reporting.view import DataTable, Section
from profkit.reporting.views.summaries import gpu, host, kernels, metal, time
from profkit.reporting.views.summaries.parts import readings_of, readings_section, remarks

_SIMULATED = (
    "Simulated: no prefetcher, least-recently-used replacement, one core alone. Compare simulated values only"
    " with simulated ones; a chip with prefetchers misses less."
)
# Counted and declared FLOPs that differ by more are not the same work, or not all of it was counted.
_FLOPS_APART = 0.10
# Concerns that consist of their readings: without a summary in the document they are not shown.
_OF_READINGS = {
    "function": ("time", "memory", "cache", "branches", "instructions", "bandwidth", "roofline"),
    "kernel": ("time", "memory"),
    "encoder": ("time", "memory", "gpu", "occupancy", "bandwidth"),
}
_COUNTED = ("occupancy", "bandwidth", "cache", "access", "execution", "arithmetic", "stalls")


def concern_sections(document: RunDocument) -> dict[str, Section]:
    """Return the section of each concern about which there is something to say, in their order.

    For a run that includes why something is not known.
    """
    backend = backend_named(document.backend)
    summarized = {summary.concern for summary in document.summaries}
    return {
        concern: section
        for concern, section in _sections(document, backend).items()
        if section is not None
        and (concern in summarized or concern not in _OF_READINGS[backend.work])
        and _is_shown(document, backend, concern, section)
    }


def _sections(document: RunDocument, backend: Backend) -> Mapping[str, Section | None]:
    """Return the sections of all concerns of this kind of hardware; None if the document has nothing for it."""
    timing = {"time": time.time_section(document)}
    process = {"python": host.python_section(document), "memory": host.memory_section(document)}
    if backend.work == "kernel":
        rows = kernel_rows(document) if backend.per_kernel else ()
        return {
            **timing,
            "kernels": kernels.kernels_section(document, rows),
            "gpu": gpu.gpu_section(document),
            **{concern: kernels.counted_section(concern, document, rows) for concern in _COUNTED},
            "unknown": kernels.unknown_kernels_section(document, rows),
            **process,
        }
    if backend.work == "encoder":
        return {
            **timing,
            "gpu": metal.metal_gpu_section(document),
            "encoders": metal.encoders_section(document),
            "shaders": metal.shaders_section(document),
            "occupancy": metal.metal_values_section("occupancy", document),
            "bandwidth": metal.metal_values_section("bandwidth", document),
            "functions": host.functions_section(document),
            **process,
            "trace": host.trace_section(document),
        }
    return {
        **timing,
        "cache": _counted_section(document, "cache", "Misses of each level", "How well the caches serve"),
        "branches": _counted_section(document, "branches", "Branches", "How well branches are predicted"),
        "instructions": _counted_section(document, "instructions", "Instructions", "How the core is used"),
        "bandwidth": _limits_section(document, "bandwidth", "Memory traffic"),
        "roofline": _limits_section(document, "roofline", "Roofline"),
        "functions": host.functions_section(document),
        **process,
        "trace": host.trace_section(document),
        "operators": host.operators_section(document),
    }


def _is_shown(document: RunDocument, backend: Backend, concern: str, section: Section) -> bool:
    """Return whether a concern is shown: not if a report or a part of a program says nothing about it."""
    readings = readings_of(document, concern)
    has_table = any(isinstance(block, DataTable) for block in section.blocks)
    if concern == "unknown" or has_table or any(reading.value is not None for reading in readings):
        return True
    if document.plan is None and not document.passes:
        return concern in backend.report_concerns
    if document.plan is None:
        # A process that was attached to, or a part of a program: only what it records was requested.
        return any(reading.reason is None or reading.reason.code != "not-in-report" for reading in readings)
    return bool(readings) or not backend.per_kernel


def _counted_section(document: RunDocument, concern: str, title: str, what: str) -> Section:
    """Return what a processor's counters measured, or the simulator."""
    readings = readings_of(document, concern)
    simulated = concern == "cache" and any(r.quality == "simulated" for r in readings)
    return readings_section(concern, title, readings, (), (_SIMULATED,) if simulated else (), what)


def _limits_section(document: RunDocument, concern: str, title: str) -> Section:
    """Return traffic or arithmetic, compared with this machine's measured peaks."""
    readings = readings_of(document, concern)
    work, limit = work_of(document)
    notes = [f"Held against {_threads_text(limit)}."] if limit.bandwidth.value else []
    notes += remarks(readings)
    counted, declared = work.flops.value or 0.0, work.declared_flops or 0.0
    if concern == "roofline" and counted and declared and abs(counted - declared) > _FLOPS_APART * declared:
        difference = (
            f"{format_quantity(counted, 'FLOP')} per iteration, declared {format_quantity(declared, 'FLOP')}"
        )
        notes.append(f"Counted {difference}: the declared number is wrong, or not all work was counted.")
    if concern == "roofline":
        readings = readings[::-1]  # the share of the roofline comes first
    return readings_section(concern, title, readings, (), notes)


def _threads_text(limit: Ceilings) -> str:
    used = "how many it used is not known"
    if limit.busy is not None:
        used = f"{limit.busy / 100:.1f} cores kept busy"
    return f"one thread ({used})" if limit.single else f"all {limit.threads} threads ({used})"
