"""A night's plan: what would be done with each workload, and what it may cost."""

from __future__ import annotations

import shlex

from profkit.core.formatting import figures
from profkit.core.types import NightPlan
from profkit.reporting.night_words import duration
from profkit.reporting.screen import Screen


def render(plan: NightPlan, *, color: bool | None = None, width: int | None = None) -> str:
    """The plan as text of at most `width` (80) columns."""
    screen = Screen(color, width)
    screen.line((f"Plan: {plan.name}", "bold"), ". Nothing was run.")
    for workload in plan.workloads:
        screen.blank()
        if workload.reason is not None:
            screen.line((f"! {workload.name}", "bold red"), f"  cannot run: {workload.reason}", hang=4)
            if workload.fix:
                screen.line(("fix: ", "dim"), workload.fix, indent=4, hang=5)
            continue
        usual = f"took {duration(workload.usual)} last time" if workload.usual is not None else "never ran"
        runs = f", about {figures(workload.runs, 2)} plain runs" if workload.runs is not None else ""
        screen.line(
            (f"+ {workload.name}", "bold"),
            f"  {workload.backend}: {', '.join(workload.passes) or 'no pass'}{runs}; {usual}, "
            f"at most {duration(workload.most)}; decided by {', '.join(workload.gates) or 'nothing'}",
            hang=4,
        )
        screen.line((f"$ {shlex.join(workload.command)}", "dim"), indent=4, hang=2)
        screen.line((f"in {workload.cwd}", "dim"), indent=4, hang=2)
    screen.blank()
    if plan.confirm:
        screen.line(
            f"Each suspect is run again beside the last good commit, {duration(plan.confirm)} at most."
        )
    if plan.calibrate:
        screen.line(f"The same code against itself: {duration(plan.calibrate)} at most.")
    usual = f"{duration(plan.usual)} as it was last time; " if plan.usual is not None else ""
    screen.line(f"In all {usual}{duration(plan.most)} at most, with every re-run.")
    screen.line((f"history: {plan.history}", "dim"), hang=2)
    screen.line((f"nights: {plan.output}", "dim"), hang=2)
    return screen.text()
