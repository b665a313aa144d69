"""What the device can do at most, measured where the sweep runs, right before it; and what it is."""

from __future__ import annotations

import platform
from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import Any

import torch

from profkit.core.formatting import plural
from profkit.core.statistics import median
from profkit.core.types import MeasuredRoofs

COPY_BYTES = 1 << 30  # far more than any cache
PRODUCT = 4096  # rows and columns of a float32 matrix product
REPEATS = 15
CPU_COPY_BYTES, CPU_PRODUCT, CPU_REPEATS = 1 << 28, 1024, 7


def measure_roofs(device: torch.device) -> MeasuredRoofs:
    """Bytes/s of a copy (read and written) and FLOP/s of a float32 matrix product (2 n^3): medians of some calls.

    TF32 stays off: the operations compute in float32.
    """
    cuda = device.type == "cuda"
    size = COPY_BYTES if cuda else CPU_COPY_BYTES
    repeats = REPEATS if cuda else CPU_REPEATS
    size = min(size, _free(device) // 8)
    source = torch.empty(size, dtype=torch.uint8, device=device).fill_(1)
    target = torch.empty_like(source)
    bandwidth = 2 * size / _seconds(partial(target.copy_, source), device)
    del source, target
    n = PRODUCT if cuda else CPU_PRODUCT
    left, right = torch.randn(n, n, device=device), torch.randn(n, n, device=device)
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        flops = 2 * n**3 / _seconds(lambda: left @ right, device)
    finally:
        torch.set_float32_matmul_precision(before)
    return MeasuredRoofs(
        bandwidth,
        flops,
        f"copy of {size / 2**20:.0f} MiB, float32 product of {n} x {n}, median of {repeats} (torch)",
    )


def _seconds(call: Callable[[], object], device: torch.device) -> float:
    for _ in range(3 if device.type == "cuda" else 1):
        call()
    taken = []
    for _ in range(REPEATS if device.type == "cuda" else CPU_REPEATS):
        if device.type == "cuda":
            first, last = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            first.record()
            call()
            last.record()
            last.synchronize()
            taken.append(first.elapsed_time(last) / 1e3)
        else:
            begin = perf_counter()
            call()
            taken.append(perf_counter() - begin)
    return median(taken)


def _free(device: torch.device) -> int:
    from profkit.kernels.sweep.memory import free_memory

    return free_memory(device) or 1 << 30


def versions(device: torch.device) -> dict[str, Any]:
    """The device in words, and versions of what decides its speed."""
    found = {"python": platform.python_version(), "torch": torch.__version__}
    try:
        import triton

        found["triton"] = triton.__version__
    except ImportError:
        pass
    if device.type != "cuda":
        from profkit.hardware.machine import read_machine

        machine = read_machine()
        return {
            "device": f"{machine.cpu}, {plural(torch.get_num_threads(), 'thread')}",
            "versions": found,
            "capability": None,
        }
    properties = torch.cuda.get_device_properties(device)
    found["cuda"] = str(torch.version.cuda)
    return {
        "device": properties.name,
        "versions": found,
        "capability": f"{properties.major}.{properties.minor}",
    }
