"""What knowing it did cost: replay passes of each kernel, and the passes of the run in plain runs."""

from __future__ import annotations

from collections.abc import Sequence

from profkit.analysis.summaries.kernel_table import Column, kernel_table, of
from profkit.analysis.summaries.kernels import KernelRow
from profkit.core.formatting import plural, quantity
from profkit.core.types import RunDocument, Scope, Summary

ON_DEVICE = ("trace", "counters", "explain")


def summarize_cost(document: RunDocument, rows: Sequence[KernelRow]) -> Summary | None:
    """Replay passes as planned and as they were, and the wall time of what was measured; None for neither."""
    planned = _planned(document)
    counted = {row.scope: number for row in rows if (number := _replays(document, row)) is not None}

    def expected(row: KernelRow) -> str | None:
        return str(planned[row.scope]) if row.scope in planned else None

    def measured(row: KernelRow) -> str | None:
        return f"{counted[row.scope]:.0f}"

    shown = [row for row in rows if row.scope in counted]
    columns = (
        Column("planned", expected),
        Column("replay passes", measured),
        of("replayed for", "time.replayed"),
    )
    table = kernel_table("Replays", shown, columns)
    told = []
    if counted:
        total = sum(counted.values())
        told.append(
            f"{plural(len(counted), 'launch configuration')} counted in"
            f" {plural(round(total), 'replay pass', 'replay passes')}"
        )
    spent = [p for p in document.passes if p.name in ON_DEVICE and p.state == "finished"]
    for one in spent:
        runs = f" ({one.cost:.1f} plain runs)" if one.cost is not None else ""
        told.append(f"{one.name} took {quantity(one.seconds, 's')}{runs}")
    if not told:
        return None
    text = "; ".join(told)
    return Summary("cost", f"{text[0].upper()}{text[1:]}.", (), (table,) if table is not None else ())


def _planned(document: RunDocument) -> dict[Scope, int]:
    """Expected replay passes of each kernel, over all passes that were carried out."""
    finished = {result.name for result in document.passes if result.state == "finished"}
    found: dict[Scope, int] = {}
    for each in document.plan.passes if document.plan is not None else ():
        for one in each.kernels if each.name in finished else ():
            if one.replays is not None:
                found[one.kernel.scope] = found.get(one.kernel.scope, 0) + one.replays
    return found


def _replays(document: RunDocument, row: KernelRow) -> float | None:
    """How often a kernel was replayed in all: each pass that counted it has a counter of its own for that."""
    reading = row.readings.get("replay.passes")
    if reading is None or reading.value is None:
        return None
    told = [
        counter.value
        for counter in document.counters
        if counter.name == reading.source.counter
        and counter.scope == reading.scope
        and counter.value is not None
    ]
    return sum(told) if told else reading.value
