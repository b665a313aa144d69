"""What ncu's error texts (of 2019 to 2026) mean, and the line that fixes each; who may read the GPU's counters.

ncu often ends with 0 where it counted nothing, so its text is looked at whatever it ended with. Nothing here runs
anything: services are not stopped, and lines that need root are printed for the user. Since driver 418 the counters are
for administrators where `RmProfilingAdminOnly` is 1 (NVIDIA, ERR_NVGPUCTRPERM).
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from pathlib import Path

from profkit.core.errors import Fault
from profkit.hardware import tree
from profkit.hardware.container import container_kind
from profkit.profilers.faults import first_known, known_fault
from profkit.profilers.ncu.command import function_name
from profkit.profilers.ncu.sets import other_name

_SYS_ADMIN = 21  # bit of CAP_SYS_ADMIN in a mask of capabilities (linux/capability.h)
RESTRICTED = "the driver lets only administrators read the GPU's performance counters"
_OPEN = "NVreg_RestrictProfilingToAdminUsers=0"


def counters_fault(root: Path = Path("/")) -> Fault | None:
    """Why the counters are closed to this process; None where they are open, or where the driver does not say."""
    params = tree.parse_fields(tree.read_text(root, "proc/driver/nvidia/params"))
    if params.get("RmProfilingAdminOnly") != "1" or _is_administrator(root):
        return None
    return Fault(RESTRICTED, open_counters(root))


def open_counters(root: Path = Path("/")) -> str:
    """The line that gives this user the counters: another one on Windows, in a container, for root without a right."""
    if "microsoft" in (tree.read_text(root, "proc/sys/kernel/osrelease") or "").lower():
        return (
            "in Windows, as administrator: NVIDIA Control Panel, Desktop > Enable Developer Settings, then "
            "Developer > Manage GPU Performance Counters > Allow access to all users"
        )
    on_host = f"echo options nvidia {_OPEN} > /etc/modprobe.d/profkit.conf, update-initramfs -u, reboot"
    if container_kind(root) is not None:
        return (
            "start the container with --cap-add=SYS_ADMIN (Kubernetes: securityContext.capabilities.add), or on "
            f"its host, as root: {on_host}; where neither can be had (a rented container), nsys still traces"
        )
    return f"{superuser_line()}   (this time); or for all users, as root: {on_host}"


def superuser_line(arguments: str = "...") -> str:
    """How profkit runs as root with this user's programs: sudo's own PATH holds neither ncu nor this Python."""
    paths = " ".join(f'"{name}=${name}"' for name in ("PATH", "LD_LIBRARY_PATH") if os.environ.get(name))
    return f"sudo -E env {paths} {shlex.quote(sys.executable)} -m profkit {arguments}"


def _is_administrator(root: Path) -> bool:
    """Whether this process has CAP_SYS_ADMIN: root in a container mostly has not."""
    mask = tree.parse_fields(tree.read_text(root, "proc/self/status")).get("CapEff")
    try:
        return bool(int(mask, 16) >> _SYS_ADMIN & 1) if mask else os.geteuid() == 0
    except ValueError:
        return False


REPLAY_FIX = (
    "a cheaper set (--depth gate has one replay pass and saves nothing), a smaller case, or fewer kernels"
)
_SHOWN, _LONGEST = 12, 80  # kernel names, and characters of one

# The most telling first: most of these are followed by "No kernels were profiled".
FAULTS = (
    known_fault(
        r"driver resource was unavailable|no other tool \(like DCGM\)|ERR_NVGPU_?RESOURCE|"
        r"hardware counters? (?:is|are) (?:in use|reserved)",
        "another tool holds the GPU's performance counters (DCGM, dynolog, another ncu)",
        "dcgmi profile --pause   (afterwards --resume), or systemctl stop nvidia-dcgm; dyno dcgm_profiling "
        "--mute=true --duration=300; in Kubernetes take dcgm-exporter off the node",
    ),
    known_fault(
        r"Cuda driver is not compatible with Nsight Compute|Failed to load Nsight Compute CUDA modules|"
        r"driver version is insufficient|(?:requires|need)[^\n]* (?:a )?(?:newer|later) (?:NVIDIA )?driver",
        "this ncu and this driver do not fit together: ncu is newer than the driver",
        "a newer driver, or the Nsight Compute of the CUDA version that nvidia-smi shows; PROFKIT_NCU=/path/to/ncu "
        "names the one to call",
    ),
    known_fault(
        r"not supported on device[^\n]*(?:WSL|Windows Subsystem)|WSL[^\n]*not supported",
        "ncu cannot count on this device under WSL",
        "Windows 11, WSL 2 with a driver from 2022 on, and a GPU from Turing on",
    ),
    known_fault(
        r"not supported on device[^\n]*(?:vGPU|virtual)|CUPTI_ERROR_VIRTUALIZED_DEVICE",
        "the virtual GPU's host does not let its guests count",
        "on the host: pciPassthru.cfg.enable_profiling=1 for this guest (NVIDIA vGPU documentation, profiling)",
    ),
    known_fault(
        r"(?:compute instance|MIG)[^\n]*(?:not supported|cannot|unsupported)|shared (?:compute )?instance",
        "a MIG part that shares its instance cannot count what the parts share (L2, DRAM)",
        "a GPU instance with one compute instance: nvidia-smi mig -cgi PROFILE -C; else only multiprocessor metrics",
    ),
    known_fault(
        r"(?:GPU|device|chip)[^\n]*(?:is not supported|unsupported)|Unsupported (?:GPU|device)|"
        r"Profiling is not supported on (?:this )?device",
        "this ncu does not support this GPU",
        "a newer Nsight Compute for a newer GPU; for Pascal and older, nvprof",
    ),
    known_fault(
        r"Failed to find metric (?:regex:\^)?([\w.]+)",
        "this ncu has no metric {0} on this chip, and refuses a kernel for one name that it does not know",
        "a newer Nsight Compute, or without the metric",
    ),
    known_fault(
        r"Failed to find section (?:identifier )?[\"']?([\w.]+)",
        "this ncu has no section {0}: its section files are missing or older",
        "ncu --section-folder-restore, or another Nsight Compute",
    ),
    known_fault(
        r"==ERROR== Unable to access the following \d+ metrics?: ([\w.]+)",
        "this device does not let ncu read {0}",
        "without the metric",
    ),
    known_fault(
        r"ContextSaveFailed|Failed to save memory for replay|bad allocation|out of memory[^\n]*replay|"
        r"replay[^\n]*out of memory|Failed to (?:allocate|restore)[^\n]*(?:replay|save)",
        "ncu found no memory to save the kernel's for a replay",
        f"{REPLAY_FIX}, or ncu --replay-mode application",
    ),
    known_fault(
        r"(?:lock file|nsight-compute-lock)[^\n]*|InterprocessLock\w*",
        "ncu cannot take its lock: another user's run left the file, or one is still going on",
        "TMPDIR=$HOME/tmp   (a folder of your own), or remove /tmp/nsight-compute-lock as its owner",
    ),
    known_fault(
        r"Failed to connect|Could not connect to (?:the )?target|no process was found",
        "ncu did not get into the workload's process: another profiler is in it, or it ended at once",
        "unset CUDA_INJECTION64_PATH NVTX_INJECTION64_PATH KINETO_USE_DAEMON LD_PRELOAD",
    ),
    known_fault(
        r"File (\S+) already exists|[Uu]se '-f' for overwriting",
        "the report {0} is there already",
        "choose another name, or add --force",
    ),
    known_fault(
        r"(?:unrecognised|unrecognized|unknown) option '?([\w-]+)'?|option '([^'\n]+)' is ambiguous",
        "this ncu does not know the option {0}",
        "a newer Nsight Compute (2022.4 or later)",
    ),
    known_fault(
        r"option '([^'\n]+)' cannot be specified more than once",
        "ncu was given {0} twice",
    ),
    known_fault(
        r"ncu: command not found|sudo: ncu",
        "under sudo there is no ncu: it has a PATH of its own",
        'sudo -E env "PATH=$PATH" "LD_LIBRARY_PATH=$LD_LIBRARY_PATH" $(command -v ncu) ... $(command -v python) ...',
    ),
    known_fault(
        r"==ERROR==\s*LaunchFailed",
        "a kernel failed while ncu replayed it: it does not run alone, or uses more than ncu leaves it",
        "--depth gate (no instruction is patched there); compute-sanitizer tells whether the kernel itself is at fault",
    ),
    known_fault(
        r"Unknown ?Error(?: on device)?|Failed to prepare kernel for profiling",
        "the driver answered ncu with an error of no name: the GPU is in a bad state, or ncu too old for it",
        "nvidia-smi -q -d PAGE_RETIREMENT,ECC, a reboot, or a newer Nsight Compute",
    ),
    known_fault(
        r"LibraryNotLoaded",
        "ncu could not load a library of its own in the workload's process",
        "reinstall Nsight Compute, and unset LD_PRELOAD",
    ),
    known_fault(
        r"requires the --target-processes all option",
        "the kernels were launched by a child process, which ncu was not told to follow",
        "ncu --target-processes all",
    ),
    known_fault(
        r"No space left on device|Failed to (?:write|save)[^\n]*report",
        "ncu could not write its report",
        "df -h",
    ),
)
_PERMISSION = re.compile(
    r"ERR_NVGPUCTRPERM|does not have permission to (?:access|profile)|INSUFFICIENT_PRIVILEGES", re.IGNORECASE
)
_UNKNOWN = re.compile(r"Failed to find metric (?:regex:\^)?([\w.]+)")
_NOTHING = re.compile(r"No kernels were profiled")
_AVAILABLE = re.compile(r"Available Kernels:\s*\n((?:\s*\d+\.\s+[^\n]+\n?)+)")
_ERROR = re.compile(
    r"^==ERROR==[ \t]*(?![ \t]|The application returned|An error (?:occurred|was reported))(.+)$",
    re.MULTILINE,
)


def explain(text: str, returncode: int) -> Fault | None:
    """The fault that ncu printed as `text` before it ended with `returncode`; None where it is not known."""
    if _PERMISSION.search(text):
        return Fault(RESTRICTED, open_counters())
    if (fault := first_known(FAULTS, text)) is not None:
        unknown = _UNKNOWN.search(text)
        elsewhere = other_name(unknown[1]) if unknown is not None else None
        return fault if elsewhere is None else Fault(f"{fault.reason}; it is {elsewhere}", fault.fix)
    if (error := _ERROR.search(text)) is not None:
        return Fault(f"it says: {error[1].strip()[:300]}")
    if _NOTHING.search(text):
        return _no_kernels(text)
    if returncode in (-9, 137):
        return Fault("ncu was killed (SIGKILL), most often for want of memory", REPLAY_FIX)
    return None


def _no_kernels(text: str) -> Fault:
    """Which kernels ncu saw and was not told to count; where it lists none, none was launched."""
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
        f"no kernel was profiled: none of the chosen name was launched. ncu saw {shown}{more}",
        "choose one of these by name (--kernel NAME)",
    )
