"""Whether the GPU was slowed down by its own state: performance, heat, low power mode, or what the recording asked."""

from __future__ import annotations

from collections.abc import Sequence

from profkit.model import MetalState, MetalTrace, Reading, Summary, Table
from profkit.summaries.metal_told import share
from profkit.summaries.tables import remarks
from profkit.words import percent, quantity

CONCERN = "state"


def summarize_metal_state(metal: MetalTrace, slowed: Reading) -> Summary:
    """Performance and thermal states with how long each was held."""
    tables = [
        _table("Performance states of the GPU", metal.performance),
        _table("Thermal states", metal.thermal),
    ]
    return Summary(
        CONCERN,
        _headline(slowed),
        (slowed,),
        tuple(table for table in tables if table.rows),
        (*_notes(metal), *remarks((slowed,))),
    )


def _headline(slowed: Reading) -> str:
    if slowed.value is None:
        return f"Whether heat or power slowed the GPU down is not known: {slowed.reason}."
    if slowed.value == 0:
        return "Nothing slowed the GPU down."
    reason = slowed.reason or f"it was slowed down for {percent(slowed.value)} % of the time"
    return f"{reason[0].upper()}{reason[1:]}."


def _table(title: str, states: Sequence[MetalState]) -> Table:
    total = sum(state.seconds for state in states)
    columns = ("state", "time", "share", "at work")
    rows = tuple(
        (
            state.name,
            quantity(state.seconds, "s"),
            f"{percent(share(state.seconds, total) or 0.0)} %",
            quantity(state.busy, "s"),
        )
        for state in states
        if state.seconds > 0
    )
    if all(state.busy is None for state in states):
        return Table(title, columns[:3], tuple(row[:3] for row in rows))
    return Table(title, columns, rows)


def _notes(metal: MetalTrace) -> list[str]:
    notes = []
    if metal.induced is not None and metal.induced.strip().lower() not in ("default", "minimum"):
        notes.append(
            f"The recording asked for the performance state {metal.induced}; it is not the everyday one."
        )
    if metal.performance and any(state.busy is None for state in metal.performance):
        notes.append(
            "A GPU without work rests in its lowest state; the trace does not tell the states of its work apart."
        )
    return notes
