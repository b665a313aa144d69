"""The counters pass: the GPU's own counters, where this chip and this Xcode offer a set of them."""

from __future__ import annotations

from dataclasses import replace

from profkit.backends import Findings, Known, Site
from profkit.backends.instruments import instruments_step, read_step, said
from profkit.backends.mps import cost
from profkit.backends.mps.trace import COUNTED, cut, directive
from profkit.core.types import MetalAbsent, MetalTrace, PassPlan
from profkit.profilers.xctrace.command import (
    COUNTERS_FIX,
    FINISH_COUNTERS,
    GPU_COUNTERS,
    POINTS,
    UNSUPPORTED_COUNTERS,
    explain,
)
from profkit.profilers.xctrace.find import XctraceAbility
from profkit.profilers.xctrace.metal.counters import COUNTERS
from profkit.profilers.xctrace.report import wanted_schemas

SECONDS = 1.0  # of a benchmark's region: 30 counters in 3,000 samples each
LONGEST = 20.0  # seconds that are recorded at most, beside the start: 15 s are 3 to 6 GB of XML on an M3
_FACT = "counter set"


def plan_counters(site: Site, xctrace: XctraceAbility, known: Known) -> PassPlan:
    """A recording of its own: beside the trace's instruments that of the counters often gives no rows at all."""
    reason = xctrace.lacks(instrument=GPU_COUNTERS)
    if reason is not None:
        return PassPlan("counters", "xctrace", skipped=reason, fix=xctrace.fix or COUNTERS_FIX)
    # By the signposts of its regions, since this instrument alone leaves no table of the clock.
    instruments = [GPU_COUNTERS] + ([POINTS] if known.marked and POINTS in xctrace.instruments else [])
    limit = float(round(min(cost.longest(known), LONGEST + (known.start_seconds or 0.0))))
    step = instruments_step(
        site,
        xctrace,
        directive(site, known, "counters", SECONDS),
        "counters",
        wanted_schemas(),
        instruments=instruments,
        limit=limit,
        finish=FINISH_COUNTERS,
    )
    seconds = cost.recording_seconds(known, SECONDS) + cost.COUNTERS_SECONDS
    return PassPlan(
        "counters",
        "xctrace",
        (step,),
        cost=cost.in_plain_runs(seconds, known),
        seconds=seconds if known.plain_seconds is not None else None,
        cost_note="saving 4 s of GPU counters took 115 s on an M1, by notes of others",
        limit=limit,
        notes=("which counters there are depends on the chip and the Xcode: some give none",),
    )


def find_counters(site: Site, plan: PassPlan) -> Findings:
    """The counters, or why there are none. Raises UnreadableReport where there is no export."""
    report = read_step(site.folder, plan.steps[0])
    metal = report.metal if report.metal is not None else MetalTrace()
    if not metal.counters:
        metal = replace(metal, absent=_why_none(site, metal))
    return Findings(
        gpus=report.gpus,
        metal=metal,
        facts={_FACT: report.facts[_FACT]} if _FACT in report.facts and metal.counters else {},
        notes=(*(f"counters: {note}" for note in report.warnings), *cut(report, "counters")),
    )


def _why_none(site: Site, metal: MetalTrace) -> tuple[MetalAbsent, ...]:
    """What is absent, the counters with xctrace's own reason where it told one."""
    fault = explain(said(site.folder, "counters.log"), 0)
    others = tuple(absent for absent in metal.absent if COUNTED not in absent.what)
    if fault is not None and fault.reason == UNSUPPORTED_COUNTERS:
        return (*others, MetalAbsent(COUNTERS, fault.reason, fault.fix))
    told = tuple(absent for absent in metal.absent if COUNTED in absent.what)
    return (*others, *(told or (MetalAbsent(COUNTERS, "the recording has no counters", COUNTERS_FIX),)))
