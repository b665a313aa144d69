"""What knowing it did cost: replay passes of each kernel, and the passes of the run in plain runs."""

from __future__ import annotations

from collections.abc import Sequence

from profkit.model import RunDocument, Summary
from profkit.summaries.kernel_table import Column, kernel_table, of
from profkit.summaries.kernels import KernelRow
from profkit.words import plural, quantity

CONCERN = "cost"
ON_DEVICE = ("trace", "counters", "explain")


def summarize_cost(document: RunDocument, rows: Sequence[KernelRow]) -> Summary | None:
    """Replay passes as planned and as they were, and the wall time of what was measured; None for neither."""
    planned = {
        one.kernel.scope: one.replays
        for each in (document.plan.passes if document.plan is not None else ())
        for one in each.kernels
        if one.replays is not None
    }

    def expected(row: KernelRow) -> str | None:
        number = planned.get(row.scope)
        return str(number) if number is not None else None

    counted = [row for row in rows if row.value("replay.passes") is not None]
    columns = (
        Column("planned", expected),
        of("replay passes", "replay.passes"),
        of("replayed for", "time.replayed"),
    )
    table = kernel_table("Replays", counted, columns)
    told = []
    if counted:
        total = sum(row.value("replay.passes") or 0.0 for row in counted)
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
    return Summary(CONCERN, f"{text[0].upper()}{text[1:]}.", (), (table,) if table is not None else ())
