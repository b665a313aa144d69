"""What a recording of Metal does not give, each with the reason that it shows and the way to get it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from profkit.core.formatting import quantity
from profkit.core.types import MetalAbsent, MetalCounter
from profkit.profilers.xctrace.command import GPU_COUNTERS, METAL, export_line
from profkit.profilers.xctrace.metal_counters import COUNTER_VALUES, COUNTERS
from profkit.profilers.xctrace.metal_host import COMPLETED, ENCODERS, SUBMISSIONS
from profkit.profilers.xctrace.metal_read import MetalTables
from profkit.profilers.xctrace.metal_shaders import SHADERS
from profkit.profilers.xctrace.metal_states import MEMORY, PERFORMANCE, THERMAL
from profkit.profilers.xctrace.metal_work import INTERVALS, STATES
from profkit.profilers.xctrace.recording import Recording
from profkit.profilers.xctrace.toc import Run

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
class Seen:
    """What was read: rows by schema (0: a table without rows; not there: no table), and what the export left out.

    `left_out` are the reasons by schema, `broken` those of damaged exports, `timeless` what is wrong with the rows
    of those of which too many tell no time.
    """

    run: Run | None
    rows: Mapping[str, int]
    left_out: Mapping[str, str] = field(default_factory=dict)
    timeless: Mapping[str, str] = field(default_factory=dict)
    broken: Mapping[str, str] = field(default_factory=dict)


def absences(
    seen: Seen, counters: tuple[MetalCounter, ...], *, shaders: bool, commits: bool
) -> tuple[MetalAbsent, ...]:
    """What is not there. `shaders`: some were told; `commits`: when command buffers were committed is known."""
    return tuple(_absences(seen, counters, shaders=shaders, commits=commits))


def useless(counters: tuple[MetalCounter, ...]) -> bool:
    """Whether there is nothing among them but the counter that always is there, and 0."""
    return bool(counters) and all(one.name == USELESS and one.most == 0 for one in counters)


def _absences(
    seen: Seen, counters: tuple[MetalCounter, ...], *, shaders: bool, commits: bool
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
            yield _absent(seen, schema, fix)
    if not commits:
        yield _absent(seen, SUBMISSIONS, _LAUNCH)
    if not shaders:
        yield _shaders(seen)
    if not counters or useless(counters):
        yield _counters(seen, counters)


def _absent(seen: Seen, schema: str, fix: str) -> MetalAbsent:
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
        return MetalAbsent(schema, "the table has no rows", fix)
    if seen.run is None or seen.run.has(schema):
        return MetalAbsent(schema, "the table was not exported", export_line(schema, number))
    template = seen.run.summary.get("template-name")
    with_what = f" (template {template})" if template else ""
    return MetalAbsent(schema, f"the recording has no such table{with_what}", _TEMPLATE)


def _shaders(seen: Seen) -> MetalAbsent:
    if seen.run is not None and seen.run.setting("Shader Timeline") == "Disabled":
        return MetalAbsent(
            SHADERS, "it was recorded with Shader Timeline: Disabled, so no shader was timed", _WITH_TIMELINE
        )
    return _absent(seen, SHADERS, _WITH_TIMELINE)


def _counters(seen: Seen, counters: tuple[MetalCounter, ...]) -> MetalAbsent:
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
            COUNTERS, f"it was recorded with Counter Set: {chosen}", f"{_WITH_COUNTERS}; or {_BY_HAND}"
        )
    schema = COUNTER_VALUES if seen.rows.get(COUNTER_VALUES) else COUNTERS
    if chosen is not None and seen.rows.get(schema) == 0 and schema not in seen.left_out:
        return MetalAbsent(
            COUNTERS,
            f"Counter Set: {chosen} was asked for and nothing counted: chips that do not know it ignore it"
            f' ("{UNSUPPORTED}", M3 Max, M4 Max and others)',
            _BY_HAND,
        )
    return _absent(seen, schema, _WITH_COUNTERS)


def timeless_of(tables: MetalTables, recording: Recording) -> dict[str, str]:
    """Why tables are not believed of which too many rows tell no time of the recording, by schema."""
    length = recording.run.length if recording.run is not None else None
    told = {}
    for schema, skipped in tables.timeless.items():
        wrong = f"{skipped:,} of its {tables.rows[schema]:,} rows"
        if length is not None and tables.outside.get(schema):
            told[schema] = f"{wrong} lie outside of the {quantity(length / 1e9, 's')} that were recorded"
        else:
            told[schema] = f"{wrong} tell no time"
    return told
