"""How the warps of each kernel ran: lanes at work, instructions per cycle, and what warps waited for."""

from __future__ import annotations

from collections.abc import Sequence

from profkit.analysis.summaries.kernel_table import Cell, Column, kernel_table, of
from profkit.analysis.summaries.kernels import KernelRow
from profkit.core.formatting import figures, percent, shortened
from profkit.core.types import Reading, Summary

STALL = "stall."
SHOWN = 3  # reasons in a row: what comes after the third is seldom worth work


def summarize_execution(rows: Sequence[KernelRow], missing: Sequence[Reading] = ()) -> Summary:
    """Lanes at work, branches, instructions per cycle."""
    table = kernel_table("Warps and issue", rows, _EXECUTION)
    top = next((row for row in rows if row.value("warp.execution_efficiency") is not None), None)
    if top is None:
        reason = next((r.reason for r in missing if r.reason), "no counter tells it")
        headline = f"How many lanes of a warp work is not known: {reason}."
    else:
        lanes = top.value("warp.execution_efficiency") or 0.0
        ipc = top.value("ipc")
        rate = f", {figures(ipc)} instructions per cycle" if ipc is not None else ""
        headline = f"In {top.brief} {percent(lanes)} % of the lanes of an executed instruction work{rate}."
    return Summary("execution", headline, tuple(missing), (table,) if table is not None else ())


def stalls(row: KernelRow) -> list[tuple[str, float]]:
    """What warps of this kernel waited for, longest first: the reason in ncu's word, warps per issued instruction."""
    found = [
        (name[len(STALL) :], reading.value)
        for name, reading in row.readings.items()
        if name.startswith(STALL) and reading.value is not None and reading.value > 0
    ]
    return sorted(found, key=lambda pair: -pair[1])


def summarize_stalls(rows: Sequence[KernelRow]) -> Summary:
    """The longest stalls of each kernel, with their share of all that its warps waited."""
    columns = tuple(Column(title, _nth(number)) for number, title in enumerate(("most", "then", "and")))
    table = kernel_table("What warps wait for", rows, columns)
    top = next((row for row in rows if stalls(row)), None)
    if top is None:
        return Summary("stalls", "What the warps wait for was not counted.")
    name, value = stalls(top)[0]
    share = 100 * value / sum(part for _, part in stalls(top))
    headline = (
        f"Warps of {top.brief} wait most for {MEANINGS.get(name, name)}: {percent(share)} % of their cycles."
    )
    notes = [
        f"{word}: {meaning}."
        for word, meaning in MEANINGS.items()
        if any(word == name for row in rows[:5] for name, _ in stalls(row)[:SHOWN])
    ]
    return Summary("stalls", headline, (), (table,) if table is not None else (), tuple(notes))


def _nth(number: int) -> Cell:
    def cell(row: KernelRow) -> str | None:
        found = stalls(row)
        if number >= len(found):
            return None
        name, value = found[number]
        return f"{shortened(name, 20)} {percent(100 * value / sum(part for _, part in found))} %"

    return cell


# After the "Warp Stall Reasons" of NVIDIA's Nsight Compute documentation (Profiling Guide, Metrics Reference).
MEANINGS = {
    "long_scoreboard": "data from global, local or texture memory",
    "short_scoreboard": "data from shared memory, special functions or a dynamic branch",
    "barrier": "the other warps of its block at a barrier",
    "math_pipe_throttle": "a free arithmetic pipe",
    "lg_throttle": "room in the queue of global and local memory instructions",
    "mio_throttle": "room in the queue of shared memory and special instructions",
    "tex_throttle": "room in the queue of the texture unit",
    "wait": "the fixed latency of its own instruction before",
    "not_selected": "its turn: another warp was chosen",
    "selected": "nothing: it issued",
    "no_instruction": "its next instruction to be fetched",
    "no_instructions": "its next instruction to be fetched",
    "imc_miss": "a constant to come into its cache",
    "drain": "its stores to leave before it ends",
    "membar": "a memory barrier",
    "branch_resolving": "a branch target to be computed",
    "dispatch_stall": "the dispatcher",
    "sleeping": "itself: all its lanes sleep or yield",
    "misc": "something that has no name",
    "gmma": "an asynchronous matrix operation (tensor cores)",
    "tma": "the tensor memory accelerator",
}
_EXECUTION = (
    of("lanes", "warp.execution_efficiency"),
    of("not predicated off", "warp.predicated_efficiency"),
    of("uniform branches", "branch.efficiency"),
    of("divergent", "branch.divergent", rare=True),
    of("IPC", "ipc", bare=True),
    of("issue slots", "issue.active"),
    of("eligible warps", "warps.eligible", bare=True),
    of("SM busy", "sm.throughput"),
)
