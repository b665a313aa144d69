"""What has to be said of a recording of Metal beside its numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from profkit.core.formatting import plural, quantity
from profkit.core.types import MetalTrace
from profkit.profilers.xctrace.metal_read import MetalTables
from profkit.profilers.xctrace.metal_work import INTERVALS, STATES
from profkit.profilers.xctrace.recording import Recording

if TYPE_CHECKING:
    from profkit.profilers.xctrace.metal_part import Part

_UNTOLD = (
    0.01  # of the process' time on the GPU; in recordings of an M1 both tables agree to 1 in 100 at worst
)


def notes_of(tables: MetalTables, recording: Recording, part: Part, metal: MetalTrace) -> Iterator[str]:
    """Sentences, the most important first."""
    if part.target.note is not None and tables.rows.get(INTERVALS):
        yield part.target.note
    if recording.windows is None and metal.span is not None and metal.window is not None:
        yield (
            f"nothing is marked: all {quantity(metal.span, 's')} count for which the GPU was recorded, of which"
            f" {quantity(metal.window, 's')} lie between the first work of {part.target.name} and its last"
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
            f" {quantity((length or 0) / 1e9, 's')} that toc.xml tells do not count; is it of the same recording?"
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
    yield from _repeated(tables)


def _repeated(tables: MetalTables) -> Iterator[str]:
    for kept in (tables.gpu_work, tables.gpu_states, tables.encoders):
        if kept.tables > 1:
            yield f"there are {kept.tables} tables with the same rows: the longest counts"
            return
