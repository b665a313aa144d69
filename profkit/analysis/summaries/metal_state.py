"""Whether the GPU was slowed down by its own state: performance, heat, low power mode, or what the recording asked."""

from __future__ import annotations

from collections.abc import Sequence

from profkit.analysis.comparability.fingerprint import holds_down
from profkit.analysis.summaries.metal_told import PERFORMANCE, THERMAL, share, told
from profkit.analysis.summaries.tables import remarks
from profkit.core.formatting import percent, quantity
from profkit.core.types import MetalState, MetalTrace, Moment, Reading, Summary, Table

CONCERN = "state"
LOWEST = "minimum"  # the name of the lowest performance state, lower case
DECIDES = 10.0  # %, as of the target: what one of two tables tells is enough to say that it was slowed down
NOTHING = "nothing slowed it down"
NO_STATES = "the trace has no performance and thermal states"
COOL = "the trace has no performance states, and a GPU that is cool may have been in its lowest one"


def slowed(metal: MetalTrace, moments: Sequence[Moment] = ()) -> Reading:
    """gpu.slowed: the larger one of the shares of its lowest performance state and of thermal states but Nominal.

    A GPU without work rests in its lowest state; so the time in which the process had work there counts, where the
    trace tells it. A recording that asked for that state, low power mode, and heat or a saving mode that the system
    tells at one of `moments`, slow it down all the time. Without performance states nobody knows that nothing slowed it
    down: a cool GPU may have been in its lowest one.
    """
    causes: list[tuple[float, str]] = []
    known = False
    if metal.low_power:
        causes.append((100.0, "low power mode was on"))
    held = {reason: moment.when for moment in moments for reason in moment.slowed}
    causes += [(100.0, f"the system told of {reason} {when}") for reason, when in held.items()]
    if metal.induced is not None and metal.induced.strip().lower() == LOWEST:
        known = True
        causes.append((100.0, f"the recording asked for the performance state {metal.induced}"))
    if metal.performance:
        counted = all(state.busy is not None for state in metal.performance)
        times = [(s.name, (s.busy or 0.0) if counted else s.seconds) for s in metal.performance]
        total = sum(seconds for _, seconds in times)
        low = sum(seconds for name, seconds in times if name.strip().lower() == LOWEST)
        known = known or total > 0
        if total > 0 and low > 0:
            part = 100 * low / total
            of = "its work" if counted else "the time"
            causes.append(
                (part, f"the GPU was in the performance state Minimum for {percent(part)} % of {of}")
            )
    if metal.thermal:
        total = sum(state.seconds for state in metal.thermal)
        hot = [s for s in metal.thermal if holds_down(s.name) and s.seconds > 0]
        if total > 0 and hot:
            part = 100 * sum(state.seconds for state in hot) / total
            names = " and ".join(state.name for state in hot[:2])
            causes.append((part, f"the thermal state was {names} for {percent(part)} % of the time"))
    causes.sort(reverse=True)
    most = causes[0][0] if causes else 0.0
    untold = COOL if metal.thermal else NO_STATES
    if metal.performance:
        untold = "the trace tells no performance state of the time in which the process worked"
    blind = (
        "" if metal.thermal or causes else ", as far as its performance states tell: it has no thermal ones"
    )
    return told(
        metal,
        "gpu.slowed",
        most if known or most > DECIDES else None,
        (PERFORMANCE, THERMAL) if not metal.thermal else (PERFORMANCE,),
        "the larger share: lowest performance state, thermal state other than Nominal",
        remark="; ".join(text for _, text in causes) or f"{NOTHING}{blind}",
        otherwise=untold,
    )


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
    if slowed.value == 0 and slowed.reason == NOTHING:
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
