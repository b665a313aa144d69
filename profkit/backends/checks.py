"""What the doctor asks for the backends: the peaks, CUDA's devices and tools, and a Mac's GPU."""

from __future__ import annotations

import importlib.util
import platform
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from profkit.core.errors import Fault
from profkit.core.tables import judge_rows
from profkit.core.types import Check, Gpu
from profkit.hardware.macos import find_chip, read_apple_gpus
from profkit.profilers.ncu.probe import NcuAbility, judge_ncu, probe_ncu
from profkit.profilers.nsys.probe import judge_nsys, probe_nsys
from profkit.profilers.programs import ToolAbility
from profkit.profilers.xctrace.command import COUNTERS_FIX
from profkit.profilers.xctrace.export import probe_xctrace

# ------------------------------------------------------------ CUDA

GIB = 1 << 30
_CUDA = Path(__file__).with_name("cuda") / "checks.yaml"


def nvtx_checks() -> Iterator[Check]:
    """One line where profkit's Python has no nvtx; a workload may use another one."""
    installed = importlib.util.find_spec("nvtx") is not None
    return judge_rows(_CUDA, "nvtx", {"installed": installed, "python": sys.executable})


def cuda_checks() -> Iterator[Check]:
    """Look at the device first: without one there is one line that says so, and nothing is started."""
    from profkit.hardware.gpu import driver_fault, read_gpus

    gpus = read_gpus()
    if not gpus:
        yield from device_missing(driver_fault())
        return
    yield from judge_cuda(gpus, probe_ncu(), probe_nsys())


def device_missing(fault: Fault | None) -> Iterator[Check]:
    """A machine without a GPU is no broken machine: what can be done on it is said, too."""
    return judge_rows(_CUDA, "no device", fault or Fault("no CUDA device is visible", "--backend cpu"))


def judge_cuda(gpus: Sequence[Gpu], ncu: NcuAbility, nsys: ToolAbility) -> Iterator[Check]:
    """What devices and probes mean for a run, check by check."""
    yield from judge_rows(_CUDA, "backend", {"traces": nsys.works, "counts": ncu.works})
    for gpu in gpus:
        yield from judge_rows(_CUDA, "device", gpu, {"about": _describe_gpu(gpu)})
    yield from judge_ncu(ncu)
    yield from judge_nsys(nsys)
    yield from nvtx_checks()


def _describe_gpu(gpu: Gpu) -> str:
    parts = [
        gpu.chip,
        f"compute capability {gpu.capability}" if gpu.capability else None,
        f"{gpu.memory_bytes / GIB:.0f} GiB" if gpu.memory_bytes else None,
        f"driver {gpu.driver}" if gpu.driver else None,
    ]
    about = ", ".join(part for part in parts if part)
    return f" ({about})" if about else ""


# ------------------------------------------------------------ MPS

_MPS = Path(__file__).with_name("mps") / "checks.yaml"


def mps_checks() -> Iterator[Check]:
    """Look at the GPU first; off a Mac there is one line that says so, and nothing is started."""
    if platform.system() != "Darwin":
        yield from judge_rows(_MPS, "elsewhere")
        return
    yield from judge_mps(read_apple_gpus(), probe_xctrace())


def judge_mps(gpus: Sequence[Gpu], xctrace: ToolAbility) -> Iterator[Check]:
    """What devices and the probe mean for a run."""
    yield from judge_rows(_MPS, "backend", xctrace, {"gpus": gpus})
    for gpu in gpus:
        yield from judge_rows(_MPS, "device", gpu, _specification(gpu))
    if gpus and xctrace.works:
        yield from judge_rows(_MPS, "counters", gpus[0], {"counters_fix": COUNTERS_FIX})


def _specification(gpu: Gpu) -> dict[str, str | None]:
    peaks = [
        f"{gpu.cores} GPU cores" if gpu.cores else None,
        f"{gpu.bandwidth / 1e9:.0f} GB/s" if gpu.bandwidth else None,
    ]
    about = ", ".join(part for part in peaks if part)
    return {
        "about": f" ({about} by its specification)" if about else "",
        "reason": find_chip(gpu.name, gpu.cores).reason if gpu.virtual is None else None,
    }
