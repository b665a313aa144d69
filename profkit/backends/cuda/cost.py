"""What the passes on a GPU are expected to cost, in wall seconds, before they run.

The figures are of one H200 with ncu 2025.3 and nsys 2025.3 (docs/cuda.md, what it costs): a torch program that starts
in 3 s took 5.0 s under nsys with its export, 5.6 s under ncu with two kernels of 5 passes, 22 s with 8 of 38 passes.
"""

from __future__ import annotations

from profkit.backends import Known
from profkit.backends.cuda.launches import MATCHED_SECONDS, Group
from profkit.core.types import KernelTime

NSYS_SECONDS = 1.3  # start, stop and writing the report, for a trace of few seconds
EXPORT_SECONDS = 0.4
TORCH_SECONDS = 2.5
NCU_SECONDS = 2.0  # start, first launch, end
REPLAY_SECONDS = (
    0.03  # one replay pass of a kernel, beside the kernel itself: 26 ms with few metrics, 50 ms with all
)
PLAIN_SECONDS = 5.0  # of a Python program that imports torch, where none was timed yet
SOURCE = "as measured on an H200"


def start_seconds(known: Known) -> float:
    """Wall seconds of one run of the workload without the samples that timing took."""
    return known.start_seconds if known.start_seconds is not None else PLAIN_SECONDS


def region_seconds(known: Known, iterations: int | None) -> float:
    """What the iterations take that an instrument asks of a benchmark."""
    if not known.benchmark or iterations is None or known.iteration_seconds is None:
        return 0.0
    return iterations * known.iteration_seconds


def kernel_seconds(kernel: KernelTime, replays: int | None) -> float | None:
    """Counting one launch in `replays` passes; None where they are not known."""
    if replays is None:
        return None
    once = kernel.median if kernel.median is not None else kernel.total / max(1, kernel.launches)
    return replays * (REPLAY_SECONDS + once)


def group_seconds(group: Group, replays: int | None) -> float:
    """The launches of one run that are counted, and those that ncu passes over."""
    passes = replays or 1
    counted = sum(kernel_seconds(kernel, passes) or 0.0 for kernel in group.kernels)
    if group.window is not None:
        counted += (group.window[1] - len(group.kernels)) * passes * REPLAY_SECONDS
    return counted + group.passed * MATCHED_SECONDS


def in_plain_runs(seconds: float | None, known: Known) -> float | None:
    """Seconds as a multiple of one plain run."""
    if seconds is None:
        return None
    return seconds / (known.plain_seconds or PLAIN_SECONDS)
