"""An Apple GPU in words: where its time goes, occupancy, bandwidth, and what slowed it down."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from profkit.analysis.summaries.metal_counters import (
    BEYOND,
    DILUTED_FORMULA,
    FROM_CACHE,
    OF_PEAK,
    UNCHECKED,
    ChipSpecification,
    chip_specification,
    known_counters,
)
from profkit.analysis.summaries.metal_readings import (
    TOOL,
    IdleCause,
    idle_causes,
    idle_of,
    percent_of,
    window_of,
)
from profkit.core.formatting import format_figures, format_percent, format_quantity, plural, shorten
from profkit.core.types import RUN, MetalCounter, MetalState, MetalTrace, Reading, Source, Spread
from profkit.reporting.footnotes import reading_span
from profkit.reporting.view import DataTable, Text
from profkit.reporting.views.summaries.parts import (
    NOTHING,
    ConcernFacts,
    SummaryText,
    absence_notes,
    capitalized,
    metric_table,
    named_table,
    summary_text,
    unknown_text,
)

LARGE = 10.0  # % of the window: below, naming the largest part of the idle time explains nothing
APART = 1.0  # points; the device beyond the process by less is a matter of two tables' clocks
TOP_PROCESSES = 6  # processes in a table
TIMELINE, BUFFERS = "Timeline", "Command buffers and queue"
IDLE: dict[IdleCause, str] = {
    "unsubmitted": "the host had submitted nothing",
    "blocked": "others had the GPU, with work queued",
    "queued": "work was submitted and had not begun",
    "others": "others had the GPU",
}


def _doubts(readings: Iterable[Reading]) -> list[str]:
    """What speaks against the readings, as notes, each once."""
    return [f"Doubtful: {doubt}." for doubt in dict.fromkeys(r.doubt for r in readings if r.doubt)]


def _absences(metal: MetalTrace | None, readings: Sequence[Reading]) -> tuple[str, ...]:
    """Why readings are not there; of one exported table alone it goes without saying."""
    return () if metal is not None and metal.alone else absence_notes(readings)


# ---------------------------------------------------------------- time


def metal_gpu_text(facts: ConcernFacts) -> SummaryText:
    """How busy the GPU was for the process and for all; what it waited for; command buffers; who else had it."""
    metal, readings = facts.document.metal, facts.readings
    if metal is None:
        return unknown_text("gpu", "Where the GPU's time goes is", readings)
    timeline = named_table(TIMELINE, ("what", "value"), list(_timeline_rows(metal)), words=("value",))
    return summary_text(
        "gpu",
        _gpu_headline(metal),
        readings,
        [timeline, _buffer_table(metal), _process_table(metal)],
        (*_doubts(readings), *_gpu_notes(metal), *_absences(metal, readings)),
        brief=(TIMELINE,),
    )


def _gpu_headline(metal: MetalTrace) -> str:
    window, whole = window_of(metal), percent_of(metal.device_busy, metal.span)
    device = ""
    if whole is not None:
        active = f"{format_percent(whole)} % of {format_quantity(metal.span, 's')}"
        device = f"the whole device was active for {active}"
    if metal.process_busy is None or not window:
        if device:
            return f"What the process had of the GPU is not known; {device}."
        return "How busy the GPU was is not in the trace."
    if metal.process_busy == 0:
        also = f"; {device}, for others" if device else ""
        return f"The process had nothing on the GPU in {format_quantity(window, 's')}{also}."
    share = format_percent(percent_of(metal.process_busy, window) or 0.0)
    busy = f"The process keeps the GPU busy {share} % of {format_quantity(window, 's')}"
    busy += _device_text(metal, window)
    causes = idle_causes(metal)
    part = percent_of(causes[0][1], window) or 0.0 if causes else 0.0
    if part < LARGE:
        return f"{busy}."
    cause = causes[0][0]
    idle = f"{format_percent(part)} % of the time {IDLE[cause]}"
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
    of = "" if same else f" of {format_quantity(metal.span, 's')}"
    return f" (the whole device {format_percent(whole)} %{of})"


def _timeline_rows(metal: MetalTrace) -> Iterator[tuple[str, str]]:
    span, window, idle = metal.span, window_of(metal), idle_of(metal)
    if span is not None:
        yield "Traced", format_quantity(span, "s") + (", the marked region" if metal.marked else "")
    if window is not None and metal.window is not None and not metal.marked:
        yield "Window", f"{format_quantity(window, 's')}, from the first work of the process to its last"
    if metal.process_busy is not None:
        yield "Process", _share_cell(metal.process_busy, "busy", window)
    if metal.device_busy is not None:
        active = f"{_share_cell(metal.device_busy, 'active', span)} for all"
        if metal.window_busy is not None and window is not None and not metal.marked:
            active += f"; {_share_cell(metal.window_busy, '', window)} in the window"
        yield "Device", active
    if idle is not None:
        gap = f"; longest gap {format_quantity(metal.longest_gap, 's')}" if metal.longest_gap else ""
        yield "Idle", f"{_share_cell(idle, '', window)} without the process{gap}"
        for cause, seconds in idle_causes(metal):
            yield "", f"{format_quantity(seconds, 's')}: {IDLE[cause]}"
    if metal.queue_depth is not None:
        most = f", at most {metal.queue_most}" if metal.queue_most is not None else ""
        until = "" if metal.completion is not None else ", until done on the GPU"
        yield "Queue", f"{format_figures(metal.queue_depth)} command buffers (mean){most}{until}"


def _share_cell(part: float, what: str, whole: float | None) -> str:
    """`23.0 ms active (4.0 %)`."""
    value = percent_of(part, whole)
    share = f"({format_percent(value)} %)" if value is not None else ""
    return " ".join(word for word in (format_quantity(part, "s"), what, share) if word)


def _buffer_table(metal: MetalTrace) -> DataTable:
    spreads: tuple[tuple[str, Spread | None], ...] = (
        ("On the GPU", metal.command_buffers),
        ("Submission to start", metal.latency),
        ("Submission to completion", metal.completion),
        ("Completion until the host is notified", metal.notice),
    )
    rows = [
        (what, str(s.count), *(format_quantity(value, "s") for value in (s.median, s.p95, s.longest)))
        for what, s in spreads
        if s is not None and s.count
    ]
    queue = "submission to start is how long the queue was: the host need not wait for it"
    titles = ("what", "count", "median", "p95", "longest")
    return named_table(BUFFERS, titles, rows, queue if metal.latency else None)


def _process_table(metal: MetalTrace) -> DataTable | None:
    """Who had the GPU; left out where the process was alone."""
    if len(metal.processes) < 2:
        return None
    ordered = sorted(metal.processes, key=lambda process: (not process.target, -process.busy))
    target = ", profiled" if metal.guessed is None else ", taken for it"
    rows = [
        (
            shorten(process.name, 34)
            + (f" ({process.pid})" if process.pid is not None else "")
            + (target if process.target else ""),
            format_quantity(process.busy, "s"),
            str(process.intervals),
        )
        for process in ordered[:TOP_PROCESSES]
    ]
    more = len(ordered) - TOP_PROCESSES
    note = f"and {plural(more, 'further process', 'further processes')}" if more > 0 else None
    return named_table("Processes on the GPU", ("process", "time", "intervals"), rows, note)


def _gpu_notes(metal: MetalTrace) -> Iterator[str]:
    whole, own = percent_of(metal.device_busy, metal.span), percent_of(metal.process_busy, metal.span)
    if whole is not None and own is not None and whole - own > APART:
        parts = (
            f"{format_percent(own)} of its {format_percent(whole)} % of the traced time are of the process"
        )
        yield f"The device's utilization is not the program's: {parts}, the rest is the screen's and other programs'."
    if metal.marked:
        yield "Only what happened in the marked region is counted."
    elif metal.process_busy:
        yield (
            "No region is marked: all that the process had on the GPU counts, warm-up and first-use compiling"
            " included (profkit.region marks what counts)."
        )


# ---------------------------------------------------------------- counters

MOST_COUNTERS = 40  # in the table: an M1 has 32, later chips 86 and more
_WHOLE_DEVICE = (
    "Counters speak of the whole device: what other programs did on the GPU at that time is in them."
)
_SLC = (
    "GPU bandwidth may be served by the system level cache: near 100 % is not certain to be memory, and the processor"
    " shares the same memory."
)
_DECLARED = (
    "Estimated: what the workload declares over the time that the process had work on the GPU. It is as true as what is"
    " declared, and knows nothing of caches."
)
_DILUTED = (
    "Estimated: the recording of the counters does not tell when the process worked, so their means are taken as if all"
    " of it fell into the time in which the GPU was active."
)
_PERCENTAGES = (
    "Estimated: the counters tell per cent, and not of what; they are taken to be of the bandwidth that the chip is"
    " specified with, read and write alike."
)


def metal_occupancy_text(facts: ConcernFacts) -> SummaryText:
    """How full the GPU was, what its own manager allowed, and how near its busiest unit was to its limit."""
    metal, readings = facts.document.metal, facts.readings
    if metal is None:
        return unknown_text("occupancy", "Threadgroup occupancy is", readings)
    known = {r.metric: r for r in readings}
    compute, whole = known["gpu.occupancy"], known["gpu.occupancy.total"]
    shown = compute if compute.value is not None else whole
    headline = f"Threadgroup occupancy is not known: {shown.reason}."
    if shown.value is not None:
        what = "compute work" if shown is compute else "work"
        limit = known["gpu.limiter"].value
        top = f"; its top limiter is at {format_percent(limit)} %" if limit is not None else ""
        held = f"{format_percent(shown.value)} % of the SIMD groups that the GPU can hold"
        headline = f"{held} were there with {what}{top}."
    notes = [_WHOLE_DEVICE] if metal.counters else []
    if any(r.quality == "estimated" for r in readings):
        notes.append(_DILUTED)
    missing = [r for r in readings if r.value is None] if shown.value is None else []
    title = "Occupancy and limits, while the process had work on the GPU"
    return summary_text(
        "occupancy",
        headline,
        readings,
        [_counter_table(metal)],
        (*notes, *_doubts(readings), *_absences(metal, missing)),
        [metric_table(title, readings)],
    )


def _counter_table(metal: MetalTrace) -> DataTable | None:
    known = known_counters(metal)
    if not known:
        return None
    rows: list[tuple[Text, ...]] = [
        (
            shorten(counter.name, 32),
            reading_span(_counted(counter), _number_cell(counter.active, counter.unit)),
            *(_number_cell(value, counter.unit) for value in (counter.mean, counter.least, counter.most)),
            str(counter.samples),
        )
        for counter in known[:MOST_COUNTERS]
    ]
    rest = len(known) - MOST_COUNTERS
    covered = [counter.covered for counter in known if counter.covered is not None]
    notes = [f"and {rest} further counters in run.json"] if rest > 0 else []
    if covered:
        least, most = format_percent(100 * min(covered)), format_percent(100 * max(covered))
        notes.append(f"samples cover {least if least == most else f'{least} to {most}'} % of the time")
    titles = ("counter", "at work", "mean", "least", "most", "samples")
    return named_table("All counters, of the whole device", titles, rows, "; ".join(notes))


def _counted(counter: MetalCounter) -> Reading:
    """The mean while the process had work on the GPU, with its source."""
    source = Source(
        TOOL, counter.name, formula="mean by sample duration, while the process worked on the GPU"
    )
    return Reading(counter.name, counter.active or 0.0, counter.unit, "measured", RUN, source)


def _number_cell(value: float | None, unit: str) -> str:
    return NOTHING if value is None else format_quantity(value, unit) if unit else format_figures(value)


def metal_bandwidth_text(facts: ConcernFacts) -> SummaryText:
    """What the GPU moved against what the chip is specified with, and the arithmetic that the workload declares."""
    metal, readings = facts.document.metal, facts.readings
    if metal is None:
        return unknown_text("bandwidth", "What the GPU moves is", readings)
    chip = chip_specification(facts.document, metal)
    known = {r.metric: r for r in readings}
    rate, part = known["bandwidth.gpu"], known["bandwidth.gpu.share"]
    shown = [r for r in readings if r.value is not None]
    notes = [_SLC] if part.value is not None else []
    if any(r.code == "declared" for r in shown):
        notes.append(_DECLARED)
    elif any(r.quality == "estimated" for r in (rate, part)):
        notes += _estimate_notes(shown, chip)
    missing = [r for r in (rate, part) if r.value is None]
    return summary_text(
        "bandwidth",
        _bandwidth_headline(rate, part, chip),
        readings,
        (),
        (*notes, *_doubts(readings), *_absences(metal, missing)),
        [metric_table("GPU bandwidth and arithmetic", shown, _specification_note(chip))],
    )


def _estimate_notes(shown: Sequence[Reading], chip: ChipSpecification) -> Iterator[str]:
    """Why a bandwidth out of counters is an estimate."""
    formulas = " ".join(r.source.formula or "" for r in shown)
    if DILUTED_FORMULA in formulas:
        yield _DILUTED
    if OF_PEAK in formulas:
        yield _PERCENTAGES
    if not chip.bandwidth_checked:
        yield f"Estimated: {UNCHECKED}."


def _bandwidth_headline(rate: Reading, part: Reading, chip: ChipSpecification) -> str:
    if rate.value is None and part.value is None:
        return f"What the GPU moves is not known: {rate.reason}."
    if rate.value is None:
        share = format_percent(part.value or 0.0)
        return f"The GPU moves {share} % of what it can (estimated); {rate.reason}."
    how = "" if rate.quality == "measured" else " (estimated)"
    moves = f"The GPU moves {format_quantity(rate.value, 'B/s')}{how}"
    if part.value is None:
        return f"{moves}; {part.reason}."
    more = f": {FROM_CACHE}" if part.value > BEYOND else ""
    of = f"the {format_quantity(chip.bandwidth, 'B/s')} that the chip is specified with"
    return f"{moves}, {format_percent(part.value)} % of {of}{more}."


def _specification_note(chip: ChipSpecification) -> str | None:
    if chip.bandwidth is None:
        return None
    arithmetic = f", {format_quantity(chip.flops, 'FLOP/s')} in float32" if chip.flops else ""
    sure = "" if chip.bandwidth_checked and (chip.flops_checked or not chip.flops) else " (of one report)"
    return f"specification of {chip.name}: {format_quantity(chip.bandwidth, 'B/s')}{arithmetic}{sure}"


# ---------------------------------------------------------------- states


def metal_state_text(facts: ConcernFacts) -> SummaryText:
    """Performance and thermal states with how long each was held."""
    metal, readings = facts.document.metal, facts.readings
    slowed = readings[0]
    if metal is None or slowed.value is None:
        headline = f"Whether heat or power slowed the GPU down is not known: {slowed.reason}."
    elif slowed.value == 0 and metal.thermal:
        headline = "Nothing slowed the GPU down."
    else:
        headline = f"{capitalized(slowed.reason or '')}."
    tables = []
    if metal is not None:
        tables = [
            _state_table("Performance states of the GPU", metal.performance),
            _state_table("Thermal states", metal.thermal),
        ]
    notes = (*_state_notes(metal), *_absences(metal, readings))
    return summary_text("state", headline, readings, tables, notes)


def _state_table(title: str, states: Sequence[MetalState]) -> DataTable:
    total = sum(state.seconds for state in states)
    rows = [
        (
            state.name,
            format_quantity(state.seconds, "s"),
            f"{format_percent(percent_of(state.seconds, total) or 0.0)} %",
            format_quantity(state.busy, "s") if state.busy is not None else NOTHING,
        )
        for state in states
        if state.seconds > 0
    ]
    return named_table(title, ("state", "time", "share", "at work"), rows)


def _state_notes(metal: MetalTrace | None) -> Iterator[str]:
    if metal is None:
        return
    if metal.induced is not None and metal.induced.strip().lower() not in ("default", "minimum"):
        state = metal.induced
        yield f"The recording asked for the performance state {state}; it is not the everyday one."
    if metal.performance and any(state.busy is None for state in metal.performance):
        yield "A GPU without work rests in its lowest state; the trace does not tell the states of its work apart."
