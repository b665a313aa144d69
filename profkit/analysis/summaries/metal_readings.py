"""What a Metal trace says in numbers: how busy the GPU was and for whom, queue, command buffers, frames, state."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from profkit.analysis.comparability import holds_down
from profkit.analysis.metrics import metric
from profkit.analysis.summaries.readings import unavailable_reading
from profkit.core.types import (
    RUN,
    Fact,
    GpuTrace,
    MetalTrace,
    Quality,
    Reading,
    Source,
    together,
)

TOOL = "xctrace"
# The tables of Instruments, by the names that `xctrace export` knows.
STATES, INTERVALS = "metal-gpu-state-intervals", "metal-gpu-intervals"
ENCODERS = "metal-application-encoders-list"
COMPLETED = "metal-command-buffer-completed"
COUNTERS, SAMPLES = "metal-gpu-counter-intervals", "gpu-counter-value"
PERFORMANCE, THERMAL = "gpu-performance-state-intervals", "device-thermal-state-intervals"
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


LOWEST = "minimum"  # the name of the lowest performance state, lower case
DECIDES = 10.0  # %, as of the target: what one of two tables tells is enough to say that it was slowed down


def slowed_reading(metal: MetalTrace) -> Reading:
    """gpu.slowed: the larger one of the shares of its lowest performance state and of thermal states but Nominal.

    A GPU without work rests in its lowest state; so the time in which the process had work there counts, where the
    trace tells it. A recording that asked for that state slows it down all the time. Without
    performance states nobody knows that nothing slowed it down: a cool GPU may have been in its lowest one.
    """
    induced = (metal.induced or "").strip().lower() == LOWEST
    causes = [(100.0, Fact.of("induced-state", state=metal.induced or ""))] if induced else []
    at_work = all(state.busy is not None for state in metal.performance)
    clocks = [(s.name.strip().lower(), (s.busy or 0.0) if at_work else s.seconds) for s in metal.performance]
    whole = sum(seconds for _, seconds in clocks)
    low = percent_of(sum(seconds for name, seconds in clocks if name == LOWEST), whole)
    if low:
        causes.append((low, Fact.of("lowest-at-work" if at_work else "lowest-state", value=low)))
    hot = [state for state in metal.thermal if holds_down(state.name) and state.seconds > 0]
    part = percent_of(sum(s.seconds for s in hot), sum(s.seconds for s in metal.thermal))
    if hot and part is not None:
        names = " and ".join(state.name for state in hot[:2])
        causes.append((part, Fact.of("thermal-states", states=names, value=part)))
    causes.sort(key=lambda cause: -cause[0])
    most = causes[0][0] if causes else 0.0
    untold = Fact("no-performance-states" if metal.thermal else "no-states")
    if metal.performance:
        untold = Fact("no-state-at-work")
    nothing = Fact("not-slowed" if metal.thermal else "not-slowed-by-clock")
    return metal_reading(
        metal,
        "gpu.slowed",
        most if induced or whole > 0 or most > DECIDES else None,
        (PERFORMANCE,) if metal.thermal else (PERFORMANCE, THERMAL),
        "the larger share: lowest performance state, thermal state other than Nominal",
        remark=together(*(fact for _, fact in causes)) or nothing,
        otherwise=untold,
    )


# the two tables are told by different parts of the system; in 37 recordings of an M1 none came near
SLACK = 0.05
CLOCKS = 1e-4  # seconds; ends of intervals
NOTHING_RAN = Fact("nothing-on-gpu")


def metal_trace_readings(metal: MetalTrace, trace: GpuTrace | None = None) -> tuple[Reading, ...]:
    """All readings of the time line, for the run; times in s, shares in %.

    gpu.utilization is the union of the intervals of the process over its window, gpu.utilization.device the union
    of the device's Active intervals over the whole part that counts, whoever caused them.
    """
    return (
        *_add_warnings(metal, [*_busy_readings(metal, trace), longest_work_reading(metal)]),
        *_queue_readings(metal),
        slowed_reading(metal),
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
        ("gpu.utilization.device", percent_of(metal.device_busy, metal.span), *_device_source(metal)),
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


def _device_source(metal: MetalTrace) -> tuple[tuple[str, ...], str]:
    """What the device's own time was taken from: where its states are not told, from everybody's intervals."""
    if metal.device_busy is not None and any(absent.what == STATES for absent in metal.absent):
        return (INTERVALS,), "100 * union of the intervals of all processes / span"
    return (STATES,), "100 * union of Active / span"


def _add_warnings(metal: MetalTrace, readings: list[Reading]) -> list[Reading]:
    """The readings, with what contradicts them: a process cannot work for longer than its device is active.

    Where it is a guess whose work counts, nothing that is said of it is said of the program that was profiled; nor of
    the region, where that was marked and not found.
    """
    doubt = Fact.message(metal.lost) if metal.lost is not None else None
    if metal.guessed is not None:
        doubt = Fact.of("guessed-process", said=metal.guessed)
    if doubt is not None:
        of_device = ("gpu.utilization.device", "gpu.window")
        return [
            replace(r, doubt=doubt) if r.metric not in of_device and r.value is not None else r
            for r in readings
        ]
    device, busy = metal.device_busy if metal.marked else metal.window_busy, metal.process_busy
    if device is None or busy is None or busy <= device * (1 + SLACK) + CLOCKS:
        return readings
    doubt = Fact.of("busier-than-device", busy=busy, device=device, tables=f"{INTERVALS} and {STATES}")
    names = ("gpu.utilization", "gpu.utilization.device", "gpu.utilization.alone", "time.gpu.idle")
    return [replace(r, doubt=doubt) if r.metric in names and r.value is not None else r for r in readings]


def _queue_readings(metal: MetalTrace) -> list[Reading]:
    buffers = metal.command_buffers
    own = (INTERVALS,)
    # What is not told to be completed cannot be counted as queued.
    most = metal.queue_most if metal.completion is not None else None
    count, median = (None, None) if buffers is None else (float(buffers.count), buffers.median)
    rows: list[tuple[str, float | None, tuple[str, ...], str]] = [
        ("queue.most", None if most is None else float(most), (INTERVALS, COMPLETED),
         "largest number of submitted and not completed"),
        ("buffer.count", count, own, "command buffers of the process"),
        ("buffer.time", median if count else None, own, "median of the union of each one's intervals"),
    ]  # fmt: skip
    return [metal_reading(metal, *row) for row in rows]


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
