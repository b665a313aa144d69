"""Where an Apple GPU's time goes: the process and the device side by side, what gaps waited for, command buffers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from profkit.analysis.summaries.gpu_time import MOST_PARTS, TimeBreakdown, TimePart
from profkit.analysis.summaries.metal_readings import (
    INTERVALS,
    STATES,
    SUBMITTED,
    TOOL,
    idle_of,
    percent_of,
    warning_notes,
    window_of,
)
from profkit.analysis.summaries.readings import absence_notes
from profkit.core.formatting import format_figures, format_percent, format_quantity, plural, shorten
from profkit.core.types import (
    RUN,
    MetalTrace,
    MetalWork,
    Reading,
    Source,
    Spread,
    Summary,
    Table,
)

BUFFERS, PROCESSES = "Command buffers and queue", "Processes on the GPU"
LARGE = 10.0  # % of the window: below, naming the largest part of the idle time explains nothing
APART = 1.0  # points; the device beyond the process by less is a matter of two tables' clocks
TOP_PROCESSES = 6  # processes in a table


def summarize_metal_gpu(metal: MetalTrace, readings: Sequence[Reading]) -> Summary:
    """How busy the GPU was for the process and for all; what it waited for; command buffers; who else had it."""
    tables = [_timeline_table(metal), _buffer_table(metal), _process_table(metal)]
    return Summary(
        "gpu",
        _metal_headline(metal),
        tuple(readings),
        tuple(table for table in tables if table.rows),
        (*warning_notes(readings), *_metal_notes(metal), *absence_notes(readings)),
    )


IdleCause = Literal["unsubmitted", "blocked", "queued", "others"]
_IDLE: dict[IdleCause, str] = {
    "unsubmitted": "the host had submitted nothing",
    "blocked": "others had the GPU, with work queued",
    "queued": "work was submitted and had not begun",
    "others": "others had the GPU",
}


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


def _metal_headline(metal: MetalTrace) -> str:
    window, whole = window_of(metal), percent_of(metal.device_busy, metal.span)
    device = ""
    if whole is not None:
        device = (
            f"the whole device was active for {format_percent(whole)} % of {format_quantity(metal.span, 's')}"
        )
    if metal.process_busy is None or not window:
        if device:
            return f"What the process had of the GPU is not known; {device}."
        return "How busy the GPU was is not in the trace."
    if metal.process_busy == 0:
        also = f"; {device}, for others" if device else ""
        return f"The process had nothing on the GPU in {format_quantity(window, 's')}{also}."
    busy = (
        f"The process keeps the GPU busy {format_percent(percent_of(metal.process_busy, window) or 0.0)} % of"
    )
    busy += f" {format_quantity(window, 's')}" + _device_text(metal, window)
    causes = idle_causes(metal)
    part = percent_of(causes[0][1], window) or 0.0 if causes else 0.0
    if part < LARGE:
        return f"{busy}."
    cause = causes[0][0]
    idle = f"{format_percent(part)} % of the time {_IDLE[cause]}"
    if cause == "unsubmitted":
        return f"{busy}. It is host-bound: {idle}."
    alone = ", one command buffer at a time" if metal.queue_most == 1 and cause == "queued" else ""
    return f"{busy}. {idle}{alone}."


def _device_text(metal: MetalTrace, window: float) -> str:
    """What the whole device was active, of the same time where that is known: only then the two can be compared."""
    if metal.window_busy is not None and not metal.marked:
        return f" (the whole device {format_percent(percent_of(metal.window_busy, window) or 0.0)} %)"
    whole = percent_of(metal.device_busy, metal.span)
    if whole is None:
        return ""
    same = metal.span is not None and abs(metal.span - window) <= 1e-9 * window
    return f" (the whole device {format_percent(whole)} %" + (
        ")" if same else f" of {format_quantity(metal.span, 's')})"
    )


def _timeline_table(metal: MetalTrace) -> Table:
    rows: list[tuple[str, str]] = []
    span, window, idle = metal.span, window_of(metal), idle_of(metal)
    if span is not None:
        rows.append(("Traced", format_quantity(span, "s") + (", the marked region" if metal.marked else "")))
    if window is not None and metal.window is not None and not metal.marked:
        rows.append(
            ("Window", f"{format_quantity(window, 's')}, from the first work of the process to its last")
        )
    if metal.process_busy is not None:
        rows.append(
            (
                "Process",
                f"{format_quantity(metal.process_busy, 's')} busy{_bracketed_share(metal.process_busy, window)}",
            )
        )
    if metal.device_busy is not None:
        inside = ""
        if metal.window_busy is not None and window is not None and not metal.marked:
            inside = (
                f"; {format_quantity(metal.window_busy, 's')}{_bracketed_share(metal.window_busy, window)} "
                f"in the window"
            )
        active = f"{format_quantity(metal.device_busy, 's')} active{_bracketed_share(metal.device_busy, span)} for all"
        rows.append(("Device", active + inside))
    if idle is not None:
        gap = f"; longest gap {format_quantity(metal.longest_gap, 's')}" if metal.longest_gap else ""
        rows.append(
            ("Idle", f"{format_quantity(idle, 's')}{_bracketed_share(idle, window)} without the process{gap}")
        )
        rows += [
            ("", f"{format_quantity(seconds, 's')}: {_IDLE[cause]}") for cause, seconds in idle_causes(metal)
        ]
    if metal.queue_depth is not None:
        most = f", at most {metal.queue_most}" if metal.queue_most is not None else ""
        until = "" if metal.completion is not None else ", until done on the GPU"
        rows.append(("Queue", f"{format_figures(metal.queue_depth)} command buffers (mean){most}{until}"))
    if metal.compiled:
        rows.append(
            ("Compiling", f"{format_quantity(metal.compiled, 's')} of Metal's compiler for the process")
        )
    return Table("Timeline", ("what", "value"), tuple(rows), main=True)


def _bracketed_share(part: float, whole: float | None) -> str:
    value = percent_of(part, whole)
    return f" ({format_percent(value)} %)" if value is not None else ""


def _buffer_table(metal: MetalTrace) -> Table:
    told: tuple[tuple[str, Spread | None], ...] = (
        ("On the GPU", metal.command_buffers),
        ("Submission to start", metal.latency),
        ("Submission to completion", metal.completion),
        ("Completion until the host is notified", metal.notice),
        ("Frame to frame", metal.frames),
    )
    rows = tuple(
        (
            what,
            str(s.count),
            format_quantity(s.median, "s"),
            format_quantity(s.p95, "s"),
            format_quantity(s.longest, "s"),
        )
        for what, s in told
        if s is not None and s.count
    )
    note = (
        "submission to start is how long the queue was: the host need not wait for it"
        if metal.latency
        else None
    )
    return Table(BUFFERS, ("what", "count", "median", "p95", "longest"), rows, note)


def _process_table(metal: MetalTrace) -> Table:
    """Who had the GPU; left out where the process was alone."""
    if len(metal.processes) < 2:
        return Table(PROCESSES, ("process", "time", "intervals"), ())
    ordered = sorted(metal.processes, key=lambda one: (not one.target, -one.busy))
    rows = tuple(
        (
            shorten(one.name, 34)
            + (f" ({one.pid})" if one.pid is not None else "")
            + ((", profiled" if metal.guessed is None else ", taken for it") if one.target else ""),
            format_quantity(one.busy, "s"),
            str(one.intervals),
        )
        for one in ordered[:TOP_PROCESSES]
    )
    rest = ordered[TOP_PROCESSES:]
    note = f"and {plural(len(rest), 'further process', 'further processes')}" if rest else None
    return Table(PROCESSES, ("process", "time", "intervals"), rows, note)


def _metal_notes(metal: MetalTrace) -> list[str]:
    notes: list[str] = []
    whole, own = percent_of(metal.device_busy, metal.span), percent_of(metal.process_busy, metal.span)
    if whole is not None and own is not None and whole - own > APART:
        notes.append(
            f"The device's utilization is not the program's: {format_percent(own)} of its "
            f"{format_percent(whole)} % of the traced"
            " time are of the process, the rest is the screen's and other programs'."
        )
    if metal.failed:
        notes.append(f"{plural(metal.failed, 'command buffer')} ended with an error, whoever submitted them.")
    if len(metal.devices) > 1 and metal.device is not None:
        others = ", ".join(one.name for one in metal.devices if one.name != metal.device)
        notes.append(
            f"All of this is of {metal.device}, which the process used most; seen besides: {others}."
        )
    if metal.marked:
        notes.append("Only what happened in the marked region is counted.")
    elif metal.process_busy:
        notes.append(
            "No region is marked: all that the process had on the GPU counts, warm-up and first-use compiling"
            " included (profkit.region marks what counts)."
        )
    return notes


HOST = "the host had submitted nothing"
WAITING = "submitted, and not begun"
OTHERS = "others had the GPU"


def metal_time_breakdowns(trace: MetalTrace) -> tuple[TimeBreakdown, ...]:
    """The process' time, by what it did or waited for, and its GPU time by encoder; empty where neither is told."""
    found = (
        _window_breakdown(trace) or _span_breakdown(trace),
        work_breakdown("The process' GPU time, by encoder", trace.encoders),
    )
    return tuple(whole for whole in found if whole is not None and whole.parts)


def _window_breakdown(trace: MetalTrace) -> TimeBreakdown | None:
    """From the first submission of the process to its last; None where it is not known what the gaps waited for."""
    whole, busy = trace.window, trace.process_busy
    if not whole or busy is None or trace.unsubmitted is None:
        return None
    rest = max(0.0, whole - busy - trace.unsubmitted - (trace.blocked or 0.0))
    told = (
        ("the process works on the GPU", busy, False, INTERVALS, "union of its intervals / window"),
        (HOST, trace.unsubmitted, True, SUBMITTED, "gaps in which nothing was submitted / window"),
        (OTHERS, trace.blocked or 0.0, True, INTERVALS, "gaps with work submitted, others on it / window"),
        (WAITING, rest, True, SUBMITTED, "the rest of the gaps / window"),
    )
    return _breakdown("From the process' first submission to its last", whole, told)


def _span_breakdown(trace: MetalTrace) -> TimeBreakdown | None:
    """All that was recorded, where no window is known: who had the GPU."""
    whole, busy = trace.span, trace.process_busy
    if not whole or busy is None:
        return None
    others = trace.others
    if others is None and trace.device_busy is not None:
        others = max(0.0, trace.device_busy - busy)
    told = [("the process works on the GPU", busy, False, INTERVALS, "union of its intervals / span")]
    if others is not None:
        told.append((OTHERS, others, True, STATES, "busy without the process / span"))
        told.append(
            ("nobody works on the GPU", max(0.0, whole - busy - others), True, STATES, "the rest / span")
        )
    else:
        told.append(("the process does not", max(0.0, whole - busy), True, INTERVALS, "the rest / span"))
    return _breakdown("The time that was recorded", whole, told)


def _breakdown(
    title: str,
    seconds: float,
    told: tuple[tuple[str, float, bool, str, str], ...] | list[tuple[str, float, bool, str, str]],
) -> TimeBreakdown:
    parts = tuple(
        TimePart(
            name,
            min(1.0, part / seconds),
            f"{name}: {format_quantity(part, 's')}, {format_percent(100 * part / seconds)} %",
            idle,
            share_reading("Share of the time", 100 * part / seconds, table, formula),
        )
        for name, part, idle, table, formula in told
        if part > 0
    )
    return TimeBreakdown(title, seconds, parts)


def work_breakdown(title: str, found: tuple[MetalWork, ...]) -> TimeBreakdown | None:
    """GPU time by encoder, shader or channel: shares of their sum, since some may run side by side.

    None of one alone, and of no time.
    """
    total = sum(one.seconds for one in found)
    if total <= 0 or len(found) < 2:
        return None
    formula = "its time / the time of all of them"
    largest = sorted(found, key=lambda one: -one.seconds)
    parts = [
        TimePart(
            one.name,
            one.seconds / total,
            f"{one.name}: {format_quantity(one.seconds, 's')}, {format_percent(100 * one.seconds / total)} %",
            reading=share_reading("GPU time, share", 100 * one.seconds / total, INTERVALS, formula),
        )
        for one in largest[:MOST_PARTS]
    ]
    rest = sum(one.seconds for one in largest[MOST_PARTS:])
    if rest > 0:
        parts.append(TimePart(f"{len(largest) - MOST_PARTS} smaller ones", rest / total, "smaller ones"))
    return TimeBreakdown(title, total, tuple(parts))


def share_reading(name: str, value: float, table: str, formula: str) -> Reading:
    """A share in % as a reading: it leads to the table that it was computed from, and to how."""
    return Reading(name, value, "%", "measured", RUN, Source(TOOL, table, formula=formula))
