"""CUDA as the doctor tells it: the device, its driver, who may count, what traces, and what is in the way."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from profkit.core.errors import Fault
from profkit.core.types import Check, Gpu
from profkit.profilers.ncu.probe import judge_ncu
from profkit.profilers.nsys.probe import NO_TRACE, judge_nsys
from profkit.profiling.doctor.cuda_packages import nvtx_checks, torch_checks
from profkit.profiling.doctor.cuda_sharing import holder_checks, sharing_checks

if TYPE_CHECKING:
    from profkit.profilers.ncu.probe import NcuAbility
    from profkit.profilers.nsys.probe import NsysAbility

GIB = 1 << 30


def cuda_checks() -> Iterator[Check]:
    """Look at the device first: without one there is one line that says so, and nothing is started."""
    from profkit.hardware.gpu import driver_fault, read_gpus

    gpus = read_gpus()
    fault = driver_fault() if not gpus else None
    if not gpus:
        yield from no_device(fault)
        yield from _reader()
        return
    from profkit.profilers.ncu.probe import probe_ncu
    from profkit.profilers.nsys.probe import probe_nsys

    holders = tuple(holder_checks())  # before the probes leave processes of their own behind
    yield from judge_cuda(gpus, probe_ncu(), probe_nsys(), holders)


def no_device(fault: Fault | None) -> Iterator[Check]:
    """A machine without a GPU is no broken machine: what can be done on it is said, too."""
    reason = fault.reason if fault is not None else "no CUDA device is visible"
    detail = f"{reason}; reports that were recorded elsewhere can be read here"
    yield Check("cuda backend", "missing", detail, fault.fix if fault is not None else "--backend cpu")


def _reader() -> Iterator[Check]:
    from profkit.profilers.nsys.probe import find_nsys

    if (path := find_nsys()) is not None:
        yield Check("nsys", "ok", "turns .nsys-rep files into what profkit reads", path=str(path))


def judge_cuda(
    gpus: Sequence[Gpu], ncu: NcuAbility, nsys: NsysAbility, holders: Iterable[Check] = ()
) -> Iterator[Check]:
    """What devices and probes mean for a run, check by check."""
    yield _backend(ncu, nsys)
    for gpu in gpus:
        yield _device(gpu)
    yield from sharing_checks(gpus)
    yield from judge_ncu(ncu)
    yield from sudo_checks()
    yield from holders
    yield judge_nsys(nsys)
    yield from torch_checks()
    yield from nvtx_checks()


def _backend(ncu: NcuAbility, nsys: NsysAbility) -> Check:
    able = ["times", *(["traces"] if nsys.works else []), *(["counts"] if ncu.counters_ok else [])]
    detail = f"profkit {', '.join(able)} here"
    if ncu.counters_ok and nsys.works:
        return Check("cuda backend", "ok", detail)
    lacks = [
        *([] if nsys.works else [f"no nsys: {NO_TRACE}"]),
        *([] if ncu.counters_ok else ["no counters: verdicts that need them will be unknown"]),
    ]
    return Check("cuda backend", "limited", f"{detail}; {'; '.join(lacks)}")


def _device(gpu: Gpu) -> Check:
    told = [
        gpu.chip,
        f"compute capability {gpu.capability}" if gpu.capability else None,
        f"{gpu.memory_bytes / GIB:.0f} GiB" if gpu.memory_bytes else None,
        f"driver {gpu.driver}" if gpu.driver else None,
    ]
    about = ", ".join(part for part in told if part)
    return Check(f"GPU {gpu.index}", "ok", f"{gpu.name}{f' ({about})' if about else ''}")


def sudo_checks(environ: Mapping[str, str] = os.environ) -> Iterator[Check]:
    """Whether sudo took the caller's Python away: it replaces PATH by its own (secure_path), also with -E."""
    if "SUDO_UID" not in environ:
        return
    from profkit.profilers.ncu.faults import superuser_line

    found = shutil.which("python", path=environ.get("PATH")) or shutil.which(
        "python3", path=environ.get("PATH")
    )
    if found is not None and Path(found).parent == Path(sys.executable).parent:
        return
    told = f"`python` is {found}" if found is not None else "there is no `python` on it"
    detail = f"sudo replaced PATH, and {told}: a workload would run without what your environment has"
    script = f"profile --backend cuda -- {shlex.quote(sys.executable)} YOUR_SCRIPT.py"
    yield Check("PATH under sudo", "limited", detail, superuser_line(script))
