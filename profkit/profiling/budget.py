"""What fits into the time that a run may take: which passes are left out for it. Pure: a plan in, a plan out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from profkit.core.types import Fact, PassName, PassPlan, Plan, RunDocument

# What says most for its time comes first; of the same rank, what the plan has first: of a Python program its stacks,
# of a device's its trace. The passes still run in the plan's order.
PRIORITY: Mapping[PassName, int] = {
    "timing": 0,
    "trace": 1,
    "stacks": 1,
    "cprofile": 2,
    "counters": 3,
    "explain": 4,
    "tracemalloc": 5,
}

LEAST_CUT = 4.0  # seconds: a simulation of less says little
REPORT_SECONDS = 1.0  # that a pass takes to write what it has seen, once its limit has ended it


def expected_seconds(planned: PassPlan, plain_seconds: float | None) -> float | None:
    """Wall seconds that a pass is expected to take; None where nobody knows. `plain_seconds`: of one plain run."""
    if planned.skipped is not None:
        return 0.0
    if planned.seconds is not None:
        return planned.seconds
    return planned.cost * plain_seconds if planned.cost is not None and plain_seconds is not None else None


def _may_end_early(planned: PassPlan) -> bool:
    """Whether what it has seen by then is worth having: a program's beginning, not a window that is yet to come."""
    steps = planned.steps
    return bool(steps) and all(
        step.cut and (step.directive is None or step.directive.delay is None) for step in steps
    )


def _priority(planned: PassPlan) -> tuple[bool, int]:
    """Its place among those that compete for the time. What has to wait for a window says least for its time."""
    waits = planned.simulated and not _may_end_early(planned)
    return waits, PRIORITY[planned.name]


def keep_to_budget(plan: Plan, done: int, left: float, plain_seconds: float, budget: float) -> Plan:
    """The plan without what would not fit: of its passes after the first `done`, the most telling that do.

    A pass that may end early gets what is left in place of its own limit, where that is some seconds.

    `left`: wall seconds that they may take together, of `budget` for the whole run.
    """
    passes = list(plan.passes)
    waiting = sorted(range(done, len(passes)), key=lambda place: _priority(passes[place]))
    for place in waiting:
        planned = passes[place]
        seconds = expected_seconds(planned, plain_seconds)
        if seconds is None:
            seconds = plain_seconds
        cut = _may_end_early(planned) and left >= LEAST_CUT + REPORT_SECONDS
        if cut and seconds + REPORT_SECONDS > left:
            passes[place] = replace(planned, limit=left - REPORT_SECONDS, seconds=left)
            left = 0.0
        elif seconds <= left:
            left -= seconds
        elif planned.skipped is None:
            passes[place] = replace(
                planned,
                steps=(),
                skipped=Fact.of("over-budget", seconds=seconds, left=max(0.0, left), budget=budget),
                fix=f"--budget {budget + seconds - left:.0f}",
            )
    return replace(plan, passes=tuple(passes))


def may_need_peaks(document: RunDocument) -> bool:
    """Whether time is kept for them: a window of a whole Python program counts no totals."""
    return document.workload.python is None or any(one.kind != "process" for one in document.timings)


def needs_peaks(document: RunDocument) -> bool:
    """Whether anything can be held against the machine's peaks: counted, or declared by the workload."""
    counted = any(
        reading.metric in ("flops", "dram.bytes", "dram.read") and reading.value is not None
        for reading in document.readings
    )
    return counted or any(timing.flops or timing.bytes for timing in document.timings)
