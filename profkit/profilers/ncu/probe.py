"""Where ncu is, and what it can do here, by what ncu and the driver say.

No GPU program is started: that would take seconds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from profkit.core.errors import Fault, MachineError
from profkit.core.tables import judge_rows
from profkit.core.types import Check, Directive, Gpu, Step, Switch
from profkit.hardware.gpu import driver_fault, read_gpus
from profkit.profilers.faults import collect_file
from profkit.profilers.ncu.command import SUFFIX, ncu_argv, version_numbers
from profkit.profilers.ncu.faults import counters_fault, explain
from profkit.profilers.ncu.sets import counter_set
from profkit.profilers.profiler import RecordRequest
from profkit.profilers.programs import ToolAbility, ask_version, find_tool, missing_fault

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


@dataclass(frozen=True)
class NcuAbility(ToolAbility):
    """What ncu can do on this machine for this user; it works where this user may count.

    `chips` are those of the visible devices, None for one that is not known. `notes`: what may stand in the way, and
    is known only when it is tried.
    """

    chips: tuple[str | None, ...] = ()
    notes: tuple[str, ...] = ()
    driver_note: str | None = None  # the one of `notes` that says that ncu does not fit the driver


@lru_cache(maxsize=1)
def probe_ncu() -> NcuAbility:
    """Ask ncu for its version and the driver for its devices and rights; the answer is kept for this process."""
    mac = "ncu records nothing on macOS: it has no CUDA"
    path = find_ncu() or missing_fault("ncu (Nsight Compute)", "PROFKIT_NCU", INSTALL_FIX, mac)
    ncu = NcuAbility(**vars(ask_version(path, _VERSION, explain, INSTALL_FIX, seconds=_SECONDS)))
    if not ncu.works:
        return ncu
    gpus = read_gpus()
    ncu = replace(ncu, chips=tuple(gpu.chip or gpu.capability for gpu in gpus))
    fault = counters_fault() if gpus else driver_fault() or Fault("there is no GPU that could be counted on")
    if fault is not None:
        return replace(ncu, works=False, reason=fault.reason, fix=fault.fix)
    note = _driver_note(ncu.version or "", gpus)
    return replace(ncu, notes=((note,) if note else ()) + _device_notes(gpus), driver_note=note)


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
    return judge_rows(Path(__file__).with_name("checks.yaml"), "ncu", ncu)


def recording_step(request: RecordRequest) -> Step:
    """The step after which `collect_report` makes the report. Raises MachineError where ncu cannot do it here.

    With `request.kernel`: only kernels whose name contains it (or which `regex:...` finds), and all counters that
    explain them. Without: every kernel, with the counters that find its bottleneck.
    """
    ncu = probe_ncu()
    if not ncu.works:
        raise MachineError(ncu.reason or "ncu does not work here", ncu.fix)
    chip = ncu.chips[0] if ncu.chips else None
    names = ("standard",) if request.kernel is None else ("standard", "explain")
    sets = [counter_set(name, chip, ncu.version) for name in names]
    argv = ncu_argv(
        request.command,
        _scratch_report(request),
        metrics=tuple(dict.fromkeys(metric for one in sets for metric in one.metrics)),
        sections=tuple(dict.fromkeys(section for one in sets for section in one.sections)),
        only=request.kernel,
        marked=request.marked,
        ncu=str(ncu.path),
        version=ncu.version,
    )
    switch = Switch("cuda") if request.marked else None
    directive = Directive("counters", str(request.scratch / "region"), switch=switch, iterations=1)
    return Step("record", argv, directive=directive, tool="ncu", signals_as_codes=True)


def collect_report(request: RecordRequest) -> tuple[str, ...]:
    """Copy what ncu left to the report. Raises MachineError with ncu's own reason where there is nothing."""
    return collect_file(request, _scratch_report(request), "ncu", explain)


def _scratch_report(request: RecordRequest) -> Path:
    return request.scratch / f"record{SUFFIX}"
