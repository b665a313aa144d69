"""Arithmetic of each kernel: FLOPs by precision, pipes and tensor cores, and its place under the roofline."""

from __future__ import annotations

from collections.abc import Sequence

from profkit.analysis.summaries.kernel_roofline import TENSOR, TENSOR_PEAK, hidden_tensor, place, tensor_rate
from profkit.analysis.summaries.kernel_table import Column, kernel_table, of
from profkit.analysis.summaries.kernels import KernelRow
from profkit.core.formatting import figures, percent, quantity
from profkit.core.types import Summary


def summarize_arithmetic(rows: Sequence[KernelRow]) -> Summary:
    """FLOPs and pipes of each kernel, and the roofline as a table."""
    tables = [
        kernel_table("Arithmetic", rows, _ARITHMETIC),
        kernel_table("Roofline", _placed(rows), _ROOFLINE),
    ]
    hidden = [row.brief for row in rows if hidden_tensor(row)]
    notes = []
    if hidden:
        notes.append(
            f"{', '.join(hidden[:3])}: FLOPs of the tensor cores are in no counter of this report; those shown are of"
            " the CUDA cores."
        )
    if any((found := place(row)) is not None and found.estimated for row in rows):
        notes.append(f"{TENSOR_PEAK[0].upper()}{TENSOR_PEAK[1:]}.")
    return Summary("arithmetic", _headline(rows), (), tuple(t for t in tables if t is not None), tuple(notes))


def _placed(rows: Sequence[KernelRow]) -> list[KernelRow]:
    return [row for row in rows if place(row) is not None]


def _headline(rows: Sequence[KernelRow]) -> str:
    for row in rows:
        tensor, found = row.value("tensor.utilization"), place(row)
        if tensor is not None and tensor > TENSOR:
            rate = tensor_rate(row)
            does = f"does {quantity(rate, 'FLOP/s')} and " if rate is not None else ""
            return f"{row.brief} {does}keeps the tensor cores busy {percent(tensor)} % of the time."
        if found is not None:
            over = f" at {_figures(found.intensity)} FLOP/B" if found.intensity is not None else ""
            share = percent(100 * found.rate / found.attainable)
            return (
                f"{row.brief} does {quantity(found.rate, 'FLOP/s')} in {found.kind}, {share} % of what the {found.roof}"
                f" roof allows{over}."
            )
    if any(row.value("flops") is not None for row in rows):
        return "No floating-point operation was executed."
    if any(row.value("tensor.utilization") is not None for row in rows):
        return "The tensor cores do nothing; other arithmetic was not counted."
    return "No arithmetic was counted."


def _rate(row: KernelRow) -> str | None:
    """All FLOP/s that were counted, CUDA and tensor cores together."""
    told = [value for value in (row.value("flops.rate"), tensor_rate(row)) if value is not None]
    return quantity(sum(told), "FLOP/s") if told else None


def _figures(intensity: float) -> str:
    """Three figures; a kernel that hardly touches DRAM has millions of FLOPs for a byte."""
    return figures(intensity) if intensity < 1e4 else quantity(intensity, "count")


def _placing(title: str, tell: str) -> Column:
    def cell(row: KernelRow) -> str | None:
        found = place(row)
        if found is None:
            return None
        return {
            "kind": found.kind,
            "intensity": _figures(found.intensity) if found.intensity is not None else None,
            "ridge": figures(found.ridge),
            "rate": quantity(found.rate, "FLOP/s"),
            "roof": f"{found.roof} {quantity(found.attainable, 'FLOP/s')}",
            "share": f"{percent(100 * found.rate / found.attainable)} %",
        }[tell]

    return Column(title, cell)


_ARITHMETIC = (
    Column("FLOP/s", _rate),
    of("FP32", "flops.f32", rare=True),
    of("FP32 of peak", "flops.share.f32", rare=True),
    of("FP64", "flops.f64", rare=True),
    of("FP64 of peak", "flops.share.f64", rare=True),
    of("FP16", "flops.f16", rare=True),
    of("FP16 of peak", "flops.share.f16", rare=True),
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
    _placing("arithmetic", "kind"),
    _placing("FLOP/B", "intensity"),
    _placing("ridge at", "ridge"),
    _placing("FLOP/s", "rate"),
    _placing("roof", "roof"),
    _placing("of the roof", "share"),
)
