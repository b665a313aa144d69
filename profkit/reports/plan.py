"""A plan for `profile --plan`: each pass, what it collects, its expected cost, and what is skipped."""

from __future__ import annotations

import json

from profkit.codec import plain
from profkit.model import PassPlan, Plan
from profkit.reports.screen import Screen
from profkit.words import plural

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
        screen.line(("counters: ", "dim"), ", ".join(planned.counters), indent=4, hang=2)
    if planned.cost_note:
        screen.line((f"cost: {planned.cost_note}", "dim"), indent=4, hang=2)
    if planned.limit is not None:
        screen.line((f"ended after {planned.limit:g} s a run", "dim"), indent=4, hang=2)
    for note in planned.notes:
        screen.line((note, "dim"), indent=4, hang=2)


def _cost(planned: PassPlan) -> str:
    if planned.cost is None:
        return "cost not known"
    return f"about {_times(planned.cost)} the time of a plain run"


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
