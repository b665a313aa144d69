"""What the counters of an Apple GPU say: occupancy, limiter, and bandwidth against the chip's specification.

Counters speak of the whole device. Their plain means hold the time in which nothing ran, so what is judged is the mean
over the samples in which the profiled process had work there. Where the recording does not tell when that was, it is
the mean over all samples, times the share of the time that they cover (a GPU that sleeps is not sampled), over that in
which the device was active: an estimate, since it takes the samples of an idle device for 0. Samples may also be short
and far apart (seen: 20 of every 330 us), and then idle time is in them whatever they cover: where that would make a
large difference, and where the device cannot have been active for so short a time, the estimate is doubtful.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from profkit.analysis.metrics import metal_counter_names, metric
from profkit.analysis.summaries.metal_chip import Specified, specified
from profkit.analysis.summaries.metal_declared import (
    NOT_RECORDED,
    TABLES,
    UNSPECIFIED,
    arithmetic_readings,
    estimated_bandwidth,
    of_peak,
)
from profkit.analysis.summaries.metal_told import missing, share, told
from profkit.core.formatting import figures, percent, quantity
from profkit.core.types import MetalCounter, MetalTrace, Quality, Reading, RunDocument

AT_WORK = "mean of the samples in which the process had work on the GPU"
APART = 1.2  # an estimate that could be so many times itself decides nothing
DILUTED = "mean over all samples * share of the time that they cover / share in which the GPU was active"
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
    doubt: str | None = None


def counter_readings(document: RunDocument, metal: MetalTrace) -> tuple[Reading, ...]:
    """Occupancy, limiter, bandwidth and arithmetic of the run; unavailable ones with the way to get them."""
    chip = specified(document, metal)
    found = [_share(metal, name) for name in SHARES]
    return (*found, *_bandwidth(document, metal, chip), *arithmetic_readings(document, metal, chip))


def known_counters(metal: MetalTrace) -> Sequence[MetalCounter]:
    """All counters with samples, by name."""
    return sorted((one for one in metal.counters if one.samples), key=lambda one: one.name)


def _share(metal: MetalTrace, name: str) -> Reading:
    value = _value(metal, name)
    if isinstance(value, str):
        return _untold(metal, name, value)
    if value.unit != "%":
        why = f"{value.name} is counted in {value.unit or 'no unit'} here, and not in per cent"
        return missing(metal, name, why, None)
    most = min(100.0, value.value)  # two counters that stop a moment apart pass 100 by a hair
    reading = told(metal, name, most, TABLES, value.formula, quality=value.quality, remark=value.name)
    return replace(reading, doubt=value.doubt)


def _untold(metal: MetalTrace, name: str, why: str) -> Reading:
    """Where counters were recorded what is wrong with this one, else why the trace has none at all."""
    if metal.counters:
        return missing(metal, name, why, None)
    return told(metal, name, None, TABLES, "", otherwise=why)


def _value(metal: MetalTrace, name: str) -> _Value | str:
    """The counter behind a metric while the process worked, or why there is none."""
    if not metal.counters:
        return NOT_RECORDED
    table = metal_counter_names()
    known = {counter.name: counter for counter in metal.counters if counter.samples}
    chosen = next((known[one] for one in table.counters[name] if one in known), None)
    if chosen is not None:
        return _while_working(metal, chosen)
    none = f"none of the recorded counters tells it ({metric(name).title})"
    if name != "gpu.limiter":
        return none
    values = [_while_working(metal, known[one]) for one in table.limiters(known)]
    usable = [value for value in values if isinstance(value, _Value) and value.unit == "%"]
    return max(usable, key=lambda one: one.value, default=none)


def _while_working(metal: MetalTrace, counter: MetalCounter) -> _Value | str:
    if counter.most <= 0:
        return f"{counter.name} is a hard zero: 0 in all of {counter.samples} samples"
    if counter.active is not None:
        return _Value(counter.active, counter.unit, "measured", counter.name, AT_WORK, _diluted(counter))
    active = share(metal.device_busy, metal.span)
    if not active:
        values = f"{_number(counter.mean, counter.unit)} in the mean and {_number(counter.most, counter.unit)} at most"
        return f"{counter.name} is {values}, over a time of which nobody knows how long the GPU worked"
    # Fewer samples than work: then they may be of the work alone. More than was ever counted is no mean of anything.
    stretched = max(1.0, (1.0 if counter.covered is None else counter.covered) / (active / 100))
    value = min(counter.most, counter.mean * stretched)
    doubt = _doubt(counter, counter.mean * stretched, counter.mean / (active / 100))
    return _Value(value, counter.unit, "estimated", counter.name, DILUTED, doubt)


def _diluted(counter: MetalCounter) -> str | None:
    """A sample is of all the time that it took: of work that is shorter it tells little."""
    if counter.filled is None or counter.filled * APART >= 1:
        return None
    part = percent(100 * counter.filled)
    return f"the process had work in {part} % of the time of the samples that saw it, and the rest is in them, too"


def _doubt(counter: MetalCounter, value: float, undiluted: float) -> str | None:
    """What speaks against an estimate. `undiluted`: what it is if idle time is in the samples, however few they are."""
    if value > APART * counter.most:
        return (
            "the GPU of the counters worked for longer than that of the trace: the share in which it was active"
            " is of another recording, or of another part of it"
        )
    most = min(counter.most, undiluted)
    if most > APART * value:
        could = _number(most, counter.unit)
        return f"it may be up to {could}: whether {counter.name} was sampled while the GPU rested is not told"
    return None


def _number(value: float, unit: str) -> str:
    return quantity(value, unit) if unit else figures(value)


def _bandwidth(document: RunDocument, metal: MetalTrace, chip: Specified) -> list[Reading]:
    values = [_value(metal, name) for name in RATES]
    rated = [(value, _rate(metal, name, value, chip)) for name, value in zip(RATES, values, strict=True)]
    found = [
        replace(r, doubt=v.doubt) if isinstance(v, _Value) and r.value is not None else r for v, r in rated
    ]
    known = [value for value in values if isinstance(value, _Value)]
    units = {value.unit for value in known}
    if len(known) < len(RATES) or not units <= {"B/s", "%"}:
        return [
            *found,
            *estimated_bandwidth(
                document, metal, chip, next((r.reason for r in found if r.value is None), None)
            ),
        ]
    doubt = next((one.doubt for one in known if one.doubt is not None), None)
    quality: Quality = "measured" if all(one.quality == "measured" for one in found) else "estimated"
    names = ", ".join(one.name for one in known)
    formula = f"read + write; each: {known[0].formula}"
    rates = [one.value for one in found if one.value is not None]
    if len(rates) == len(RATES):
        whole = sum(rates)
        rate = told(metal, "bandwidth.gpu", whole, TABLES, formula, quality=quality, remark=names)
        part = of_peak(metal, whole, chip, quality, names)
        return [
            *found,
            replace(rate, doubt=doubt),
            replace(part, doubt=doubt if part.value is not None else None),
        ]
    unknown = missing(metal, "bandwidth.gpu", chip.reason or UNSPECIFIED, chip.fix)
    if units != {"%"}:
        return [*found, unknown, missing(metal, "bandwidth.gpu.share", chip.reason or UNSPECIFIED, chip.fix)]
    whole = sum(one.value for one in known)  # in per cent of a peak that is not known here
    of = told(metal, "bandwidth.gpu.share", whole, TABLES, formula, quality="estimated", remark=names)
    return [*found, unknown, replace(of, doubt=doubt)]


def _rate(metal: MetalTrace, name: str, value: _Value | str, chip: Specified) -> Reading:
    """Bytes per second as counted; of a percentage what it is of the chip's bandwidth, an estimate."""
    if isinstance(value, str):
        return _untold(metal, name, value)
    if value.unit == "B/s":
        return told(metal, name, value.value, TABLES, value.formula, quality=value.quality, remark=value.name)
    if value.unit != "%":
        why = f"{value.name} is counted in {value.unit or 'no unit'} here, and not in bytes per second"
        return missing(metal, name, why, None)
    if not chip.bandwidth:
        return missing(metal, name, chip.reason or UNSPECIFIED, chip.fix)
    formula = f"{value.formula}{OF_PEAK} {chip.name}'s bandwidth"
    rate = value.value / 100 * chip.bandwidth
    return told(metal, name, rate, TABLES, formula, quality="estimated", remark=value.name)
