"""CUDA as the doctor tells it: the devices, their driver, who may count, what traces, and what is in the way.

Whether torch and Triton are there at all is told with the other packages.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

from profkit.core.errors import Fault
from profkit.core.types import Check, Gpu
from profkit.hardware import tree
from profkit.profilers.ncu.probe import judge_ncu
from profkit.profilers.nsys.probe import NO_TRACE, judge_nsys
from profkit.profilers.programs import try_command

if TYPE_CHECKING:
    from profkit.profilers.ncu.probe import NcuAbility
    from profkit.profilers.nsys.probe import NsysAbility


# Processes by their name in the kernel (15 characters at most) that hold or may hold the counters, and how to let go.
_HOLDERS = {
    "nv-hostengine": (
        "DCGM",
        "dcgmi profile --pause   (afterwards: dcgmi profile --resume)",
    ),
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
    if any(gpu.mig for gpu in gpus):
        detail = (
            "a part of a GPU (MIG): counters of what the parts share (DRAM, L2) can be read only where the compute "
            "instance is the only one in its GPU instance; elsewhere those readings are unavailable"
        )
        yield Check("MIG", "limited", detail, "nvidia-smi mig -lgi; nvidia-smi mig -lci")
    if any(gpu.virtual == "wsl" for gpu in gpus):
        detail = "Windows' driver decides who may count"
        fix = "NVIDIA Control Panel > Developer > Manage GPU Performance Counters > Allow access to all users"
        yield Check("WSL", "limited", detail, fix)
    if any(gpu.virtual == "vgpu" for gpu in gpus):
        detail = "a virtual GPU: the host decides whether its counters can be read"
        yield Check("vGPU", "limited", detail, "on the host: enable_profiling=1 for this vGPU")


def holder_checks(root: Path = Path("/")) -> Iterator[Check]:
    """Processes that may hold the counters. They are only named: stopping a service is its owner's business.

    A container sees its own processes alone, so a service of the host shows only in what ncu says.
    """
    for name in running_holders(root):
        who, fix = _HOLDERS[name]
        detail = f"{who} runs ({name}): while it samples, ncu says that a driver resource was unavailable"
        yield Check("other profilers", "limited", detail, fix)


def running_holders(root: Path = Path("/")) -> tuple[str, ...]:
    """The known holders among the processes, each once, in alphabetical order."""
    try:
        folders = [folder.name for folder in (root / "proc").iterdir() if folder.name.isdigit()]
    except OSError:
        return ()
    names = {tree.read_text(root, f"proc/{pid}/comm") for pid in folders}
    return tuple(sorted(name for name in names if name in _HOLDERS))


# In a process of its own: importing torch takes seconds and much memory, and initialising CUDA makes a context.
_ASK = """
import json, torch, warnings
warnings.simplefilter("ignore")
said = None
try:
    torch.cuda.init()
except Exception as error:
    said = str(error).strip().splitlines()[0][:300] if str(error).strip() else type(error).__name__
print(json.dumps({"version": torch.__version__, "cuda": torch.version.cuda, "said": said}))
"""
_SECONDS = 120.0  # a first import from a slow disk


def torch_checks() -> Iterator[Check]:
    """torch's CUDA build against the driver, where profkit's Python has a torch; a workload may use another one."""
    if _package_version("torch") is None:
        return
    trial = try_command([sys.executable, "-c", _ASK], seconds=_SECONDS)
    yield judge_torch(trial.output if trial.ok else "", trial.last_line)


def nvtx_checks() -> Iterator[Check]:
    """One line where profkit's Python has no nvtx; a workload may use another one."""
    if _package_version("nvtx") is None:
        detail = "not installed: a workload's regions are counted, but nsys and ncu do not show them by name"
        yield Check("nvtx", "missing", detail, f"{_pip_install()} nvtx")


def judge_torch(answer: str, last_line: str = "") -> Check:
    """What torch's answer means; `last_line` is what it printed where it gave none."""
    reply = next((line for line in answer.splitlines()[::-1] if line.startswith("{")), None)
    if reply is None:
        return Check(
            "torch on CUDA",
            "refused",
            f"torch does not start: {last_line[:200]}",
            f"{_pip_install()} --force-reinstall torch",
        )
    data = json.loads(reply)
    if data["cuda"] is None:
        detail = "a build without CUDA: the workload would run on the processor"
        return Check(
            "torch on CUDA",
            "limited",
            detail,
            "install the CUDA build: pytorch.org/get-started",
            version=data["version"],
        )
    if data["said"] is None:
        return Check(
            "torch on CUDA",
            "ok",
            f"built for CUDA {data['cuda']}, and the driver serves it",
            version=data["version"],
        )
    error = data["said"]
    if "too old" in error:
        fix = (
            f"a newer driver, or a torch built for an older CUDA than {data['cuda']}: pytorch.org/get-started"
        )
    else:
        fix = "nvidia-smi   (says whether the driver itself works)"
    return Check(
        "torch on CUDA",
        "refused",
        f"built for CUDA {data['cuda']}, but: {error}",
        fix,
        version=data["version"],
    )


def _package_version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _pip_install() -> str:
    return f"{sys.executable} -m pip install"


GIB = 1 << 30


def cuda_checks() -> Iterator[Check]:
    """Look at the device first: without one there is one line that says so, and nothing is started."""
    from profkit.hardware.gpu import driver_fault, read_gpus

    gpus = read_gpus()
    fault = driver_fault() if not gpus else None
    if not gpus:
        yield from device_missing(fault)
        yield from _nsys_reader_check()
        return
    from profkit.profilers.ncu.probe import probe_ncu
    from profkit.profilers.nsys.probe import probe_nsys

    holders = tuple(holder_checks())  # before the probes leave processes of their own behind
    yield from judge_cuda(gpus, probe_ncu(), probe_nsys(), holders)


def device_missing(fault: Fault | None) -> Iterator[Check]:
    """A machine without a GPU is no broken machine: what can be done on it is said, too."""
    reason = fault.reason if fault is not None else "no CUDA device is visible"
    detail = f"{reason}; reports that were recorded elsewhere can be read here"
    yield Check("cuda backend", "missing", detail, fault.fix if fault is not None else "--backend cpu")


def _nsys_reader_check() -> Iterator[Check]:
    from profkit.profilers.nsys.probe import find_nsys

    if (path := find_nsys()) is not None:
        yield Check("nsys", "ok", "turns .nsys-rep files into what profkit reads", path=str(path))


def judge_cuda(
    gpus: Sequence[Gpu], ncu: NcuAbility, nsys: NsysAbility, holders: Iterable[Check] = ()
) -> Iterator[Check]:
    """What devices and probes mean for a run, check by check."""
    yield _backend_check(ncu, nsys)
    for gpu in gpus:
        yield _device_check(gpu)
    yield from sharing_checks(gpus)
    yield from judge_ncu(ncu)
    yield from sudo_checks()
    yield from holders
    yield judge_nsys(nsys)
    yield from torch_checks()
    yield from nvtx_checks()


def _backend_check(ncu: NcuAbility, nsys: NsysAbility) -> Check:
    able = ["times", *(["traces"] if nsys.works else []), *(["counts"] if ncu.counters_ok else [])]
    detail = f"profkit {', '.join(able)} here"
    if ncu.counters_ok and nsys.works:
        return Check("cuda backend", "ok", detail)
    lacks = [
        *([] if nsys.works else [f"no nsys: {NO_TRACE}"]),
        *([] if ncu.counters_ok else ["no counters: verdicts that need them will be unknown"]),
    ]
    return Check("cuda backend", "limited", f"{detail}; {'; '.join(lacks)}")


def _device_check(gpu: Gpu) -> Check:
    parts = [
        gpu.chip,
        f"compute capability {gpu.capability}" if gpu.capability else None,
        f"{gpu.memory_bytes / GIB:.0f} GiB" if gpu.memory_bytes else None,
        f"driver {gpu.driver}" if gpu.driver else None,
    ]
    about = ", ".join(part for part in parts if part)
    return Check(f"GPU {gpu.index}", "ok", f"{gpu.name}{f' ({about})' if about else ''}")


def sudo_checks(environ: Mapping[str, str] = os.environ) -> Iterator[Check]:
    """Whether sudo took the caller's Python away: it replaces PATH by its own (secure_path), also with -E."""
    if "SUDO_UID" not in environ:
        return
    from profkit.profilers.ncu.faults import superuser_line

    python = shutil.which("python", path=environ.get("PATH")) or shutil.which(
        "python3", path=environ.get("PATH")
    )
    if python is not None and Path(python).parent == Path(sys.executable).parent:
        return
    where = f"`python` is {python}" if python is not None else "there is no `python` on it"
    detail = f"sudo replaced PATH, and {where}: a workload would run without what your environment has"
    script = f"profile --backend cuda -- {shlex.quote(sys.executable)} YOUR_SCRIPT.py"
    yield Check("PATH under sudo", "limited", detail, superuser_line(script))
