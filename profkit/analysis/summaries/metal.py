"""What a Metal trace says in numbers: how busy the GPU was and for whom, and the longest encoder.

What the counters of an Apple GPU say: occupancy, limiter, bandwidth against the chip's specification.

Counters speak of the whole device. Their plain means hold the time in which nothing ran, so what counts is the mean
over the samples in which the profiled process had work there. Samples may be long, and then idle time is in them all
the same: where that would make a large difference, the value is doubtful.

Where nothing was counted, the bandwidth follows from the bytes that the workload declares: an estimate over the union
of the process's time on the GPU.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from profkit.analysis.metrics.catalogue import metal_counter_names, metric
from profkit.analysis.summaries.readings import (
    absent_reading,
    best_reading,
    traced_iterations,
    unavailable_reading,
)
from profkit.core.formatting import format_quantity
from profkit.core.types import (
    RUN,
    TOGETHER,
    Fact,
    GpuTrace,
    MetalAbsent,
    MetalCounter,
    MetalTrace,
    PassName,
    Quality,
    Reading,
    RunDocument,
    Source,
    Summary,
)

if TYPE_CHECKING:
    from profkit.hardware.macos import AppleChip


def chip_specification(document: RunDocument, metal: MetalTrace) -> AppleChip:
    """Return the bandwidth of the GPU that the trace speaks of."""
    from profkit.hardware.macos import find_chip  # with the whole machine, which no other run needs here

    gpu = document.gpus[0] if document.gpus else None
    name, known = (gpu.name, gpu.bandwidth) if gpu is not None else (metal.device, None)
    chip = find_chip(name, gpu.cores if gpu is not None else None)
    return chip if chip.bandwidth or not known else replace(chip, bandwidth=known, checked=True)


def _no_bandwidth(chip: AppleChip) -> Fact:
    return chip.reason or UNSPECIFIED


TOOL = "xctrace"
# The tables of Instruments, by the names that `xctrace export` knows.
STATES, INTERVALS = "metal-gpu-state-intervals", "metal-gpu-intervals"
ENCODERS = "metal-application-encoders-list"
COMPILER, SHADERS = "graphics-compiler-activity-intervals", "metal-shader-profiler-intervals"
FRAMES, DISPLAYED = "metal-command-buffer-frame-assignment", "displayed-surfaces-interval"
COUNTERS, SAMPLES = "metal-gpu-counter-intervals", "gpu-counter-value"
NOT_IN_TRACE = Fact("not-in-trace")
COUNTER_TABLES = (COUNTERS, SAMPLES)
NOT_RECORDED = Fact("no-gpu-counters")
BEYOND = 105.0  # % of a specification; what is well above it was moved by a cache
FROM_CACHE = Fact("served-by-cache")
UNSPECIFIED, UNCHECKED, DECLARED = Fact("unknown-bandwidth"), Fact("unchecked-chip"), Fact("declared")
AT_WORK = "mean of the samples in which the process had work on the GPU"
APART = 1.2  # a value that could be so many times itself decides nothing
OCCUPANCY = ("gpu.occupancy", "gpu.occupancy.total", "gpu.occupancy.target", "gpu.limiter", "gpu.alu")
RATES = ("bandwidth.gpu.read", "bandwidth.gpu.write")


def counter_readings(document: RunDocument, metal: MetalTrace) -> tuple[Reading, ...]:
    """Return occupancy, limiter and bandwidth of the run; unavailable ones say how to get them."""
    chip = chip_specification(document, metal)
    shares = (_share_reading(metal, name) for name in OCCUPANCY)
    return (*shares, *_bandwidth_readings(document, metal, chip))


def _share_reading(metal: MetalTrace, name: str) -> Reading:
    counter = _usable_counter(metal, name)
    if isinstance(counter, Fact) and metal.counters:
        return missing_reading(metal, name, counter, None)
    if isinstance(counter, Fact):  # the trace has none at all
        return metal_reading(metal, name, None, COUNTER_TABLES, "", otherwise=counter)
    if counter.unit != "%":
        return missing_reading(metal, name, _other_unit(counter), None)
    # Two counters that stop a moment apart pass 100 by a hair.
    return _counted_reading(metal, name, min(100.0, counter.active or 0.0), [counter])


def _counted_reading(
    metal: MetalTrace,
    name: str,
    amount: float,
    counters: Sequence[MetalCounter],
    formula: str = AT_WORK,
    quality: Quality = "measured",
) -> Reading:
    """Return a value out of counters; doubted where samples that are longer than the work in them could halve it."""
    remark = Fact.of("of-counter", counter=", ".join(counter.name for counter in counters))
    reading = metal_reading(metal, name, amount, COUNTER_TABLES, formula, quality=quality, remark=remark)
    filled = [counter.filled for counter in counters if counter.filled is not None]
    thin = next((share for share in filled if share * APART < 1), None)
    return reading if thin is None else replace(reading, doubt=Fact.of("diluted-samples", share=thin))


def _other_unit(counter: MetalCounter) -> Fact:
    return Fact.of("other-unit", counter=counter.name, unit=counter.unit or "no unit")


def _usable_counter(metal: MetalTrace, name: str) -> MetalCounter | Fact:
    """Return the counter behind a metric, which was counted while the process worked; or why there is none."""
    if not metal.counters:
        return NOT_RECORDED
    table = metal_counter_names()
    known = {counter.name: counter for counter in metal.counters if counter.samples}
    chosen = next(
        (known[counter_name] for counter_name in table["counters"][name] if counter_name in known), None
    )
    if chosen is not None:
        return _why_unusable(chosen) or chosen
    ending, excepted = table["limiters"]["ending"], table["limiters"]["except"]
    limiters = (
        known[counter_name]
        for counter_name in known
        if counter_name.endswith(ending) and counter_name not in excepted
    )
    usable = [
        counter
        for counter in limiters
        if counter.unit == "%" and name == "gpu.limiter" and not _why_unusable(counter)
    ]
    return max(
        usable, key=lambda counter: counter.active or 0.0, default=Fact.of("no-such-counter", metric=name)
    )


def _why_unusable(counter: MetalCounter) -> Fact | None:
    if counter.most <= 0:
        return Fact.of("zero-in-samples", counter=counter.name, samples=counter.samples)
    return Fact.of("unknown-work", counter=counter.name) if counter.active is None else None


def _bandwidth_readings(document: RunDocument, metal: MetalTrace, chip: AppleChip) -> list[Reading]:
    """Read and written together, and their share of the chip's; of percentages what they are of the specification."""
    counters = [_usable_counter(metal, name) for name in RATES]
    known = [counter for counter in counters if isinstance(counter, MetalCounter)]
    units = {counter.unit for counter in known}
    if len(known) < len(RATES) or units not in ({"B/s"}, {"%"}):
        why = next((counter for counter in counters if isinstance(counter, Fact)), None) or _other_unit(
            known[0]
        )
        return _declared_bandwidth(document, metal, chip, why)
    formula = f"read + write; each: {AT_WORK}"
    total = sum(counter.active or 0.0 for counter in known)
    if units == {"B/s"}:
        both = _counted_reading(metal, "bandwidth.gpu", total, known, formula)
    elif chip.bandwidth:
        of_chip, amount = f"{formula}, in % of the {chip.name}'s bandwidth", total / 100 * chip.bandwidth
        both = _counted_reading(metal, "bandwidth.gpu", amount, known, of_chip, "estimated")
    else:  # of a peak that is not known here
        share = _counted_reading(metal, "bandwidth.gpu.share", total, known, formula, "estimated")
        return [missing_reading(metal, "bandwidth.gpu", _no_bandwidth(chip), None), share]
    return [both, _share_of_peak(metal, both, chip)]


def _share_of_peak(metal: MetalTrace, rate: Reading, chip: AppleChip) -> Reading:
    """Return bandwidth.gpu.share: the rate as a share of the chip's specification."""
    if not chip.bandwidth or rate.value is None:
        return missing_reading(metal, "bandwidth.gpu.share", _no_bandwidth(chip), None)
    value, quality, remark = 100 * rate.value / chip.bandwidth, rate.quality, rate.reason
    formula = f"100 * bandwidth.gpu / {format_quantity(chip.bandwidth, 'B/s')} (specification of {chip.name})"
    if not chip.checked:
        quality, remark = "estimated", UNCHECKED
    if value > BEYOND:
        remark = FROM_CACHE
    part = metal_reading(
        metal, "bandwidth.gpu.share", value, COUNTER_TABLES, formula, quality=quality, remark=remark
    )
    return replace(part, doubt=rate.doubt)


def _declared_bandwidth(
    document: RunDocument, metal: MetalTrace, chip: AppleChip, uncounted: Fact | None
) -> list[Reading]:
    """Return the declared bytes over the union of the process's time on the GPU; else why there is none.

    `uncounted`: what is wrong with the counters that were recorded.
    """
    rate = _declared_rate(document, metal)
    if isinstance(rate, Fact):
        reason, fix = explain_absence(metal, COUNTER_TABLES, NOT_RECORDED)
        if metal.counters and uncounted is not None:
            reason, fix = uncounted, None
        names = ("bandwidth.gpu", "bandwidth.gpu.share")
        return [missing_reading(metal, name, Fact(TOGETHER, parts=(reason, rate)), fix) for name in names]
    formula = "declared bytes * iterations / union of the process on the GPU"
    declared = metal_reading(
        metal, "bandwidth.gpu", rate, (INTERVALS,), formula, quality="estimated", remark=DECLARED
    )
    return [declared, _share_of_peak(metal, declared, chip)]


def _declared_rate(document: RunDocument, metal: MetalTrace) -> float | Fact:
    """Return the declared bytes per second of the process's time on the GPU; else why it is not known."""
    amount = document.timings[0].bytes if document.timings else None
    if not amount:
        return Fact("no-declared-bytes")
    if not metal.process_busy:
        return Fact("no-process-time")
    if not metal.marked:
        return Fact("unknown-iterations")
    # As planned for a benchmark, else the entries of the region.
    return amount * max(traced_iterations(document), metal.entries, 1) / metal.process_busy


_COUNTER = "counter"  # in the name of the table that has them


def merge_metal_traces(known: MetalTrace | None, later: MetalTrace | None) -> MetalTrace | None:
    """Return what both say: `known` of an earlier pass with what only `later` has.

    Times and work stay those of the earlier pass, since the later is another execution. What is absent is what neither
    has; of the counters the pass that was made for them says why.
    """
    if known is None or later is None:
        return known if later is None else later
    counters = known.counters or later.counters
    device = known.device or later.device
    return replace(known, device=device, counters=counters, absent=_absent(known, later, bool(counters)))


def _absent(known: MetalTrace, later: MetalTrace, counters: bool) -> tuple[MetalAbsent, ...]:
    absent = [missing for missing in known.absent if _COUNTER not in missing.what]
    if not counters:
        of_counters = [missing for missing in later.absent if _COUNTER in missing.what]
        absent += of_counters or [missing for missing in known.absent if _COUNTER in missing.what]
    return tuple(absent)


# Which concern a metric belongs to, where that is not the GPU's time.
_ELSEWHERE = {
    "occupancy": OCCUPANCY,
    "bandwidth": ("bandwidth.gpu", "bandwidth.gpu.share"),
}
# For a run without a trace these give the reason; what only a trace has, and nobody misses without one, is left out.
_WITHOUT: tuple[tuple[str, PassName, tuple[str, ...]], ...] = (
    ("gpu", "trace", ("gpu.utilization", "time.gpu", "gpu.longest")),
    ("occupancy", "counters", ("gpu.occupancy",)),
    ("bandwidth", "counters", ("bandwidth.gpu", "bandwidth.gpu.share")),
)
UNUSED = Fact("unused-gpu")
USE = 'Does it use the GPU? In torch: .to("mps") for model and data; a short one needs longer work'


def enrich_metal(document: RunDocument) -> RunDocument:
    """Return the document with all that its Metal trace says; what an earlier, smaller trace said is replaced."""
    if document.metal is None:
        return document
    fresh = _metal_readings(document, document.metal)
    names = {reading.metric for reading in fresh}
    unchanged = [r for r in document.readings if r.scope != RUN or r.metric not in names]
    return replace(document, readings=(*unchanged, *fresh))


def _metal_readings(document: RunDocument, metal: MetalTrace) -> tuple[Reading, ...]:
    metal = replace(metal, absent=tuple(_absent_in_run(document, absent) for absent in metal.absent))
    return (
        *metal_trace_readings(metal, document.trace),
        *counter_readings(document, metal),
    )


def _absent_in_run(document: RunDocument, absent: MetalAbsent) -> MetalAbsent:
    """Return the reason as it is for a run, which launched the program itself and knows what it was to count."""
    if document.plan is None:
        return absent
    if absent.what == INTERVALS and absent.reason.code == "no-rows":
        return MetalAbsent(INTERVALS, UNUSED, USE)
    if absent.reason.code == "no-counter-set" and "counters" not in {
        planned.name for planned in document.plan.passes
    }:
        left_out = absent_reading(document, "gpu.occupancy", "counters", RUN)
        return replace(absent, reason=left_out.reason or absent.reason, fix=left_out.fix)
    return absent


def summarize_metal(document: RunDocument) -> list[Summary]:
    """Time, occupancy and bandwidth of the GPU; of a run without a trace why they are not known."""
    metal = document.metal
    if metal is None:
        if document.plan is None and not document.passes:
            return []
        return [
            Summary(concern, tuple(absent_reading(document, name, source, RUN) for name in names))
            for concern, source, names in _WITHOUT
        ]
    fresh = _metal_readings(document, metal)
    readings = [best_reading(document.readings, reading.metric, (RUN,)) or reading for reading in fresh]

    places = {name: what for what, names in _ELSEWHERE.items() for name in names}
    return [
        Summary(
            concern, tuple(reading for reading in readings if places.get(reading.metric, "gpu") == concern)
        )
        for concern in ("gpu", *_ELSEWHERE)
    ]


def metal_reading(
    metal: MetalTrace,
    name: str,
    value: float | None,
    tables: tuple[str, ...],
    formula: str,
    *,
    quality: Quality = "measured",
    remark: Fact | None = None,
    otherwise: Fact = NOT_IN_TRACE,
) -> Reading:
    """Return the reading of `name` out of `tables`; unavailable, with the reason of the first missing table, for None.

    `remark` is what must be known of a value, `otherwise` the reason where the trace gives none.
    """
    source = Source(TOOL, counter=", ".join(tables), formula=formula)
    if value is None:
        return unavailable_reading(name, RUN, *explain_absence(metal, tables, otherwise), source)
    return Reading(name, value, metric(name).unit, quality, RUN, source, remark)


def explain_absence(
    metal: MetalTrace, tables: tuple[str, ...], otherwise: Fact = NOT_IN_TRACE
) -> tuple[Fact, str | None]:
    """Return why the trace has none of what these tables hold, and the way to get it."""
    for table in tables:
        for absent in metal.absent:
            if absent.what == table:  # by its name: of two that are missing each has a fix of its own
                return absent.reason, absent.fix
    return otherwise, None


def percent_of(part: float | None, whole: float | None) -> float | None:
    """Return `part` of `whole` in per cent, at most 100; None where one is not known or there is no whole."""
    if part is None or not whole:
        return None
    return 100 * min(1.0, max(0.0, part) / whole)


def window_of(metal: MetalTrace) -> float | None:
    """Return the time that the process's share of the GPU is taken of, in seconds: its window, else the whole span."""
    if metal.marked:
        return metal.span
    return metal.window if metal.window is not None else metal.span


def idle_of(metal: MetalTrace) -> float | None:
    """Return the seconds of the window in which the process had nothing on the GPU."""
    window = window_of(metal)
    if window is None or metal.process_busy is None:
        return None
    return max(0.0, window - metal.process_busy)


IdleCause = Literal["unsubmitted", "blocked", "queued", "others"]


def idle_causes(metal: MetalTrace) -> list[tuple[IdleCause, float]]:
    """Return what the idle time of the window was, in seconds, largest first; only what the trace can distinguish."""
    idle = idle_of(metal)
    if idle is None:
        return []
    parts: list[tuple[IdleCause, float]] = []
    if metal.unsubmitted is not None:
        parts.append(("unsubmitted", min(idle, metal.unsubmitted)))
        if metal.blocked is not None:
            parts.append(("blocked", min(idle, metal.blocked)))
        rest = idle - sum(seconds for _, seconds in parts)
        parts.append(("queued", max(0.0, rest)))
    elif metal.others is not None:
        parts.append(("others", min(idle, metal.others)))
    return sorted((part for part in parts if part[1] > 0), key=lambda part: -part[1])


def missing_reading(metal: MetalTrace, name: str, why: Fact, fix: str | None) -> Reading:
    """Return a reading that is not there for a reason of its own."""
    return replace(metal_reading(metal, name, None, (), "", otherwise=why), fix=fix)


NOTHING_RAN, NO_FRAMES = Fact("nothing-on-gpu"), Fact("no-frames")


def metal_trace_readings(metal: MetalTrace, trace: GpuTrace | None = None) -> tuple[Reading, ...]:
    """Return all readings of the time line, for the run; times in s, shares in %.

    gpu.utilization is the union of the intervals of the process over its window.
    """
    return (
        *_add_doubts(metal, [*_busy_readings(metal, trace), longest_work_reading(metal)]),
        metal_reading(metal, "buffer.count", metal.buffers, (INTERVALS,), "command buffers of the process"),
        *_frame_and_compiler_readings(metal),
    )


def _frame_and_compiler_readings(metal: MetalTrace) -> Iterator[Reading]:
    """Yield how long a frame took, where the process drew any, and what Metal's compiler took for it."""
    count = None if metal.compilations is None else float(metal.compilations)
    rows = (
        ("frame.time", metal.frame, FRAMES, "median from one present to the next"),
        ("frame.displayed", metal.displayed, DISPLAYED, "median of the times on the screen"),
        ("compile.time", metal.compiling, COMPILER, "union of its intervals for the process"),
        ("compile.count", count, COMPILER, "its intervals for the process"),
    )
    for name, value, table, formula in rows:
        otherwise = NO_FRAMES if name == "frame.time" else NOT_IN_TRACE
        yield metal_reading(metal, name, value, (table,), formula, otherwise=otherwise)


def _busy_readings(metal: MetalTrace, trace: GpuTrace | None) -> list[Reading]:
    window, busy, idle = window_of(metal), metal.process_busy, idle_of(metal)
    waiting = metal.blocked if metal.blocked is not None else metal.others
    most = None if busy is None or waiting is None else busy + waiting
    starved = percent_of(metal.unsubmitted, idle)
    if starved is None and trace is not None and trace.starved is not None and idle:
        starved = 100 * trace.starved
    encoders = sum(work.seconds for work in metal.encoders) if metal.encoders else None
    where = "region" if metal.marked else "window of the process"
    together = "100 * (union of the process + time in which others had the GPU instead) / window"
    own = (INTERVALS,)
    rows: list[tuple[str, float | None, tuple[str, ...], str]] = [
        ("gpu.utilization", percent_of(busy, window), own, f"100 * union of the process / {where}"),
        ("gpu.utilization.alone", percent_of(most, window), own, together),
        ("gpu.window", window, own, where),
        ("time.gpu", encoders, (ENCODERS, INTERVALS), "sum of all encoders' times"),
        ("time.gpu.idle", idle, own, "window - union of the process"),
        ("gpu.starved", starved, (INTERVALS,),
         "100 * idle time in which the host had submitted nothing / idle time"),
    ]  # fmt: skip
    if metal.marked:
        rows.append(("gpu.entries", float(metal.entries), own, "entries of the marked region"))
    otherwise = {
        "gpu.utilization": NOTHING_RAN if busy == 0 else Fact("no-own-intervals"),
        "gpu.starved": Fact("not-idle" if idle == 0 else "no-submissions"),
    }
    return [metal_reading(metal, *row, otherwise=otherwise.get(row[0], NOT_IN_TRACE)) for row in rows]


def _add_doubts(metal: MetalTrace, readings: list[Reading]) -> list[Reading]:
    """Return the readings, doubted where it is a guess whose work counts, or the marked region was not found."""
    doubt = metal.lost
    if metal.guessed is not None:
        doubt = Fact.of("guessed-process", metal.guessed)
    if doubt is None:
        return readings
    return [
        replace(r, doubt=doubt) if r.metric != "gpu.window" and r.value is not None else r for r in readings
    ]


def longest_work_reading(metal: MetalTrace) -> Reading:
    """Return gpu.longest: the share of the GPU time in one encoder, which its remark names."""
    works = metal.encoders
    total = sum(work.seconds for work in works)
    top = max(works, key=lambda work: work.seconds, default=None) if total > 0 else None
    return metal_reading(
        metal,
        "gpu.longest",
        100 * (top.seconds / total) if top is not None else None,
        (ENCODERS, INTERVALS),
        "100 * its time / the time of all of them",
        remark=Fact.of("work", kind="encoder", name=top.name) if top is not None else None,
        otherwise=NOTHING_RAN,
    )
