"""MPS as the doctor tells it: the GPU and its specification, torch's MPS, macOS, and what a recording would give."""

from __future__ import annotations

import json
import os
import platform
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from profkit.core.types import Check, Gpu
from profkit.hardware.apple_gpu import explain_missing_specification
from profkit.profilers.programs import try_command
from profkit.profilers.xctrace.checks import GPU_COUNTERS

if TYPE_CHECKING:
    from profkit.profilers.xctrace.find import XctraceAbility


_NAME = "torch on MPS"
# In a process of its own: importing torch takes seconds and much memory.
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
    mps = getattr(torch.backends, "mps", None)
    print(json.dumps({
        "version": torch.__version__,
        "built": bool(mps and mps.is_built()),
        "available": bool(mps and mps.is_available()),
    }))
"""
_SECONDS = 120.0  # a first import from a slow disk
_FALLBACK = "PYTORCH_ENABLE_MPS_FALLBACK"


def mps_torch_checks() -> Iterator[Check]:
    """Ask the Python that a workload typed as `python x.py` runs in, else profkit's own."""
    python = shutil.which("python") or shutil.which("python3") or sys.executable
    trial = try_command([python, "-c", _ASK], seconds=_SECONDS)
    yield judge_mps_torch(trial.output if trial.ok else "", trial.last_line, python)
    yield from switch_checks(os.environ)


def judge_mps_torch(answer: str, last_line: str = "", python: str = "python") -> Check:
    """What torch's answer means; `last_line` is what it printed where it gave none."""
    install = f"{python} -m pip install --upgrade torch"
    line = next((line for line in answer.splitlines()[::-1] if line.startswith("{")), None)
    if line is None:
        detail = f"torch does not start: {last_line[:200]}"
        return Check(_NAME, "refused", detail, f"{python} -m pip install --force-reinstall torch", python)
    data = json.loads(line)
    version = data["version"]
    if version is None:
        return Check(
            _NAME, "missing", "not installed: needed only by workloads written in torch", install, python
        )
    if not data["built"]:
        detail = "a build without MPS, as for Intel: the workload would run on the processor"
        return Check(_NAME, "limited", detail, f"{install}   (in a Python built for arm64)", python, version)
    if not data["available"]:
        detail = (
            "built with MPS, but it finds no device: a macOS before 12.3, a virtual machine, or no Apple GPU"
        )
        fix = f"{python} -c \"import torch; torch.ones(1, device='mps')\"   (says why)"
        return Check(_NAME, "refused", detail, fix, python, version)
    return Check(_NAME, "ok", "built with MPS, and a device is available", path=python, version=version)


def switch_checks(environ: Mapping[str, str]) -> Iterator[Check]:
    """Switches that let a run on the GPU be one on the CPU, in part and in silence."""
    if environ.get(_FALLBACK, "0") not in ("", "0"):
        detail = f"{_FALLBACK} is set: operations that MPS lacks run on the CPU, and are timed as the GPU's"
        yield Check("MPS fallback", "limited", detail, f"unset {_FALLBACK}")


_OLDEST = (12, 3)  # of macOS, with MPS (pytorch.org, "MPS backend")
# Chips on which somebody got counters from a command line. Of the others some were reported to give none, or one that
# is always 0; which is told by the rows of a recording alone.
_COUNTED = ("Apple M1", "Apple M3")
_REFUSED = ("Apple M3 Max", "Apple M4 Max", "Apple M5 Max", "Apple M2")
_ELSEWHERE = (
    "Metal exists only on macOS; exports of xctrace from a Mac can be read here (profkit summarize FOLDER)"
)


def mps_checks() -> Iterator[Check]:
    """Look at the GPU first; off a Mac there is one line that says so, and nothing is started."""
    if platform.system() != "Darwin":
        yield Check("mps backend", "missing", _ELSEWHERE, "--backend cpu")
        return
    from profkit.hardware.apple_gpu import read_apple_gpus
    from profkit.hardware.macos import is_translated
    from profkit.profilers.xctrace.find import probe_xctrace

    yield from judge_mps(read_apple_gpus(), probe_xctrace(), platform.mac_ver()[0], is_translated())
    yield from mps_torch_checks()


def judge_mps(
    gpus: Sequence[Gpu], xctrace: XctraceAbility, system: str, translated: bool = False
) -> Iterator[Check]:
    """What devices and the probe mean for a run. `system`: the version of macOS; `translated`: under Rosetta."""
    yield _backend_check(gpus, xctrace)
    for gpu in gpus:
        yield _device_check(gpu)
        yield from _virtual_check(gpu)
    yield _macos_check(system)
    if translated:
        detail = (
            "Rosetta translates this Python: it is built for Intel, where torch has no MPS for an Apple GPU"
        )
        yield Check(
            "Rosetta",
            "limited",
            detail,
            "use a Python built for arm64 (python.org, Homebrew in /opt/homebrew)",
        )
    if gpus and xctrace.works:
        yield _counters_check(gpus[0], xctrace)


def _backend_check(gpus: Sequence[Gpu], xctrace: XctraceAbility) -> Check:
    if not gpus:
        detail = "no GPU is listed: neither ioreg nor system_profiler names one"
        return Check("mps backend", "missing", detail, "--backend cpu")
    if xctrace.works:
        return Check("mps backend", "ok", "profkit times and traces here (not yet tried on a real Mac)")
    detail = (
        f"profkit times here; no xctrace: what the GPU did stays unknown ({xctrace.reason or 'not found'})"
    )
    return Check("mps backend", "limited", detail, xctrace.fix)


def _device_check(gpu: Gpu) -> Check:
    peaks = [
        f"{gpu.cores} GPU cores" if gpu.cores else None,
        f"{gpu.bandwidth / 1e9:.0f} GB/s" if gpu.bandwidth else None,
        f"{gpu.flops / 1e12:.1f} TFLOP/s in float32" if gpu.flops else None,
    ]
    about = ", ".join(part for part in peaks if part)
    detail = f"{gpu.name}{f' ({about} by its specification)' if about else ''}"
    fault = explain_missing_specification(gpu)
    if fault is None or gpu.virtual is not None:
        return Check(f"GPU {gpu.index}", "ok", detail)
    return Check(f"GPU {gpu.index}", "limited", f"{detail}: {fault.reason}", fault.fix)


def _virtual_check(gpu: Gpu) -> Iterator[Check]:
    if gpu.virtual is not None:
        detail = (
            "the GPU is the host's behind a paravirtual device: its times are shared, and it has no counters"
        )
        yield Check("virtual machine", "limited", detail, "measure on the Mac itself")


def _macos_check(system: str) -> Check:
    numbers = [int(part) for part in system.split(".")[:2] if part.isdecimal()]
    if not numbers:
        return Check("macOS", "limited", "its version is unknown", "sw_vers -productVersion")
    if (*numbers, 0)[:2] < _OLDEST:
        detail = f"torch's MPS needs {_OLDEST[0]}.{_OLDEST[1]} or later"
        return Check(
            "macOS", "refused", detail, "System Settings > General > Software Update", version=system
        )
    return Check("macOS", "ok", "has Metal Performance Shaders", version=system)


def _counters_check(gpu: Gpu, ability: XctraceAbility) -> Check:
    name = "GPU counters"
    if gpu.virtual is not None:
        return Check(name, "missing", "a virtual machine has none", "measure on the Mac itself")
    lacks = ability.lacks(instrument=GPU_COUNTERS)
    if lacks is not None:
        return Check(name, "missing", f"{lacks}: no bandwidth, no occupancy", "install a newer Xcode")
    if gpu.name in _REFUSED:
        detail = f"on {gpu.name} xctrace was reported to record none from a command line: no bandwidth, no occupancy"
        return Check(name, "limited", detail, _counters_fix())
    known = f"xctrace was reported to count on {gpu.name}"
    evidence = known if gpu.name in _COUNTED else f"whether xctrace counts on {gpu.name} is not known"
    return Check(name, "limited", f"{evidence}: only the rows of a recording show it", _counters_fix())


def _counters_fix() -> str:
    from profkit.profilers.xctrace.command import COUNTERS_FIX

    return COUNTERS_FIX
