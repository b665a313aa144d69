"""Where an Apple GPU's time goes: the process and the device side by side, what gaps waited for, command buffers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from profkit.analysis.summaries.gpu_time import MOST_PARTS, TimeBreakdown, TimePart
from profkit.analysis.summaries.metal_readings import (
    INTERVALS,
    STATES,
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
        rows.append(("Process", _share_cell(metal.process_busy, "busy", window)))
    if metal.device_busy is not None:
        active = f"{_share_cell(metal.device_busy, 'active', span)} for all"
        if metal.window_busy is not None and window is not None and not metal.marked:
            active += f"; {_share_cell(metal.window_busy, '', window)} in the window"
        rows.append(("Device", active))
    if idle is not None:
        gap = f"; longest gap {format_quantity(metal.longest_gap, 's')}" if metal.longest_gap else ""
        rows.append(("Idle", f"{_share_cell(idle, '', window)} without the process{gap}"))
        rows += [
            ("", f"{format_quantity(seconds, 's')}: {_IDLE[cause]}") for cause, seconds in idle_causes(metal)
        ]
    if metal.queue_depth is not None:
        most = f", at most {metal.queue_most}" if metal.queue_most is not None else ""
        until = "" if metal.completion is not None else ", until done on the GPU"
        rows.append(("Queue", f"{format_figures(metal.queue_depth)} command buffers (mean){most}{until}"))
    return Table("Timeline", ("what", "value"), tuple(rows), main=True)


def _share_cell(part: float, what: str, whole: float | None) -> str:
    """`23.0 ms active (4.0 %)`."""
    value = percent_of(part, whole)
    share = f"({format_percent(value)} %)" if value is not None else ""
    return " ".join(word for word in (format_quantity(part, "s"), what, share) if word)


def _buffer_table(metal: MetalTrace) -> Table:
    spreads: tuple[tuple[str, Spread | None], ...] = (
        ("On the GPU", metal.command_buffers),
        ("Submission to start", metal.latency),
        ("Submission to completion", metal.completion),
        ("Completion until the host is notified", metal.notice),
    )
    rows = tuple(
        (
            what,
            str(s.count),
            format_quantity(s.median, "s"),
            format_quantity(s.p95, "s"),
            format_quantity(s.longest, "s"),
        )
        for what, s in spreads
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
    ordered = sorted(metal.processes, key=lambda process: (not process.target, -process.busy))
    rows = tuple(
        (
            shorten(process.name, 34)
            + (f" ({process.pid})" if process.pid is not None else "")
            + ((", profiled" if metal.guessed is None else ", taken for it") if process.target else ""),
            format_quantity(process.busy, "s"),
            str(process.intervals),
        )
        for process in ordered[:TOP_PROCESSES]
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
    if metal.marked:
        notes.append("Only what happened in the marked region is counted.")
    elif metal.process_busy:
        notes.append(
            "No region is marked: all that the process had on the GPU counts, warm-up and first-use compiling"
            " included (profkit.region marks what counts)."
        )
    return notes


def metal_time_breakdowns(trace: MetalTrace) -> tuple[TimeBreakdown, ...]:
    """The process' time, by what it did or waited for, and its GPU time by encoder; empty where neither is told."""
    breakdowns = (
        _process_breakdown(trace),
        work_breakdown("The process' GPU time, by encoder", trace.encoders),
    )
    return tuple(breakdown for breakdown in breakdowns if breakdown is not None and breakdown.parts)


def _process_breakdown(trace: MetalTrace) -> TimeBreakdown | None:
    """The window of the process, else all that was recorded: its work, and what the idle time was."""
    whole, idle = window_of(trace), idle_of(trace)
    if not whole or idle is None or trace.process_busy is None:
        return None
    titles = {
        trace.span: "The time that was recorded",
        trace.window: "From the process' first submission to its last",
    }
    rows = [
        ("the process works on the GPU", trace.process_busy, INTERVALS, "union of its intervals / it all")
    ]
    for cause, seconds in idle_causes(trace):
        rows.append((_IDLE[cause], seconds, INTERVALS, "gaps of which that is known / it all"))
    rest = idle - sum(seconds for _, seconds, _, _ in rows[1:])
    nobody = "nobody works on the GPU" if trace.others is not None else "the process does not"
    rows.append((nobody, rest, STATES, "the rest / it all"))
    parts = tuple(
        TimePart(
            name,
            min(1.0, seconds / whole),
            f"{name}: {format_quantity(seconds, 's')}, {format_percent(100 * seconds / whole)} %",
            place > 0,
            share_reading("Share of the time", 100 * seconds / whole, table, formula),
        )
        for place, (name, seconds, table, formula) in enumerate(rows)
        if seconds > 1e-9 * whole
    )
    return TimeBreakdown("The marked region" if trace.marked else titles[whole], whole, parts)


def work_breakdown(title: str, works: tuple[MetalWork, ...]) -> TimeBreakdown | None:
    """GPU time by encoder, shader or channel: shares of their sum, since some may run side by side.

    None of one alone, and of no time.
    """
    total = sum(work.seconds for work in works)
    if total <= 0 or len(works) < 2:
        return None
    formula = "its time / the time of all of them"
    largest = sorted(works, key=lambda work: -work.seconds)
    parts = [
        TimePart(
            work.name,
            work.seconds / total,
            f"{work.name}: {format_quantity(work.seconds, 's')}, {format_percent(100 * work.seconds / total)} %",
            reading=share_reading("GPU time, share", 100 * work.seconds / total, INTERVALS, formula),
        )
        for work in largest[:MOST_PARTS]
    ]
    rest = sum(work.seconds for work in largest[MOST_PARTS:])
    if rest > 0:
        parts.append(TimePart(f"{len(largest) - MOST_PARTS} smaller ones", rest / total, "smaller ones"))
    return TimeBreakdown(title, total, tuple(parts))


def share_reading(name: str, value: float, table: str, formula: str) -> Reading:
    """A share in % as a reading: it leads to the table that it was computed from, and to how (`formula`, 0..1)."""
    return Reading(name, value, "%", "measured", RUN, Source(TOOL, table, formula=f"100 * {formula}"))
