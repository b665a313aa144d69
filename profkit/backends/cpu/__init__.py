"""The CPU: timing alone, Python's own instruments, and what the system has to sample and to count.

That is perf on Linux, with a simulation where there is no PMU, and Instruments on macOS.
"""

from __future__ import annotations

from profkit.backends import Findings, Known, Site
from profkit.backends.cpu.linux import LinuxRecorder
from profkit.backends.cpu.macos import MacRecorder
from profkit.backends.cpu.recorder import Recorder
from profkit.backends.python_passes import find_cprofile, find_tracemalloc, plan_python
from profkit.backends.timing import plan_timing
from profkit.core.types import Backend, Depth, Gpu, PassPlan, PassResult, Plan

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
        self._recorder: Recorder = (
            MacRecorder(site) if site.machine.system == "Darwin" else LinuxRecorder(site)
        )

    @property
    def tools(self) -> dict[str, str]:
        """Versions of the tools that the asked passes use."""
        found = self._recorder.tools(self._site.wanted or PASSES[self._site.depth])
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
            return [self._recorder.trace(known)]
        return self._recorder.counters(known)

    def findings(self, plan: PassPlan, result: PassResult) -> Findings:
        """What the artifacts of one pass say."""
        if plan.name == "cprofile":
            return find_cprofile(self._site)
        if plan.name == "tracemalloc":
            return find_tracemalloc(self._site)
        if plan.name in ("trace", "counters"):
            return self._recorder.findings(plan, result)
        return Findings()
