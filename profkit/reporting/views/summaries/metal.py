"""An Apple GPU in words: where its time goes, encoders and shaders, occupancy and bandwidth."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from profkit.analysis.summaries.metal import (
    INTERVALS,
    SHADERS,
    TOOL,
    chip_specification,
    explain_absence,
    idle_causes,
    percent_of,
    window_of,
)
from profkit.core.formatting import format_figures, format_percent, format_quantity, plural, shorten
from profkit.core.types import (
    RUN,
    Fact,
    MetalCounter,
    MetalTrace,
    MetalWork,
    Reading,
    RunDocument,
    Source,
)
from profkit.reporting.facts import fact_text, word_of
from profkit.reporting.plain_text import reading_span
from profkit.reporting.view import DataTable, Section, Text
from profkit.reporting.views.summaries.parts import (
    NOTHING,
    TOP_ROWS,
    absence_notes,
    concern_section,
    doubt_notes,
    named_table,
    readings_of,
    readings_section,
    remarks,
    share_text,
    timeline_table,
    unknown_section,
)

_LARGE = 10.0  # % of the window: below, naming the largest part of the idle time explains nothing
_MAX_COUNTERS = 40  # in a table: an M1 has 32 counters, later chips 86 and more


# ---------------------------------------------------------------- time


def metal_gpu_section(document: RunDocument) -> Section:
    """Return how busy the GPU was for the process and for all, and what it waited for."""
    metal, readings = document.metal, readings_of(document, "gpu")
    if metal is None:
        return unknown_section("gpu", "Where the GPU's time goes is", readings)
    notes = doubt_notes(readings)
    if metal.marked:
        notes.append("Only what happened in the marked region is counted.")
    elif metal.process_busy:
        notes.append(
            "No region is marked: all that the process had on the GPU counts, warm-up and first-use compiling"
            " included (profkit.region marks what counts)."
        )
    notes += absence_notes(readings)
    timeline = timeline_table(readings, _further_times(metal))
    return concern_section("gpu", _gpu_headline(metal), [timeline], notes)


def _gpu_headline(metal: MetalTrace) -> str:
    window, whole = window_of(metal), percent_of(metal.device_busy, metal.span)
    device = (
        f" (the whole device {format_percent(whole)} % of {format_quantity(metal.span, 's')})"
        if whole
        else ""
    )
    if metal.process_busy is None or not window:
        return f"What the process had of the GPU is not known{device}."
    if metal.process_busy == 0:
        return f"The process had nothing on the GPU in {format_quantity(window, 's')}{device}."
    share = format_percent(percent_of(metal.process_busy, window) or 0.0)
    busy = f"The process keeps the GPU busy {share} % of {format_quantity(window, 's')}{device}."
    causes = idle_causes(metal)
    part = percent_of(causes[0][1], window) or 0.0 if causes else 0.0
    if part < _LARGE:
        return busy
    host = "It is host-bound: " if causes[0][0] == "unsubmitted" else ""
    return f"{busy} {host}{format_percent(part)} % of the time {word_of('idle', causes[0][0])}."


def _further_times(metal: MetalTrace) -> Iterator[tuple[str, float | None]]:
    """Yield what no reading holds, in seconds."""
    yield "Traced", metal.span
    yield "The process on the GPU", metal.process_busy
    yield "The device, for all", metal.device_busy
    yield "Longest gap", metal.longest_gap or None
    for cause, seconds in idle_causes(metal):
        yield f"Idle: {word_of('idle', cause)}", seconds


# ---------------------------------------------------------------- encoders and shaders


def encoders_section(document: RunDocument) -> Section | None:
    """Time by encoder label; None where the process had nothing on the GPU."""
    metal = document.metal
    if metal is None or not metal.encoders:
        return None
    pieces = plural(sum(work.count for work in metal.encoders), "encoder")
    headline, table = _by_time("encoder", metal.encoders)
    return concern_section("encoders", f"{headline} in {pieces}.", [table])


def shaders_section(document: RunDocument) -> Section | None:
    """Time by shader; else the names of those that were compiled, and why no time is known."""
    metal = document.metal
    if metal is None or not metal.encoders:
        return None
    if metal.shaders:
        headline, table = _by_time("shader", metal.shaders)
        return concern_section("shaders", f"{headline}.", [table])
    reason, fix = explain_absence(metal, (SHADERS,), Fact("no-shader-times"))
    names = metal.shader_names
    compiled = f"{plural(len(names), 'shader')} compiled for the process. " if names else ""
    rows = [(shorten(name, 70),) for name in names[:TOP_ROWS]]
    left = len(names) - len(rows)
    note = f"and {left} further ones in run.json" if left > 0 else ""
    table = named_table("Shaders, in the order in which they were compiled", ("shader",), rows, note)
    headline = f"{compiled}Time by shader is not known: {fact_text(reason)}."
    return concern_section("shaders", headline, [table], (f"To have it: {fix}",) if fix else ())


def _by_time(kind: str, works: Sequence[MetalWork]) -> tuple[str, DataTable]:
    """Return which takes most of the time, and the table."""
    ordered = sorted(works, key=lambda work: -work.seconds)
    total = sum(work.seconds for work in works)
    table = SHADERS if kind == "shader" else INTERVALS
    source = Source(TOOL, table, formula="100 * its time / the time of all of them")
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
    note = f"and {plural(len(rest), f'further {kind}')}, {left} of the time" if rest else ""
    titles = (kind, "count", "total", "share", "median", "longest")
    headline = (
        f"{shorten(ordered[0].name, 48)} takes {share_text(ordered[0].seconds, total)}"
        f" of {format_quantity(total, 's')}"
    )
    return headline, named_table(f"{kind.capitalize()}s by GPU time", titles, rows, note)


# ---------------------------------------------------------------- counters


def metal_values_section(concern: str, document: RunDocument) -> Section:
    """Return how full the GPU was and how near to its limits, or what it moved."""
    metal, readings = document.metal, list(readings_of(document, concern))
    title, what = _TITLES[concern]
    if metal is None:
        return readings_section(concern, title, readings, what=what)
    wanted = ("bandwidth.gpu", "bandwidth.gpu.share")
    if concern == "bandwidth":
        readings = [r for r in readings if r.value is not None or r.metric in wanted]
    notes, tables = remarks(readings), []
    chip = chip_specification(document, metal)
    if concern == "occupancy" and metal.counters:
        tables = [_counter_table(metal)]
        notes.append(
            "Counters speak of the whole device: what other programs did on the GPU then is in them."
        )
    elif concern == "bandwidth" and chip.bandwidth is not None:
        notes.append(f"Specification of {chip.name}: {format_quantity(chip.bandwidth, 'B/s')}.")
    return readings_section(concern, title, readings, tables, notes, what)


# Of each concern the title of its table, and what the headline calls it where it is not known.
_TITLES = {
    "occupancy": (
        "Occupancy and limits, while the process had work on the GPU",
        "Threadgroup occupancy",
    ),
    "bandwidth": ("GPU bandwidth", "What the GPU moves"),
}


def _counter_table(metal: MetalTrace) -> DataTable:
    known = sorted(
        (counter for counter in metal.counters if counter.samples), key=lambda counter: counter.name
    )
    rows: list[tuple[Text, ...]] = [
        (
            shorten(counter.name, 32),
            reading_span(_counted(counter), _number_cell(counter.active, counter.unit)),
            *(_number_cell(value, counter.unit) for value in (counter.mean, counter.least, counter.most)),
            str(counter.samples),
        )
        for counter in known[:_MAX_COUNTERS]
    ]
    rest = len(known) - _MAX_COUNTERS
    note = f"and {rest} further counters in run.json" if rest > 0 else ""
    titles = ("counter", "at work", "mean", "least", "most", "samples")
    return named_table("All counters, of the whole device", titles, rows, note)


def _counted(counter: MetalCounter) -> Reading:
    source = Source(
        TOOL, counter.name, formula="mean by sample duration, while the process worked on the GPU"
    )
    return Reading(counter.name, counter.active or 0.0, counter.unit, "measured", RUN, source)


def _number_cell(value: float | None, unit: str) -> str:
    return NOTHING if value is None else format_quantity(value, unit) if unit else format_figures(value)
