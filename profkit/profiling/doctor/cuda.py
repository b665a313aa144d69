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
from profkit.profiling.doctor.cuda_packages import nvtx_checks, torch_checks
from profkit.profiling.doctor.cuda_sharing import holder_checks, sharing_checks

if TYPE_CHECKING:
    from profkit.profilers.ncu.probe import NcuAbility
    from profkit.profilers.nsys.probe import NsysAbility

GIB = 1 << 30
_TOLD_APART = ("MIG", "under WSL")  # notes of the probe that `sharing_checks` tells, with what to do
_OTHER_NCU = "a newer driver, or the ncu of the CUDA Toolkit that fits the driver: PROFKIT_NCU=/path/to/ncu"
_NO_TRACE = "torch's own profiler traces instead, where the workload uses torch"


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
    from profkit.profilers.nsys.find import find_nsys

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
    yield from _ncu(ncu)
    yield from sudo_checks()
    yield from holders
    yield _nsys(nsys)
    yield from torch_checks()
    yield from nvtx_checks()


def _backend(ncu: NcuAbility, nsys: NsysAbility) -> Check:
    able = ["times", *(["traces"] if nsys.works else []), *(["counts"] if ncu.counters_ok else [])]
    detail = f"profkit {', '.join(able)} here"
    if ncu.counters_ok and nsys.works:
        return Check("cuda backend", "ok", detail)
    lacks = [
        *([] if nsys.works else [f"no nsys: {_NO_TRACE}"]),
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


def _ncu(ncu: NcuAbility) -> Iterator[Check]:
    if ncu.path is None:
        yield Check("ncu", "missing", f"{ncu.reason or 'not installed'}: no counters", ncu.fix)
        return
    path = str(ncu.path)
    if ncu.version is None:
        yield Check("ncu", "refused", ncu.reason or "it does not say its version", ncu.fix, path)
        return
    doubts = [note for note in ncu.notes if not note.startswith(_TOLD_APART)]
    if doubts:
        yield Check("ncu", "limited", "; ".join(doubts), _OTHER_NCU, path, ncu.version)
    else:
        yield Check("ncu", "ok", "answers", path=path, version=ncu.version)
    if ncu.counters_ok:
        yield Check("GPU counters", "ok", "this user may count")
        return
    yield Check("GPU counters", "refused", ncu.reason or "they cannot be read", ncu.fix)


def _nsys(nsys: NsysAbility) -> Check:
    path = None if nsys.path is None else str(nsys.path)
    if path is None:
        return Check("nsys", "missing", f"{nsys.reason or 'not installed'}: {_NO_TRACE}", nsys.fix)
    if not nsys.works:
        return Check("nsys", "refused", nsys.reason or "it leaves no report", nsys.fix, path, nsys.version)
    return Check("nsys", "ok", "traces and writes reports", path=path, version=nsys.version)


def sudo_checks(environ: Mapping[str, str] = os.environ) -> Iterator[Check]:
    """Whether sudo took the caller's Python away: it replaces PATH by its own (secure_path), also with -E."""
    if "SUDO_UID" not in environ:
        return
    from profkit.profilers.ncu.permission import superuser_line

    found = shutil.which("python", path=environ.get("PATH")) or shutil.which(
        "python3", path=environ.get("PATH")
    )
    if found is not None and Path(found).parent == Path(sys.executable).parent:
        return
    told = f"`python` is {found}" if found is not None else "there is no `python` on it"
    detail = f"sudo replaced PATH, and {told}: a workload would run without what your environment has"
    script = f"profile --backend cuda -- {shlex.quote(sys.executable)} YOUR_SCRIPT.py"
    yield Check("PATH under sudo", "limited", detail, superuser_line(script))
