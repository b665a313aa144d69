"""Readings of a Metal trace: where each comes from, and why one is not there."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from profkit.analysis.metrics import metric
from profkit.analysis.summaries.pick import unavailable
from profkit.core.types import RUN, MetalTrace, Quality, Reading, Source

TOOL = "xctrace"
# The tables of Instruments, by the names that `xctrace export` knows.
STATES, INTERVALS = "metal-gpu-state-intervals", "metal-gpu-intervals"
ENCODERS, SHADERS = "metal-application-encoders-list", "metal-shader-profiler-intervals"
SUBMITTED, COMPLETED = "metal-application-command-buffer-submissions", "metal-command-buffer-completed"
COUNTERS, SAMPLES = "metal-gpu-counter-intervals", "gpu-counter-value"
PERFORMANCE, THERMAL = "gpu-performance-state-intervals", "device-thermal-state-intervals"
ALLOCATED = "metal-current-allocated-size"
NOT_TOLD = "the trace does not tell it"


def told(
    metal: MetalTrace,
    name: str,
    value: float | None,
    tables: tuple[str, ...],
    formula: str,
    *,
    quality: Quality = "measured",
    remark: str | None = None,
    otherwise: str = NOT_TOLD,
) -> Reading:
    """The reading of `name` out of `tables`; unavailable, with the reason of the first missing table, for None.

    `remark` is what must be known of a value, `otherwise` the reason where the trace gives none.
    """
    source = Source(TOOL, counter=", ".join(tables), formula=formula)
    if value is None:
        reason, fix = why_absent(metal, tables, otherwise)
        return unavailable(name, RUN, reason, fix, source)
    return Reading(name, value, metric(name).unit, quality, RUN, source, remark)


def why_absent(
    metal: MetalTrace, tables: tuple[str, ...], otherwise: str = NOT_TOLD
) -> tuple[str, str | None]:
    """Why the trace has none of what these tables tell, and the way to get it."""
    for table in tables:
        for absent in metal.absent:
            if absent.what == table:  # by its name: of two that are missing each has a fix of its own
                return absent.reason.replace("the table", table, 1), absent.fix
    return otherwise, None


def share(part: float | None, whole: float | None) -> float | None:
    """`part` of `whole` in per cent, at most 100; None where one is not known or there is no whole."""
    if part is None or not whole:
        return None
    return 100 * min(1.0, max(0.0, part) / whole)


def window_of(metal: MetalTrace) -> float | None:
    """The time that the process's share of the GPU is taken of, in seconds: its window, else the whole span."""
    if metal.marked:
        return metal.span
    return metal.window if metal.window is not None else metal.span


def idle_of(metal: MetalTrace) -> float | None:
    """Seconds of the window in which the process had nothing on the GPU."""
    window = window_of(metal)
    if window is None or metal.process_busy is None:
        return None
    return max(0.0, window - metal.process_busy)


def doubts(readings: Iterable[Reading]) -> list[str]:
    """What speaks against the readings, as notes, each once."""
    return [f"Doubtful: {doubt}." for doubt in dict.fromkeys(r.doubt for r in readings if r.doubt)]


def missing(metal: MetalTrace, name: str, why: str, fix: str | None) -> Reading:
    """A reading that is not there for a reason of its own."""
    return replace(told(metal, name, None, (), "", otherwise=why), fix=fix)
