"""Linux: perf, and callgrind's simulation where there is no PMU."""

from __future__ import annotations

from functools import cached_property

from profkit.backends import Findings, Known, Site
from profkit.backends.cpu.choice import Choice, choose_groups
from profkit.backends.cpu.counting import find_counting, plan_counting
from profkit.backends.cpu.simulation import find_simulation, plan_simulation
from profkit.backends.cpu.trace import find_trace, plan_trace
from profkit.core.types import PassPlan, PassResult
from profkit.profilers.perf.probe import PerfAbility, probe_perf
from profkit.profilers.valgrind.probe import ValgrindAbility, probe_valgrind
from profkit.runtime.passes.command import python_version


class LinuxRecorder:
    """Tools are tried once, when the first plan asks for them."""

    def __init__(self, site: Site) -> None:
        self._site = site

    def tools(self, wanted: tuple[str, ...]) -> dict[str, str | None]:
        """perf, and valgrind where something is counted."""
        found: dict[str, str | None] = {}
        if "trace" in wanted or "counters" in wanted:
            found["perf"] = self._perf.version
        if "counters" in wanted:
            found["valgrind"] = self._valgrind.version
        return found

    def trace(self, known: Known) -> PassPlan:
        """perf record."""
        return plan_trace(self._site, self._perf, self._python, marked=known.marked)

    def counters(self, known: Known) -> list[PassPlan]:
        """perf stat, and the simulation where there is no PMU or all is asked for."""
        plans = [plan_counting(self._site, self._perf, known, self._choice)]
        if not self._perf.hardware_ok or self._site.depth == "full":
            plans.append(plan_simulation(self._site, self._valgrind, known))
        return plans

    def findings(self, plan: PassPlan, result: PassResult) -> Findings:
        """What perf or callgrind left."""
        if plan.name == "trace":
            return find_trace(self._site, result)
        if plan.simulated:
            return find_simulation(self._site, plan)
        return find_counting(self._site, plan, self._choice)

    @cached_property
    def _perf(self) -> PerfAbility:
        return probe_perf()

    @cached_property
    def _choice(self) -> Choice:
        return choose_groups(self._site.machine, self._perf)

    @cached_property
    def _valgrind(self) -> ValgrindAbility:
        return probe_valgrind()

    @cached_property
    def _python(self) -> tuple[int, int] | None:
        python = self._site.workload.python
        version = python_version(python) if python is not None else None
        return version[:2] if version is not None else None
