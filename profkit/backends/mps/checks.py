"""MPS as the doctor tells it: the GPU and its specification, torch's MPS, macOS, and what a recording would give."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from profkit.backends.checks import ask_torch
from profkit.core.tables import judge_rows
from profkit.core.types import Check, Gpu
from profkit.hardware.macos import find_chip, is_translated, read_apple_gpus
from profkit.profilers.xctrace.command import COUNTERS_FIX, GPU_COUNTERS
from profkit.profilers.xctrace.find import XctraceAbility, probe_xctrace

_TABLE = Path(__file__).with_name("checks.yaml")
_FALLBACK = "PYTORCH_ENABLE_MPS_FALLBACK"


def mps_torch_checks() -> Iterator[Check]:
    """Ask the Python that a workload typed as `python x.py` runs in, else profkit's own."""
    yield from judge_mps_torch(ask_torch(shutil.which("python") or shutil.which("python3") or sys.executable))
    yield from switch_checks(os.environ)


def judge_mps_torch(torch: Mapping[str, object]) -> Iterator[Check]:
    """What torch's answer means."""
    return judge_rows(_TABLE, "torch", torch, {"path": torch["python"]})


def switch_checks(environ: Mapping[str, str]) -> Iterator[Check]:
    """Switches that let a run on the GPU be one on the CPU, in part and in silence."""
    falls_back = environ.get(_FALLBACK, "0") not in ("", "0")
    return judge_rows(_TABLE, "switches", {"switch": _FALLBACK, "falls_back": falls_back})


_OLDEST = (12, 3)  # of macOS, with MPS (pytorch.org, "MPS backend")
# Chips on which somebody got counters from a command line. Of the others some were reported to give none, or one that
# is always 0; which is told by the rows of a recording alone.
_COUNTED = ("Apple M1", "Apple M3")
_REFUSED = ("Apple M3 Max", "Apple M4 Max", "Apple M5 Max", "Apple M2")


def mps_checks() -> Iterator[Check]:
    """Look at the GPU first; off a Mac there is one line that says so, and nothing is started."""
    if platform.system() != "Darwin":
        yield from judge_rows(_TABLE, "elsewhere")
        return
    yield from judge_mps(read_apple_gpus(), probe_xctrace(), platform.mac_ver()[0], is_translated())
    yield from mps_torch_checks()


def judge_mps(
    gpus: Sequence[Gpu], xctrace: XctraceAbility, system: str, translated: bool = False
) -> Iterator[Check]:
    """What devices and the probe mean for a run. `system`: the version of macOS; `translated`: under Rosetta."""
    yield from judge_rows(_TABLE, "backend", xctrace, {"gpus": gpus})
    for gpu in gpus:
        yield from judge_rows(_TABLE, "device", gpu, _specification(gpu))
    numbers = tuple(int(part) for part in system.split(".")[:2] if part.isdecimal())
    old = (*numbers, 0)[:2] < _OLDEST
    macos = {"version": system, "known": bool(numbers), "old": old, "translated": translated}
    yield from judge_rows(_TABLE, "macOS", macos)
    if gpus and xctrace.works:
        chip = {"refused": gpus[0].name in _REFUSED, "counted": gpus[0].name in _COUNTED}
        lacks = {"lacks": xctrace.lacks(instrument=GPU_COUNTERS), "counters_fix": COUNTERS_FIX}
        yield from judge_rows(_TABLE, "counters", gpus[0], chip, lacks)


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
