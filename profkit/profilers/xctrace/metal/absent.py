"""What a recording of Metal does not give, with the reason and the way to get it, and what must be said beside it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from profkit.core.formatting import format_quantity, plural
from profkit.core.types import MetalAbsent, MetalCounter, MetalTrace
from profkit.profilers.xctrace.alignment import TraceRecording
from profkit.profilers.xctrace.command import GPU_COUNTERS, METAL, export_line
from profkit.profilers.xctrace.metal.counters import COUNTER_VALUES, COUNTERS
from profkit.profilers.xctrace.metal.sums import SHADERS
from profkit.profilers.xctrace.metal.tables import MEMORY, PERFORMANCE, THERMAL, MetalTables
from profkit.profilers.xctrace.metal.work import COMPLETED, ENCODERS, INTERVALS, STATES, SUBMISSIONS
from profkit.profilers.xctrace.toc import TraceRun

if TYPE_CHECKING:
    from profkit.profilers.xctrace.metal.part import CountedPart


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


@dataclass(frozen=True)
class TablesRead:
    """What was read: rows by schema (0: a table without rows; not there: no table), and what the export left out.

    `left_out` are the reasons by schema, `broken` those of damaged exports, `timeless` what is wrong with the rows
    of those of which too many tell no time.
    """

    run: TraceRun | None
    rows: Mapping[str, int]
    left_out: Mapping[str, str] = field(default_factory=dict)
    timeless: Mapping[str, str] = field(default_factory=dict)
    broken: Mapping[str, str] = field(default_factory=dict)


def list_metal_absences(
    seen: TablesRead, counters: tuple[MetalCounter, ...], *, shaders: bool, commits: bool
) -> tuple[MetalAbsent, ...]:
    """What is not there. `shaders`: some were told; `commits`: when command buffers were committed is known."""
    return tuple(_list_absences(seen, counters, shaders=shaders, commits=commits))


def is_useless(counters: tuple[MetalCounter, ...]) -> bool:
    """Whether there is nothing among them but the counter that always is there, and 0."""
    return bool(counters) and all(one.name == USELESS and one.most == 0 for one in counters)


def _list_absences(
    seen: TablesRead, counters: tuple[MetalCounter, ...], *, shaders: bool, commits: bool
) -> Iterator[MetalAbsent]:
    for schema, fix in (
        (STATES, _TEMPLATE),
        (INTERVALS, _LAUNCH),
        (ENCODERS, _LAUNCH),
        (COMPLETED, _LAUNCH),
        (PERFORMANCE, _TEMPLATE),
        (THERMAL, _TEMPLATE),
        (MEMORY, _LAUNCH),
    ):
        if not seen.rows.get(schema) or schema in seen.timeless:
            yield _explain_absence(seen, schema, fix)
    if not commits:
        yield _explain_absence(seen, SUBMISSIONS, _LAUNCH)
    if not shaders:
        yield _explain_shaders(seen)
    if not counters or is_useless(counters):
        yield _explain_counters(seen, counters)


def _explain_absence(seen: TablesRead, schema: str, fix: str) -> MetalAbsent:
    number = None if seen.run is None else seen.run.number
    if schema in seen.left_out:
        reason = f"the table could not be exported: {seen.left_out[schema]}"
        return MetalAbsent(schema, reason, export_line(schema, number))
    if schema in seen.broken and schema not in seen.rows:
        return MetalAbsent(
            schema, f"the table is damaged: {seen.broken[schema]}", export_line(schema, number)
        )
    if schema in seen.timeless:
        return MetalAbsent(
            schema, f"the table is damaged: {seen.timeless[schema]}", export_line(schema, number)
        )
    if seen.rows.get(schema):
        return MetalAbsent(schema, "none of its rows lies in the part that counts")
    if schema in seen.rows:
        return MetalAbsent(schema, "the table has no rows", fix, "no-rows")
    if seen.run is None or seen.run.has(schema):
        return MetalAbsent(schema, "the table was not exported", export_line(schema, number))
    template = seen.run.summary.get("template-name")
    with_what = f" (template {template})" if template else ""
    return MetalAbsent(schema, f"the recording has no such table{with_what}", _TEMPLATE)


def _explain_shaders(seen: TablesRead) -> MetalAbsent:
    if seen.run is not None and seen.run.setting("Shader Timeline") == "Disabled":
        return MetalAbsent(
            SHADERS, "it was recorded with Shader Timeline: Disabled, so no shader was timed", _WITH_TIMELINE
        )
    return _explain_absence(seen, SHADERS, _WITH_TIMELINE)


def _explain_counters(seen: TablesRead, counters: tuple[MetalCounter, ...]) -> MetalAbsent:
    chosen = seen.run.setting("Counter Set") if seen.run is not None else None
    if counters:
        with_what = f" (Counter Set: {chosen})" if chosen is not None else ""
        return MetalAbsent(
            COUNTERS,
            f"its only counter is {USELESS}, 0 throughout: no counter set was recorded{with_what}",
            _BY_HAND,
        )
    if chosen is not None and chosen in NO_SET:
        return MetalAbsent(
            COUNTERS,
            f"it was recorded with Counter Set: {chosen}",
            f"{_WITH_COUNTERS}; or {_BY_HAND}",
            "no-counter-set",
        )
    schema = COUNTER_VALUES if seen.rows.get(COUNTER_VALUES) else COUNTERS
    if chosen is not None and seen.rows.get(schema) == 0 and schema not in seen.left_out:
        return MetalAbsent(
            COUNTERS,
            f"Counter Set: {chosen} was asked for and nothing counted: chips that do not know it ignore it"
            f' ("{UNSUPPORTED}", M3 Max, M4 Max and others)',
            _BY_HAND,
        )
    return _explain_absence(seen, schema, _WITH_COUNTERS)


def timeless_of(tables: MetalTables, recording: TraceRecording) -> dict[str, str]:
    """Why tables are not believed of which too many rows tell no time of the recording, by schema."""
    length = recording.run.length if recording.run is not None else None
    reasons = {}
    for schema, skipped in tables.timeless.items():
        wrong = f"{skipped:,} of its {tables.rows[schema]:,} rows"
        if length is not None and tables.outside.get(schema):
            reasons[schema] = (
                f"{wrong} lie outside of the {format_quantity(length / 1e9, 's')} that were recorded"
            )
        else:
            reasons[schema] = f"{wrong} tell no time"
    return reasons


_UNTOLD = (
    0.01  # of the process' time on the GPU; in recordings of an M1 both tables agree to 1 in 100 at worst
)


def notes_of(
    tables: MetalTables, recording: TraceRecording, part: CountedPart, metal: MetalTrace
) -> Iterator[str]:
    """Sentences, the most important first."""
    if part.target.note is not None and tables.rows.get(INTERVALS):
        yield part.target.note
    if recording.windows is None and metal.span is not None and metal.window is not None:
        yield (
            f"nothing is marked: all {format_quantity(metal.span, 's')} count for which the GPU was recorded, of which"
            f" {format_quantity(metal.window, 's')} lie between the first work of {part.target.name} and its last"
        )
    if part.active is None and metal.device_busy is not None:
        yield f"without {STATES} the GPU counts as active while any process had work on it"
    if part.active is not None and (part.busy & part.counted - part.active).total > _UNTOLD * part.busy.total:
        yield f"{STATES} does not hold all of the time in which the process worked: it may be cut off"
    if len(part.gpus) > 1:
        others = ", ".join(name for name in part.gpus if name != part.gpu)
        yield f"of {plural(len(part.gpus), 'GPU')} {part.gpu} counts, which the process used most; beside it: {others}"
    if metal.failed:
        codes = sorted({code for _, _, code in tables.errors.best.failed if code is not None})
        which = f" (code {', '.join(map(str, codes[:5]))})" if codes else ""
        yield f"{plural(metal.failed, 'command buffer')} ended with an error{which}: what they were to do is not done"
    if metal.induced is not None:
        yield f"the GPU was held in the performance state {metal.induced} while it was recorded"
    length = recording.run.length if recording.run is not None else None
    for schema, outside in tables.outside.items():
        yield (
            f"{schema}: {plural(outside, 'row')} of {tables.rows[schema]:,} far outside of the"
            f" {format_quantity((length or 0) / 1e9, 's')} that toc.xml tells do not count; is it of the same "
            f"recording?"
        )
    skipped = sum(
        one.skipped
        for one in (
            tables.gpu_work.best,
            tables.gpu_states.best,
            tables.encoders.best,
            tables.submissions.best,
            tables.counters,
            tables.shaders,
        )
    )
    skipped -= sum(tables.outside.values())
    if skipped > 0:
        yield f"{plural(skipped, 'row')} without a time, a value or an id left out"
    yield from _note_repeated(tables)


def _note_repeated(tables: MetalTables) -> Iterator[str]:
    for kept in (tables.gpu_work, tables.gpu_states, tables.encoders):
        if kept.tables > 1:
            yield f"there are {kept.tables} tables with the same rows: the longest counts"
            return
