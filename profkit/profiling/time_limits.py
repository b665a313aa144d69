"""Decides how long a process of a pass may take, and which passes fit into the time of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from profkit.core.types import Depth, Fact, PassName, PassPlan

# A pass that takes longer than twice its plan plus so many seconds is ended and reported: users rely on the plan. A
# tool needs some seconds, and up to a minute, to save its recording, however short the program is. At full depth
# nothing is cut, and the plan is no bound: tracemalloc with a deep stack takes 200 normal runs, fused multiply-adds in
# valgrind 3,000.
PATIENCE, PATIENCE_OF_TOOL, PATIENCE_AT_FULL = (2.0, 20.0), (2.0, 60.0), (40.0, 600.0)
REPEATED = (10.0, 60.0)  # the same of a normal run after the first one, and of the longest before
UNKNOWN_SECONDS = 600.0  # under an instrument, where no normal run was timed


def time_limit(plan: PassPlan, depth: Depth, plain_seconds: float | None, requested: float | None) -> float:
    """Return the wall seconds after which a process of the pass is ended.

    `requested` is the user's limit for each process. What the plan itself ends, so that its report stays in
    bounds, gets no more than the plan gives it.
    """
    if plan.limit is not None and any(step.cut or step.own_limit for step in plan.steps):
        return min(plan.limit, requested if requested is not None else plan.limit)
    if requested is not None:
        return requested
    if plan.limit is not None:
        return plan.limit
    if plain_seconds is None:
        return UNKNOWN_SECONDS
    usual = PATIENCE if plan.tool is None else PATIENCE_OF_TOOL
    runs, seconds = PATIENCE_AT_FULL if depth == "full" else usual
    return runs * max(1.0, plan.cost or 1.0) * plain_seconds + seconds


def plain_time_limit(longest: float | None, requested: float | None, left: float | None) -> float | None:
    """Return the wall seconds for a normal run; None: as many as it needs, which holds for the first one.

    `longest`: seconds of the longest so far; `requested`: the user's limit for each; `left`: seconds for all others.
    """
    if requested is None and longest is not None:
        requested = REPEATED[0] * longest + REPEATED[1]
    limits = [limit for limit in (requested, left) if limit is not None]
    return max(0.1, min(limits)) if limits else None


# ------------------------------------------------------------ what fits into the time of a run

# A pass that fits exactly would be ended by any delay: two of eleven runs lost the explanation of their kernels by 2 %.
SLACK = 1.25

# The most informative passes for their time come first; of equal rank, the first of the plan: the stacks of a Python
# program, the trace of one on a device. The passes still run in the plan's order.
PRIORITY: Mapping[PassName, int] = {
    "timing": 0,
    "trace": 1,
    "stacks": 1,
    "counters": 2,
    "cprofile": 3,
    "explain": 4,
    "try": 5,
    "tracemalloc": 6,
}


def keep_to_budget(
    waiting: Sequence[PassPlan],
    left: float,
    plain_seconds: float,
    budget: float,
    kept: Mapping[PassName, float] = MappingProxyType({}),
    allowance: tuple[float, float] | None = None,
    trials: float = 0.0,
) -> tuple[PassPlan, ...]:
    """Return the waiting passes, some shortened or skipped so that all fit; the most informative come first.

    `left`: wall seconds that they may take together, of `budget` for the whole run. `kept`: by how many seconds all may
    exceed that so that a pass runs; those that may most come first. `allowance`: the normal runs and seconds of
    profkit's own limit, from which `budget` follows; None where it is the user's. A pass that may be cut gets the least
    that it needs, so that there is time for the others, and at the end what they leave. `trials`: seconds for trials,
    which are not among the passes: those that say less leave them, if so many are left.
    """
    passes = list(waiting)
    beyond = 0.0  # seconds by which the passes that are kept exceed the budget
    wanted: dict[int, float] = {}  # of passes that got less time than they would take
    for place in sorted(
        range(len(passes)), key=lambda at: (-kept.get(passes[at].name, 0.0), PRIORITY[passes[at].name])
    ):
        planned = passes[place]
        seconds = plain_seconds * (planned.cost if planned.cost is not None else 1.0)
        if planned.skipped is not None:
            continue
        if trials <= left and PRIORITY[planned.name] > PRIORITY["try"]:
            left, trials = left - trials, 0.0
        finish = planned.steps[0].finish if planned.steps else 0.0
        need = min(seconds, planned.least or seconds)
        if left < need <= left - beyond + kept.get(planned.name, 0.0):
            beyond, left = beyond + need - left, need
        if planned.least is not None and planned.least < seconds and left >= planned.least:
            wanted[place], seconds = seconds, planned.least
        if seconds <= left:
            # End the pass with the budget, unless it is kept and would have nothing to show when cut: the simulation of
            # a region has counted nothing until it gets there.
            if planned.limit is not None and (planned.least is not None or planned.name not in kept):
                most = max(left - finish, SLACK * seconds, planned.least or 0.0)
                passes[place] = replace(planned, limit=min(planned.limit, most))
            left -= seconds
        else:
            runs, more = allowance or (0.0, 0.0)
            limit = runs * plain_seconds + more if allowance is not None else budget
            of = {"left": max(0.0, left), "budget": limit, "runs": runs, "more": more}
            reason = Fact.of("over-budget", seconds=seconds, **of)
            passes[place] = planned.skip(reason, f"--budget {budget + beyond + seconds - left:.0f}")
    if trials <= left:
        left -= trials
    for place, most in wanted.items():
        planned = passes[place]
        seconds = min(most, (planned.least or 0.0) + left)
        finish = min(1.0, planned.steps[0].finish)
        limit = min(planned.limit or seconds, seconds - finish)
        # Its limit may be lower: a tool may take its time to write its report. Then it takes no longer than that.
        seconds = min(seconds, limit + finish)
        left -= seconds - (planned.least or 0.0)
        passes[place] = replace(planned, limit=limit, cost=seconds / plain_seconds)
    return tuple(passes)
