"""Why NVIDIA's driver does not answer, and the line that mends it.

Nothing is mended here: a driver is reloaded, a container restarted, by the one who owns it.
"""

from __future__ import annotations

import platform
import re
from pathlib import Path

from profkit.core.errors import Fault
from profkit.hardware import nvidia_smi, tree
from profkit.hardware.container import container_kind
from profkit.hardware.superuser import as_superuser

NVIDIA = "0x10de"  # PCI vendor
NO_LIBRARY = -1  # beside NVML's own codes
# nvmlReturn_t, and what it means here.
_CODES = {
    0: "no-device",
    4: "no-access",
    6: "no-device",
    9: "not-loaded",
    15: "lost",
    16: "reset",
    18: "mismatch",
    28: "no-device",
    999: "no-access",
}
RESTART_CONTAINER = "docker run --gpus all ..."


def fault_of(code: int | None, said: str, hidden: str | None, root: Path = Path("/")) -> Fault:
    """The fault behind NVML's answer (None: none in time), or behind what nvidia-smi `said`.

    `hidden` is CUDA_VISIBLE_DEVICES. The tree below `root` tells a missing driver from a container without devices.
    """
    if code == 0 and hidden is not None:
        return Fault(
            f"CUDA_VISIBLE_DEVICES={hidden or '(empty)'} leaves none of this machine's devices visible",
            "unset CUDA_VISIBLE_DEVICES",
        )
    kind = _CODES.get(code) if code is not None and code != NO_LIBRARY else nvidia_smi.meaning(said)
    if kind is None and code is None:
        return Fault(
            "NVIDIA's driver does not answer: a device hangs, or another process holds the driver",
            as_superuser("dmesg | grep -i -e NVRM -e Xid"),
        )
    if kind == "mismatch":
        return _mismatch(root)
    if kind == "lost":
        return Fault(
            "a GPU is lost: it does not answer on the bus any more (overheated, no power, or a hardware fault)",
            f"{as_superuser('dmesg | grep -i -e NVRM -e Xid')}; then restart the machine",
        )
    if kind == "reset":
        return Fault("a GPU needs a reset before it works again", as_superuser("nvidia-smi --gpu-reset"))
    if kind == "wsl":
        return Fault(
            "Windows does not let this WSL use the GPU", "update Windows' NVIDIA driver, then: wsl --shutdown"
        )
    if kind == "no-access":
        return _no_access(root)
    return _absent(root, library=code != NO_LIBRARY)


def _mismatch(root: Path) -> Fault:
    kernel = _kernel_module(root)
    loaded = f" (the kernel runs {kernel})" if kernel else ""
    return Fault(
        f"the driver was updated but its kernel module was not reloaded{loaded}: Driver/library version mismatch",
        "restart the machine; in a container, restart the container",
    )


def _no_access(root: Path) -> Fault:
    if container_kind(root) is not None:
        return Fault(
            "this container has lost its GPU, or was never given its device files (/dev/nvidia*)",
            f"start it anew: {RESTART_CONTAINER}",
        )
    return Fault(
        "this user may not open the GPU's device files (/dev/nvidia*)",
        f"ls -l /dev/nvidia*; {as_superuser('usermod -aG video,render $USER')}, then log in again",
    )


def _absent(root: Path, library: bool) -> Fault:
    """No device: because there is none, because nobody gave it to this container, or for want of a driver."""
    if platform.system() == "Darwin" and root == Path("/"):
        return Fault("macOS has no NVIDIA driver", "--backend cpu")
    module, card = _kernel_module(root), _has_card(root)
    if module is not None and not library:
        return Fault(
            "the kernel has NVIDIA's driver, but its libraries are not here: this container was started without them",
            f"{RESTART_CONTAINER} (NVIDIA_DRIVER_CAPABILITIES=compute,utility; it needs the nvidia-container-toolkit)",
        )
    if container_kind(root) is not None and (card or module is not None):
        return Fault("this container was started without the machine's GPU", RESTART_CONTAINER)
    if module is not None and not any((root / "dev").glob("nvidia[0-9]*")):
        return Fault(
            "NVIDIA's driver is loaded, but there are no device files (/dev/nvidia0)",
            as_superuser("nvidia-modprobe -c 0 -u"),
        )
    if card:
        return Fault(
            "there is an NVIDIA GPU, but its driver is not loaded",
            as_superuser("modprobe nvidia") + " (not installed: https://www.nvidia.com/drivers)",
        )
    return Fault("this machine has no NVIDIA GPU that this process can see", "--backend cpu")


def _kernel_module(root: Path) -> str | None:
    """The version of the driver that the kernel has loaded: `580.159.04`."""
    said = tree.text(root, "proc/driver/nvidia/version")
    found = re.search(r"Module[^\n]*?\s(\d+\.\d+(?:\.\d+)?)\s", said or "")
    return found[1] if found else None


def _has_card(root: Path) -> bool:
    """Whether a display or compute device (PCI class 03) of NVIDIA is on the bus."""
    try:
        folders = list((root / "sys/bus/pci/devices").iterdir())
    except OSError:
        return False
    return any(
        tree.text(root, str((folder / "vendor").relative_to(root))) == NVIDIA
        and (tree.text(root, str((folder / "class").relative_to(root))) or "").startswith("0x03")
        for folder in folders
    )
