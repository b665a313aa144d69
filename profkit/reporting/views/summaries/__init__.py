"""Each concern of a run in words: a headline, tables and notes, made of the document when it is shown."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from profkit.analysis.summaries.kernels import kernel_rows
from profkit.analysis.summaries.roofline import Ceilings, work_of
from profkit.backends import Backend, backend_named
from profkit.core.formatting import format_quantity
from profkit.core.types import RunDocument
from profkit.reporting.views.summaries import gpu, host, kernels, metal, time
from profkit.reporting.views.summaries.parts import (
    ConcernFacts,
    SummaryText,
    readings_text,
    remarks,
)

_TextOf = Callable[[ConcernFacts], "SummaryText | None"]
_SIMULATED = (
    "Simulated: no prefetcher, least-recently-used replacement, one core alone. Compare simulated values only"
    " with simulated ones; a chip with prefetchers misses less."
)
# Counted and declared FLOPs further apart than this are not the same work, or not all of it was counted.
_FLOPS_APART = 0.10


def _counted_text(concern: str, title: str, what: str, facts: ConcernFacts) -> SummaryText:
    """Return what counters of a processor said."""
    simulated = concern == "cache" and any(r.quality == "simulated" for r in facts.readings)
    return readings_text(concern, title, facts.readings, (), (_SIMULATED,) if simulated else (), what)


def _limits_text(concern: str, title: str, facts: ConcernFacts) -> SummaryText:
    """Return traffic or arithmetic, compared with this machine's measured peaks."""
    work, limit = work_of(facts.document)
    notes = [f"Held against {_threads_text(limit)}."] if limit.bandwidth.value else []
    notes += remarks(facts.readings)
    counted, declared = work.flops.value or 0.0, work.declared_flops or 0.0
    if concern == "roofline" and counted and declared and abs(counted - declared) > _FLOPS_APART * declared:
        difference = (
            f"{format_quantity(counted, 'FLOP')} per iteration, declared {format_quantity(declared, 'FLOP')}"
        )
        notes.append(f"Counted {difference}: the declared number is wrong, or not all work was counted.")
    readings = facts.readings[:: -1 if concern == "roofline" else 1]  # the position below it first
    return readings_text(concern, title, readings, (), notes)


def _threads_text(limit: Ceilings) -> str:
    used = "how many it used is not known"
    if limit.busy is not None:
        used = f"{limit.busy / 100:.1f} cores kept busy"
    return f"one thread ({used})" if limit.single else f"all {limit.threads} threads ({used})"


_HOST: Mapping[str, _TextOf] = {"python": host.python_text, "memory": host.memory_text}
_FUNCTIONS: Mapping[str, _TextOf] = {
    "cache": partial(_counted_text, "cache", "Misses of each level", "How well the caches serve"),
    "branches": partial(_counted_text, "branches", "Branches", "How well branches are predicted"),
    "instructions": partial(_counted_text, "instructions", "Instructions", "How the core is used"),
    "bandwidth": partial(_limits_text, "bandwidth", "Memory traffic"),
    "roofline": partial(_limits_text, "roofline", "Roofline"),
    "functions": host.functions_text,
    **_HOST,
    "trace": host.trace_text,
    "operators": host.operators_text,
}
_COUNTED = ("occupancy", "bandwidth", "cache", "access", "execution", "arithmetic", "stalls")
_KERNELS: Mapping[str, _TextOf] = {
    "kernels": kernels.kernels_text,
    "gpu": gpu.gpu_text,
    **{concern: partial(kernels.counted_text, concern) for concern in _COUNTED},
    "unknown": kernels.unknown_kernels_text,
    **_HOST,
}
_ENCODERS: Mapping[str, _TextOf] = {
    "gpu": metal.metal_gpu_text,
    "encoders": metal.encoders_text,
    "shaders": metal.shaders_text,
    **{concern: partial(metal.metal_values_text, concern) for concern in ("occupancy", "bandwidth")},
    "functions": host.functions_text,
    **_HOST,
    "trace": host.trace_text,
}
_BY_WORK = {"function": _FUNCTIONS, "kernel": _KERNELS, "encoder": _ENCODERS}
# Concerns that are their readings in words; all others are made of the rest of the document as well.
_OF_READINGS = {
    "function": ("time", "memory", "cache", "branches", "instructions", "bandwidth", "roofline"),
    "kernel": ("time", "memory"),
    "encoder": ("time", "memory", "gpu", "occupancy", "bandwidth"),
}


def summary_texts(document: RunDocument) -> tuple[SummaryText, ...]:
    """Return the concerns that there is something to say of; of a run also why something is not known."""
    backend = backend_named(document.backend)
    readings = {summary.concern: summary.readings for summary in document.summaries}
    rows = kernel_rows(document) if backend.per_kernel else ()
    texts = {"time": time.time_text, **_BY_WORK[backend.work]}
    made = [
        text_of(ConcernFacts(document, readings.get(concern, ()), rows))
        for concern, text_of in texts.items()
        if concern in readings or concern not in _OF_READINGS[backend.work]
    ]
    return tuple(text for text in made if text is not None and _is_shown(document, backend, text))


def _is_shown(document: RunDocument, backend: Backend, text: SummaryText) -> bool:
    """Return whether a concern is shown: not if a report or a part of a program says nothing about it."""
    if text.concern == "unknown" or not text.is_empty:
        return True
    if document.plan is None and not document.passes:
        return text.concern in backend.report_concerns
    if (
        document.plan is None
    ):  # a process that was attached to, or a part of one: only what it records was asked for
        return any(
            reading.reason is None or reading.reason.code != "not-in-report" for reading in text.readings
        )
    return bool(text.readings) or not backend.per_kernel
