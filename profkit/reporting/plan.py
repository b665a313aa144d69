"""A plan for `profile --plan`: each pass, what it collects, its expected cost, and what is skipped."""

from __future__ import annotations

import json
from collections.abc import Sequence

from profkit.analysis.kernel_names import labels
from profkit.core.codec import plain
from profkit.core.formatting import percent, plural, quantity
from profkit.core.types import PassPlan, Plan
from profkit.reporting.screen import Screen

COUNTERS, FEW = 24, 8  # more counters than that are a wall of names; so many of them show what kind they are
PLAN_SCHEMA = "profkit.plan/1"


def render(plan: Plan, *, color: bool | None = None, width: int | None = None) -> str:
    """The plan as text of at most `width` (80) columns."""
    screen = Screen(color, width)
    screen.line((f"Plan: {plan.backend}, depth {plan.depth}", "bold"), ". Nothing was run.")
    for planned in plan.passes:
        screen.blank()
        _pass(screen, planned)
    screen.blank()
    screen.line(_total(plan), hang=2)
    return screen.text()


def render_json(plan: Plan) -> str:
    """The plan as one JSON document: schema "profkit.plan/1" and the plan's fields."""
    body = plain(plan)
    assert isinstance(body, dict)
    return json.dumps({"schema": PLAN_SCHEMA, **body}, ensure_ascii=False, allow_nan=False, indent=1) + "\n"


def _pass(screen: Screen, planned: PassPlan) -> None:
    tool = f" ({planned.tool})" if planned.tool else ""
    if planned.skipped is not None:
        screen.line((f"- {planned.name}{tool}", "bold"), ("  skipped: ", "yellow"), planned.skipped, hang=4)
        if planned.fix:
            screen.line(("fix: ", "dim"), planned.fix, indent=4, hang=5)
        return
    simulated = ", simulated" if planned.simulated else ""
    side = ", side by side" if planned.parallel and len(planned.steps) > 1 else ""
    runs = plural(len(planned.steps), "run")
    screen.line(
        (f"+ {planned.name}{tool}", "bold"),
        f"  {runs} of the workload{side}{simulated}; {_cost(planned)}",
        hang=4,
    )
    if planned.counters:
        screen.line(("counters: ", "dim"), _named(planned.counters), indent=4, hang=2)
    if planned.kernels:
        _kernels(screen, planned)
    if planned.cost_note:
        screen.line((f"cost: {planned.cost_note}", "dim"), indent=4, hang=2)
    if planned.limit is not None:
        screen.line((f"ended after {planned.limit:g} s a run", "dim"), indent=4, hang=2)
    for note in planned.notes:
        screen.line((note, "dim"), indent=4, hang=2)


def _named(counters: Sequence[str]) -> str:
    """All of them, or of a hundred the first few: their names are long."""
    if len(counters) <= COUNTERS:
        return ", ".join(counters)
    return f"{', '.join(counters[:FEW])} and {len(counters) - FEW} more (--format json has them all)"


def _kernels(screen: Screen, planned: PassPlan) -> None:
    """What is counted: each launch configuration, its share, and what counting it costs."""
    chosen = planned.kernels
    names = labels([(one.kernel.name, one.kernel.id) for one in chosen])
    share = percent(100 * sum(one.share for one in chosen))
    screen.line(f"{plural(len(chosen), 'launch configuration')}, {share} % of the GPU time:", indent=4)
    columns = ("kernel", "GPU time", "launch", "replay passes", "takes")
    rows = tuple(
        (
            names[one.kernel.name, one.kernel.id],
            f"{percent(100 * one.share)} %",
            str(one.launch + 1) if one.launch is not None else "-",
            str(one.replays) if one.replays is not None else "-",
            quantity(one.seconds, "s"),
        )
        for one in chosen
    )
    kept = [n for n in range(len(columns)) if n == 0 or any(row[n] != "-" for row in rows)]
    screen.table(
        tuple(columns[n] for n in kept), tuple(tuple(row[n] for n in kept) for row in rows), indent=4
    )


def _cost(planned: PassPlan) -> str:
    if planned.cost is None and planned.seconds is None:
        return "cost not known"
    if planned.cost is None:
        return f"about {quantity(planned.seconds, 's')}"
    wall = f" ({quantity(planned.seconds, 's')})" if planned.seconds is not None else ""
    return f"about {_times(planned.cost)} the time of a plain run{wall}"


def _times(cost: float) -> str:
    return f"{cost:.1f} times" if cost < 10 else f"{cost:.0f} times"


def _total(plan: Plan) -> str:
    running = [p for p in plan.passes if p.skipped is None]
    known = [p.cost for p in running if p.cost is not None]
    skipped = len(plan.passes) - len(running)
    apart = f", {skipped} skipped" if skipped else ""
    words = f"In all {plural(len(running), 'pass', 'passes')}{apart}"
    if not known:
        return f"{words}."
    more = " and what is not known" if len(known) < len(running) else ""
    return f"{words}: about {_times(sum(known))} the time of a plain run{more}."
