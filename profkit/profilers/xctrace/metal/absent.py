"""What a recording of Metal does not give, with the reason and the way to get it, and what must be said beside it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from profkit.core.formatting import format_quantity, plural
from profkit.core.types import MetalAbsent, MetalCounter, MetalTrace
from profkit.profilers.xctrace.alignment import TraceRecording
from profkit.profilers.xctrace.command import GPU_COUNTERS, METAL, export_line
from profkit.profilers.xctrace.metal.counters import COUNTERS
from profkit.profilers.xctrace.metal.part import CountedPart
from profkit.profilers.xctrace.metal.tables import (
    COMPLETED,
    ENCODERS,
    ERRORS,
    INTERVALS,
    MEMORY,
    PERFORMANCE,
    SHADERS,
    STATES,
    SUBMISSIONS,
    THERMAL,
    MetalTables,
)

# The one counter that a recording without a counter set has on an M3 and later; nothing but ray tracing moves it.
USELESS = "RT Unit Active"
NO_SET = ("(null)", "", "None")
UNSUPPORTED = "Selected counter profile is not supported on target device"
_TEMPLATE = f"xctrace record --template '{METAL}' ..."
# By themselves: beside the instruments of a template they often give no rows.
_WITH_COUNTERS = (
    f"record the counters by themselves: xctrace record --instrument '{GPU_COUNTERS}' --launch -- COMMAND"
)
_BY_HAND = (
    "choose a counter set in Instruments (Metal Application, GPU), and save that as a template to record with"
)
_WITH_TIMELINE = (
    "an Apple GPU of M3 or later, recorded with a template in which Metal Application has Shader Timeline switched on"
    " (in Instruments: Metal System Trace, its recording options, File > Save as Template; xctrace record --template)"
)
_LAUNCH = "launch the program with xctrace; attached to, some versions record nothing of it"
_FIXES = {
    STATES: _TEMPLATE,
    INTERVALS: _LAUNCH,
    ENCODERS: _LAUNCH,
    COMPLETED: _LAUNCH,
    PERFORMANCE: _TEMPLATE,
    THERMAL: _TEMPLATE,
    MEMORY: _LAUNCH,
}
# Of the process' time on the GPU; in recordings of an M1 both tables agree to 1 in 100 at worst.
_UNTOLD = 0.01


def is_useless(counters: tuple[MetalCounter, ...]) -> bool:
    """Whether there is nothing among them but the counter that always is there, and 0."""
    return bool(counters) and all(counter.name == USELESS and counter.most == 0 for counter in counters)


def list_metal_absences(
    recording: TraceRecording,
    rows: Mapping[str, int],
    counters: tuple[MetalCounter, ...],
    *,
    shaders: bool,
    commits: bool,
) -> tuple[MetalAbsent, ...]:
    """What is not there. `rows` by schema (0: a table without rows; not there: no table).

    `shaders`: some were told; `commits`: when command buffers were committed is known.
    """
    absent = [
        _explain_absence(recording, rows, schema, fix)
        for schema, fix in _FIXES.items()
        if not rows.get(schema)
    ]
    if not commits:
        absent.append(_explain_absence(recording, rows, SUBMISSIONS, _LAUNCH))
    if not shaders:
        absent.append(_explain_shaders(recording, rows))
    if not counters or is_useless(counters):
        absent.append(_explain_counters(recording, rows, counters))
    return tuple(absent)


def _explain_absence(
    recording: TraceRecording, rows: Mapping[str, int], schema: str, fix: str
) -> MetalAbsent:
    run = recording.run
    again = export_line(schema, None if run is None else run.number)
    if schema in recording.left_out:
        return MetalAbsent(schema, f"the table could not be exported: {recording.left_out[schema]}", again)
    if schema in recording.broken and schema not in rows:
        return MetalAbsent(schema, f"the table is damaged: {recording.broken[schema]}", again)
    if rows.get(schema):
        return MetalAbsent(schema, "none of its rows lies in the part that counts")
    if schema in rows:
        return MetalAbsent(schema, "the table has no rows", fix, "no-rows")
    if run is None or run.has(schema):
        return MetalAbsent(schema, "the table was not exported", again)
    template = run.summary.get("template-name")
    with_what = f" (template {template})" if template else ""
    return MetalAbsent(schema, f"the recording has no such table{with_what}", _TEMPLATE)


def _explain_shaders(recording: TraceRecording, rows: Mapping[str, int]) -> MetalAbsent:
    if recording.run is not None and recording.run.setting("Shader Timeline") == "Disabled":
        return MetalAbsent(
            SHADERS, "it was recorded with Shader Timeline: Disabled, so no shader was timed", _WITH_TIMELINE
        )
    return _explain_absence(recording, rows, SHADERS, _WITH_TIMELINE)


def _explain_counters(
    recording: TraceRecording, rows: Mapping[str, int], counters: tuple[MetalCounter, ...]
) -> MetalAbsent:
    chosen = recording.run.setting("Counter Set") if recording.run is not None else None
    if counters:
        with_what = f" (Counter Set: {chosen})" if chosen is not None else ""
        reason = f"its only counter is {USELESS}, 0 throughout: no counter set was recorded{with_what}"
        return MetalAbsent(COUNTERS, reason, _BY_HAND)
    if chosen is not None and chosen in NO_SET:
        reason = f"it was recorded with Counter Set: {chosen}"
        return MetalAbsent(COUNTERS, reason, f"{_WITH_COUNTERS}; or {_BY_HAND}", "no-counter-set")
    if chosen is not None and rows.get(COUNTERS) == 0 and COUNTERS not in recording.left_out:
        reason = (
            f"Counter Set: {chosen} was asked for and nothing counted: chips that do not know it ignore it"
        )
        return MetalAbsent(COUNTERS, f'{reason} ("{UNSUPPORTED}", M3 Max, M4 Max and others)', _BY_HAND)
    return _explain_absence(recording, rows, COUNTERS, _WITH_COUNTERS)


def list_notes(tables: MetalTables, skipped: int, part: CountedPart, metal: MetalTrace) -> Iterator[str]:
    """Sentences, the most important first. `skipped`: samples of counters that were left out."""
    if part.target.note is not None and tables.rows.get(INTERVALS):
        yield part.target.note
    if not metal.marked and metal.span is not None and metal.window is not None:
        yield (
            f"nothing is marked: all {format_quantity(metal.span, 's')} count for which the GPU was recorded, of which"
            f" {format_quantity(metal.window, 's')} lie between the first work of {part.target.name} and its last"
        )
    if part.active is None and metal.device_busy is not None:
        yield f"without {STATES} the GPU counts as active while any process had work on it"
    if part.active is not None and (part.busy & part.counted - part.active).total > _UNTOLD * part.busy.total:
        yield f"{STATES} does not hold all of the time in which the process worked: it may be cut off"
    if len(part.gpus) > 1:
        further = ", ".join(name for name in part.gpus if name != part.gpu)
        yield f"of {plural(len(part.gpus), 'GPU')} {part.gpu} counts, which the process used most; beside it: {further}"
    if metal.failed:
        codes = ", ".join(str(code) for code in sorted(set(tables[ERRORS]["code"].tolist()) - {-1})[:5])
        which = f" (code {codes})" if codes else ""
        yield f"{plural(metal.failed, 'command buffer')} ended with an error{which}: what they were to do is not done"
    if metal.induced is not None:
        yield f"the GPU was held in the performance state {metal.induced} while it was recorded"
    skipped += tables.skipped
    if skipped:
        yield f"{plural(skipped, 'row')} without a time, a value or an id left out"
    if tables.repeated > 1:
        yield f"there are {tables.repeated} tables with the same rows: the longest counts"
