"""The trace pass: Metal System Trace; what the GPU did for the workload and for others, and what the host did."""

from __future__ import annotations

from profkit.analysis.stacks.files import write_collapsed, write_speedscope
from profkit.backends import Findings, Known, Site
from profkit.backends.instruments import instruments_step, read_step
from profkit.backends.mps import cost
from profkit.core.types import Directive, PassPlan, Report, Switch
from profkit.profilers.xctrace.command import METAL
from profkit.profilers.xctrace.find import XctraceAbility
from profkit.profilers.xctrace.report import wanted_schemas
from profkit.profilers.xctrace.toc import TIME_LIMIT

SECONDS = 0.5  # of a benchmark's region: a document of some 10 MB
WARMUP = 3  # calls before the region: compiling, the first growth of the heap
# A recording without a set of counters has none, or one that is always 0 in hundreds of thousands of rows.
COUNTED = "counter"


def plan_trace(site: Site, xctrace: XctraceAbility, known: Known) -> PassPlan:
    """One recording of the whole process, and as much else of the machine as the template sees."""
    reason = xctrace.lacks(template=METAL)
    if reason is not None:
        return PassPlan("trace", "xctrace", skipped=reason, fix=xctrace.fix or cost.LIST_FIX)
    schemas = [schema for schema in wanted_schemas() if COUNTED not in schema]
    limit = cost.longest(known)
    step = instruments_step(
        site, xctrace, directive(site, known, "trace", SECONDS), "trace", schemas, template=METAL, limit=limit
    )
    seconds = cost.recording_seconds(known, SECONDS) + cost.SAVE_SECONDS
    return PassPlan(
        "trace",
        "xctrace",
        (step,),
        cost=cost.in_plain_runs(seconds, known),
        seconds=seconds if known.plain_seconds is not None else None,
        cost_note=cost.NOTE,
        limit=limit,
    )


def directive(site: Site, known: Known, name: str, seconds: float) -> Directive:
    """What the workload's process is told in a pass under Instruments."""
    return Directive(
        "trace" if name == "trace" else "counters",
        str(site.folder / "artifacts" / f"{name}.region"),
        switch=Switch("signpost") if known.marked else None,
        iterations=cost.iterations(known, seconds),
        warmup=WARMUP,
    )


def cut(report: Report, name: str) -> tuple[str, ...]:
    """What to remark where the time limit ended the recording before the workload had ended."""
    if report.facts.get("ended", "").lower() != TIME_LIMIT:
        return ()
    return (
        f"{name}: the time limit ended the recording and the workload in it: what came later is not in the trace",
    )


def find_trace(site: Site, plan: PassPlan) -> Findings:
    """Work on the GPU, states and hot spots of the host. Raises UnreadableReport where there is no export."""
    step = plan.steps[0]
    report = read_step(site.folder, step)
    artifacts: tuple[str, ...] = ()
    if report.stacks:
        folder = site.folder / "artifacts"
        write_speedscope(report.stacks, folder / "trace.speedscope.json", site.workload.name)
        write_collapsed(report.stacks[0], folder / "trace.collapsed.txt")
        artifacts = ("artifacts/trace.speedscope.json", "artifacts/trace.collapsed.txt")
    return Findings(
        gpus=report.gpus,
        trace=report.trace,
        metal=report.metal,
        # Of the counters their own pass tells, or nobody; this one is made without.
        facts={name: value for name, value in report.facts.items() if name != "counter set"},
        profiles=report.profiles,
        stacks=report.stacks,
        notes=(*report.warnings, *cut(report, "trace")),
        artifacts=artifacts,
    )
