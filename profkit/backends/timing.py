"""The timing pass of every backend: the workload alone, several processes so that a lucky memory layout is seen."""

from __future__ import annotations

from profkit.backends import Site
from profkit.core.types import Depth, Directive, PassPlan, Step, Switch

PROCESSES: dict[Depth, int] = {"gate": 1, "standard": 3, "full": 5}


def plan_timing(site: Site, processes: int | None = None, switch: Switch | None = None) -> PassPlan:
    """One step per process; a workload that marks nothing is timed whole, as often as it takes.

    `switch`: for a device, at whose work a region's ends wait.
    """
    count = processes if processes is not None else PROCESSES[site.depth]
    steps = tuple(
        Step(
            f"timing-{number}",
            site.workload.command,
            directive=Directive(
                "timing",
                str(site.folder / "artifacts" / f"timing-{number}"),
                switch,
                precision=site.precision,
                budget=site.budget,
                cold=site.cold,
            ),
        )
        for number in range(1, count + 1)
    )
    return PassPlan(
        "timing",
        None,
        steps,
        cost=float(count),
        cost_note="one plain run each",
        notes=(
            f"±{100 * site.precision:g} % asked, up to {site.budget:g} s of samples in each process",
            *(("cold: the device's L2 is flushed before each call",) if site.cold else ()),
        ),
    )
