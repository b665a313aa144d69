"""The passes of a run on CUDA: first where the time goes (nsys), then why (ncu), with as few replays as will do."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import ClassVar

from profkit.backends import PassFindings, PlanState
from profkit.backends.cuda.counters import plan_counters, plan_explain, smaller_may_do
from profkit.backends.cuda.kernels import read_counters
from profkit.backends.cuda.trace import (
    EXPORT_SECONDS,
    NSYS_SECONDS,
    TORCH,
    plan_torch,
    plan_trace,
    read_trace,
)
from profkit.backends.passes import ALL_PASSES, DEVICE_PASSES, PassTable, PlannedRun, plain_runs
from profkit.core.errors import UnreadableReport
from profkit.core.files.regular import read_bounded_text
from profkit.core.status import status_wrapper
from profkit.core.types import Depth, PassName, PassPlan, PassResult, Plan, Switch
from profkit.profilers.ncu.probe import NcuAbility, probe_ncu
from profkit.profilers.nsys.command import export_argv, nsys_argv
from profkit.profilers.nsys.probe import probe_nsys
from profkit.profilers.programs import ToolAbility
from profkit.profilers.registry import recognise_format
from profkit.runtime.passes.command import has_module
from profkit.runtime.passes.host.operation_lines import VARIABLE

# Triton's autotuner runs every candidate thousands of times. With this it keeps what it found on the disk: the first
# pass tunes, and all later ones launch what that one launched, on which the plan of the counters builds.
TUNED_ONCE = {"TRITON_CACHE_AUTOTUNING": "1"}
# What Triton keeps it writes as JSON, and it raises where a kernel is tuned for something else: for a dtype, say.
UNKEEPABLE = "is not JSON serializable"


class CudaRun(PlannedRun):
    """The passes for one workload and its devices."""

    name = "cuda"
    passes: ClassVar[PassTable] = {
        "gate": ("timing", "trace", "counters"),
        "standard": (*DEVICE_PASSES, "explain"),
        "full": (*ALL_PASSES, "explain"),
    }
    # Processes of the same work on a GPU differ by less than its clocks do within one.
    processes: ClassVar[Mapping[Depth, int]] = {"gate": 1, "standard": 1, "full": 3}
    switch = Switch("cuda")
    late_allocations = True

    def tool_versions(self) -> dict[str, str | None]:
        """nsys and ncu, where they are used."""
        versions: dict[str, str | None] = {}
        if "trace" in self.wanted:
            versions["nsys"] = self._nsys.version
        if "counters" in self.wanted or "explain" in self.wanted:
            versions["ncu"] = self._ncu.version
        return versions

    def plan(self, state: PlanState) -> Plan:
        """The passes, in which Triton tunes once; the stacks are sampled once nsys is known to work."""
        plan = super().plan(state)
        plan = replace(plan, passes=self._stacks_after_trace(plan.passes, state))
        if state.failed is not None and UNKEEPABLE in state.failed:
            return plan
        return replace(plan, passes=tuple(_tuned_once(planned) for planned in plan.passes))

    def _stacks_after_trace(self, passes: tuple[PassPlan, ...], state: PlanState) -> tuple[PassPlan, ...]:
        traces = [number for number, planned in enumerate(passes) if planned.name == "trace"]
        stacks = [planned for planned in passes if planned.name == "stacks"]
        if not traces or not stacks:
            return passes
        before, after = passes[: traces[-1] + 1], passes[traces[-1] + 1 :]
        if self._can_record_operations(state):
            assert self._nsys.path is not None
            folder = self.context.folder
            stacks = [record_operations(planned, folder, self._nsys.path, state) for planned in stacks]
        return (*(planned for planned in before if planned.name != "stacks"), *stacks, *after)

    def _can_record_operations(self, state: PlanState) -> bool:
        """Whether nsys takes NVTX ranges here, as far as is known by now, and torch is there to write them."""
        traces = [result for result in state.passes if result.name == "trace"]
        fine = all(result.tool == "nsys" and result.state == "finished" for result in traces)
        return fine and self._nsys.works and self._torch

    def plan_pass(self, name: PassName, state: PlanState) -> list[PassPlan]:
        """The trace, the counters of the kernels in it, and what explains those that missed a target."""
        if name == "trace":
            return self._plan_trace(state)
        if name == "counters":
            return self._plan_counters(state)
        return [plan_explain(self.context, self._ncu, state, self._chip)]

    def _plan_trace(self, state: PlanState) -> list[PassPlan]:
        """One pass; where nsys failed, one more by torch's profiler: without a trace there is nothing to count."""
        plans = [plan_trace(self.context, self._nsys, state, ranges=self._ranges)]
        traces = [result for result in state.passes if result.name == "trace"]
        failed = next(
            (result for result in traces if result.tool == "nsys" and result.state == "failed"), None
        )
        if failed is not None and (state.trace is None or any(result.tool == TORCH for result in traces)):
            why = f"nsys failed: {failed.reason}"
            plans.append(plan_torch(self.context, state, why, failed.fix, "trace-torch"))
        return plans

    def _plan_counters(self, state: PlanState) -> list[PassPlan]:
        """One pass; where the set was too much for this machine, one more with the smallest."""
        plans = [plan_counters(self.context, self._ncu, state, self._chip)]
        if self.context.depth != "gate" and any(smaller_may_do(result) for result in state.passes):
            plans.append(plan_counters(self.context, self._ncu, state, self._chip, again=True))
        return plans

    def findings(self, plan: PassPlan, result: PassResult) -> PassFindings:
        """What a pass left; beside the sampled stacks what launched each kernel."""
        findings = super().findings(plan, result)
        return add_launchers(findings, self.context.folder) if plan.name == "stacks" else findings

    def read_pass(self, plan: PassPlan, result: PassResult) -> PassFindings:  # noqa: ARG002 - the files say it all
        """The trace, or the counters of each kernel."""
        return (read_trace if plan.name == "trace" else read_counters)(self.context, plan)

    @cached_property
    def _probed(self) -> tuple[ToolAbility, NcuAbility]:
        """What both tools can do, asked side by side, since it comes before every run.

        nsys is not tried: a trace that fails is made once more by torch's profiler.
        """
        with ThreadPoolExecutor(max_workers=2) as pool:
            nsys, ncu = pool.submit(probe_nsys, trial=False), pool.submit(probe_ncu)
            return nsys.result(), ncu.result()

    @property
    def _nsys(self) -> ToolAbility:
        return self._probed[0]

    @property
    def _ncu(self) -> NcuAbility:
        return self._probed[1]

    @cached_property
    def _ranges(self) -> bool:
        """Whether a region in the workload can write NVTX ranges."""
        workload = self.context.workload
        return workload.python is not None and has_module(workload.python, "nvtx", workload.folder)

    @cached_property
    def _torch(self) -> bool:
        workload = self.context.workload
        return workload.python is not None and has_module(workload.python, "torch", workload.folder)

    @property
    def _chip(self) -> str | None:
        return self.gpus[0].chip if self.gpus else None


def _tuned_once(planned: PassPlan) -> PassPlan:
    """The pass with steps in which Triton tunes nothing that an earlier step has tuned; what the user set stays."""
    env = {name: value for name, value in TUNED_ONCE.items() if name not in os.environ}
    return replace(planned, steps=tuple(replace(step, env={**env, **step.env}) for step in planned.steps))


# ------------------------------------------------------------ which line launched each kernel

# Recorded by nsys beside the sampled stacks, not in the trace: to write each operation as an NVTX range costs the host
# 2.9 us. A step of a GPT that keeps an H100 busy for 95 % of 25.4 ms took 33 ms so, and the GPU seemed to wait for its
# host for a quarter of it. In the process whose stacks are sampled no time of the device counts.

SWITCHED_OFF = "artifacts/stacks.jsonl.operations"
REPORT, EXPORT = "artifacts/operations.nsys-rep", "artifacts/operations.sqlite"


def record_operations(plan: PassPlan, folder: Path, nsys: Path, state: PlanState) -> PassPlan:
    """The pass with its one step traced by nsys, in which each call into torch is a range."""
    if plan.skipped is not None or len(plan.steps) != 1:
        return plan
    step = plan.steps[0]
    status = folder / "artifacts" / f"{step.name}.status"
    traced = replace(
        step,
        argv=nsys_argv(status_wrapper(step.argv, status), folder / REPORT, marked=False, nsys=str(nsys)),
        artifacts=(*step.artifacts, REPORT, EXPORT),
        env={**step.env, VARIABLE: "1"},
        tool="nsys",
        workload_status=str(status),
        after=(export_argv(folder / REPORT, folder / EXPORT, nsys=str(nsys)),),
    )
    more = plain_runs(NSYS_SECONDS + EXPORT_SECONDS, state)
    return replace(
        plan,
        steps=(traced,),
        cost=plan.cost + more if plan.cost is not None else None,
        notes=(*plan.notes, "nsys tells which operation and line launched each kernel"),
    )


def add_launchers(findings: PassFindings, folder: Path) -> PassFindings:
    """What the pass found, with what launched each kernel where nsys left it; its times are not taken."""
    path = folder / EXPORT
    if not path.is_file():
        return findings
    notes = (*findings.notes, *_switched_off(folder / SWITCHED_OFF))
    try:
        report = recognise_format(path).read(path)
    except UnreadableReport as error:
        return replace(findings, notes=(*notes, f"which operation launched a kernel: {error.message}"))
    launched = report.trace.kernels if report.trace is not None else ()
    return replace(findings, launched=launched, notes=notes)


def _switched_off(path: Path) -> Iterator[str]:
    """Why lines and operations were written for a part of the time only, as the workload's processes say."""
    try:
        lines = read_bounded_text(path).splitlines()
    except (OSError, ValueError):
        return
    for line in lines[:1000]:
        with suppress(ValueError, AttributeError):  # a line that a killed process did not finish
            reason = json.loads(line).get("reason")
            if isinstance(reason, str):
                yield f"operations and lines of the kernels are those of a part of the run: {reason[:300]}"
