"""An Apple GPU in words: where its time goes, encoders, occupancy, bandwidth, and what slowed it down."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from profkit.analysis.summaries.metal import chip_specification, known_counters
from profkit.analysis.summaries.metal_readings import (
    INTERVALS,
    TOOL,
    IdleCause,
    idle_causes,
    idle_of,
    percent_of,
    window_of,
)
from profkit.core.formatting import format_figures, format_percent, format_quantity, plural, shorten
from profkit.core.types import (
    RUN,
    MetalCounter,
    MetalState,
    MetalTrace,
    Reading,
    Source,
    Spread,
)
from profkit.reporting.facts import (
    fact_text,
    note_text,
)
from profkit.reporting.plain_text import reading_span
from profkit.reporting.view import DataTable, Text
from profkit.reporting.views.summaries.parts import (
    NOTHING,
    TOP_ROWS,
    ConcernFacts,
    SummaryText,
    absence_notes,
    doubt_notes,
    named_table,
    readings_text,
    remarks,
    share_text,
    summary_text,
    unknown_text,
)

_LARGE = 10.0  # % of the window: below, naming the largest part of the idle time explains nothing
_MOST_PROCESSES, _MOST_COUNTERS = 6, 40  # in a table: an M1 has 32 counters, later chips 86 and more
IDLE: dict[IdleCause, str] = {
    "unsubmitted": "the host had submitted nothing",
    "blocked": "others had the GPU, with work queued",
    "queued": "work was submitted and had not begun",
    "others": "others had the GPU",
}


# ---------------------------------------------------------------- time


def metal_gpu_text(facts: ConcernFacts) -> SummaryText:
    """How busy the GPU was for the process and for all; what it waited for; command buffers; who else had it."""
    metal = facts.document.metal
    if metal is None:
        return unknown_text("gpu", "Where the GPU's time goes is", facts.readings)
    notes = doubt_notes(facts.readings)
    if metal.marked:
        notes.append("Only what happened in the marked region is counted.")
    elif metal.process_busy:
        notes.append(
            "No region is marked: all that the process had on the GPU counts, warm-up and first-use compiling"
            " included (profkit.region marks what counts)."
        )
    notes += absence_notes(facts.readings)
    timeline = named_table("Timeline", ("what", "value"), list(_timeline_rows(metal)), words=("value",))
    tables = [timeline, _buffer_table(metal), _process_table(metal)]
    return summary_text("gpu", _gpu_headline(metal), facts.readings, tables, notes)


def _gpu_headline(metal: MetalTrace) -> str:
    window, whole = window_of(metal), percent_of(metal.device_busy, metal.span)
    device = ""
    if whole is not None:
        of = "" if metal.span == window else f" of {format_quantity(metal.span, 's')}"
        device = f"the whole device {format_percent(whole)} %{of}"
    if metal.process_busy is None or not window:
        return f"What the process had of the GPU is not known{f'; {device}' if device else ''}."
    if metal.process_busy == 0:
        return f"The process had nothing on the GPU in {format_quantity(window, 's')}{f'; {device}' if device else ''}."
    share = format_percent(percent_of(metal.process_busy, window) or 0.0)
    busy = f"The process keeps the GPU busy {share} % of {format_quantity(window, 's')}"
    if (
        metal.window_busy is not None and not metal.marked
    ):  # of the same time: only then the two can be compared
        busy += f" (the whole device {format_percent(percent_of(metal.window_busy, window) or 0.0)} %)"
    elif device:
        busy += f" ({device})"
    causes = idle_causes(metal)
    part = percent_of(causes[0][1], window) or 0.0 if causes else 0.0
    if part < _LARGE:
        return f"{busy}."
    cause = causes[0][0]
    idle = f"{format_percent(part)} % of the time {IDLE[cause]}"
    if cause == "unsubmitted":
        return f"{busy}. It is host-bound: {idle}."
    alone = ", one command buffer at a time" if metal.queue_most == 1 and cause == "queued" else ""
    return f"{busy}. {idle}{alone}."


def _timeline_rows(metal: MetalTrace) -> Iterator[tuple[str, str]]:
    span, window, idle = metal.span, window_of(metal), idle_of(metal)
    if span is not None:
        yield "Traced", format_quantity(span, "s") + (", the marked region" if metal.marked else "")
    if window is not None and metal.window is not None and not metal.marked:
        yield "Window", f"{format_quantity(window, 's')}, from the first work of the process to its last"
    if metal.process_busy is not None:
        yield "Process", f"{_part_text(metal.process_busy, window)} busy"
    if metal.device_busy is not None:
        yield "Device", f"{_part_text(metal.device_busy, span)} active for all"
    if idle is not None:
        gap = f"; longest gap {format_quantity(metal.longest_gap, 's')}" if metal.longest_gap else ""
        yield "Idle", f"{_part_text(idle, window)} without the process{gap}"
        for cause, seconds in idle_causes(metal):
            yield "", f"{format_quantity(seconds, 's')}: {IDLE[cause]}"
    if metal.queue_depth is not None:
        most = f", at most {metal.queue_most}" if metal.queue_most is not None else ""
        yield "Queue", f"{format_figures(metal.queue_depth)} command buffers (mean){most}"


def _part_text(part: float, whole: float | None) -> str:
    """`23.0 ms (4.0 %)`."""
    value = percent_of(part, whole)
    return format_quantity(part, "s") + (f" ({format_percent(value)} %)" if value is not None else "")


def _buffer_table(metal: MetalTrace) -> DataTable:
    spreads: tuple[tuple[str, Spread | None], ...] = (
        ("On the GPU", metal.command_buffers),
        ("Submission to start", metal.latency),
        ("Submission to completion", metal.completion),
    )
    rows = [
        (what, str(s.count), *(format_quantity(value, "s") for value in (s.median, s.p95, s.longest)))
        for what, s in spreads
        if s is not None and s.count
    ]
    return named_table("Command buffers and queue", ("what", "count", "median", "p95", "longest"), rows)


def _process_table(metal: MetalTrace) -> DataTable | None:
    """Who had the GPU; left out where the process was alone."""
    if len(metal.processes) < 2:
        return None
    ordered = sorted(metal.processes, key=lambda process: (not process.target, -process.busy))
    rows = [
        (shorten(one.name, 34), format_quantity(one.busy, "s"), str(one.intervals))
        for one in ordered[:_MOST_PROCESSES]
    ]
    return named_table("Processes on the GPU, the profiled one first", ("process", "time", "intervals"), rows)


# ---------------------------------------------------------------- encoders


def encoders_text(facts: ConcernFacts) -> SummaryText | None:
    """Time by encoder label; None where the process had nothing on the GPU."""
    metal = facts.document.metal
    works = metal.encoders if metal is not None else ()
    if not works:
        return None
    ordered = sorted(works, key=lambda work: -work.seconds)
    total = sum(work.seconds for work in works)
    source = Source(TOOL, INTERVALS, formula="100 * its time / the time of all of them")
    share = Reading("GPU time, share", 0.0, "%", "measured", RUN, source)
    rows = [
        (
            shorten(work.name, 34) or "(no label)",
            str(work.count),
            format_quantity(work.seconds, "s"),
            reading_span(share, share_text(work.seconds, total)),
            format_quantity(work.median, "s"),
            format_quantity(work.longest, "s"),
        )
        for work in ordered[:TOP_ROWS]
    ]
    rest = ordered[TOP_ROWS:]
    left = share_text(sum(work.seconds for work in rest), total)
    note = f"and {plural(len(rest), 'further encoder')}, {left} of the time" if rest else ""
    table = named_table(
        "Encoders by GPU time", ("encoder", "count", "total", "share", "median", "longest"), rows, note
    )
    of = f"{share_text(ordered[0].seconds, total)} of {format_quantity(total, 's')}"
    pieces = plural(sum(work.count for work in works), "encoder")
    headline = f"{shorten(ordered[0].name, 48)} takes {of} in {pieces}."
    return summary_text("encoders", headline, (), [table], ())


# ---------------------------------------------------------------- counters and states


def metal_counted_text(concern: str, facts: ConcernFacts) -> SummaryText:
    """How full the GPU was and how near to its limits; or what it moved."""
    metal, readings = facts.document.metal, list(facts.readings)
    full = concern == "occupancy"
    title = "Occupancy and limits, while the process had work on the GPU" if full else "GPU bandwidth"
    what = "Threadgroup occupancy" if full else "What the GPU moves"
    if metal is None:
        return readings_text(concern, title, readings, what=what)
    wanted = ("bandwidth.gpu", "bandwidth.gpu.share")
    if not full:
        readings = [r for r in readings if r.value is not None or r.metric in wanted]
    notes = remarks(readings)
    chip = chip_specification(facts.document, metal)
    if full and metal.counters:
        notes.append(
            "Counters speak of the whole device: what other programs did on the GPU then is in them."
        )
    elif chip.bandwidth is not None:
        notes.append(f"Specification of {chip.name}: {format_quantity(chip.bandwidth, 'B/s')}.")
    tables = [_counter_table(metal)] if full else []
    return readings_text(concern, title, readings, tables, notes, what)


def _counter_table(metal: MetalTrace) -> DataTable:
    known = known_counters(metal)
    rows: list[tuple[Text, ...]] = [
        (
            shorten(counter.name, 32),
            reading_span(_counted(counter), _number_cell(counter.active, counter.unit)),
            *(_number_cell(value, counter.unit) for value in (counter.mean, counter.least, counter.most)),
            str(counter.samples),
        )
        for counter in known[:_MOST_COUNTERS]
    ]
    rest = len(known) - _MOST_COUNTERS
    covered = [counter.covered for counter in known if counter.covered is not None]
    notes = [f"and {rest} further counters in run.json"] if rest > 0 else []
    notes += [f"samples cover {format_percent(100 * min(covered))} % of the time or more"] if covered else []
    titles = ("counter", "at work", "mean", "least", "most", "samples")
    return named_table("All counters, of the whole device", titles, rows, "; ".join(notes))


def _counted(counter: MetalCounter) -> Reading:
    """The mean while the process had work on the GPU, with its source."""
    formula = "mean by sample duration, while the process worked on the GPU"
    source = Source(TOOL, counter.name, formula=formula)
    return Reading(counter.name, counter.active or 0.0, counter.unit, "measured", RUN, source)


def _number_cell(value: float | None, unit: str) -> str:
    return NOTHING if value is None else format_quantity(value, unit) if unit else format_figures(value)


def metal_state_text(facts: ConcernFacts) -> SummaryText:
    """Performance and thermal states with how long each was held."""
    metal, slowed = facts.document.metal, facts.readings[0]
    if metal is None or slowed.value is None:
        headline = f"Whether heat or power slowed the GPU down is not known: {fact_text(slowed.reason)}."
    elif slowed.value == 0 and metal.thermal:
        headline = "Nothing slowed the GPU down."
    else:
        headline = note_text(slowed.reason)
    if metal is None:
        return summary_text("state", headline, facts.readings, (), absence_notes(facts.readings))
    tables = [
        _state_table("Performance states of the GPU", metal.performance),
        _state_table("Thermal states", metal.thermal),
    ]
    return summary_text("state", headline, facts.readings, tables, absence_notes(facts.readings))


def _state_table(title: str, states: Sequence[MetalState]) -> DataTable:
    total = sum(state.seconds for state in states)
    rows = [
        (
            state.name,
            format_quantity(state.seconds, "s"),
            share_text(state.seconds, total),
            format_quantity(state.busy, "s") if state.busy is not None else NOTHING,
        )
        for state in states
        if state.seconds > 0
    ]
    return named_table(title, ("state", "time", "share", "at work"), rows)
