"""Which kernels are worth counting: the fewest launch configurations that make up the region's GPU time."""

from __future__ import annotations

import re
from dataclasses import dataclass

from profkit.core.formatting import percent, plural
from profkit.core.types import GpuTrace, KernelTime

# ../docs/cuda.md, "the plan": the tail beyond it is many kernels that no target can matter for.
COVERED = 0.95  # of the GPU time of what can be counted
MOST = 10  # launch configurations
# A collective waits for its partners: replayed alone it hangs (NVIDIA/nccl issues 466, 536).
_COLLECTIVE = re.compile(r"nccl|nvshmem|AllReduce|one_shot_all|two_shot_all|multimem_", re.IGNORECASE)
# What fills tensors with numbers. In a marked region it is the workload's own (dropout is one), and counted.
_INITIALISER = re.compile(
    r"distribution_(elementwise|nullary)|curand|philox_|random_(from_to|kernel)|FillFunctor|generate_seed|memset"
    r"|randperm|arange_cuda|eye_kernel",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Chosen:
    """What is to be counted, largest total first; `seconds` is the GPU time of all kernels, also those left out."""

    kernels: tuple[KernelTime, ...]
    seconds: float
    notes: tuple[str, ...] = ()

    def share(self, kernel: KernelTime) -> float:
        """Of the region's GPU time, 0..1."""
        return kernel.total / self.seconds if self.seconds > 0 else 0.0


def choose(trace: GpuTrace, most: int = MOST) -> Chosen:
    """The launch configurations that make up 95 % of the GPU time, at most `most`; what is left out is said."""
    seconds = sum(kernel.total for kernel in trace.kernels)
    notes: list[str] = []
    candidates = list(trace.kernels)
    for what, pattern in _unwanted(trace):
        dropped = [k for k in candidates if pattern.search(k.kernel.name)]
        kept = [k for k in candidates if not pattern.search(k.kernel.name)]
        if not dropped or (not kept and pattern is _INITIALISER):
            continue  # a workload that only draws random numbers is one
        candidates = kept
        notes.append(f"not counted, {_part(dropped, seconds)}: {what}")
    candidates.sort(key=lambda kernel: -kernel.total)
    wanted = COVERED * sum(kernel.total for kernel in candidates)
    chosen: list[KernelTime] = []
    for kernel in candidates:
        if sum(k.total for k in chosen) >= wanted:
            break
        chosen.append(kernel)
    if len(chosen) > most:
        notes.append(
            f"{len(chosen)} launch configurations make up {percent(100 * COVERED)} % of the GPU time; "
            f"the {most} largest are counted, {_part(chosen[:most], seconds)}"
        )
    return Chosen(tuple(chosen[:most]), seconds, tuple(notes))


def _unwanted(trace: GpuTrace) -> list[tuple[str, re.Pattern[str]]]:
    found = [("collectives, which hang when they are replayed alone", _COLLECTIVE)]
    if not trace.marked:
        found.append(("initialisers, which fill tensors before the work", _INITIALISER))
    return found


def _part(kernels: list[KernelTime], seconds: float) -> str:
    share = percent(100 * sum(k.total for k in kernels) / seconds) if seconds > 0 else "0"
    return f"{share} % of the GPU time in {plural(len(kernels), 'configuration')}"
