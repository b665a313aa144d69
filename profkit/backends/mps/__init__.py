"""MPS: what an Apple GPU did (Metal System Trace), and its counters where the chip gives any; by xctrace."""

from __future__ import annotations

from functools import cached_property

from profkit.backends import Findings, Known, Site
from profkit.backends.mps.counters import find_counters, plan_counters
from profkit.backends.mps.trace import find_trace, plan_trace
from profkit.backends.python_passes import find_cprofile, find_tracemalloc, plan_python
from profkit.backends.timing import plan_timing
from profkit.core.types import Backend, Depth, Gpu, PassPlan, PassResult, Plan, Switch
from profkit.profilers.xctrace.find import XctraceAbility, probe_xctrace

# What each depth asks for, in the order it runs.
PASSES: dict[Depth, tuple[str, ...]] = {
    "gate": ("timing", "trace"),
    "standard": ("timing", "cprofile", "tracemalloc", "trace", "counters"),
    "full": ("timing", "cprofile", "tracemalloc", "trace", "counters"),
}
# MPSGraph chooses a kernel anew in each process: in two of five it took one that was two to three times as slow for the
# same product of matrices (M5, github.com/pytorch/pytorch/issues/182815). One process would not know which it had.
PROCESSES: dict[Depth, int] = {"gate": 1, "standard": 3, "full": 5}
_NO_EXPLAIN = "Metal has no counters of single launches that can be recorded from a command line"
_EXPLAIN_FIX = "capture it in Xcode: MTL_CAPTURE_ENABLED=1, then torch.mps.profiler.metal_capture"


class Mps:
    """The MPS backend for one site and its GPUs. xctrace is asked once, when the first plan is made."""

    name: Backend = "mps"
    host_peaks = False

    def __init__(self, site: Site, gpus: tuple[Gpu, ...] = ()) -> None:
        self._site, self.gpus = site, gpus

    @property
    def tools(self) -> dict[str, str]:
        """The version of xctrace, where an asked pass uses it."""
        if not {"trace", "counters"} & set(self._wanted) or self._xctrace.version is None:
            return {}
        return {"xctrace": self._xctrace.version}

    def plan(self, known: Known) -> Plan:
        """The passes in order; what cannot run stands there with its reason."""
        order = (*PASSES["full"], "explain")
        passes = tuple(self._plan(name, known) for name in order if name in self._wanted)
        return Plan(self.name, self._site.depth, passes)

    @property
    def _wanted(self) -> tuple[str, ...]:
        return self._site.wanted or PASSES[self._site.depth]

    def _plan(self, name: str, known: Known) -> PassPlan:
        site = self._site
        if name == "timing":
            return plan_timing(site, PROCESSES[site.depth], Switch("signpost"))
        if name == "cprofile":
            return plan_python(site, known, "cprofile")
        if name == "tracemalloc":
            return plan_python(site, known, "tracemalloc", late=True)
        if name == "trace":
            return plan_trace(site, self._xctrace, known)
        if name == "counters":
            return plan_counters(site, self._xctrace, known)
        return PassPlan("explain", None, skipped=_NO_EXPLAIN, fix=_EXPLAIN_FIX)

    def findings(self, plan: PassPlan, result: PassResult) -> Findings:  # noqa: ARG002 - the files say it all
        """What the artifacts of one pass say."""
        if plan.name == "cprofile":
            return find_cprofile(self._site)
        if plan.name == "tracemalloc":
            return find_tracemalloc(self._site)
        if plan.name == "trace":
            return find_trace(self._site, plan)
        if plan.name == "counters":
            return find_counters(self._site, plan)
        return Findings()

    @cached_property
    def _xctrace(self) -> XctraceAbility:
        return probe_xctrace()
