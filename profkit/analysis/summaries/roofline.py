"""Memory bandwidth and arithmetic, of a workload and of each kernel, against the peaks of this machine or device.

The roofline after Williams, Waterman and Patterson, CACM 52 (2009) 65: attainable FLOP/s = min(peak arithmetic,
arithmetic intensity * peak bandwidth). The peaks of a processor are measured, never looked up; a kernel is compared
with those from its own counters, one for each precision: what the device's units can do at the clock that was measured.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from operator import truediv

from profkit.analysis.metrics.catalogue import metric
from profkit.analysis.summaries.host import scope_of
from profkit.analysis.summaries.kernels import KernelRow
from profkit.analysis.summaries.readings import (
    TOOL,
    best_reading,
    derive_reading,
    find_reading,
    main_scopes,
    unavailable_reading,
)
from profkit.core.types import RUN, Fact, Peaks, Reading, RunDocument, Scope, Source

# A workload on one thread never keeps more than 100 % of one core busy; a tenth is left for helper threads.
ONE_THREAD = 110.0


# Peaks are the best of some runs and known to a few per cent; a share beyond this says that an input is wrong.
BEYOND = 105.0
BUSY_PEAK, STREAMING, NARROW = Fact("busy-peak"), Fact("simulated-streaming"), Fact("narrower-than-peak")
DECLARED = Fact("declared")


def flag_implausible(share: Reading, *causes: Fact) -> Reading:
    """Return a share of a peak; well above 100 % it is an estimate, with a note about the likely cause."""
    if share.value is None or share.value <= BEYOND:
        return share
    return replace(share, quality="estimated", reason=Fact.of("beyond-whole", *causes))


def traffic_warnings(dram: Reading) -> tuple[Fact, ...]:
    """Return why a rate to memory may come out above the peak: by how the traffic was come by."""
    return (STREAMING, BUSY_PEAK) if dram.quality != "measured" else (BUSY_PEAK,)


@dataclass(frozen=True)
class Work:
    """What one iteration does and takes, each as a reading that may be unavailable.

    `seconds` is the median time; `dram` (B) and `flops` (FLOP) are per iteration, as the declared ones are.
    """

    scope: Scope
    seconds: Reading
    dram: Reading
    flops: Reading
    declared_flops: float | None = None
    declared_bytes: float | None = None


@dataclass(frozen=True)
class Ceilings:
    """The two peaks that a workload of that many threads is compared with. Units as in Peaks."""

    bandwidth: Reading
    flops: Reading
    threads: int
    single: bool  # those of one thread, since the workload kept no more than one core busy
    busy: float | None  # CPU time over wall time in %; None: not known


def choose_ceilings(peaks: Peaks | None, busy: float | None, scope: Scope) -> Ceilings:
    """Return the peaks for as many threads as the workload kept busy; those of all where that is not known.

    `busy` is CPU time over wall time in per cent: 100 is one core all the time.
    """
    single = busy is not None and busy <= ONE_THREAD
    threads = 1 if single or peaks is None else peaks.threads

    def ceiling(name: str, value: float | None) -> Reading:
        if peaks is None or value is None:
            return unavailable_reading(name, scope, Fact("no-peaks"))
        source = Source(TOOL, formula=peaks.method)
        return Reading(name, value, metric(name).unit, "measured", scope, source)

    bandwidths = [] if peaks is None else [peaks.bandwidth_one]
    rates = [] if peaks is None else [peaks.flops_f32_one]
    if peaks is not None and not single:
        # On a busy machine all threads may have measured less than one, which was reached all the same.
        bandwidths.append(peaks.bandwidth_all)
        rates.append(peaks.flops_f32_all)
    bandwidth = max((peak for peak in bandwidths if peak is not None), default=None)
    flops = max((peak for peak in rates if peak is not None), default=None)
    return Ceilings(ceiling("bandwidth.dram", bandwidth), ceiling("flops.rate", flops), threads, single, busy)


def work_of(document: RunDocument) -> tuple[Work, Ceilings]:
    """Return what one iteration of the first timing does and takes, and the peaks that it is compared with.

    Counts are per iteration already: who counted a region divided by its iterations.
    """
    timing = document.timings[0] if document.timings else None
    scope = scope_of(timing) if timing is not None else main_scopes(document)[0]
    busy = best_reading(document.readings, "cpu.utilization", main_scopes(document))
    work = Work(
        scope,
        find_reading(document, "time.median", "timing"),
        _count_of_one_region(document, find_reading(document, "dram.bytes")),
        _count_of_one_region(document, find_reading(document, "flops")),
        timing.flops if timing is not None else None,
        timing.bytes if timing is not None else None,
    )
    used = busy.value if busy is not None else None
    return work, choose_ceilings(document.peaks, used, scope)


def _count_of_one_region(document: RunDocument, count: Reading) -> Reading:
    """Return a count that may be compared with the first timing; one over several regions belongs to none."""
    names = dict.fromkeys(timing.name for timing in document.timings if timing.kind != "process")
    if count.value is None or count.scope != RUN or len(names) < 2:
        return count
    reason = Fact.of("several-regions", names=", ".join(names))
    return unavailable_reading(
        count.metric, count.scope, reason, "mark the one region that counts", count.source
    )


def bandwidth_readings(work: Work, limit: Ceilings) -> tuple[Reading, ...]:
    """Return bandwidth.dram (B/s), its share of the peak (%), and the rate of the declared bytes (B/s)."""
    derive = partial(derive_reading, scope=work.scope)
    per_second = "dram.bytes per iteration / time.median"
    dram = derive("bandwidth.dram", (work.dram, work.seconds), truediv, per_second)
    of_peak = f"100 * bandwidth.dram / measured peak ({limit.threads} threads)"
    share = derive("bandwidth.dram.share", (dram, limit.bandwidth), _percentage, of_peak)
    readings = (dram, flag_implausible(share, *traffic_warnings(work.dram)))
    if (declared := work.declared_bytes) is None:
        return readings
    formula = "bytes that the workload declares / time.median"
    return *readings, derive(
        "bandwidth.declared", (work.seconds,), lambda seconds: declared / seconds, formula
    )


def _percentage(part: float, whole: float) -> float:
    return 100 * part / whole


def roofline_readings(work: Work, limit: Ceilings) -> tuple[Reading, ...]:
    """Return arithmetic_intensity, flops.rate and its share, roofline.attainable and roofline.share.

    FLOPs are the counted ones; where there are none, those that the workload declares (then said).
    """
    scope, flops = work.scope, work.flops
    if flops.value is None and work.declared_flops is not None:
        source = Source(TOOL, "flops", formula="as the workload declares them")
        flops = Reading("flops", work.declared_flops, "FLOP", "estimated", scope, source, DECLARED)
    derive = partial(derive_reading, scope=scope)
    inputs = (flops, work.dram)
    intensity = derive("arithmetic_intensity", inputs, truediv, "flops / dram.bytes", reason=flops.reason)
    inputs = (flops, work.seconds)
    rate = derive("flops.rate", inputs, truediv, "flops / time.median", reason=flops.reason)
    attainable = derive(
        "roofline.attainable",
        (intensity, limit.bandwidth, limit.flops),
        lambda i, bandwidth, peak: min(peak, i * bandwidth),
        f"min(peak FLOP/s, arithmetic_intensity * peak B/s), {limit.threads} threads",
    )
    formula = f"100 * flops.rate / measured float32 peak ({limit.threads} threads)"
    of_peak = derive("flops.share", (rate, limit.flops), _percentage, formula)
    formula = "100 * flops.rate / roofline.attainable"
    of_ceiling = derive("roofline.share", (rate, attainable), _percentage, formula)
    peak = limit.flops.value
    by_memory = peak is not None and attainable.value is not None and attainable.value < peak
    causes = traffic_warnings(work.dram) if by_memory else (BUSY_PEAK, NARROW)
    return (
        intensity,
        rate,
        flag_implausible(of_peak, BUSY_PEAK, NARROW),
        attainable,
        flag_implausible(of_ceiling, *causes),
    )


# A kernel whose tensor cores work more than this is about them. Below it a stray instruction (a sum by a matrix unit)
# changes nothing.
TENSOR = 1.0  # %
# Where their FLOPs were counted as 0, types may be missing from the count (integers, TF32, FP8), or something else than
# arithmetic keeps the pipe: FP32 kernels on an H200 read up to 3 %.
TENSOR_UNCOUNTED = 10.0  # %
# Compilers also load constants by half-precision instructions: so little of the peak is no arithmetic.
CONSTANTS = 0.01
TENSOR_PEAK = Fact("tensor-peak")
PRECISIONS = ("f32", "f64", "f16")


@dataclass(frozen=True)
class RooflinePlace:
    """The arithmetic that a kernel does most of: of which kind ("f32", "tensor"), and its rate and peak in FLOP/s."""

    kind: str
    rate: float
    peak: float


def has_hidden_tensor_work(row: KernelRow) -> bool:
    """Return whether tensor cores do arithmetic that no counter of this report counts."""
    used, counted = row.value("tensor.utilization") or 0.0, row.value("flops.tensor")
    return used > TENSOR if counted is None else used > TENSOR_UNCOUNTED and counted == 0


def tensor_rate(row: KernelRow) -> float | None:
    """Return the FLOP/s of the tensor cores; None if their FLOPs were not counted."""
    flops, seconds = row.value("flops.tensor"), row.value("time.kernel")
    return flops / seconds if flops and seconds else None


def place_kernel(row: KernelRow) -> RooflinePlace | None:
    """Return the arithmetic under whose ceiling a kernel stands; None where that, its traffic or a peak is not
    known.
    """
    if row.value("bandwidth.dram") is None or not row.value("bandwidth.dram.peak"):
        return None
    if has_hidden_tensor_work(row):
        return None
    used = row.value("tensor.utilization") or 0.0
    if used > TENSOR and (rate := tensor_rate(row)) is not None:
        return RooflinePlace("tensor", rate, 100 * rate / used)
    rates = {kind: row.value(f"flops.rate.{kind}") or 0.0 for kind in PRECISIONS}
    if rates["f16"] < CONSTANTS * (row.value("flops.peak.f16") or 0.0):
        rates["f16"] = 0.0
    kind = max(rates, key=lambda kind: rates[kind])
    peak = row.value(f"flops.peak.{kind}")
    return RooflinePlace(kind, rates[kind], peak) if rates[kind] and peak else None


def kernel_roofline(row: KernelRow) -> tuple[Reading, ...]:
    """Return roofline.attainable (FLOP/s) and roofline.share (%) of a kernel; empty if its position is not known."""
    place = place_kernel(row)
    if place is None:
        return ()
    names: tuple[str, ...] = (f"flops.rate.{place.kind}", f"flops.peak.{place.kind}")
    rate, peak = names
    if place.kind == "tensor":
        names = ("flops.tensor", "time.kernel", "tensor.utilization")
        rate, peak = "flops.tensor / time.kernel", "100 * flops.tensor / time.kernel / tensor.utilization"
    inputs = [row.readings[name] for name in (*names, "bandwidth.dram", "bandwidth.dram.peak")]
    moved, most = row.value("bandwidth.dram"), row.value("bandwidth.dram.peak") or 0.0
    attainable = min(place.peak, place.rate / moved * most) if moved else place.peak

    def reading(name: str, value: float, formula: str) -> Reading:
        estimated = place.kind == "tensor"
        return derive_reading(
            name,
            inputs,
            lambda *_: value,
            formula,
            row.readings["bandwidth.dram"].scope,
            quality="estimated" if estimated else None,
            reason=TENSOR_PEAK if estimated else None,
        )

    under = f"min({peak}, {rate} / bandwidth.dram * bandwidth.dram.peak)"
    share = 100 * place.rate / attainable
    return (
        reading("roofline.attainable", attainable, under),
        reading("roofline.share", share, f"100 * {rate} / roofline.attainable"),
    )
