"""All concerns of a Metal run or report: where the GPU's time goes, encoders, shaders, and its passes as one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from profkit.analysis.summaries.metal_counters import (
    BEYOND,
    DILUTED_FORMULA,
    FROM_CACHE,
    OF_PEAK,
    UNCHECKED,
    ChipSpecification,
    chip_specification,
    counter_readings,
    known_counters,
)
from profkit.analysis.summaries.metal_readings import (
    ENCODERS,
    INTERVALS,
    SHADERS,
    explain_absence,
    metal_trace_readings,
    summarize_metal_state,
    warning_notes,
)
from profkit.analysis.summaries.metal_time import summarize_metal_gpu
from profkit.analysis.summaries.readings import (
    absence_notes,
    absent_reading,
    best_reading,
    metric_table,
    share_text,
)
from profkit.core.formatting import format_figures, format_percent, format_quantity, plural, shorten
from profkit.core.types import (
    RUN,
    MetalAbsent,
    MetalTrace,
    MetalWork,
    Reading,
    RunDocument,
    Summary,
    Table,
)

TOP_WORK = 10  # more than anybody works on at once
NAME = 34
# What Instruments calls an encoder without a label.
DEFAULT = re.compile(r"|(Compute|Render|Blit|Acceleration Structure) (Command|Encoder) \d+")
SHADER_REASON = "the recording has no time of single shaders"


def summarize_encoders(metal: MetalTrace) -> Summary | None:
    """Time by encoder label, by channel where nothing has a label; None where the process had nothing on the GPU."""
    works, columns = metal.encoders, "encoder"
    if not works and metal.channels:
        works, columns = metal.channels, "channel"
    if not works:
        return None
    total = sum(work.seconds for work in works)
    top = max(works, key=lambda work: work.seconds)
    headline = (
        f"{shorten(top.name, 48)} takes {share_text(top.seconds, total)} of {format_quantity(total, 's')} in"
        f" {plural(sum(work.count for work in works), columns)}."
    )
    notes = []
    if columns == "channel":
        reason, fix, _ = explain_absence(metal, (ENCODERS, INTERVALS), "the trace has no labels of encoders")
        notes.append(f"Encoders cannot be distinguished: {reason}" + (f" ({fix})" if fix else "") + ".")
    elif all(DEFAULT.fullmatch(work.name.strip()) for work in works):
        notes.append(
            "These are Metal's own names: MTLCommandEncoder.label gives each encoder one that tells it."
        )
    return Summary(
        "encoders",
        headline,
        (),
        (replace(_work_table("Encoders by GPU time", columns, works), main=True),),
        tuple(notes),
    )


def summarize_shaders(metal: MetalTrace) -> Summary:
    """Time by shader; without any why, and how to get it."""
    if not metal.shaders:
        reason, fix, _ = explain_absence(metal, (SHADERS,), SHADER_REASON)
        line = f"Time by shader is not known: {reason}."
        return Summary("shaders", line, (), (), (f"To have it: {fix}",) if fix else ())
    total = sum(work.seconds for work in metal.shaders)
    top = max(metal.shaders, key=lambda work: work.seconds)
    headline = f"{shorten(top.name, 48)} takes {share_text(top.seconds, total)} of the time of all shaders."
    return Summary("shaders", headline, (), (_work_table("Shaders by GPU time", "shader", metal.shaders),))


def _work_table(title: str, kind: str, works: Sequence[MetalWork]) -> Table:
    ordered = sorted(works, key=lambda work: -work.seconds)
    total = sum(work.seconds for work in works)
    rows = tuple(
        (
            shorten(work.name, NAME) or "(no label)",
            str(work.count),
            format_quantity(work.seconds, "s"),
            share_text(work.seconds, total),
            format_quantity(work.median, "s"),
            format_quantity(work.longest, "s"),
        )
        for work in ordered[:TOP_WORK]
    )
    rest = ordered[TOP_WORK:]
    part = format_percent(100 * sum(work.seconds for work in rest) / total) if rest and total > 0 else "0"
    note = f"and {plural(len(rest), f'further {kind}')}, {part} % of the time" if rest else None
    return Table(title, (kind, "count", "total", "share", "median", "longest"), rows, note)


OCCUPANCY = ("gpu.occupancy", "gpu.occupancy.total", "gpu.occupancy.target", "gpu.limiter", "gpu.alu")
BANDWIDTH = ("bandwidth.gpu", "bandwidth.gpu.share", "bandwidth.gpu.read", "bandwidth.gpu.write")
ARITHMETIC = ("flops.gpu.rate", "flops.gpu.share", "arithmetic_intensity")
WHOLE_DEVICE = (
    "Counters speak of the whole device: what other programs did on the GPU at that time is in them."
)
SLC = (
    "GPU bandwidth may be served by the system level cache: near 100 % is not certain to be memory, and the processor"
    " shares the same memory."
)
DECLARED = (
    "Estimated: what the workload declares over the time that the process had work on the GPU. It is as true as what is"
    " declared, and knows nothing of caches."
)
DILUTED_NOTE = (
    "Estimated: the recording of the counters does not tell when the process worked, so their means are taken as if all"
    " of it fell into the time in which the GPU was active."
)
PERCENTAGES = (
    "Estimated: the counters tell per cent, and not of what; they are taken to be of the bandwidth that the chip is"
    " specified with, read and write alike."
)
MOST_COUNTERS = 40  # in the table: an M1 has 32, later chips 86 and more


def summarize_metal_occupancy(metal: MetalTrace, readings: Sequence[Reading]) -> Summary:
    """How full the GPU was, what its own manager allowed, and how near its busiest unit was to its limit."""
    occupancy = {r.metric: r for r in readings if r.metric in OCCUPANCY}
    compute, whole = occupancy["gpu.occupancy"], occupancy["gpu.occupancy.total"]
    shown = compute if compute.value is not None else whole
    if shown.value is None:
        headline = f"Threadgroup occupancy is not known: {shown.reason}."
    else:
        what = "compute work" if shown is compute else "work"
        headline = (
            f"{format_percent(shown.value)} % of the SIMD groups that the GPU can hold were there with {what}"
        )
        limit = occupancy["gpu.limiter"].value
        headline += f"; its top limiter is at {format_percent(limit)} %." if limit is not None else "."
    table = metric_table(
        "Occupancy and limits, while the process had work on the GPU", list(occupancy.values())
    )
    tables = [candidate for candidate in (table, _counter_table(metal)) if candidate is not None]
    notes = [WHOLE_DEVICE] if metal.counters else []
    if any(r.quality == "estimated" for r in occupancy.values()):
        notes.append(DILUTED_NOTE)
    notes += warning_notes(occupancy.values())
    rest = [r for r in occupancy.values() if r.value is None] if shown.value is None else []
    return Summary(
        "occupancy", headline, tuple(occupancy.values()), tuple(tables), (*notes, *absence_notes(rest))
    )


def _counter_table(metal: MetalTrace) -> Table | None:
    known = known_counters(metal)
    if not known:
        return None
    rows = tuple(
        (
            shorten(counter.name, 32),
            _number_cell(counter.active, counter.unit),
            _number_cell(counter.mean, counter.unit),
            _number_cell(counter.most, counter.unit),
            str(counter.samples),
        )
        for counter in known[:MOST_COUNTERS]
    )
    rest = len(known) - MOST_COUNTERS
    covered = [counter.covered for counter in known if counter.covered is not None]
    notes = [f"and {rest} further counters in run.json"] if rest > 0 else []
    if covered:
        least, most = format_percent(100 * min(covered)), format_percent(100 * max(covered))
        notes.append(f"samples cover {least if least == most else f'{least} to {most}'} % of the time")
    title = "All counters, of the whole device"
    return Table(title, ("counter", "at work", "mean", "most", "samples"), rows, "; ".join(notes) or None)


def _number_cell(value: float | None, unit: str) -> str:
    return "-" if value is None else format_quantity(value, unit) if unit else format_figures(value)


def summarize_metal_bandwidth(chip: ChipSpecification, readings: Sequence[Reading]) -> Summary:
    """What the GPU moved against what the chip is specified with, and the arithmetic that the workload declares."""
    bandwidth = {r.metric: r for r in readings if r.metric in (*BANDWIDTH, *ARITHMETIC)}
    rate, part = bandwidth["bandwidth.gpu"], bandwidth["bandwidth.gpu.share"]
    shown = [r for r in bandwidth.values() if r.value is not None]
    table = metric_table("GPU bandwidth and arithmetic", shown, _specification_note(chip))
    notes = [SLC] if part.value is not None else []
    if any(r.code == "declared" for r in shown):
        notes.append(DECLARED)
    elif any(r.quality == "estimated" for r in (rate, part)):
        notes += _estimate_notes(bandwidth.values(), chip)
    notes += warning_notes(bandwidth.values())
    missing = [r for r in (rate, part) if r.value is None]
    return Summary(
        "bandwidth",
        _bandwidth_headline(rate, part, chip),
        tuple(bandwidth.values()),
        (table,) if table is not None else (),
        (*notes, *absence_notes(missing)),
    )


def _estimate_notes(readings: Iterable[Reading], chip: ChipSpecification) -> list[str]:
    """Why a bandwidth out of counters is an estimate."""
    formulas = " ".join(r.source.formula or "" for r in readings if r.value is not None)
    notes = [DILUTED_NOTE] if DILUTED_FORMULA in formulas else []
    if OF_PEAK in formulas:
        notes.append(PERCENTAGES)
    if not chip.bandwidth_checked:
        notes.append(f"Estimated: {UNCHECKED}.")
    return notes


def _bandwidth_headline(rate: Reading, part: Reading, chip: ChipSpecification) -> str:
    if rate.value is None and part.value is None:
        return f"What the GPU moves is not known: {rate.reason}."
    how = "" if rate.quality == "measured" else " (estimated)"
    peak = format_quantity(chip.bandwidth, "B/s")
    if part.value is None:
        return f"The GPU moves {format_quantity(rate.value, 'B/s')}{how}; {part.reason}."
    if rate.value is None:
        return f"The GPU moves {format_percent(part.value)} % of what it can (estimated); {rate.reason}."
    more = f": {FROM_CACHE}" if part.value > BEYOND else ""
    return (
        f"The GPU moves {format_quantity(rate.value, 'B/s')}{how}, {format_percent(part.value)} % of the {peak} "
        f"that the chip is"
        f" specified with{more}."
    )


def _specification_note(chip: ChipSpecification) -> str | None:
    if chip.bandwidth is None:
        return None
    arithmetic = f", {format_quantity(chip.flops, 'FLOP/s')} in float32" if chip.flops else ""
    sure = "" if chip.bandwidth_checked and (chip.flops_checked or not chip.flops) else " (of one report)"
    return f"specification of {chip.name}: {format_quantity(chip.bandwidth, 'B/s')}{arithmetic}{sure}"


# What a recording that was not made for times may still add where that one lacks it.
_ADDED = (
    "shaders",
    "performance",
    "thermal",
    "low_power",
    "device",
    "counter_set",
)
_COUNTER, _SHADER = "counter", "shader"  # in the names of the tables that tell them


def merge_metal_traces(known: MetalTrace | None, later: MetalTrace | None) -> MetalTrace | None:
    """What both say: `known` of an earlier pass with what only `told` has.

    Times and work stay those of the earlier pass, since the later is another execution. What is absent is what neither
    has; of the counters the pass that was made for them says why.
    """
    if known is None or later is None:
        return known if later is None else later
    counters = known.counters or later.counters
    added = {name: getattr(later, name) for name in _ADDED if not getattr(known, name)}
    shaders = bool(known.shaders or later.shaders)
    return replace(known, **added, counters=counters, absent=_absent(known, later, bool(counters), shaders))


def _absent(known: MetalTrace, later: MetalTrace, counters: bool, shaders: bool) -> tuple[MetalAbsent, ...]:
    here = {"performance": later.performance, "thermal": later.thermal}
    names = [word for word, value in here.items() if value]
    absent = [
        missing
        for missing in known.absent
        if not (
            _COUNTER in missing.what
            or (shaders and _SHADER in missing.what)
            or any(word in missing.what for word in names)
        )
    ]
    if not counters:
        of_counters = [missing for missing in later.absent if _COUNTER in missing.what]
        absent += of_counters or [missing for missing in known.absent if _COUNTER in missing.what]
    return tuple(absent)


ELSEWHERE = (
    *OCCUPANCY,
    *BANDWIDTH,
    *ARITHMETIC,
    "gpu.slowed",
    "memory.device_peak",
    "memory.device_recommended",
)
# Of a run without a trace these say why; what a trace alone tells, and nobody misses without one, says nothing.
WITHOUT = ("gpu.utilization", "gpu.utilization.device", "time.gpu", "gpu.longest", "gpu.slowed")
UNUSED = "nothing of the program was seen on the GPU"
USE = 'Does it use the GPU? In torch: .to("mps") for model and data; a short one needs longer work'
WITHOUT_COUNTERS = ("gpu.occupancy", "bandwidth.gpu", "bandwidth.gpu.share")


def enrich_metal(document: RunDocument) -> RunDocument:
    """The document with all that its Metal trace says; what an earlier, smaller trace said is replaced."""
    if document.metal is None:
        return document
    fresh = _metal_readings(document, document.metal)
    names = {reading.metric for reading in fresh}
    unchanged = [r for r in document.readings if r.scope != RUN or r.metric not in names]
    return replace(document, readings=(*unchanged, *fresh))


def _metal_readings(document: RunDocument, metal: MetalTrace) -> tuple[Reading, ...]:
    metal = replace(metal, absent=tuple(_absent_in_run(document, absent) for absent in metal.absent))
    return (
        *metal_trace_readings(metal, document.trace, document.moments),
        *counter_readings(document, metal),
    )


def _absent_in_run(document: RunDocument, absent: MetalAbsent) -> MetalAbsent:
    """The reason as it is for a run, which launched the program itself and knows what it was asked to count."""
    if document.plan is None:
        return absent
    if absent.what == INTERVALS and absent.code == "no-rows":
        return MetalAbsent(INTERVALS, UNUSED, USE)
    if absent.code == "no-counter-set" and "counters" not in {
        planned.name for planned in document.plan.passes
    }:
        left_out = absent_reading(document, "gpu.occupancy", "counters", RUN)
        return replace(absent, reason=left_out.reason or "", fix=left_out.fix, code="not-asked")
    return absent


def summarize_metal_run(document: RunDocument) -> list[Summary]:
    """The GPU first, then encoders, shaders, occupancy, bandwidth and state; of a run also why one is not known."""
    metal = document.metal
    if metal is None:
        return _untraced_summaries(document)
    fresh = (
        *metal_trace_readings(metal, document.trace, document.moments),
        *counter_readings(document, metal),
    )
    readings = [best_reading(document.readings, reading.metric, (RUN,)) or reading for reading in fresh]
    slowed = next(r for r in readings if r.metric == "gpu.slowed")
    summaries: list[Summary | None] = [
        summarize_metal_gpu(metal, [r for r in readings if r.metric not in ELSEWHERE]),
        summarize_encoders(metal),
        summarize_shaders(metal),
        summarize_metal_occupancy(metal, readings),
        summarize_metal_bandwidth(chip_specification(document, metal), readings),
        summarize_metal_state(metal, slowed),
    ]
    return [summary for summary in summaries if summary is not None]


def _untraced_summaries(document: RunDocument) -> list[Summary]:
    """Why nothing is known of the GPU, for a run of which that was to be expected."""
    if document.plan is None and not document.passes:
        return []

    def missing(concern: str, what: str, readings: Sequence[Reading]) -> Summary:
        line = f"{what} not known: {readings[0].reason}."
        return Summary(concern, line, tuple(readings), (), absence_notes(readings))

    of_trace = [absent_reading(document, name, "trace", RUN) for name in WITHOUT]
    counted = [absent_reading(document, name, "counters", RUN) for name in WITHOUT_COUNTERS]
    return [
        missing("gpu", "Where the GPU's time goes is", of_trace[:-1]),
        missing("occupancy", "Threadgroup occupancy is", counted[:1]),
        missing("bandwidth", "What the GPU moves is", counted[1:]),
        missing("state", "Whether heat or power slowed the GPU down is", of_trace[-1:]),
    ]
