"""Finds ncu, checks what it can do here and who may read the GPU's counters, and explains its error texts.

No GPU program is started: that would take seconds. ncu often ends with 0 where it counted nothing, so its
text is read whatever its exit code. Lines that need root are printed for the user. Since driver 418 the
counters are for administrators where `RmProfilingAdminOnly` is 1 (NVIDIA, ERR_NVGPUCTRPERM).
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from profkit.core.errors import Fault, MachineError
from profkit.core.tables import judge_rows
from profkit.core.types import Check, Directive, Step, Switch
from profkit.hardware import system
from profkit.hardware.machine import is_container
from profkit.hardware.nvidia import driver_fault, read_gpus
from profkit.profilers.faults import KnownFault, collect_file, first_known, load_faults
from profkit.profilers.ncu.command import SUFFIX, counter_set, function_name, ncu_argv
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
    """Return the ncu to call: `PROFKIT_NCU` if set, else from PATH, this environment, or NVIDIA's newest here."""
    return find_tool("ncu", "PROFKIT_NCU", patterns=_PLACES, root=root)


_SECONDS = 20.0  # it answers in 0.3 s; a cold network disk may take many times that
_VERSION = re.compile(r"^Version (\d+(?:\.\d+)+)", re.MULTILINE)


@dataclass(frozen=True)
class NcuAbility(ToolAbility):
    """What ncu can do on this machine for this user; `works` is true where this user may count.

    `chips` are those of the visible devices, None for an unknown one.
    """

    chips: tuple[str | None, ...] = ()


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
    fault = counters_fault() if gpus else driver_fault() or Fault("there is no GPU to count on")
    return ncu if fault is None else replace(ncu, works=False, reason=fault.reason, fix=fault.fix)


def judge_ncu(ncu: NcuAbility | None = None) -> Iterator[Check]:
    """Return checks of whether ncu is installed and whether this user may count."""
    return judge_rows(Path(__file__).with_name("checks.yaml"), "ncu", ncu or probe_ncu())


def recording_step(request: RecordRequest) -> Step:
    """Return the step that records for `collect_report`. Raises MachineError where ncu cannot do it here.

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
        metrics=tuple(dict.fromkeys(metric for set_ in sets for metric in set_.metrics)),
        sections=tuple(dict.fromkeys(section for set_ in sets for section in set_.sections)),
        only=request.kernel,
        marked=request.marked,
        ncu=str(ncu.path),
        version=ncu.version,
    )
    switch = Switch("cuda") if request.marked else None
    directive = Directive("counters", str(request.scratch / "region"), switch=switch, iterations=1)
    return Step("record", argv, directive=directive, tool="ncu", signals_as_codes=True)


def collect_report(request: RecordRequest) -> tuple[str, ...]:
    """Copy what ncu recorded to the report. Raises MachineError with ncu's own reason where there is nothing."""
    return collect_file(request, _scratch_report(request), "ncu", explain)


def _scratch_report(request: RecordRequest) -> Path:
    return request.scratch / f"record{SUFFIX}"


_SYS_ADMIN = 21  # bit of CAP_SYS_ADMIN in a mask of capabilities (linux/capability.h)
RESTRICTED = "the driver lets only administrators read the GPU's performance counters"
_OPEN = "NVreg_RestrictProfilingToAdminUsers=0"


def counters_fault(root: Path = Path("/")) -> Fault | None:
    """Return why this process may not read the counters; None where it may or the driver does not say."""
    params = system.parse_fields(system.read_text(root, "proc/driver/nvidia/params"))
    if params.get("RmProfilingAdminOnly") != "1" or _is_administrator(root):
        return None
    return Fault(RESTRICTED, open_counters(root))


def open_counters(root: Path = Path("/")) -> str:
    """Return the instruction that gives this user the counters.

    It differs on Windows, in a container, and for root without the capability.
    """
    if "microsoft" in (system.read_text(root, "proc/sys/kernel/osrelease") or "").lower():
        return (
            "in Windows, as administrator: NVIDIA Control Panel, Desktop > Enable Developer Settings, then "
            "Developer > Manage GPU Performance Counters > Allow access to all users"
        )
    on_host = f"echo options nvidia {_OPEN} > /etc/modprobe.d/profkit.conf, update-initramfs -u, reboot"
    if is_container(root):
        return (
            "start the container with --cap-add=SYS_ADMIN (Kubernetes: securityContext.capabilities.add), or on "
            f"its host, as root: {on_host}; where neither can be had (a rented container), nsys still traces"
        )
    return f"{superuser_line()}   (this time); or for all users, as root: {on_host}"


def superuser_line(arguments: str = "...") -> str:
    """Return the command that runs profkit as root with this user's programs.

    sudo's own PATH holds neither ncu nor this Python.
    """
    paths = " ".join(f'"{name}=${name}"' for name in ("PATH", "LD_LIBRARY_PATH") if os.environ.get(name))
    return f"sudo -E env {paths} {shlex.quote(sys.executable)} -m profkit {arguments}"


def _is_administrator(root: Path) -> bool:
    """Return whether this process has CAP_SYS_ADMIN, which root in a container mostly lacks."""
    mask = system.parse_fields(system.read_text(root, "proc/self/status")).get("CapEff")
    try:
        return bool(int(mask, 16) >> _SYS_ADMIN & 1) if mask else os.geteuid() == 0
    except ValueError:
        return False


REPLAY_FIX = (
    "a cheaper set (--depth gate has one replay pass and saves nothing), a smaller case, or fewer kernels"
)
_SHOWN, _LONGEST = 12, 80  # kernel names, and characters of one

_PERMISSION = re.compile(
    r"ERR_NVGPUCTRPERM|does not have permission to (?:access|profile)|INSUFFICIENT_PRIVILEGES", re.IGNORECASE
)
_NOTHING = re.compile(r"No kernels were profiled")
_AVAILABLE = re.compile(r"Available Kernels:\s*\n((?:\s*\d+\.\s+[^\n]+\n?)+)")
_ERROR = re.compile(
    r"^==ERROR==[ \t]*(?![ \t]|The application returned|An error (?:occurred|was reported))(.+)$",
    re.MULTILINE,
)


def known_faults() -> tuple[KnownFault, ...]:
    """Load the table of ncu's error texts."""
    return load_faults(Path(__file__).with_name("faults.yaml"), replay=REPLAY_FIX)


def explain(text: str, returncode: int) -> Fault | None:
    """Return the fault that ncu printed as `text` before it ended with `returncode`; None for an unknown one."""
    if _PERMISSION.search(text):
        return Fault(RESTRICTED, open_counters())
    if (fault := first_known(known_faults(), text)) is not None:
        return fault
    if (error := _ERROR.search(text)) is not None:
        return Fault(f"it says: {error[1].strip()[:300]}")
    if _NOTHING.search(text):
        return _no_kernels(text)
    if returncode in (-9, 137):
        return Fault("ncu was killed (SIGKILL), most often because memory ran out", REPLAY_FIX)
    return None


def _no_kernels(text: str) -> Fault:
    """Say which kernels ncu saw but was not to count; where it lists none, that none was launched."""
    listed = _AVAILABLE.search(text)
    if listed is None:
        return Fault(
            "no kernel was profiled, and ncu saw none: the workload launched nothing on the GPU while it was counted",
            "check that the workload uses the GPU at all, and that what it marks is not empty",
            consequence=True,
        )
    whole = (line.partition(".")[2].strip() for line in listed[1].strip().splitlines())
    names = list(dict.fromkeys(function_name(name)[:_LONGEST] for name in whole))
    shown = ", ".join(names[:_SHOWN])
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return Fault(
        f"no kernel was profiled: no kernel of the chosen name was launched. ncu saw {shown}{more}",
        "choose one of these by name (--kernel NAME)",
    )
