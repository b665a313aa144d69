"""The CPU: timing alone, Python's own instruments, perf, and simulation where there is no PMU."""

from __future__ import annotations

from functools import cached_property

from profkit.backends import Findings, Known, Site
from profkit.backends.cpu.choice import Choice, choose_groups
from profkit.backends.cpu.counting import find_counting, plan_counting
from profkit.backends.cpu.simulation import find_simulation, plan_simulation
from profkit.backends.cpu.trace import find_trace, plan_trace
from profkit.backends.python_passes import find_cprofile, find_tracemalloc, plan_python
from profkit.backends.timing import plan_timing
from profkit.model import Backend, Depth, Gpu, PassPlan, PassResult, Plan
from profkit.passes.interpreter import python_version
from profkit.tools.perf.probe import PerfAbility, probe_perf
from profkit.tools.valgrind.probe import ValgrindAbility, probe_valgrind

# What each depth asks for, in the order it runs: first what needs no tool, last what takes longest.
PASSES: dict[Depth, tuple[str, ...]] = {
    "gate": ("timing", "counters"),
    "standard": ("timing", "cprofile", "tracemalloc", "trace", "counters"),
    "full": ("timing", "cprofile", "tracemalloc", "trace", "counters"),
}


class Cpu:
    """The CPU backend for one site. Tools are tried once, when the first plan is made."""

    name: Backend = "cpu"
    host_peaks = True
    gpus: tuple[Gpu, ...] = ()

    def __init__(self, site: Site) -> None:
        self._site = site

    @property
    def tools(self) -> dict[str, str]:
        """Versions of the tools that the asked passes use."""
        wanted = self._site.wanted or PASSES[self._site.depth]
        found: dict[str, str | None] = {}
        if "trace" in wanted or "counters" in wanted:
            found["perf"] = self._perf.version
        if "counters" in wanted:
            found["valgrind"] = self._valgrind.version
        return {name: version for name, version in found.items() if version is not None}

    def plan(self, known: Known) -> Plan:
        """The passes in order; what cannot run stands there with its reason."""
        wanted = self._site.wanted or PASSES[self._site.depth]
        passes: list[PassPlan] = []
        for name in PASSES["full"]:
            if name in wanted:
                passes += self._plan(name, known)
        return Plan(self.name, self._site.depth, tuple(passes))

    def _plan(self, name: str, known: Known) -> list[PassPlan]:
        site = self._site
        if name == "timing":
            return [plan_timing(site)]
        if name == "cprofile":
            return [plan_python(site, known, "cprofile")]
        if name == "tracemalloc":
            return [plan_python(site, known, "tracemalloc")]
        if name == "trace":
            return [plan_trace(site, self._perf, self._python, marked=known.marked)]
        plans = [plan_counting(site, self._perf, known, self._choice)]
        if not self._perf.hardware_ok or site.depth == "full":
            plans.append(plan_simulation(site, self._valgrind, known))
        return plans

    def findings(self, plan: PassPlan, result: PassResult) -> Findings:
        """What the artifacts of one pass say."""
        if plan.name == "cprofile":
            return find_cprofile(self._site)
        if plan.name == "tracemalloc":
            return find_tracemalloc(self._site)
        if plan.name == "trace":
            return find_trace(self._site, result)
        if plan.name == "counters":
            if plan.simulated:
                return find_simulation(self._site, plan)
            return find_counting(self._site, plan, self._choice)
        return Findings()

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
