"""Arithmetic of each kernel: FLOPs by precision, pipes and tensor cores, and its place under the roofline.

The peaks are those of ncu's own counters: what the units of this device can do at the clock that was measured.
"""

from __future__ import annotations

from collections.abc import Sequence

from profkit.model import Reading, Summary, Table
from profkit.summaries.kernel_table import Column, kernel_table, of
from profkit.summaries.kernels import KernelRow
from profkit.summaries.pick import derived
from profkit.words import figures, percent, quantity

CONCERN = "arithmetic"
# A kernel whose tensor cores work more than this does arithmetic that its FLOP counters do not see. Below it a
# stray instruction (an index computed by a matrix unit) changes nothing.
TENSOR = 1.0  # %
_PEAKS = {"flops.f32": "flops.peak.f32", "flops.f64": "flops.peak.f64"}


def main_precision(row: KernelRow) -> str | None:
    """The metric of the precision that most of the counted FLOPs have, or None where none was counted."""
    told = {name: row.value(name) or 0.0 for name in ("flops.f32", "flops.f64", "flops.f16")}
    name = max(told, key=lambda name: told[name])
    return name if told[name] > 0 else None


def hidden_tensor(row: KernelRow) -> bool:
    """Whether tensor cores do arithmetic that no counter of this report tells."""
    return (row.value("tensor.utilization") or 0.0) > TENSOR and row.value("flops.tensor") is None


def kernel_roofline(row: KernelRow) -> tuple[Reading, ...]:
    """roofline.attainable (FLOP/s) and roofline.share (%) of a kernel, where its FLOPs and their peak are counted.

    Attainable is min(peak of the precision that most FLOPs have, arithmetic intensity * peak DRAM bandwidth).
    """
    needed = ("flops.rate", "arithmetic_intensity", "bandwidth.dram.peak")
    precision = main_precision(row)
    if precision not in _PEAKS or hidden_tensor(row) or any(row.value(name) is None for name in needed):
        return ()
    peak = row.readings.get(_PEAKS[precision])
    if peak is None or peak.value is None:
        return ()
    rate, intensity, bandwidth = (row.readings[name] for name in needed)
    attainable = derived(
        "roofline.attainable",
        (intensity, bandwidth, peak),
        lambda i, b, p: min(p, i * b),
        f"min({_PEAKS[precision]}, arithmetic_intensity * bandwidth.dram.peak)",
        rate.scope,
    )
    share = derived(
        "roofline.share",
        (rate, attainable),
        lambda r, a: 100 * r / a,
        "100 * flops.rate / roofline.attainable",
        rate.scope,
    )
    return attainable, share


def summarize_arithmetic(rows: Sequence[KernelRow]) -> Summary:
    """FLOPs and pipes of each kernel, and the roofline as a table."""
    tables = [kernel_table("Arithmetic", rows, _ARITHMETIC), _roofline(rows)]
    hidden = [row.brief for row in rows if hidden_tensor(row)]
    notes = []
    if hidden:
        notes.append(
            f"{', '.join(hidden[:3])}: FLOPs of the tensor cores are in no counter of this report; those shown are of"
            " the CUDA cores."
        )
    return Summary(CONCERN, _headline(rows), (), tuple(t for t in tables if t is not None), tuple(notes))


def _headline(rows: Sequence[KernelRow]) -> str:
    for row in rows:
        tensor, share = row.value("tensor.utilization"), row.value("roofline.share")
        if tensor is not None and tensor > TENSOR:
            return f"{row.brief} keeps the tensor cores busy {percent(tensor)} % of the time."
        if share is not None:
            rate = quantity(row.value("flops.rate"), "FLOP/s")
            over = figures(row.value("arithmetic_intensity") or 0.0)
            return (
                f"{row.brief} does {rate}, {percent(share)} % of what the roofline allows at {over} FLOP/B."
            )
    rated = next((row for row in rows if row.value("flops.rate") is not None), None)
    if rated is not None:
        return f"{rated.brief} does {quantity(rated.value('flops.rate'), 'FLOP/s')}."
    return "No arithmetic was counted."


def _roofline(rows: Sequence[KernelRow]) -> Table | None:
    return kernel_table(
        "Roofline", [row for row in rows if row.value("roofline.share") is not None], _ROOFLINE
    )


def _roof(row: KernelRow) -> str | None:
    """Which roof is lower at this intensity, and how high it is."""
    attainable, peak = row.value("roofline.attainable"), row.value(_PEAKS.get(main_precision(row) or "", ""))
    if attainable is None or peak is None:
        return None
    return f"{'memory' if attainable < peak else 'compute'} {quantity(attainable, 'FLOP/s')}"


def _ridge(row: KernelRow) -> str | None:
    peak, bandwidth = row.value(_PEAKS.get(main_precision(row) or "", "")), row.value("bandwidth.dram.peak")
    return figures(peak / bandwidth) if peak is not None and bandwidth else None


_ARITHMETIC = (
    of("FLOP/s", "flops.rate", rare=True),
    of("of peak", "flops.share"),
    of("FP16", "flops.f16", rare=True),
    of("FP32", "flops.f32", rare=True),
    of("FP64", "flops.f64", rare=True),
    of("tensor", "flops.tensor", rare=True),
    of("tensor pipe", "tensor.utilization"),
    of("FP32 pipe", "pipe.fp32.utilization"),
    of("FP64 pipe", "pipe.fp64.utilization", rare=True),
    of("FP16 pipe", "pipe.fp16.utilization", rare=True),
    of("integer pipe", "pipe.alu.utilization"),
    of("load/store pipe", "pipe.lsu.utilization"),
    of("special", "pipe.xu.utilization", rare=True),
)
_ROOFLINE = (
    of("FLOP/B", "arithmetic_intensity"),
    Column("ridge at", _ridge),
    of("FLOP/s", "flops.rate"),
    Column("roof", _roof),
    of("of the roof", "roofline.share"),
)
