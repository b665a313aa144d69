"""CUDA as the doctor tells it: the devices, their driver, who may count, what traces, and what is in the way.

Whether torch and Triton are there at all is told with the other packages.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from profkit.backends.checks import ask_torch
from profkit.core.errors import Fault
from profkit.core.tables import judge_rows
from profkit.core.types import Check, Gpu
from profkit.hardware import system
from profkit.profilers.ncu.probe import NcuAbility, judge_ncu, probe_ncu
from profkit.profilers.nsys.probe import judge_nsys, probe_nsys, reader_checks
from profkit.profilers.programs import ToolAbility

GIB = 1 << 30
_TABLE = Path(__file__).with_name("checks.yaml")
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
    return judge_rows(_TABLE, "sharing", found)


def holder_checks(root: Path = Path("/")) -> Iterator[Check]:
    """Processes that may hold the counters. They are only named: stopping a service is its owner's business.

    A container sees its own processes alone, so a service of the host shows only in what ncu says.
    """
    for name in running_holders(root):
        who, fix = _HOLDERS[name]
        yield from judge_rows(_TABLE, "holder", {"name": name, "who": who, "fix": fix})


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
    return judge_rows(_TABLE, "torch", torch, {"too_old": "too old" in str(torch.get("said"))})


def nvtx_checks() -> Iterator[Check]:
    """One line where profkit's Python has no nvtx; a workload may use another one."""
    return judge_rows(_TABLE, "nvtx", {"installed": _is_installed("nvtx"), "python": sys.executable})


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
    return judge_rows(_TABLE, "no device", fault or Fault("no CUDA device is visible", "--backend cpu"))


def judge_cuda(
    gpus: Sequence[Gpu], ncu: NcuAbility, nsys: ToolAbility, holders: Iterable[Check] = ()
) -> Iterator[Check]:
    """What devices and probes mean for a run, check by check."""
    yield from judge_rows(_TABLE, "backend", {"traces": nsys.works, "counts": ncu.works})
    for gpu in gpus:
        yield from judge_rows(_TABLE, "device", gpu, {"about": _describe(gpu)})
    yield from sharing_checks(gpus)
    yield from judge_ncu(ncu)
    yield from sudo_checks()
    yield from holders
    yield from judge_nsys(nsys)
    yield from torch_checks()
    yield from nvtx_checks()


def _describe(gpu: Gpu) -> str:
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
    from profkit.profilers.ncu.faults import superuser_line

    path = environ.get("PATH")
    python = shutil.which("python", path=path) or shutil.which("python3", path=path)
    if python is None or Path(python).parent != Path(sys.executable).parent:
        line = superuser_line(f"profile --backend cuda -- {shlex.quote(sys.executable)} YOUR_SCRIPT.py")
        yield from judge_rows(_TABLE, "sudo", {"python": python, "line": line})
