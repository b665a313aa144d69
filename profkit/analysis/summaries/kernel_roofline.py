"""Where a kernel stands under the roofline: the arithmetic that it does most of against its own peak and that of DRAM.

After Williams, Waterman and Patterson, CACM 52 (2009) 65, one roof for each precision as in NVIDIA's roofline charts.
The peaks are those of ncu's own counters: what the units of this device can do at the clock that was measured.
"""

from __future__ import annotations

from dataclasses import dataclass

from profkit.analysis.summaries.kernels import KernelRow
from profkit.analysis.summaries.pick import derived
from profkit.core.types import Reading

# A kernel whose tensor cores work more than this is about them. Below it a stray instruction (a sum by a matrix unit)
# changes nothing.
TENSOR = 1.0  # %
# Where their FLOPs were counted as 0, types may be missing from the count (integers, TF32, FP8), or something else than
# arithmetic keeps the pipe: FP32 kernels on an H200 read up to 3 %.
TENSOR_UNCOUNTED = 10.0  # %
# Compilers also load constants by half-precision instructions: so little of the peak is no arithmetic.
CONSTANTS = 0.01
TENSOR_PEAK = (
    "the peak of the tensor cores is estimated: their rate over the share of cycles in which they worked"
)
PRECISIONS = {"f32": "FP32", "f64": "FP64", "f16": "FP16"}


@dataclass(frozen=True)
class Place:
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
    def ridge(self) -> float:
        """The intensity at which both roofs are as high."""
        return self.peak / self.peak_bandwidth

    @property
    def attainable(self) -> float:
        """The lower roof at this intensity."""
        return self.peak if self.intensity is None else min(self.peak, self.intensity * self.peak_bandwidth)

    @property
    def roof(self) -> str:
        """Which roof that is."""
        return "memory" if self.attainable < self.peak else "compute"


def hidden_tensor(row: KernelRow) -> bool:
    """Whether tensor cores do arithmetic that no counter of this report tells."""
    used, counted = row.value("tensor.utilization") or 0.0, row.value("flops.tensor")
    return used > TENSOR if counted is None else used > TENSOR_UNCOUNTED and counted == 0


def tensor_rate(row: KernelRow) -> float | None:
    """FLOP/s of the tensor cores, where their FLOPs were counted."""
    flops, seconds = row.value("flops.tensor"), row.value("time.kernel")
    return flops / seconds if flops and seconds else None


def place(row: KernelRow) -> Place | None:
    """The kernel under the roof of the arithmetic that it does most of; None where that or a peak is not known."""
    bandwidth, peak_bandwidth = row.value("bandwidth.dram"), row.value("bandwidth.dram.peak")
    if bandwidth is None or not peak_bandwidth or hidden_tensor(row):
        return None
    used = row.value("tensor.utilization") or 0.0
    if used > TENSOR and (rate := tensor_rate(row)) is not None:
        return Place("tensor", rate, 100 * rate / used, bandwidth, peak_bandwidth, estimated=True)
    rates = {kind: row.value(f"flops.rate.{kind}") or 0.0 for kind in PRECISIONS}
    if rates["f16"] < CONSTANTS * (row.value("flops.peak.f16") or 0.0):
        rates["f16"] = 0.0
    kind = max(rates, key=lambda kind: rates[kind])
    peak = row.value(f"flops.peak.{kind}")
    if not rates[kind] or not peak:
        return None
    return Place(PRECISIONS[kind], rates[kind], peak, bandwidth, peak_bandwidth)


def kernel_roofline(row: KernelRow) -> tuple[Reading, ...]:
    """roofline.attainable (FLOP/s) and roofline.share (%) of a kernel; nothing where its place is not known."""
    found = place(row)
    if found is None:
        return ()
    traffic = [row.readings["bandwidth.dram"], row.readings["bandwidth.dram.peak"]]
    if found.estimated:
        inputs = [row.readings[name] for name in ("flops.tensor", "time.kernel", "tensor.utilization")]
        rate, peak = "flops.tensor / time.kernel", "100 * flops.tensor / time.kernel / tensor.utilization"
    else:
        kind = next(key for key, word in PRECISIONS.items() if word == found.kind)
        rate, peak = f"flops.rate.{kind}", f"flops.peak.{kind}"
        inputs = [row.readings[rate], row.readings[peak]]
    told = {
        "roofline.attainable": (
            found.attainable,
            f"min({peak}, {rate} / bandwidth.dram * bandwidth.dram.peak)",
        ),
        "roofline.share": (100 * found.rate / found.attainable, f"100 * {rate} / roofline.attainable"),
    }
    return tuple(
        derived(
            name,
            [*inputs, *traffic],
            lambda *_, value=value: value,
            formula,
            traffic[0].scope,
            quality="estimated" if found.estimated else None,
            reason=TENSOR_PEAK if found.estimated else None,
        )
        for name, (value, formula) in told.items()
    )
