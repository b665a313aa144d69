"""Memory: the peak of Python's heap, leak or not, the lines that hold most, and resident memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from profkit.core.types import RUN, Reading, Source, Summary, Table

if TYPE_CHECKING:
    from profkit.runtime.passes.read_tracemalloc import Allocations, Line
from profkit.analysis.summaries.pick import unavailable
from profkit.analysis.summaries.tables import metric_table, remarks
from profkit.core.formatting import plural, quantity, shortened

ROWS = 5  # lines worth a row; the file has fifty
RESIDENT = "Memory of the process"  # title of the table that psutil fills
METRICS = ("memory.rss_peak", "memory.rss_growth", "memory.device_peak", "memory.device_recommended")


def allocation_readings(allocations: Allocations) -> tuple[Reading, ...]:
    """memory.python_peak (B, of the region where one was marked) and memory.python_growth (B/iteration).

    Growth is the part that is certain: the lower end of the 95 % interval of the Theil-Sen slope, at least 0.
    """
    growth = allocations.growth
    peak = allocations.region_peak if allocations.region_peak is not None else allocations.peak
    where = "in the region" if allocations.region_peak is not None else "of the whole process"
    found = [_told("memory.python_peak", float(peak), "B", f"largest traced size {where}")]
    if growth.low is None:
        found.append(unavailable("memory.python_growth", RUN, growth.reason, source=Source("tracemalloc")))
    else:
        formula = "lower end of the 95 % interval of bytes held per iteration, at least 0"
        found.append(_told("memory.python_growth", max(0.0, growth.low), "B/iteration", formula))
    return tuple(found)


def _told(name: str, value: float, unit: str, formula: str) -> Reading:
    return Reading(name, value, unit, "measured", RUN, Source("tracemalloc", formula=formula))


def summarize_allocations(allocations: Allocations) -> Summary:
    """What tracemalloc saw: peak, leak or not, and the lines that hold and grow most."""
    growth, readings = allocations.growth, allocation_readings(allocations)
    peak = quantity(readings[0].value, "B")
    if growth.leak is None:
        leak = f"whether it leaks is not known ({growth.reason})"
    elif growth.leak:
        leak = f"each iteration leaves {quantity(growth.per_iteration, 'B')} behind: it leaks"
    else:
        leak = f"no leak in {plural(growth.iterations, 'iteration')}"
    tables = [_lines("Lines that hold most", allocations.top)]
    if growth.leak:
        grown = _lines("Lines that grow", [line for line in allocations.growing if line.size > 0])
        if allocations.growth_between is not None:
            first, last = allocations.growth_between
            grown = replace(grown, note=f"from iteration {first} to {last}")
        tables.insert(0, grown)
    notes = list(allocations.notes)
    if growth.low is not None and growth.high is not None:
        low, high = quantity(growth.low, "B"), quantity(growth.high, "B")
        notes.append(
            f"Growth per iteration: 95 % interval {low} to {high}, of {growth.iterations} iterations."
        )
    return Summary(
        "memory",
        f"Python holds {peak} at most; {leak}.",
        readings,
        tuple(table for table in tables if table.rows),
        (*notes, *remarks(readings)),
    )


def _lines(title: str, lines: Sequence[Line]) -> Table:
    rows = tuple(
        (_place(line), quantity(float(line.size), "B"), quantity(float(line.count), "count"))
        for line in lines[:ROWS]
    )
    return Table(title, ("line", "size", "blocks"), rows)


def _place(line: Line) -> str:
    parts = line.file.replace("\\", "/").split("/")
    return shortened("/".join(parts[-2:]), 48) + f":{line.line}"


def summarize_memory(
    readings: Sequence[Reading], stored: Summary | None, missing: Sequence[Reading]
) -> Summary:
    """Resident memory (`readings`: memory.* of the process) joined to what tracemalloc said, if it did.

    `missing` says why there is no tracemalloc result, where there is none.
    """
    table = metric_table(RESIDENT, [r for r in readings if r.metric in METRICS])
    if stored is not None:
        known = {(r.metric, r.scope) for r in stored.readings}
        more = tuple(r for r in readings if (r.metric, r.scope) not in known)
        others = tuple(t for t in stored.tables if t.title != RESIDENT)
        joined = (table, *others) if table is not None else others
        return replace(stored, readings=(*stored.readings, *more), tables=joined)
    resident = next((r.value for r in readings if r.metric == "memory.rss_peak"), None)
    process = f"The process holds {quantity(resident, 'B')} at most. " if resident is not None else ""
    reason = next((r.reason for r in missing if r.reason), "there is no tracemalloc result")
    return Summary(
        "memory",
        f"{process}What Python holds is not known: {reason}.",
        (*readings, *missing),
        (table,) if table is not None else (),
        remarks(missing),
    )
