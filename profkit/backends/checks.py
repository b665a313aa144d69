"""What the doctor asks for the backends: torch by each Python, the peaks, CUDA's devices and tools, and a Mac's GPU."""

from __future__ import annotations

import json
import os
import platform
import shlex
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from profkit.core.errors import Fault, ProfkitError
from profkit.core.tables import judge_rows
from profkit.core.types import Check, Gpu, Peaks
from profkit.hardware import system
from profkit.hardware.machine import read_machine
from profkit.hardware.macos import find_chip, is_translated, read_apple_gpus
from profkit.hardware.peaks import peaks_argv, peaks_environment, read_peaks
from profkit.profilers.ncu.probe import NcuAbility, judge_ncu, probe_ncu
from profkit.profilers.nsys.probe import judge_nsys, probe_nsys, reader_checks
from profkit.profilers.programs import ToolAbility, try_command
from profkit.profilers.xctrace.command import COUNTERS_FIX, GPU_COUNTERS
from profkit.profilers.xctrace.find import XctraceAbility, probe_xctrace

# In a process of its own: importing torch takes seconds and much memory, and initialising CUDA makes a context.
_ASK = """
import json, warnings
warnings.simplefilter("ignore")
try:
    import torch
except ModuleNotFoundError as error:
    if error.name != "torch":
        raise
    print(json.dumps({"version": None}))
else:
    said = None
    try:
        torch.cuda.init()
    except Exception as error:
        said = str(error).strip().splitlines()[0][:300] if str(error).strip() else type(error).__name__
    mps = getattr(torch.backends, "mps", None)
    print(json.dumps({
        "version": torch.__version__,
        "cuda": getattr(getattr(torch, "version", None), "cuda", None),
        "said": said,
        "built": bool(mps and mps.is_built()),
        "available": bool(mps and mps.is_available()),
    }))
"""
_SECONDS = 120.0  # a first import from a slow disk


def ask_torch(python: str) -> dict[str, Any]:
    """Import torch by this Python and ask it; `starts` is whether it answered at all."""
    trial = try_command([python, "-c", _ASK], seconds=_SECONDS)
    return read_torch(trial.output if trial.ok else "", trial.last_line, python)


def read_torch(answer: str, last_line: str, python: str) -> dict[str, Any]:
    """The facts in what was printed; `last_line` is where a torch that does not start says why."""
    line = next((line for line in answer.splitlines()[::-1] if line.startswith("{")), None)
    facts = {"python": python, "last_line": last_line[:200], "starts": line is not None, "version": None}
    return facts if line is None else facts | json.loads(line)


# ------------------------------------------------------------ peaks

_TABLE = Path(__file__).with_name("checks.yaml")


def peaks_checks() -> Iterator[Check]:
    """Measure bandwidth and arithmetic of one core for a third of a second in a fresh process."""
    trial = try_command(peaks_argv(1, 0.3), peaks_environment(1), seconds=30.0)
    try:
        peaks = read_peaks(trial.output)
    except ProfkitError as error:
        reason = error.message if trial.ok or trial.returncode == 3 else f"{trial.ending}: {trial.last_line}"
        return judge_rows(_TABLE, "no peaks", {"reason": reason, "fix": error.fix})
    return judge_peaks(peaks, vector_multiply_add="fma" in read_machine().features)


def judge_peaks(peaks: Peaks, vector_multiply_add: bool) -> Iterator[Check]:
    """Tell the rates of one core; `vector_multiply_add` says that the processor has FMA."""
    bandwidth, flops = peaks.bandwidth_one, peaks.flops_f32_one
    rates = {"giga_bytes": (bandwidth or 0) / 1e9, "giga_flops": (flops or 0) / 1e9}
    return judge_rows(
        _TABLE, "peaks", peaks, rates, {"fma": vector_multiply_add, "both": bandwidth and flops}
    )


# ------------------------------------------------------------ CUDA

GIB = 1 << 30
_CUDA = Path(__file__).with_name("cuda") / "checks.yaml"
# Processes by their name in the kernel (15 characters at most) that hold or may hold the counters, and how to let go.
_HOLDERS = {
    "nv-hostengine": ("DCGM", "dcgmi profile --pause   (afterwards: dcgmi profile --resume)"),
    "dcgm-exporter": (
        "DCGM's exporter",
        "take the exporter off this node while you measure, or: dcgmi profile --pause",
    ),
    "dynolog": ("dynolog", "dyno dcgm_profiling --mute=true --duration=300"),
    "ncu": ("another ncu", "wait until it ends"),
    "nv-nsight-cu-cl": ("another ncu", "wait until it ends"),
}


def sharing_checks(gpus: Sequence[Gpu]) -> Iterator[Check]:
    """What a device that is not wholly this system's own cannot do."""
    kinds = {gpu.virtual for gpu in gpus}
    found = {"mig": any(gpu.mig for gpu in gpus), "wsl": "wsl" in kinds, "vgpu": "vgpu" in kinds}
    return judge_rows(_CUDA, "sharing", found)


def holder_checks(root: Path = Path("/")) -> Iterator[Check]:
    """Processes that may hold the counters. They are only named: stopping a service is its owner's business.

    A container sees its own processes alone, so a service of the host shows only in what ncu says.
    """
    for name in running_holders(root):
        who, fix = _HOLDERS[name]
        yield from judge_rows(_CUDA, "holder", {"name": name, "who": who, "fix": fix})


def running_holders(root: Path = Path("/")) -> tuple[str, ...]:
    """The known holders among the processes, each once, in alphabetical order."""
    try:
        folders = [folder.name for folder in (root / "proc").iterdir() if folder.name.isdigit()]
    except OSError:
        return ()
    names = {system.read_text(root, f"proc/{pid}/comm") for pid in folders}
    return tuple(sorted(name for name in names if name in _HOLDERS))


def torch_checks() -> Iterator[Check]:
    """torch's CUDA build against the driver, where profkit's Python has a torch; a workload may use another one."""
    if _is_installed("torch"):
        yield from judge_torch(ask_torch(sys.executable))


def judge_torch(torch: Mapping[str, object]) -> Iterator[Check]:
    """What torch's answer means."""
    return judge_rows(_CUDA, "torch", torch, {"too_old": "too old" in str(torch.get("said"))})


def nvtx_checks() -> Iterator[Check]:
    """One line where profkit's Python has no nvtx; a workload may use another one."""
    return judge_rows(_CUDA, "nvtx", {"installed": _is_installed("nvtx"), "python": sys.executable})


def _is_installed(package: str) -> bool:
    try:
        return bool(version(package))
    except PackageNotFoundError:
        return False


def cuda_checks() -> Iterator[Check]:
    """Look at the device first: without one there is one line that says so, and nothing is started."""
    from profkit.hardware.gpu import driver_fault, read_gpus

    gpus = read_gpus()
    if not gpus:
        yield from device_missing(driver_fault())
        yield from reader_checks()
        return
    holders = tuple(holder_checks())  # before the probes leave processes of their own behind
    yield from judge_cuda(gpus, probe_ncu(), probe_nsys(), holders)


def device_missing(fault: Fault | None) -> Iterator[Check]:
    """A machine without a GPU is no broken machine: what can be done on it is said, too."""
    return judge_rows(_CUDA, "no device", fault or Fault("no CUDA device is visible", "--backend cpu"))


def judge_cuda(
    gpus: Sequence[Gpu], ncu: NcuAbility, nsys: ToolAbility, holders: Iterable[Check] = ()
) -> Iterator[Check]:
    """What devices and probes mean for a run, check by check."""
    yield from judge_rows(_CUDA, "backend", {"traces": nsys.works, "counts": ncu.works})
    for gpu in gpus:
        yield from judge_rows(_CUDA, "device", gpu, {"about": _describe_gpu(gpu)})
    yield from sharing_checks(gpus)
    yield from judge_ncu(ncu)
    yield from sudo_checks()
    yield from holders
    yield from judge_nsys(nsys)
    yield from torch_checks()
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


def sudo_checks(environ: Mapping[str, str] = os.environ) -> Iterator[Check]:
    """Whether sudo took the caller's Python away: it replaces PATH by its own (secure_path), also with -E."""
    if "SUDO_UID" not in environ:
        return
    from profkit.profilers.ncu.probe import superuser_line

    path = environ.get("PATH")
    python = shutil.which("python", path=path) or shutil.which("python3", path=path)
    if python is None or Path(python).parent != Path(sys.executable).parent:
        line = superuser_line(f"profile --backend cuda -- {shlex.quote(sys.executable)} YOUR_SCRIPT.py")
        yield from judge_rows(_CUDA, "sudo", {"python": python, "line": line})


# ------------------------------------------------------------ MPS

_MPS = Path(__file__).with_name("mps") / "checks.yaml"
_FALLBACK = "PYTORCH_ENABLE_MPS_FALLBACK"


def mps_torch_checks() -> Iterator[Check]:
    """Ask the Python that a workload typed as `python x.py` runs in, else profkit's own."""
    yield from judge_mps_torch(ask_torch(shutil.which("python") or shutil.which("python3") or sys.executable))
    yield from switch_checks(os.environ)


def judge_mps_torch(torch: Mapping[str, object]) -> Iterator[Check]:
    """What torch's answer means."""
    return judge_rows(_MPS, "torch", torch, {"path": torch["python"]})


def switch_checks(environ: Mapping[str, str]) -> Iterator[Check]:
    """Switches that let a run on the GPU be one on the CPU, in part and in silence."""
    falls_back = environ.get(_FALLBACK, "0") not in ("", "0")
    return judge_rows(_MPS, "switches", {"switch": _FALLBACK, "falls_back": falls_back})


_OLDEST = (12, 3)  # of macOS, with MPS (pytorch.org, "MPS backend")
# Chips on which somebody got counters from a command line. Of the others some were reported to give none, or one that
# is always 0; which is told by the rows of a recording alone.
_COUNTED = ("Apple M1", "Apple M3")
_REFUSED = ("Apple M3 Max", "Apple M4 Max", "Apple M5 Max", "Apple M2")


def mps_checks() -> Iterator[Check]:
    """Look at the GPU first; off a Mac there is one line that says so, and nothing is started."""
    if platform.system() != "Darwin":
        yield from judge_rows(_MPS, "elsewhere")
        return
    yield from judge_mps(read_apple_gpus(), probe_xctrace(), platform.mac_ver()[0], is_translated())
    yield from mps_torch_checks()


def judge_mps(
    gpus: Sequence[Gpu], xctrace: XctraceAbility, system: str, translated: bool = False
) -> Iterator[Check]:
    """What devices and the probe mean for a run. `system`: the version of macOS; `translated`: under Rosetta."""
    yield from judge_rows(_MPS, "backend", xctrace, {"gpus": gpus})
    for gpu in gpus:
        yield from judge_rows(_MPS, "device", gpu, _specification(gpu))
    numbers = tuple(int(part) for part in system.split(".")[:2] if part.isdecimal())
    old = (*numbers, 0)[:2] < _OLDEST
    macos = {"version": system, "known": bool(numbers), "old": old, "translated": translated}
    yield from judge_rows(_MPS, "macOS", macos)
    if gpus and xctrace.works:
        chip = {"refused": gpus[0].name in _REFUSED, "counted": gpus[0].name in _COUNTED}
        lacks = {"lacks": xctrace.lacks(instrument=GPU_COUNTERS), "counters_fix": COUNTERS_FIX}
        yield from judge_rows(_MPS, "counters", gpus[0], chip, lacks)


def _specification(gpu: Gpu) -> dict[str, str | None]:
    peaks = [
        f"{gpu.cores} GPU cores" if gpu.cores else None,
        f"{gpu.bandwidth / 1e9:.0f} GB/s" if gpu.bandwidth else None,
        f"{gpu.flops / 1e12:.1f} TFLOP/s in float32" if gpu.flops else None,
    ]
    about = ", ".join(part for part in peaks if part)
    chip = find_chip(gpu.name, gpu.cores) if gpu.virtual is None else None
    return {
        "about": f" ({about} by its specification)" if about else "",
        "reason": chip.reason if chip is not None else None,
        "fix": chip.fix if chip is not None else None,
    }
