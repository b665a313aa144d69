"""The trace pass on macOS: Time Profiler; where time goes by function and library, as tables and flame graphs."""

from __future__ import annotations

from profkit.analysis.stacks.files import write_collapsed, write_speedscope
from profkit.backends import Findings, Known, Site
from profkit.backends.cpu.macos_step import START_SECONDS, cpu_step, kept_facts
from profkit.backends.instruments import read_step
from profkit.core.types import PassPlan
from profkit.profilers.xctrace.command import TIME_PROFILER
from profkit.profilers.xctrace.find import XctraceAbility

SECONDS = 2.0  # of region: about 2,000 samples a core, a function of 1 % is known to a fifth of itself
TABLES = ("time-profile",)
_NO_PYTHON = (
    "Instruments sees the interpreter, and not the Python functions that it runs: the cprofile pass does"
)


def plan_trace(site: Site, xctrace: XctraceAbility, known: Known) -> PassPlan:
    """One recording of the whole process; what lies in a marked region is picked out of it afterwards."""
    reason = xctrace.lacks(template=TIME_PROFILER)
    if reason is not None:
        return PassPlan("trace", "xctrace", skipped=reason, fix=xctrace.fix)
    step = cpu_step(site, xctrace, known, "trace", "trace", TIME_PROFILER, TABLES, seconds=SECONDS)
    plain = known.plain_seconds
    return PassPlan(
        "trace",
        "xctrace",
        (step,),
        cost=1.1,
        seconds=None if plain is None else 1.1 * plain + START_SECONDS,
        cost_note="a sample of each running thread each millisecond; then the export",
        notes=(_NO_PYTHON,) if site.workload.python is not None else (),
    )


def find_trace(site: Site, plan: PassPlan) -> Findings:
    """Functions, libraries and stacks; leaves a speedscope and a collapsed-stack file beside the exports."""
    report = read_step(site.folder, plan.steps[0])
    facts = kept_facts(report)
    if not report.stacks:
        return Findings(facts=facts, notes=report.warnings)
    folder = site.folder / "artifacts"
    write_speedscope(report.stacks, folder / "trace.speedscope.json", site.workload.name)
    write_collapsed(report.stacks[0], folder / "trace.collapsed.txt")
    return Findings(
        profiles=report.profiles,
        stacks=report.stacks,
        facts=facts,
        notes=report.warnings,
        artifacts=("artifacts/trace.speedscope.json", "artifacts/trace.collapsed.txt"),
    )
