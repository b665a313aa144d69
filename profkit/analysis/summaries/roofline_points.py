"""The roofline as plain data: the ceilings of this machine or device, and where a workload or kernel stands below them.

After Williams, Waterman and Patterson, CACM 52 (2009) 65, with one ceiling for each precision as in NVIDIA's roofline
charts. A kernel is held against the peaks that its own counters tell: what the units of the device can do at the clock
that was measured. A workload of the processor is held against what was measured on this machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from profkit.analysis.summaries.kernels import KernelRow
from profkit.analysis.summaries.readings import best_reading, derive_reading, main_scopes
from profkit.analysis.summaries.roofline import work_of
from profkit.core.formatting import plural
from profkit.core.types import Bound, Fact, Quality, Reading, RunDocument

# A kernel whose tensor cores work more than this is about them. Below it a stray instruction (a sum by a matrix unit)
# changes nothing.
TENSOR = 1.0  # %
# Where their FLOPs were counted as 0, types may be missing from the count (integers, TF32, FP8), or something else than
# arithmetic keeps the pipe: FP32 kernels on an H200 read up to 3 %.
TENSOR_UNCOUNTED = 10.0  # %
# Compilers also load constants by half-precision instructions: so little of the peak is no arithmetic.
CONSTANTS = 0.01
TENSOR_PEAK = Fact("tensor-peak")
PRECISIONS = {"f32": "FP32", "f64": "FP64", "f16": "FP16"}


@dataclass(frozen=True)
class RooflinePlace:
    """One kernel under the roofline of one kind of arithmetic. Rates in FLOP/s, bandwidths in bytes/s."""

    kind: str  # "FP32", "tensor"
    rate: float
    peak: float
    bandwidth: float
    peak_bandwidth: float
    estimated: bool = False

    @property
    def intensity(self) -> float | None:
        """FLOP per byte of DRAM traffic; None where there is no traffic."""
        return self.rate / self.bandwidth if self.bandwidth > 0 else None

    @property
    def attainable(self) -> float:
        """The lower ceiling at this intensity, FLOP/s."""
        return self.peak if self.intensity is None else min(self.peak, self.intensity * self.peak_bandwidth)

    @property
    def ceiling(self) -> str:
        """Which ceiling that is: memory or compute."""
        return "memory" if self.attainable < self.peak else "compute"


def has_hidden_tensor_work(row: KernelRow) -> bool:
    """Whether tensor cores do arithmetic that no counter of this report tells."""
    used, counted = row.value("tensor.utilization") or 0.0, row.value("flops.tensor")
    return used > TENSOR if counted is None else used > TENSOR_UNCOUNTED and counted == 0


def tensor_rate(row: KernelRow) -> float | None:
    """FLOP/s of the tensor cores, where their FLOPs were counted."""
    flops, seconds = row.value("flops.tensor"), row.value("time.kernel")
    return flops / seconds if flops and seconds else None


def place_kernel(row: KernelRow) -> RooflinePlace | None:
    """The kernel under the ceiling of the arithmetic that it does most of; None where that or a peak is not known."""
    bandwidth, peak_bandwidth = row.value("bandwidth.dram"), row.value("bandwidth.dram.peak")
    if bandwidth is None or not peak_bandwidth or has_hidden_tensor_work(row):
        return None
    used = row.value("tensor.utilization") or 0.0
    if used > TENSOR and (rate := tensor_rate(row)) is not None:
        return RooflinePlace("tensor", rate, 100 * rate / used, bandwidth, peak_bandwidth, estimated=True)
    rates = {kind: row.value(f"flops.rate.{kind}") or 0.0 for kind in PRECISIONS}
    if rates["f16"] < CONSTANTS * (row.value("flops.peak.f16") or 0.0):
        rates["f16"] = 0.0
    kind = max(rates, key=lambda kind: rates[kind])
    peak = row.value(f"flops.peak.{kind}")
    if not rates[kind] or not peak:
        return None
    return RooflinePlace(PRECISIONS[kind], rates[kind], peak, bandwidth, peak_bandwidth)


def kernel_roofline(row: KernelRow) -> tuple[Reading, ...]:
    """roofline.attainable (FLOP/s) and roofline.share (%) of a kernel; nothing where its place is not known."""
    place = place_kernel(row)
    if place is None:
        return ()
    traffic = [row.readings["bandwidth.dram"], row.readings["bandwidth.dram.peak"]]
    if place.estimated:
        inputs = [row.readings[name] for name in ("flops.tensor", "time.kernel", "tensor.utilization")]
        rate, peak = "flops.tensor / time.kernel", "100 * flops.tensor / time.kernel / tensor.utilization"
    else:
        kind = next(key for key, word in PRECISIONS.items() if word == place.kind)
        rate, peak = f"flops.rate.{kind}", f"flops.peak.{kind}"
        inputs = [row.readings[rate], row.readings[peak]]
    values = {
        "roofline.attainable": (
            place.attainable,
            f"min({peak}, {rate} / bandwidth.dram * bandwidth.dram.peak)",
        ),
        "roofline.share": (100 * place.rate / place.attainable, f"100 * {rate} / roofline.attainable"),
    }
    return tuple(
        derive_reading(
            name,
            [*inputs, *traffic],
            lambda *_, value=value: value,
            formula,
            traffic[0].scope,
            quality="estimated" if place.estimated else None,
            reason=TENSOR_PEAK if place.estimated else None,
        )
        for name, (value, formula) in values.items()
    )


MOST_POINTS = 12  # points that are told apart on a screen; kernels are in the order of their time


@dataclass(frozen=True)
class RooflineCeiling:
    """One limit: bytes/s of a memory (a slope), or FLOP/s of a kind of arithmetic (a level)."""

    name: str
    peak: float
    kind: str  # "memory" or "compute"
    estimated: bool = False
    # False: of arithmetic that nothing here does
    main: bool = True


@dataclass(frozen=True)
class RooflinePoint:
    """Something that does arithmetic: `intensity` in FLOP/B, `rate` in FLOP/s, `share` of the time (0..1) or None.

    `attainable` is what its ceiling allows (FLOP/s), `kind` what arithmetic it does most, `bound` what limits it.
    """

    label: str
    intensity: float
    rate: float
    share: float | None
    attainable: float | None
    kind: str
    quality: Quality = "measured"
    bound: Bound | None = None


@dataclass(frozen=True)
class Roofline:
    """Ceilings, and the points below them; of kernels whose place is not known number and share of the time (0..1)."""

    ceilings: tuple[RooflineCeiling, ...]
    points: tuple[RooflinePoint, ...]
    left_out: int = 0
    left_out_share: float = 0.0
    further: int = 0  # points that are known and not listed


def roofline_of(document: RunDocument, rows: Sequence[KernelRow]) -> Roofline | None:
    """What can be drawn of a document and its kernels; None where there is no point with a ceiling above it."""
    of_kernels = _device_roofline(rows)
    return of_kernels if of_kernels.points else _processor_roofline(document)


def _device_roofline(rows: Sequence[KernelRow]) -> Roofline:
    placed = [(row, here) for row in rows if (here := place_kernel(row)) is not None]
    known = [(row, here) for row, here in placed if here.intensity and here.rate > 0]
    there = {row.scope for row, _ in known}
    left_out = [row for row in rows if row.scope not in there]
    return Roofline(
        _device_ceilings(rows, [here for _, here in known]),
        tuple(_kernel_point(row, here) for row, here in known[:MOST_POINTS]),
        len(left_out),
        sum(row.share or 0.0 for row in left_out),
        max(0, len(known) - MOST_POINTS),
    )


def _device_ceilings(
    rows: Sequence[KernelRow], places: Sequence[RooflinePlace]
) -> tuple[RooflineCeiling, ...]:
    """The highest that any kernel's own peak came to: they follow the clock, which moves a little."""
    used = {here.kind for here in places}
    ceilings = []
    if top := _highest(rows, "bandwidth.dram.peak"):
        ceilings.append(RooflineCeiling("DRAM", top, "memory"))
    tensor = [here.peak for here in places if here.kind == "tensor"]
    if tensor:
        ceilings.append(RooflineCeiling("tensor", max(tensor), "compute", estimated=True))
    for key, name in PRECISIONS.items():
        top = _highest(rows, f"flops.peak.{key}")
        if top and (name in used or key == "f32"):
            ceilings.append(RooflineCeiling(name, top, "compute", main=name in used))
    return tuple(ceilings)


def _highest(rows: Sequence[KernelRow], metric: str) -> float:
    """The largest value; 0 where none is known."""
    return max((row.value(metric) or 0.0 for row in rows), default=0.0)


def _kernel_point(row: KernelRow, here: RooflinePlace) -> RooflinePoint:
    return RooflinePoint(
        row.label,
        here.intensity or 0.0,
        here.rate,
        row.share,
        here.attainable,
        here.kind,
        "estimated" if here.estimated else "measured",
        row.bound.bound if row.bound is not None else None,
    )


def _processor_roofline(document: RunDocument) -> Roofline | None:
    if document.peaks is None:
        return None
    scopes = main_scopes(document)
    names = ("arithmetic_intensity", "flops.rate", "roofline.attainable")
    readings = [best_reading(document.readings, name, scopes) for name in names]
    intensity, rate, attainable = (reading.value if reading is not None else None for reading in readings)
    if not intensity or not rate or min(intensity, rate) < 0:
        return None
    _, limit = work_of(document)
    threads = plural(limit.threads, "thread")
    ceilings = [
        RooflineCeiling(f"{name}, {threads}", peak.value, kind)
        for name, kind, peak in (("DRAM", "memory", limit.bandwidth), ("float32", "compute", limit.flops))
        if peak.value
    ]
    quality = readings[1].quality if readings[1] is not None else "measured"
    label = scopes[0].name or document.name
    point = RooflinePoint(label, intensity, rate, None, attainable, "float32", quality)
    return Roofline(tuple(ceilings), (point,))
