"""What fits into the time that a run may take: which passes are left out for it. Pure: a plan in, a plan out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from profkit.core.types import PassName, PassPlan, Plan, RunDocument

# What says most for its time comes first; of the same rank, what the plan has first: of a Python program its stacks,
# of a device's its trace. The passes still run in the plan's order.
PRIORITY: Mapping[PassName, int] = {
    "timing": 0,
    "trace": 1,
    "stacks": 1,
    "cprofile": 2,
    "tracemalloc": 3,
    "counters": 4,
    "explain": 5,
}


def expected_seconds(planned: PassPlan, plain_seconds: float) -> float:
    """Wall seconds that a pass is expected to take, where one plain run takes `plain_seconds`."""
    if planned.skipped is not None:
        return 0.0
    return plain_seconds * (planned.cost if planned.cost is not None else 1.0)


def keep_to_budget(plan: Plan, done: int, left: float, plain_seconds: float, budget: float) -> Plan:
    """The plan without what would not fit: of its passes after the first `done`, the most telling that do.

    `left`: wall seconds that they may take together, of `budget` for the whole run.
    """
    passes = list(plan.passes)
    for place in sorted(range(done, len(passes)), key=lambda place: PRIORITY[passes[place].name]):
        planned = passes[place]
        seconds = expected_seconds(planned, plain_seconds)
        if seconds <= left:
            left -= seconds
        elif planned.skipped is None:
            passes[place] = replace(
                planned,
                steps=(),
                skipped=f"it would take about {seconds:.0f} s, and {max(0.0, left):.0f} s of the budget of "
                f"{budget:.0f} s are left",
                fix=f"--budget {budget + seconds - left:.0f}",
            )
    return replace(plan, passes=tuple(passes))


def needs_peaks(document: RunDocument) -> bool:
    """Whether anything can be held against the machine's peaks: counted, or declared by the workload."""
    counted = any(
        reading.metric in ("flops", "dram.bytes", "dram.read") and reading.value is not None
        for reading in document.readings
    )
    return counted or any(timing.flops or timing.bytes for timing in document.timings)
