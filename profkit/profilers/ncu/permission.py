"""Whether this user may read the GPU's performance counters, as the driver's files tell, and what would open them.

Since driver 418 the counters are for administrators where `RmProfilingAdminOnly` is 1 (NVIDIA, ERR_NVGPUCTRPERM).
Nothing here runs anything: a line that needs root is printed for the user.
"""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

from profkit.core.errors import Fault
from profkit.hardware import tree
from profkit.hardware.container import container_kind

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
