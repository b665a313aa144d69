"""What the counters of an Apple GPU say, and what follows from declared work where there are none: rates and occupancy.

Counters speak of the whole device. Their plain means hold the time in which nothing ran, so what is judged is the mean
over the samples in which the profiled process had work there; where the recording does not tell when that was, the
mean over all, divided by the share of the time in which the device was active: an estimate, since it takes every sample
of an idle device for 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from profkit.metrics import metal_counter_names, metric
from profkit.model import Gpu, MetalCounter, MetalTrace, Quality, Reading, RunDocument
from profkit.summaries.metal_told import COUNTERS, INTERVALS, SAMPLES, share, told, why_absent
from profkit.summaries.traced import traced_iterations
from profkit.words import quantity

TABLES = (COUNTERS, SAMPLES)
NOT_RECORDED = "the recording has no GPU counters"
DILUTED = "mean over all samples / the share of the time in which the GPU was active"
RATES = ("bandwidth.gpu.read", "bandwidth.gpu.write")
SHARES = ("gpu.occupancy", "gpu.occupancy.total", "gpu.occupancy.target", "gpu.limiter", "gpu.alu")
BEYOND = 105.0  # % of a specification; what is well above it was moved by a cache
FROM_CACHE = "more than the memory can move: the system level cache served a part, and counts as well"
MARK = "mark what counts: with profkit.region(NAME): ..., or profkit.benchmark"
SPECIFIED = "the memory bandwidth of this chip is not known"


@dataclass(frozen=True)
class _Value:
    """One counter while the process worked, in the unit of its label."""

    value: float
    unit: str
    quality: Quality
    names: tuple[str, ...]
    formula: str


def counter_readings(document: RunDocument, metal: MetalTrace) -> tuple[Reading, ...]:
    """Occupancy, limiter, bandwidth and arithmetic of the run; unavailable ones with the way to get them."""
    gpu = document.gpus[0] if document.gpus else None
    found = [_share(metal, name) for name in SHARES]
    return (*found, *_bandwidth(document, metal, gpu), *_arithmetic(document, metal, gpu))


def _share(metal: MetalTrace, name: str) -> Reading:
    value = _value(metal, name)
    if value is None or value.unit != "%":
        what = metric(name).title.lower()
        why = NOT_RECORDED if not metal.counters else f"this chip's counters have none of {what}"
        return told(metal, name, None, TABLES, "", otherwise=why)
    most = min(100.0, value.value)  # two counters that stop a moment apart pass 100 by a hair
    return told(
        metal, name, most, TABLES, value.formula, quality=value.quality, remark=", ".join(value.names)
    )


def _value(metal: MetalTrace, name: str) -> _Value | None:
    """The counter behind a metric; None where it was not counted, or not while the process worked."""
    table = metal_counter_names()
    known = {counter.name: counter for counter in metal.counters if counter.samples}
    chosen = next((known[one] for one in table.counters[name] if one in known), None)
    if chosen is not None:
        return _while_working(metal, chosen)
    if name != "gpu.limiter":
        return None
    values = [_while_working(metal, known[one]) for one in table.limiters(known)]
    told = [value for value in values if value is not None and value.unit == "%"]
    return max(told, key=lambda one: one.value, default=None)


def _while_working(metal: MetalTrace, counter: MetalCounter) -> _Value | None:
    names = (counter.name,)
    if counter.active is not None:
        formula = "mean of the samples in which the process had work on the GPU"
        return _Value(counter.active, counter.unit, "measured", names, formula)
    active = share(metal.device_busy, metal.span)
    if not active:
        return None
    value = counter.mean / (active / 100)
    if value > counter.most:  # what a mean of 0 elsewhere would need was never counted
        value = counter.most
    return _Value(value, counter.unit, "estimated", names, DILUTED)


def _bandwidth(document: RunDocument, metal: MetalTrace, gpu: Gpu | None) -> list[Reading]:
    peak = gpu.bandwidth if gpu is not None else None
    values = [_value(metal, name) for name in RATES]
    rates = [_rate(value, peak) for value in values]
    found = [
        _told_rate(metal, name, rate, value) for name, rate, value in zip(RATES, rates, values, strict=True)
    ]
    known = [value for value in values if value is not None]
    if len(known) == len(RATES):
        sure = all(one.quality == "measured" and one.unit == "B/s" for one in known)
        quality: Quality = "measured" if sure else "estimated"
        names = ", ".join(one.names[0] for one in known)
        formula = f"read + write; each: {known[0].formula}"
        if all(rate is not None for rate in rates):
            whole = sum(rate or 0.0 for rate in rates)
            found.append(told(metal, "bandwidth.gpu", whole, TABLES, formula, quality=quality, remark=names))
            found.append(_of_peak(metal, whole, peak, quality, names))
        else:  # in per cent, of a peak that is not known here
            whole = sum(one.value for one in known)
            found.append(told(metal, "bandwidth.gpu", None, TABLES, formula, otherwise=SPECIFIED))
            found.append(
                told(metal, "bandwidth.gpu.share", whole, TABLES, formula, quality="estimated", remark=names)
            )
        return found
    return [*found, *_estimated_bandwidth(document, metal, peak)]


def _rate(value: _Value | None, peak: float | None) -> float | None:
    """Bytes per second: as counted, or a percentage of the chip's specification; None where neither is known."""
    if value is None:
        return None
    if value.unit == "B/s":
        return value.value
    return value.value / 100 * peak if value.unit == "%" and peak else None


def _told_rate(metal: MetalTrace, name: str, rate: float | None, value: _Value | None) -> Reading:
    if value is None:
        why = NOT_RECORDED if not metal.counters else "this chip's counters have none of it"
        return told(metal, name, None, TABLES, "", otherwise=why)
    formula = value.formula if value.unit == "B/s" else f"{value.formula}, in % of the chip's bandwidth"
    quality: Quality = "measured" if value.quality == "measured" and value.unit == "B/s" else "estimated"
    return told(
        metal, name, rate, TABLES, formula, quality=quality, remark=value.names[0], otherwise=SPECIFIED
    )


def _of_peak(
    metal: MetalTrace, rate: float | None, peak: float | None, quality: Quality, remark: str | None
) -> Reading:
    value = 100 * rate / peak if rate is not None and peak else None
    formula = f"100 * bandwidth.gpu / {quantity(peak, 'B/s')} (specification)" if peak else ""
    if value is not None and value > BEYOND:
        remark = FROM_CACHE
    return told(
        metal,
        "bandwidth.gpu.share",
        value,
        TABLES,
        formula,
        quality=quality,
        remark=remark,
        otherwise=SPECIFIED,
    )


def _estimated_bandwidth(document: RunDocument, metal: MetalTrace, peak: float | None) -> list[Reading]:
    """From the bytes that the workload declares over the union of its time on the GPU; else why there is none."""
    rate, why = _declared(document, metal, "bytes")
    formula = "declared bytes * iterations / union of the process on the GPU"
    remark = "declared by the workload, not counted"
    if rate is None:
        reason, fix = why_absent(metal, TABLES, NOT_RECORDED if not metal.counters else "not counted")
        return [
            _missing(metal, name, f"{reason}, and {why}", fix)
            for name in ("bandwidth.gpu", "bandwidth.gpu.share")
        ]
    return [
        told(metal, "bandwidth.gpu", rate, (INTERVALS,), formula, quality="estimated", remark=remark),
        _of_peak(metal, rate, peak, "estimated", remark),
    ]


def _arithmetic(document: RunDocument, metal: MetalTrace, gpu: Gpu | None) -> list[Reading]:
    """flops.gpu.rate, its share of the chip's float32 figure, and the intensity: only where work is declared."""
    rate, why = _declared(document, metal, "flops")
    if rate is None:
        declared = document.timings and document.timings[0].flops
        return (
            [_missing(metal, name, why, MARK) for name in ("flops.gpu.rate", "flops.gpu.share")]
            if declared
            else []
        )
    formula = "declared FLOP * iterations / union of the process on the GPU"
    remark = "declared by the workload, not counted"
    peak = gpu.flops if gpu is not None else None
    part = 100 * rate / peak if peak else None
    of = f"100 * flops.gpu.rate / {quantity(peak, 'FLOP/s')} (specification, float32)" if peak else ""
    found = [
        told(metal, "flops.gpu.rate", rate, (INTERVALS,), formula, quality="estimated", remark=remark),
        told(
            metal,
            "flops.gpu.share",
            part,
            (INTERVALS,),
            of,
            quality="estimated",
            remark=remark,
            otherwise="the float32 rate of this chip is not known",
        ),
    ]
    timing = document.timings[0]
    if timing.flops and timing.bytes:
        found.append(
            told(
                metal,
                "arithmetic_intensity",
                timing.flops / timing.bytes,
                (),
                "declared FLOP / declared bytes",
                quality="estimated",
                remark=remark,
            )
        )
    return found


def _declared(document: RunDocument, metal: MetalTrace, what: str) -> tuple[float | None, str]:
    """FLOP or bytes per second of the process's time on the GPU by what the workload declares; else why not."""
    timing = document.timings[0] if document.timings else None
    amount = None if timing is None else timing.flops if what == "flops" else timing.bytes
    words = "the workload declares no " + ("FLOP" if what == "flops" else "bytes")
    if not amount:
        return None, words
    if not metal.process_busy:
        return None, "the time of the process on the GPU is not known"
    if not metal.marked:
        return None, "without a marked region nobody knows how many iterations were traced"
    return amount * iterations(document, metal) / metal.process_busy, ""


def iterations(document: RunDocument, metal: MetalTrace) -> int:
    """How often the work of the timing was traced: as the plan told a benchmark, else the entries of the region."""
    return max(traced_iterations(document), metal.entries, 1)


def _missing(metal: MetalTrace, name: str, why: str, fix: str | None) -> Reading:
    return replace(told(metal, name, None, (), "", otherwise=why), fix=fix)


def known_counters(metal: MetalTrace) -> Sequence[MetalCounter]:
    """All counters with samples, by name."""
    return sorted((one for one in metal.counters if one.samples), key=lambda one: one.name)
