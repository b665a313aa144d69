"""What a Metal trace says in numbers: how busy the GPU was and for whom, command buffers, the longest encoder."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from profkit.analysis.metrics.catalogue import metric
from profkit.analysis.summaries.readings import unavailable_reading
from profkit.core.types import (
    RUN,
    Fact,
    GpuTrace,
    MetalTrace,
    Quality,
    Reading,
    Source,
)

TOOL = "xctrace"
# The tables of Instruments, by the names that `xctrace export` knows.
STATES, INTERVALS = "metal-gpu-state-intervals", "metal-gpu-intervals"
ENCODERS = "metal-application-encoders-list"
COUNTERS, SAMPLES = "metal-gpu-counter-intervals", "gpu-counter-value"
NOT_IN_TRACE = Fact("not-in-trace")


def metal_reading(
    metal: MetalTrace,
    name: str,
    value: float | None,
    tables: tuple[str, ...],
    formula: str,
    *,
    quality: Quality = "measured",
    remark: Fact | None = None,
    otherwise: Fact = NOT_IN_TRACE,
) -> Reading:
    """The reading of `name` out of `tables`; unavailable, with the reason of the first missing table, for None.

    `remark` is what must be known of a value, `otherwise` the reason where the trace gives none.
    """
    source = Source(TOOL, counter=", ".join(tables), formula=formula)
    if value is None:
        return unavailable_reading(name, RUN, *explain_absence(metal, tables, otherwise), source)
    return Reading(name, value, metric(name).unit, quality, RUN, source, remark)


def explain_absence(
    metal: MetalTrace, tables: tuple[str, ...], otherwise: Fact = NOT_IN_TRACE
) -> tuple[Fact, str | None]:
    """Why the trace has none of what these tables tell, and the way to get it."""
    for table in tables:
        for absent in metal.absent:
            if absent.what == table:  # by its name: of two that are missing each has a fix of its own
                return absent.reason, absent.fix
    return otherwise, None


def percent_of(part: float | None, whole: float | None) -> float | None:
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


IdleCause = Literal["unsubmitted", "blocked", "queued", "others"]


def idle_causes(metal: MetalTrace) -> list[tuple[IdleCause, float]]:
    """What the idle time of the window was, in seconds, largest first; only what the trace can tell apart."""
    idle = idle_of(metal)
    if idle is None:
        return []
    parts: list[tuple[IdleCause, float]] = []
    if metal.unsubmitted is not None:
        parts.append(("unsubmitted", min(idle, metal.unsubmitted)))
        if metal.blocked is not None:
            parts.append(("blocked", min(idle, metal.blocked)))
        rest = idle - sum(seconds for _, seconds in parts)
        parts.append(("queued", max(0.0, rest)))
    elif metal.others is not None:
        parts.append(("others", min(idle, metal.others)))
    return sorted((part for part in parts if part[1] > 0), key=lambda part: -part[1])


def missing_reading(metal: MetalTrace, name: str, why: Fact, fix: str | None) -> Reading:
    """A reading that is not there for a reason of its own."""
    return replace(metal_reading(metal, name, None, (), "", otherwise=why), fix=fix)


NOTHING_RAN = Fact("nothing-on-gpu")


def metal_trace_readings(metal: MetalTrace, trace: GpuTrace | None = None) -> tuple[Reading, ...]:
    """All readings of the time line, for the run; times in s, shares in %.

    gpu.utilization is the union of the intervals of the process over its window.
    """
    return (
        *_add_doubts(metal, [*_busy_readings(metal, trace), longest_work_reading(metal)]),
        metal_reading(metal, "buffer.count", metal.buffers, (INTERVALS,), "command buffers of the process"),
    )


def _busy_readings(metal: MetalTrace, trace: GpuTrace | None) -> list[Reading]:
    window, busy, idle = window_of(metal), metal.process_busy, idle_of(metal)
    waiting = metal.blocked if metal.blocked is not None else metal.others
    most = None if busy is None or waiting is None else busy + waiting
    starved = percent_of(metal.unsubmitted, idle)
    if starved is None and trace is not None and trace.starved is not None and idle:
        starved = 100 * trace.starved
    encoders = sum(work.seconds for work in metal.encoders) if metal.encoders else None
    where = "region" if metal.marked else "window of the process"
    together = "100 * (union of the process + time in which others had the GPU instead) / window"
    own = (INTERVALS,)
    rows: list[tuple[str, float | None, tuple[str, ...], str]] = [
        ("gpu.utilization", percent_of(busy, window), own, f"100 * union of the process / {where}"),
        ("gpu.utilization.alone", percent_of(most, window), own, together),
        ("gpu.window", window, own, where),
        ("time.gpu", encoders, (ENCODERS, INTERVALS), "sum of all encoders' times"),
        ("time.gpu.idle", idle, own, "window - union of the process"),
        ("gpu.starved", starved, (INTERVALS,),
         "100 * idle time in which the host had submitted nothing / idle time"),
    ]  # fmt: skip
    if metal.marked:
        rows.append(("gpu.entries", float(metal.entries), own, "entries of the marked region"))
    otherwise = {
        "gpu.utilization": NOTHING_RAN if busy == 0 else Fact("no-own-intervals"),
        "gpu.starved": Fact("not-idle" if idle == 0 else "no-submissions"),
    }
    return [metal_reading(metal, *row, otherwise=otherwise.get(row[0], NOT_IN_TRACE)) for row in rows]


def _add_doubts(metal: MetalTrace, readings: list[Reading]) -> list[Reading]:
    """The readings, doubted where it is a guess whose work counts, or the marked region was not found."""
    doubt = metal.lost
    if metal.guessed is not None:
        doubt = Fact.of("guessed-process", metal.guessed)
    if doubt is None:
        return readings
    return [
        replace(r, doubt=doubt) if r.metric != "gpu.window" and r.value is not None else r for r in readings
    ]


def longest_work_reading(metal: MetalTrace) -> Reading:
    """gpu.longest: the share of the GPU time in one encoder; which one stands in its remark."""
    works = metal.encoders
    total = sum(work.seconds for work in works)
    top = max(works, key=lambda work: work.seconds, default=None) if total > 0 else None
    return metal_reading(
        metal,
        "gpu.longest",
        100 * (top.seconds / total) if top is not None else None,
        (ENCODERS, INTERVALS),
        "100 * its time / the time of all of them",
        remark=Fact.of("work", kind="encoder", name=top.name) if top is not None else None,
        otherwise=NOTHING_RAN,
    )
