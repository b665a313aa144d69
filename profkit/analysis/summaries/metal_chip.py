"""What the chip of a Metal trace is specified with: as the run's device says it, else by its name in the table."""

from __future__ import annotations

from dataclasses import dataclass

from profkit.core.errors import Fault
from profkit.core.types import Gpu, MetalTrace, RunDocument
from profkit.hardware.apple_gpu import find_chip


@dataclass(frozen=True)
class Specified:
    """Bandwidth in bytes/s and float32 arithmetic in FLOP/s; where one is None, `reason` and `fix` say why.

    `..._checked` False: the figure is one report's, or worked out of a neighbour, so what is made of it is an estimate.
    """

    name: str | None
    bandwidth: float | None
    flops: float | None
    bandwidth_checked: bool = True
    flops_checked: bool = True
    reason: str | None = None
    fix: str | None = None


def specified(document: RunDocument, metal: MetalTrace) -> Specified:
    """The figures of the GPU that the trace speaks of."""
    gpu = _of(document.gpus, metal.device)
    name = gpu.name if gpu is not None else metal.device
    chip = find_chip(name, gpu.cores if gpu is not None else None)
    bandwidth, flops = (gpu.bandwidth, gpu.flops) if gpu is not None else (None, None)
    if isinstance(chip, Fault):
        return Specified(name, bandwidth, flops, reason=chip.reason, fix=chip.fix)
    return Specified(
        name,
        bandwidth or chip.bandwidth,
        flops or chip.flops,
        chip.bandwidth_checked,
        chip.flops_checked,
        chip.reason,
        chip.fix,
    )


def _of(gpus: tuple[Gpu, ...], device: str | None) -> Gpu | None:
    """Of several GPUs the one that the trace names; the first where it names none."""
    named = next((gpu for gpu in gpus if device is not None and gpu.name in (device, f"{device} GPU")), None)
    return named or (gpus[0] if gpus else None)
