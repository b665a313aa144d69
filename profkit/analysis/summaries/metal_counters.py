"""What the counters of an Apple GPU say: occupancy, limiter, bandwidth against the chip's specification.

Counters speak of the whole device. Their plain means hold the time in which nothing ran, so what is judged is the mean
over the samples in which the profiled process had work there. Where the recording does not tell when that was, it is
the mean over all samples, times the share of the time that they cover (a GPU that sleeps is not sampled), over that in
which the device was active: an estimate, since it takes the samples of an idle device for 0. Samples may also be short
and far apart (seen: 20 of every 330 us), and then idle time is in them whatever they cover: where that would make a
large difference, and where the device cannot have been active for so short a time, the estimate is doubtful.

Where nothing was counted, rates follow from the work that the workload declares: an estimate over the union of the
process's time on the GPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from profkit.analysis.metrics import metal_counter_names
from profkit.analysis.summaries.metal_readings import (
    COUNTERS,
    INTERVALS,
    SAMPLES,
    explain_absence,
    metal_reading,
    missing_reading,
    percent_of,
)
from profkit.analysis.summaries.readings import traced_iterations
from profkit.core.errors import Fault
from profkit.core.formatting import format_quantity
from profkit.core.types import TOGETHER, Fact, Gpu, MetalCounter, MetalTrace, Quality, Reading, RunDocument


@dataclass(frozen=True)
class ChipSpecification:
    """Bandwidth in bytes/s and float32 arithmetic in FLOP/s; where one is None, `reason` and `fix` say why.

    `..._checked` False: the figure is one report's, or worked out of a neighbour, so what is made of it is an estimate.
    """

    name: str | None
    bandwidth: float | None
    flops: float | None
    bandwidth_checked: bool = True
    flops_checked: bool = True
    reason: Fact | None = None
    fix: str | None = None


def chip_specification(document: RunDocument, metal: MetalTrace) -> ChipSpecification:
    """The figures of the GPU that the trace speaks of."""
    from profkit.hardware.macos import find_chip  # with the whole machine, which no other run needs here

    gpu = _gpu_named(document.gpus, metal.device)
    name = gpu.name if gpu is not None else metal.device
    chip = find_chip(name, gpu.cores if gpu is not None else None)
    bandwidth, flops = (gpu.bandwidth, gpu.flops) if gpu is not None else (None, None)
    if isinstance(chip, Fault):
        return ChipSpecification(name, bandwidth, flops, reason=Fact.message(chip.reason), fix=chip.fix)
    return ChipSpecification(
        name,
        bandwidth or chip.bandwidth,
        flops or chip.flops,
        chip.bandwidth_checked,
        chip.flops_checked,
        Fact.message(chip.reason) if chip.reason is not None else None,
    )


def _gpu_named(gpus: tuple[Gpu, ...], device: str | None) -> Gpu | None:
    """Of several GPUs the one that the trace names; the first where it names none."""
    named = next((gpu for gpu in gpus if device is not None and gpu.name in (device, f"{device} GPU")), None)
    return named or (gpus[0] if gpus else None)


COUNTER_TABLES = (COUNTERS, SAMPLES)
NOT_RECORDED = Fact("no-gpu-counters")
BEYOND = 105.0  # % of a specification; what is well above it was moved by a cache
FROM_CACHE = Fact("served-by-cache")
MARK = "mark what counts: with profkit.region(NAME): ..., or profkit.benchmark"
UNSPECIFIED, UNCHECKED = Fact("unknown-bandwidth"), Fact("unchecked-chip")
NARROW, DECLARED = Fact("beyond-float32"), Fact("declared")


def _share_of_peak(
    metal: MetalTrace, rate: float, chip: ChipSpecification, quality: Quality, remark: Fact | None
) -> Reading:
    """bandwidth.gpu.share: the rate as a share of what the chip is specified with."""
    if not chip.bandwidth:
        return missing_reading(metal, "bandwidth.gpu.share", chip.reason or UNSPECIFIED, chip.fix)
    value = 100 * rate / chip.bandwidth
    formula = f"100 * bandwidth.gpu / {format_quantity(chip.bandwidth, 'B/s')} (specification of {chip.name})"
    if not chip.bandwidth_checked:
        quality, remark = "estimated", UNCHECKED
    if value > BEYOND:
        remark = FROM_CACHE
    source = COUNTER_TABLES, formula
    return metal_reading(metal, "bandwidth.gpu.share", value, *source, quality=quality, remark=remark)


def _declared_bandwidth(
    document: RunDocument, metal: MetalTrace, chip: ChipSpecification, uncounted: Fact | None
) -> list[Reading]:
    """From the bytes that the workload declares over the union of its time on the GPU; else why there is none.

    `uncounted`: what is wrong with the counters that were recorded.
    """
    rate = _declared_rate(document, metal, "bytes")
    if isinstance(rate, Fact):
        reason, fix = explain_absence(metal, COUNTER_TABLES, NOT_RECORDED)
        if metal.counters and uncounted is not None:
            reason, fix = uncounted, None
        names = ("bandwidth.gpu", "bandwidth.gpu.share")
        return [missing_reading(metal, name, Fact(TOGETHER, parts=(reason, rate)), fix) for name in names]
    formula = "declared bytes * iterations / union of the process on the GPU"
    return [
        _declared_reading(metal, "bandwidth.gpu", rate, formula),
        _share_of_peak(metal, rate, chip, "estimated", DECLARED),
    ]


def _arithmetic_readings(document: RunDocument, metal: MetalTrace, chip: ChipSpecification) -> list[Reading]:
    """flops.gpu.rate, its share of the chip's float32 figure, and the intensity: only where work is declared."""
    timing = document.timings[0] if document.timings else None
    if timing is None or not timing.flops:
        return []
    rate = _declared_rate(document, metal, "flops")
    if isinstance(rate, Fact):
        return [missing_reading(metal, name, rate, MARK) for name in ("flops.gpu.rate", "flops.gpu.share")]
    remark, formula = DECLARED, "declared FLOP * iterations / union of the process on the GPU"
    readings = [_declared_reading(metal, "flops.gpu.rate", rate, formula)]
    if not chip.flops:
        why = chip.reason or Fact("unknown-flops")
        readings.append(missing_reading(metal, "flops.gpu.share", why, chip.fix))
    else:
        of = f"{format_quantity(chip.flops, 'FLOP/s')} (specification of {chip.name}, float32)"
        part = 100 * rate / chip.flops
        remark = NARROW if part > BEYOND else remark
        readings.append(
            _declared_reading(metal, "flops.gpu.share", part, f"100 * flops.gpu.rate / {of}", remark)
        )
    if timing.bytes:
        intensity, formula = timing.flops / timing.bytes, "declared FLOP / declared bytes"
        readings.append(_declared_reading(metal, "arithmetic_intensity", intensity, formula, remark, ()))
    return readings


def _declared_reading(
    metal: MetalTrace,
    name: str,
    value: float,
    formula: str,
    remark: Fact = DECLARED,
    tables: tuple[str, ...] = (INTERVALS,),
) -> Reading:
    return metal_reading(metal, name, value, tables, formula, quality="estimated", remark=remark)


def _declared_rate(document: RunDocument, metal: MetalTrace, what: Literal["flops", "bytes"]) -> float | Fact:
    """FLOP or bytes per second of the process's time on the GPU by what the workload declares; else why not."""
    timing = document.timings[0] if document.timings else None
    amount = None if timing is None else timing.flops if what == "flops" else timing.bytes
    if not amount:
        return Fact(f"no-declared-{what}")
    if not metal.process_busy:
        return Fact("no-process-time")
    if not metal.marked:
        return Fact("unknown-iterations")
    # As the plan told a benchmark, else the entries of the region.
    return amount * max(traced_iterations(document), metal.entries, 1) / metal.process_busy


AT_WORK = "mean of the samples in which the process had work on the GPU"
APART = 1.2  # an estimate that could be so many times itself decides nothing
DILUTED_FORMULA = (
    "mean over all samples * share of the time that they cover / share in which the GPU was active"
)
OF_PEAK = ", in % of the"
RATES = ("bandwidth.gpu.read", "bandwidth.gpu.write")
SHARES = ("gpu.occupancy", "gpu.occupancy.total", "gpu.occupancy.target", "gpu.limiter", "gpu.alu")


@dataclass(frozen=True)
class _Value:
    """One counter while the process worked, in the unit of its label."""

    value: float
    unit: str
    quality: Quality
    name: str
    formula: str
    doubt: Fact | None = None


def counter_readings(document: RunDocument, metal: MetalTrace) -> tuple[Reading, ...]:
    """Occupancy, limiter, bandwidth and arithmetic of the run; unavailable ones with the way to get them."""
    chip = chip_specification(document, metal)
    return (
        *(_share_reading(metal, name) for name in SHARES),
        *_bandwidth_readings(document, metal, chip),
        *_arithmetic_readings(document, metal, chip),
    )


def known_counters(metal: MetalTrace) -> Sequence[MetalCounter]:
    """All counters with samples, by name."""
    return sorted(
        (counter for counter in metal.counters if counter.samples), key=lambda counter: counter.name
    )


def _share_reading(metal: MetalTrace, name: str) -> Reading:
    value = _counter_value(metal, name)
    if isinstance(value, Fact):
        return _missing_counter(metal, name, value)
    if value.unit != "%":
        why = Fact.of("other-unit", counter=value.name, unit=value.unit or "no unit")
        return missing_reading(metal, name, why, None)
    # Two counters that stop a moment apart pass 100 by a hair.
    return _counted_reading(metal, name, min(100.0, value.value), value)


def _counted_reading(metal: MetalTrace, name: str, amount: float, value: _Value) -> Reading:
    source = COUNTER_TABLES, value.formula
    reading = metal_reading(
        metal, name, amount, *source, quality=value.quality, remark=Fact.of("of-counter", counter=value.name)
    )
    return replace(reading, doubt=value.doubt)


def _missing_counter(metal: MetalTrace, name: str, why: Fact) -> Reading:
    """Where counters were recorded what is wrong with this one, else why the trace has none at all."""
    if metal.counters:
        return missing_reading(metal, name, why, None)
    return metal_reading(metal, name, None, COUNTER_TABLES, "", otherwise=why)


def _counter_value(metal: MetalTrace, name: str) -> _Value | Fact:
    """The counter behind a metric while the process worked, or why there is none."""
    if not metal.counters:
        return NOT_RECORDED
    table = metal_counter_names()
    known = {counter.name: counter for counter in metal.counters if counter.samples}
    chosen = next(
        (known[counter_name] for counter_name in table.counters[name] if counter_name in known), None
    )
    if chosen is not None:
        return _while_working(metal, chosen)
    none = Fact.of("no-such-counter", metric=name)
    if name != "gpu.limiter":
        return none
    values = [_while_working(metal, known[counter_name]) for counter_name in table.limiters(known)]
    usable = [value for value in values if isinstance(value, _Value) and value.unit == "%"]
    return max(usable, key=lambda value: value.value, default=none)


def _while_working(metal: MetalTrace, counter: MetalCounter) -> _Value | Fact:
    if counter.most <= 0:
        return Fact.of("zero-in-samples", counter=counter.name, samples=counter.samples)
    if counter.active is not None:
        return _Value(
            counter.active, counter.unit, "measured", counter.name, AT_WORK, _dilution_warning(counter)
        )
    active = percent_of(metal.device_busy, metal.span)
    if not active:
        return Fact.of("unknown-work", counter=counter.name)
    # Fewer samples than work: then they may be of the work alone. More than was ever counted is no mean of anything.
    stretched = max(1.0, (1.0 if counter.covered is None else counter.covered) / (active / 100))
    value = min(counter.most, counter.mean * stretched)
    doubt = _estimate_warning(counter, counter.mean * stretched, counter.mean / (active / 100))
    return _Value(value, counter.unit, "estimated", counter.name, DILUTED_FORMULA, doubt)


def _dilution_warning(counter: MetalCounter) -> Fact | None:
    """A sample is of all the time that it took: of work that is shorter it tells little."""
    if counter.filled is None or counter.filled * APART >= 1:
        return None
    return Fact.of("diluted-samples", share=counter.filled)


def _estimate_warning(counter: MetalCounter, value: float, undiluted: float) -> Fact | None:
    """What speaks against an estimate. `undiluted`: what it is if idle time is in the samples, however few they are."""
    if value > APART * counter.most:
        return Fact("other-recording")
    most = min(counter.most, undiluted)
    if most > APART * value:
        return Fact.of("may-be-more", most=most, unit=counter.unit, counter=counter.name)
    return None


def _bandwidth_readings(document: RunDocument, metal: MetalTrace, chip: ChipSpecification) -> list[Reading]:
    values = [_counter_value(metal, name) for name in RATES]
    readings = [_rate_reading(metal, name, value, chip) for name, value in zip(RATES, values, strict=True)]
    known = [value for value in values if isinstance(value, _Value)]
    units = {value.unit for value in known}
    if len(known) < len(RATES) or not units <= {"B/s", "%"}:
        why = next((reading.reason for reading in readings if reading.value is None), None)
        return [*readings, *_declared_bandwidth(document, metal, chip, why)]
    doubt = next((value.doubt for value in known if value.doubt is not None), None)
    names, formula = ", ".join(value.name for value in known), f"read + write; each: {known[0].formula}"
    rates = [reading.value for reading in readings if reading.value is not None]
    if len(rates) == len(RATES):
        measured = all(reading.quality == "measured" for reading in readings)
        both = _Value(sum(rates), "B/s", "measured" if measured else "estimated", names, formula, doubt)
        rate = _counted_reading(metal, "bandwidth.gpu", both.value, both)
        part = _share_of_peak(metal, both.value, chip, both.quality, Fact.of("of-counter", counter=names))
        return [*readings, rate, part if part.value is None else replace(part, doubt=doubt)]
    why, share = chip.reason or UNSPECIFIED, "bandwidth.gpu.share"
    part = missing_reading(metal, share, why, chip.fix)
    if units == {"%"}:  # of a peak that is not known here
        both = _Value(sum(value.value for value in known), "%", "estimated", names, formula, doubt)
        part = _counted_reading(metal, share, both.value, both)
    return [*readings, missing_reading(metal, "bandwidth.gpu", why, chip.fix), part]


def _rate_reading(metal: MetalTrace, name: str, value: _Value | Fact, chip: ChipSpecification) -> Reading:
    """Bytes per second as counted; of a percentage what it is of the chip's bandwidth, an estimate."""
    if isinstance(value, Fact):
        return _missing_counter(metal, name, value)
    if value.unit == "B/s":
        return _counted_reading(metal, name, value.value, value)
    if value.unit != "%":
        why = Fact.of("other-unit", counter=value.name, unit=value.unit or "no unit")
        return missing_reading(metal, name, why, None)
    if not chip.bandwidth:
        return missing_reading(metal, name, chip.reason or UNSPECIFIED, chip.fix)
    formula = f"{value.formula}{OF_PEAK} {chip.name}'s bandwidth"
    estimate = replace(value, formula=formula, quality="estimated")
    return _counted_reading(metal, name, value.value / 100 * chip.bandwidth, estimate)
