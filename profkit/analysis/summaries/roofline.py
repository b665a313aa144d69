"""The roofline: how much of what this machine can do the workload does, and under which roof it stands.

After Williams, Waterman and Patterson, CACM 52 (2009) 65: attainable FLOP/s = min(peak arithmetic, arithmetic
intensity * peak bandwidth). The peaks are measured on this machine, never looked up.
"""

from __future__ import annotations

from collections.abc import Sequence

from profkit.analysis.summaries.pick import TOOL, derived
from profkit.analysis.summaries.tables import metric_table, remarks
from profkit.analysis.summaries.work import (
    BEYOND,
    BEYOND_WHOLE,
    BUSY_PEAK,
    NARROW,
    Roofs,
    Work,
    doubted,
    roof,
    traffic_doubts,
)
from profkit.core.formatting import figures, percent, quantity
from profkit.core.types import Peaks, Reading, Source, Summary, Table

# Above half of a roof the roof is what limits; below, something else does (latency, overhead, dependencies).
NEAR_ROOF = 50.0
# Counted and declared FLOPs further apart than this are not the same work, or not all of it was counted.
FLOPS_APART = 0.10


def roofline_readings(work: Work, limit: Roofs) -> tuple[Reading, ...]:
    """arithmetic_intensity, flops.rate and its share, roofline.attainable and roofline.share.

    FLOPs are the counted ones; where there are none, those that the workload declares (then said).
    """
    scope, flops = work.scope, work.flops
    if flops.value is None and work.declared_flops is not None:
        flops = Reading(
            "flops",
            work.declared_flops,
            "FLOP",
            "estimated",
            scope,
            Source(TOOL, "flops", formula="as the workload declares them"),
            "as the workload declares them",
        )
    intensity = derived(
        "arithmetic_intensity",
        (flops, work.dram),
        lambda f, b: f / b,
        "flops / dram.bytes",
        scope,
        reason=flops.reason,
    )
    rate = derived(
        "flops.rate",
        (flops, work.seconds),
        lambda f, s: f / s,
        "flops / time.median",
        scope,
        reason=flops.reason,
    )
    attainable = derived(
        "roofline.attainable",
        (intensity, limit.bandwidth, limit.flops),
        lambda i, bandwidth, peak: min(peak, i * bandwidth),
        f"min(peak FLOP/s, arithmetic_intensity * peak B/s), {limit.threads} threads",
        scope,
    )
    of_peak = derived(
        "flops.share",
        (rate, limit.flops),
        lambda r, peak: 100 * r / peak,
        f"100 * flops.rate / measured float32 peak ({limit.threads} threads)",
        scope,
    )
    of_roof = derived(
        "roofline.share",
        (rate, attainable),
        lambda r, a: 100 * r / a,
        "100 * flops.rate / roofline.attainable",
        scope,
    )
    causes = traffic_doubts(work.dram) if roof(intensity, limit) == "memory" else (BUSY_PEAK, NARROW)
    return (
        intensity,
        rate,
        doubted(of_peak, BUSY_PEAK, NARROW),
        attainable,
        doubted(of_roof, *causes),
    )


def summarize_roofline(readings: Sequence[Reading], limit: Roofs, peaks: Peaks | None, work: Work) -> Summary:
    """The position under the roofline, with the roofs of one thread and of all of them."""
    told = {r.metric: r for r in readings}
    rate, share, over = told["flops.rate"], told["roofline.share"], told["arithmetic_intensity"]
    under = roof(over, limit)
    if share.value is not None and under is not None:
        limits = "memory" if under == "memory" else "arithmetic"
        near = (
            share.reason or BEYOND_WHOLE  # a run of an older profkit names no cause
            if share.value > BEYOND
            else f"{limits} is what limits it"
            if share.value >= NEAR_ROOF
            else f"{limits} would limit it, but something else does before"
        )
        headline = (
            f"{quantity(rate.value, 'FLOP/s')} is {percent(share.value)} % of what the {under} roof allows at"
            f" {figures(over.value or 0.0)} FLOP/B: {near}."
        )
    else:
        headline = f"The position under the roofline is not known: {share.reason}."
    tables = [t for t in (metric_table("Roofline", readings), _roofs_table(peaks)) if t is not None]
    notes = [f"Held against {limit.why}."] if share.value is not None else []
    if any(r.quality == "estimated" for r in readings) and work.dram.quality == "simulated":
        notes.append("Estimated: bytes and FLOPs are simulated on one core, the time is measured.")
    counted, declared = work.flops.value, work.declared_flops
    if counted is not None and declared and abs(counted - declared) > FLOPS_APART * declared:
        notes.append(
            f"Counted {quantity(counted, 'FLOP')} per iteration, declared {quantity(declared, 'FLOP')}:"
            " the workload does other work than it says, or not all of it was counted."
        )
    return Summary("roofline", headline, tuple(readings), tuple(tables), (*notes, *remarks(readings)))


def _roofs_table(peaks: Peaks | None) -> Table | None:
    if peaks is None:
        return None
    rows = (
        ("Memory", quantity(peaks.bandwidth_one, "B/s"), quantity(peaks.bandwidth_all, "B/s")),
        (
            "float32 arithmetic",
            quantity(peaks.flops_f32_one, "FLOP/s"),
            quantity(peaks.flops_f32_all, "FLOP/s"),
        ),
    )
    columns = ("", "1 thread", f"{peaks.threads} threads")
    note = "measured here; how stands in run.json, peaks.method"
    return Table("What this machine reaches", columns, rows, note)
