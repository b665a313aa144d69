"""The passes of a run on an Apple GPU: Metal System Trace, then a recording of its own for the counters.

What they cost was not measured on a Mac by this project. By notes of others: starting takes 1 to 3 s, saving a Metal
System Trace of seconds 5 to 70 s on an M1, and saving 4 s of GPU counters 115 s; each export opens the document anew,
in about a second for one of 50 MB.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import ClassVar

from profkit.backends import PassFindings, PlanState, RunContext
from profkit.backends.instruments import instruments_step, log_of, read_step
from profkit.backends.passes import (
    ALL_PASSES,
    DEVICE_PASSES,
    PassTable,
    PlannedRun,
    known_seconds,
    leave_stacks,
    plain_runs,
    start_seconds,
)
from profkit.core.types import (
    Directive,
    MetalAbsent,
    MetalTrace,
    PassName,
    PassPlan,
    PassResult,
    Report,
    Switch,
)
from profkit.profilers.xctrace.command import (
    COUNTERS_FIX,
    FINISH_COUNTERS,
    GPU_COUNTERS,
    METAL,
    POINTS,
    explain_fault,
)
from profkit.profilers.xctrace.find import XctraceAbility, probe_xctrace
from profkit.profilers.xctrace.metal.counters import COUNTERS
from profkit.profilers.xctrace.report import wanted_schemas
from profkit.profilers.xctrace.toc import TIME_LIMIT

_NO_EXPLAIN = "Metal has no counters of single launches that can be recorded from a command line"
_EXPLAIN_FIX = "capture it in Xcode: MTL_CAPTURE_ENABLED=1, then torch.mps.profiler.metal_capture"
SAVE_SECONDS = 25.0  # start, saving, and a dozen exports
COUNTERS_SECONDS = 120.0
LONGEST_RECORDING = 60.0  # seconds that are recorded at most, beside the start of the program: 50 MB take 8 s
LEAST, MOST = 5, 500  # iterations
LIST_FIX = "xcrun xctrace list templates"
NOTE = "start, saving and export take 10 to 70 s, by notes of others; the recording itself costs 1 to 3 %"


def recording_limit(state: PlanState) -> float:
    """Seconds after which a recording ends by itself: a document of more than 2 GB can often not be opened."""
    return float(round(LONGEST_RECORDING + (state.start_seconds or 0.0)))


def recorded_iterations(state: PlanState, seconds: float) -> int:
    """How often a benchmark runs while it is recorded, so that its region takes about `seconds`."""
    once = state.iteration_seconds
    if once is None or once <= 0:
        return LEAST
    return max(1, min(MOST, max(LEAST, int(seconds / once)), int(LONGEST_RECORDING / once)))


def recording_seconds(state: PlanState, seconds: float) -> float:
    """One run of the workload as it is recorded."""
    start = start_seconds(state)
    if not state.benchmark or state.iteration_seconds is None:
        return min(start, recording_limit(state))
    return min(start + recorded_iterations(state, seconds) * state.iteration_seconds, recording_limit(state))


TRACED_SECONDS = 0.5  # of a benchmark's region: a document of some 10 MB
WARMUP = 3  # calls before the region: compiling, the first growth of the heap
# A recording without a set of counters has none, or one that is always 0 in hundreds of thousands of rows.
COUNTED = "counter"


def plan_trace(context: RunContext, xctrace: XctraceAbility, state: PlanState) -> PassPlan:
    """One recording of the whole process, and as much else of the machine as the template sees."""
    reason = xctrace.lacks(template=METAL)
    if reason is not None:
        return PassPlan("trace", "xctrace", skipped=reason, fix=xctrace.fix or LIST_FIX)
    schemas = [schema for schema in wanted_schemas() if COUNTED not in schema]
    limit = recording_limit(state)
    step = instruments_step(
        context,
        xctrace,
        recording_directive(context, state, "trace", TRACED_SECONDS),
        "trace",
        schemas,
        template=METAL,
        limit=limit,
    )
    seconds = recording_seconds(state, TRACED_SECONDS) + SAVE_SECONDS
    return PassPlan(
        "trace",
        "xctrace",
        (step,),
        cost=plain_runs(seconds, state),
        seconds=known_seconds(seconds, state),
        cost_note=NOTE,
        limit=limit,
    )


def recording_directive(context: RunContext, state: PlanState, name: str, seconds: float) -> Directive:
    """What the workload's process is told in a pass under Instruments."""
    return Directive(
        "trace" if name == "trace" else "counters",
        str(context.folder / "artifacts" / f"{name}.region"),
        switch=Switch("signpost") if state.marked else None,
        iterations=recorded_iterations(state, seconds),
        warmup=WARMUP,
    )


def cut_notes(report: Report, name: str) -> tuple[str, ...]:
    """What to remark where the time limit ended the recording before the workload had ended."""
    if report.facts.get("ended", "").lower() != TIME_LIMIT:
        return ()
    return (
        f"{name}: the time limit ended the recording and the workload in it: what came later is not in the trace",
    )


def read_trace(context: RunContext, plan: PassPlan) -> PassFindings:
    """Work on the GPU, states and hot spots of the host. Raises UnreadableReport where there is no export."""
    step = plan.steps[0]
    report = read_step(context.folder, step)
    return PassFindings(
        gpus=report.gpus,
        trace=report.trace,
        metal=report.metal,
        # Of the counters their own pass tells, or nobody; this one is made without.
        facts={name: value for name, value in report.facts.items() if name != "counter set"},
        profiles=report.profiles,
        stacks=report.stacks,
        notes=(*report.warnings, *cut_notes(report, "trace")),
        artifacts=leave_stacks(context, report.stacks, "trace"),
    )


COUNTED_SECONDS = 1.0  # of a benchmark's region: 30 counters in 3,000 samples each
# seconds that are recorded at most, beside the start: 15 s are 3 to 6 GB of XML on an M3
LONGEST_COUNTED = 20.0
_FACT = "counter set"


def plan_counters(context: RunContext, xctrace: XctraceAbility, state: PlanState) -> PassPlan:
    """A recording of its own: beside the trace's instruments that of the counters often gives no rows at all."""
    reason = xctrace.lacks(instrument=GPU_COUNTERS)
    if reason is not None:
        return PassPlan("counters", "xctrace", skipped=reason, fix=xctrace.fix or COUNTERS_FIX)
    # By the signposts of its regions, since this instrument alone leaves no table of the clock.
    instruments = [GPU_COUNTERS] + ([POINTS] if state.marked and POINTS in xctrace.instruments else [])
    limit = float(round(min(recording_limit(state), LONGEST_COUNTED + (state.start_seconds or 0.0))))
    step = instruments_step(
        context,
        xctrace,
        recording_directive(context, state, "counters", COUNTED_SECONDS),
        "counters",
        wanted_schemas(),
        instruments=instruments,
        limit=limit,
        finish=FINISH_COUNTERS,
    )
    seconds = recording_seconds(state, COUNTED_SECONDS) + COUNTERS_SECONDS
    return PassPlan(
        "counters",
        "xctrace",
        (step,),
        cost=plain_runs(seconds, state),
        seconds=known_seconds(seconds, state),
        cost_note="saving 4 s of GPU counters took 115 s on an M1, by notes of others",
        limit=limit,
        notes=("which counters there are depends on the chip and the Xcode: some give none",),
    )


def read_counters(context: RunContext, plan: PassPlan) -> PassFindings:
    """The counters, or why there are none. Raises UnreadableReport where there is no export."""
    report = read_step(context.folder, plan.steps[0])
    metal = report.metal if report.metal is not None else MetalTrace()
    if not metal.counters:
        metal = replace(metal, absent=_explain_no_counters(context, metal))
    return PassFindings(
        gpus=report.gpus,
        metal=metal,
        facts={_FACT: report.facts[_FACT]} if _FACT in report.facts and metal.counters else {},
        notes=(*(f"counters: {note}" for note in report.warnings), *cut_notes(report, "counters")),
    )


def _explain_no_counters(context: RunContext, metal: MetalTrace) -> tuple[MetalAbsent, ...]:
    """What is absent, the counters with xctrace's own reason where it told one."""
    fault = explain_fault(log_of(context.folder, "counters.log"), 0)
    of_trace = tuple(absent for absent in metal.absent if COUNTED not in absent.what)
    if fault is not None and fault.code == "unsupported-counters":
        return (*of_trace, MetalAbsent(COUNTERS, fault.reason, fault.fix))
    of_counters = tuple(absent for absent in metal.absent if COUNTED in absent.what)
    return (
        *of_trace,
        *(of_counters or (MetalAbsent(COUNTERS, "the recording has no counters", COUNTERS_FIX),)),
    )


class MpsRun(PlannedRun):
    """The passes for one workload. xctrace is asked once, when the first plan is made.

    Timing takes several processes: MPSGraph chooses a kernel anew in each, and in two of five it took one that was two
    to three times as slow for the same product of matrices (M5, github.com/pytorch/pytorch/issues/182815).
    """

    name = "mps"
    passes: ClassVar[PassTable] = {"gate": ("timing", "trace"), "standard": DEVICE_PASSES, "full": ALL_PASSES}
    switch = Switch("signpost")
    late_allocations = True

    def tool_versions(self) -> dict[str, str | None]:
        """The version of xctrace, where an asked pass uses it."""
        return {"xctrace": self._xctrace.version} if {"trace", "counters"} & set(self.wanted) else {}

    def plan_pass(self, name: PassName, state: PlanState) -> list[PassPlan]:
        """The recordings of Instruments."""
        if name == "trace":
            return [plan_trace(self.context, self._xctrace, state)]
        if name == "counters":
            return [plan_counters(self.context, self._xctrace, state)]
        return [PassPlan("explain", None, skipped=_NO_EXPLAIN, fix=_EXPLAIN_FIX)]

    def read_pass(self, plan: PassPlan, result: PassResult) -> PassFindings:  # noqa: ARG002 - the files say it all
        """The trace, or the counters."""
        return (read_trace if plan.name == "trace" else read_counters)(self.context, plan)

    @cached_property
    def _xctrace(self) -> XctraceAbility:
        return probe_xctrace()
