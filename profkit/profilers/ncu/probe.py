"""Where ncu is, and what it can do here, by what ncu and the driver say.

No GPU program is started: that would take seconds.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from profkit.core.types import Check, Gpu
from profkit.hardware.gpu import driver_fault, read_gpus
from profkit.profilers.ncu.command import version_numbers
from profkit.profilers.ncu.faults import counters_fault, explain
from profkit.profilers.programs import ask_tool, find_tool, last_line, missing_fault

# Where NVIDIA's packages and the CUDA toolkit put it; sudo's PATH holds none of these.
_PLACES = (
    "usr/local/cuda/bin/ncu",
    "usr/local/cuda-*/bin/ncu",
    "opt/nvidia/nsight-compute/*/ncu",
    "usr/local/NVIDIA-Nsight-Compute*/ncu",
    "usr/local/cuda*/nsight-compute-*/ncu",
)
INSTALL_FIX = (
    "apt-get install cuda-nsight-compute-13-0   (NVIDIA's repository; or developer.nvidia.com/nsight-compute)"
)


def find_ncu(root: Path = Path("/")) -> Path | None:
    """The ncu to call: `PROFKIT_NCU` where set, else that of PATH, of this environment, or NVIDIA's newest here."""
    return find_tool("ncu", "PROFKIT_NCU", patterns=_PLACES, root=root)


_SECONDS = 20.0  # it answers in 0.3 s; a cold network disk may take many times that
_VERSION = re.compile(r"^Version (\d+(?:\.\d+)+)", re.MULTILINE)
# From that version of ncu on, drivers older than that were refused ("Cuda driver is not compatible"): 2025.3.1 by
# drivers 570 and 576, 2026.2.1 by 576.88. Nsight Compute comes with a CUDA version, and needs its driver's major one.
_NEEDS_DRIVER = (((2025, 3), 580), ((2022, 4), 525))
_OTHER_NCU = "a newer driver, or the ncu of the CUDA Toolkit that fits the driver: PROFKIT_NCU=/path/to/ncu"


@dataclass(frozen=True)
class NcuAbility:
    """What ncu can do on this machine for this user.

    Where `counters_ok` is False, `reason` says why and `fix` what to do. `chips` are those of the visible devices, None
    for one that is not known. `notes`: what may stand in the way, and is known only when it is tried.
    """

    path: Path | None
    version: str | None
    counters_ok: bool
    reason: str | None = None
    fix: str | None = None
    chips: tuple[str | None, ...] = ()
    notes: tuple[str, ...] = ()
    driver_note: str | None = None  # the one of `notes` that says that ncu does not fit the driver


@lru_cache(maxsize=1)
def probe_ncu() -> NcuAbility:
    """Ask ncu for its version and the driver for its devices and rights; the answer is kept for this process."""
    path = find_ncu()
    if path is None:
        if sys.platform == "darwin":
            return NcuAbility(None, None, False, "ncu records nothing on macOS: it has no CUDA")
        absent = missing_fault("ncu (Nsight Compute)", "PROFKIT_NCU", INSTALL_FIX)
        return NcuAbility(None, None, False, absent.reason, absent.fix)
    returncode, text = ask_tool((str(path), "--version"), _SECONDS)
    version = _VERSION.search(text)
    if version is None:
        fault = explain(text, returncode)
        reason = fault.reason if fault else f"{path} does not say its version, but: {last_line(text)}"
        return NcuAbility(path, None, False, reason, fault.fix if fault and fault.fix else INSTALL_FIX)
    gpus = read_gpus()
    chips = tuple(gpu.chip or gpu.capability for gpu in gpus)
    fault = driver_fault() if not gpus else counters_fault()
    if fault is not None:
        return NcuAbility(path, version[1], False, fault.reason, fault.fix, chips)
    if not gpus:
        return NcuAbility(path, version[1], False, "there is no GPU that could be counted on")
    note = _driver_note(version[1], gpus)
    return NcuAbility(
        path,
        version[1],
        True,
        chips=chips,
        notes=((note,) if note else ()) + _device_notes(gpus),
        driver_note=note,
    )


def _driver_note(version: str, gpus: tuple[Gpu, ...]) -> str | None:
    driver = version_numbers(gpus[0].driver)
    least = next((least for since, least in _NEEDS_DRIVER if (version_numbers(version) or ()) >= since), None)
    if driver is not None and least is not None and driver[0] < least:
        return f"ncu {version} was seen to refuse drivers before {least}, and this one is {gpus[0].driver}"
    return None


def _device_notes(gpus: tuple[Gpu, ...]) -> tuple[str, ...]:
    """What the doctor has checks of its own for."""
    notes: list[str] = []
    if any(gpu.mig for gpu in gpus):
        notes.append("MIG is on: L2 and DRAM are counted only where a GPU instance has one compute instance")
    if any(gpu.virtual == "wsl" for gpu in gpus):
        notes.append("under WSL the counters are opened in Windows, in the NVIDIA Control Panel")
    return tuple(notes)


def ncu_checks() -> Iterator[Check]:
    """Try ncu, and say what came of it."""
    return judge_ncu(probe_ncu())


def judge_ncu(ncu: NcuAbility) -> Iterator[Check]:
    """What the probe's answers mean: is ncu here, and may this user count."""
    if ncu.path is None:
        yield Check("ncu", "missing", f"{ncu.reason or 'not installed'}: no counters", ncu.fix)
        return
    path = str(ncu.path)
    if ncu.version is None:
        yield Check("ncu", "refused", ncu.reason or "it does not say its version", ncu.fix, path)
        return
    if ncu.driver_note is not None:
        yield Check("ncu", "limited", ncu.driver_note, _OTHER_NCU, path, ncu.version)
    else:
        yield Check("ncu", "ok", "answers", path=path, version=ncu.version)
    if ncu.counters_ok:
        yield Check("GPU counters", "ok", "this user may count")
        return
    yield Check("GPU counters", "refused", ncu.reason or "they cannot be read", ncu.fix)
