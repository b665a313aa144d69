"""Each concern of a run in words: a headline, tables and notes, made of the document when it is shown."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from profkit.analysis.summaries.kernels import kernel_rows
from profkit.backends import Backend, backend_named
from profkit.core.types import RunDocument
from profkit.reporting.views.summaries import counted, cpu, gpu_time, kernels, metal, metal_work, python, time
from profkit.reporting.views.summaries.parts import ConcernFacts, SummaryText

_TextOf = Callable[[ConcernFacts], "SummaryText | None"]
_HOST: Mapping[str, _TextOf] = {"python": python.python_text, "memory": python.memory_text}
_FUNCTIONS: Mapping[str, _TextOf] = {
    "cache": cpu.cache_text,
    "branches": cpu.branches_text,
    "instructions": cpu.instructions_text,
    "bandwidth": cpu.bandwidth_text,
    "roofline": cpu.roofline_text,
    "functions": cpu.functions_text,
    **_HOST,
    "trace": cpu.trace_text,
}
_KERNELS: Mapping[str, _TextOf] = {
    "kernels": kernels.kernels_text,
    "ranges": kernels.ranges_text,
    "gpu": gpu_time.gpu_text,
    "occupancy": counted.occupancy_text,
    "bandwidth": counted.gpu_bandwidth_text,
    "cache": counted.gpu_cache_text,
    "access": counted.access_text,
    "execution": counted.execution_text,
    "arithmetic": counted.arithmetic_text,
    "stalls": counted.stalls_text,
    "unknown": kernels.unknown_kernels_text,
    "cost": kernels.cost_text,
    **_HOST,
}
_ENCODERS: Mapping[str, _TextOf] = {
    "gpu": metal.metal_gpu_text,
    "encoders": metal_work.encoders_text,
    "shaders": metal_work.shaders_text,
    "occupancy": metal.metal_occupancy_text,
    "bandwidth": metal.metal_bandwidth_text,
    "state": metal.metal_state_text,
    "functions": cpu.functions_text,
    **_HOST,
    "trace": cpu.trace_text,
}
_BY_WORK = {"function": _FUNCTIONS, "kernel": _KERNELS, "encoder": _ENCODERS}
# Concerns that are their readings in words; all others are made of the rest of the document as well.
_OF_READINGS = {
    "function": ("time", "memory", "cache", "branches", "instructions", "bandwidth", "roofline"),
    "kernel": ("time", "memory"),
    "encoder": ("time", "memory", "gpu", "occupancy", "bandwidth", "state"),
}


def summary_texts(document: RunDocument) -> tuple[SummaryText, ...]:
    """The concerns that there is something to say of; of a run also why something is not known."""
    backend = backend_named(document.backend)
    readings = {summary.concern: summary.readings for summary in document.summaries}
    rows = kernel_rows(document) if backend.per_kernel else ()
    texts = {"time": time.time_text, **_BY_WORK[backend.work], "triton": python.triton_text}
    made = [
        text_of(ConcernFacts(document, readings.get(concern, ()), rows))
        for concern, text_of in texts.items()
        if concern in readings or concern not in _OF_READINGS[backend.work]
    ]
    shown = tuple(text for text in made if text is not None and _is_shown(document, backend, text))
    if backend.work != "encoder":
        return shown
    return tuple(
        replace(text, headline=f"On the CPU {text.headline}")
        if text.concern == "trace" and text.tables
        else text
        for text in shown
    )


def _is_shown(document: RunDocument, backend: Backend, text: SummaryText) -> bool:
    """Of a report what it says nothing of is left out, of a run on a GPU what nobody looked for."""
    if text.concern in ("unknown", "cost") or not text.is_empty:
        return True
    if document.plan is None and not document.passes:
        return text.concern in backend.report_concerns
    return bool(text.readings) or not backend.per_kernel or text.concern == "triton"
