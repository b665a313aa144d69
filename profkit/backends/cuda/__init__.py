"""CUDA: first where the time goes (nsys), then why (ncu), with the fewest replays that answer the question."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cached_property

from profkit.backends import Findings, Known, Site
from profkit.backends.cuda.counters import plan_counters, plan_explain, smaller_may_do
from profkit.backends.cuda.found import find_counters
from profkit.backends.cuda.trace import TORCH, find_trace, plan_torch, plan_trace
from profkit.backends.python_passes import find_cprofile, find_tracemalloc, plan_python
from profkit.backends.timing import plan_timing
from profkit.core.types import Backend, Depth, Gpu, PassPlan, PassResult, Plan, Switch
from profkit.profilers.ncu.probe import NcuAbility, probe_ncu
from profkit.profilers.nsys.probe import NsysAbility, probe_nsys
from profkit.runtime.passes.command import has_module

# What each depth asks for, in the order it runs. docs/cuda.md does the sum in plain runs of the workload.
PASSES: dict[Depth, tuple[str, ...]] = {
    "gate": ("timing", "trace", "counters"),
    "standard": ("timing", "cprofile", "tracemalloc", "trace", "counters", "explain"),
    "full": ("timing", "cprofile", "tracemalloc", "trace", "counters", "explain"),
}
# Processes of the same work on a GPU differ by less than its clocks do within one.
PROCESSES: dict[Depth, int] = {"gate": 1, "standard": 1, "full": 3}

# Triton's autotuner runs every candidate thousands of times. With this it keeps what it found on the disk: the first
# pass tunes, and all later ones launch what that one launched, on which the plan of the counters builds.
TUNED_ONCE = {"TRITON_CACHE_AUTOTUNING": "1"}
# What Triton keeps it writes as JSON, and it raises where a kernel is tuned for something else: for a dtype, say.
UNKEEPABLE = "is not JSON serializable"


class Cuda:
    """The CUDA backend for one site and its devices. Tools are tried once, when the first plan is made."""

    name: Backend = "cuda"
    host_peaks = False

    def __init__(self, site: Site, gpus: tuple[Gpu, ...]) -> None:
        self._site, self.gpus = site, gpus

    @property
    def tools(self) -> dict[str, str]:
        """Versions of the tools that the asked passes use."""
        wanted = self._wanted
        found: dict[str, str | None] = {}
        if "trace" in wanted:
            found["nsys"] = self._nsys.version
        if "counters" in wanted or "explain" in wanted:
            found["ncu"] = self._ncu.version
        return {name: version for name, version in found.items() if version is not None}

    def plan(self, known: Known) -> Plan:
        """The passes in order; what cannot run stands there with its reason.

        A trace by nsys that failed is followed by one of torch's profiler: without a trace there is nothing to count.
        """
        passes: list[PassPlan] = []
        for name in PASSES["full"]:
            if name in self._wanted:
                passes += self._plan(name, known)
        if known.failed is None or UNKEEPABLE not in known.failed:
            passes = [_tuned_once(planned) for planned in passes]
        return Plan(self.name, self._site.depth, tuple(passes))

    @property
    def _wanted(self) -> tuple[str, ...]:
        return self._site.wanted or PASSES[self._site.depth]

    def _plan(self, name: str, known: Known) -> list[PassPlan]:
        site = self._site
        if name == "timing":
            return [plan_timing(site, PROCESSES[site.depth], Switch("cuda"))]
        if name == "cprofile":
            return [plan_python(site, known, "cprofile")]
        if name == "tracemalloc":
            return [plan_python(site, known, "tracemalloc", late=True)]
        if name == "trace":
            return self._trace(known)
        if name == "counters":
            return self._counters(known)
        return [plan_explain(site, self._ncu, known, self._chip)]

    def _trace(self, known: Known) -> list[PassPlan]:
        plans = [plan_trace(self._site, self._nsys, known, ranges=self._ranges)]
        traces = [result for result in known.passes if result.name == "trace"]
        failed = next(
            (result for result in traces if result.tool == "nsys" and result.state == "failed"), None
        )
        if failed is not None and (known.trace is None or any(result.tool == TORCH for result in traces)):
            why = f"nsys failed: {failed.reason}"
            plans.append(plan_torch(self._site, known, why, failed.fix, "trace-torch"))
        return plans

    def _counters(self, known: Known) -> list[PassPlan]:
        """One pass; where the set was too much for this machine, one more with the smallest."""
        plans = [plan_counters(self._site, self._ncu, known, self._chip)]
        if self._site.depth != "gate" and any(smaller_may_do(result) for result in known.passes):
            plans.append(plan_counters(self._site, self._ncu, known, self._chip, again=True))
        return plans

    def findings(self, plan: PassPlan, result: PassResult) -> Findings:  # noqa: ARG002 - the files say it all
        """What the artifacts of one pass say."""
        if plan.name == "cprofile":
            return find_cprofile(self._site)
        if plan.name == "tracemalloc":
            return find_tracemalloc(self._site)
        if plan.name == "trace":
            return find_trace(self._site, plan)
        if plan.name in ("counters", "explain"):
            return find_counters(self._site, plan)
        return Findings()

    @cached_property
    def _probed(self) -> tuple[NsysAbility, NcuAbility]:
        """What both tools can do, asked side by side, since it comes before every run.

        nsys is not tried: a trace that fails is made once more by torch's profiler.
        """
        with ThreadPoolExecutor(max_workers=2) as pool:
            nsys, ncu = pool.submit(probe_nsys, trial=False), pool.submit(probe_ncu)
            return nsys.result(), ncu.result()

    @property
    def _nsys(self) -> NsysAbility:
        return self._probed[0]

    @property
    def _ncu(self) -> NcuAbility:
        return self._probed[1]

    @cached_property
    def _ranges(self) -> bool:
        """Whether a region in the workload can write NVTX ranges."""
        workload = self._site.workload
        return workload.python is not None and has_module(workload.python, "nvtx", workload.folder)

    @property
    def _chip(self) -> str | None:
        return self.gpus[0].chip if self.gpus else None


def _tuned_once(planned: PassPlan) -> PassPlan:
    """The pass with steps in which Triton tunes nothing that an earlier step has tuned; what the user set stays."""
    env = {name: value for name, value in TUNED_ONCE.items() if name not in os.environ}
    return replace(planned, steps=tuple(replace(step, env={**env, **step.env}) for step in planned.steps))
