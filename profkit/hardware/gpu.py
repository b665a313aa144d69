"""The NVIDIA devices that a workload started from here would see, and why there are none where it would see none.

Asks the driver's management library, which neither initialises CUDA nor makes a context. Nothing is mended here:
a driver is reloaded, a container restarted, by the one who owns it.
"""

from __future__ import annotations

import contextlib
import os
import platform
import re
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

from profkit.core.errors import Fault
from profkit.core.types import Gpu
from profkit.hardware import tree
from profkit.hardware.container import container_kind
from profkit.hardware.gpu_devices import ListedGpu, list_devices, visible_devices, visible_gpus
from profkit.hardware.nvml import NvmlError, nvml_session
from profkit.hardware.system import superuser_command

# A driver answers within 50 ms; without persistence mode it first wakes every device, one or two seconds each.
ANSWER_SECONDS = 5.0
NVIDIA = "0x10de"  # PCI vendor
NO_LIBRARY = -1  # beside NVML's own codes (nvmlReturn_t)
_NO_ACCESS, _LOST, _RESET, _BLOCKED, _MISMATCH = (4, 999), 15, 16, 17, 18
RESTART_CONTAINER = "docker run --gpus all ..."

T = TypeVar("T")


def read_gpus(environ: Mapping[str, str] | None = None, root: Path = Path("/")) -> tuple[Gpu, ...]:
    """The devices that a process with this environment (else our own) may use, as CUDA numbers them.

    Empty where there is no device or no driver; never raises. `bandwidth` is memory clock x 2 (double data rate) x
    bus width / 8, which data sheets round; None for a part of a device (MIG, vGPU).
    """
    return visible_gpus(_ask_devices(root), os.environ if environ is None else environ)


def read_gpu_uuids(environ: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """The UUIDs of the same devices, in the same order; of a MIG instance its own. Never raises."""
    devices = visible_devices(_ask_devices(Path("/")), os.environ if environ is None else environ)
    return tuple(device.uuid for device in devices)


def _ask_devices(root: Path) -> tuple[ListedGpu, ...]:
    # Linux inside Windows has the host's driver
    wsl = "microsoft" in (tree.read_text(root, "proc/sys/kernel/osrelease") or "").lower()
    return call_with_timeout(ANSWER_SECONDS, lambda: list_devices("wsl" if wsl else None)) or ()


def driver_fault(environ: Mapping[str, str] | None = None, root: Path = Path("/")) -> Fault | None:
    """Why no device can be used here, with the line that mends it; None where one can."""
    environ = os.environ if environ is None else environ
    code = call_with_timeout(ANSWER_SECONDS, _ask_nvml_code)
    if code == 0 and read_gpus(environ, root):
        return None
    hidden = environ.get("CUDA_VISIBLE_DEVICES")
    if code == 0 and hidden is not None:
        return Fault(
            f"CUDA_VISIBLE_DEVICES={hidden or '(empty)'} leaves none of this machine's devices visible",
            "unset CUDA_VISIBLE_DEVICES",
        )
    return _explain_code(code, root)


def call_with_timeout(seconds: float, ask: Callable[[], T]) -> T | None:
    """The answer, or None where there is none in time: a device in trouble can hold the driver for ever."""
    answers: list[T] = []

    def run() -> None:
        with contextlib.suppress(Exception):  # whatever a driver in trouble answers, it is no device
            answers.append(ask())

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    return answers[0] if answers else None


def _ask_nvml_code() -> int:
    """0 where the driver answers (perhaps that there is no device), the code of its error, or NO_LIBRARY."""
    try:
        with nvml_session() as library:
            return 0 if library.handles() else library.first_error()
    except NvmlError as error:
        return error.code
    except OSError:
        return NO_LIBRARY


# ------------------------------------------------------------ faults


def _explain_code(code: int | None, root: Path) -> Fault:
    """The fault behind NVML's answer (None: none in time).

    The tree below `root` tells a missing driver from a container without devices.
    """
    log = superuser_command("dmesg | grep -i -e NVRM -e Xid")
    if code is None:
        return Fault(
            "NVIDIA's driver does not answer: a device hangs, or another process holds the driver", log
        )
    if code == _MISMATCH:
        kernel = _read_module_version(root)
        loaded = f" (the kernel runs {kernel})" if kernel else ""
        return Fault(
            f"the driver was updated but its kernel module was not reloaded{loaded}: Driver/library version mismatch",
            "restart the machine; in a container, restart the container",
        )
    if code == _LOST:
        return Fault(
            "a GPU is lost: it does not answer on the bus any more (overheated, no power, or a hardware fault)",
            f"{log}; then restart the machine",
        )
    if code == _RESET:
        return Fault("a GPU needs a reset before it works again", superuser_command("nvidia-smi --gpu-reset"))
    if code == _BLOCKED:
        return Fault(
            "Windows does not let this WSL use the GPU", "update Windows' NVIDIA driver, then: wsl --shutdown"
        )
    if code in _NO_ACCESS:
        return _explain_no_access(root)
    return _explain_absence(root, library=code != NO_LIBRARY)


def _explain_no_access(root: Path) -> Fault:
    if container_kind(root) is not None:
        return Fault(
            "this container has lost its GPU, or was never given its device files (/dev/nvidia*)",
            f"start it anew: {RESTART_CONTAINER}",
        )
    return Fault(
        "this user may not open the GPU's device files (/dev/nvidia*)",
        f"ls -l /dev/nvidia*; {superuser_command('usermod -aG video,render $USER')}, then log in again",
    )


def _explain_absence(root: Path, library: bool) -> Fault:
    """No device: because there is none, because nobody gave it to this container, or for want of a driver."""
    if platform.system() == "Darwin" and root == Path("/"):
        return Fault("macOS has no NVIDIA driver", "--backend cpu")
    module, card = _read_module_version(root), _has_card(root)
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
            superuser_command("nvidia-modprobe -c 0 -u"),
        )
    if card:
        return Fault(
            "there is an NVIDIA GPU, but its driver is not loaded",
            superuser_command("modprobe nvidia") + " (not installed: https://www.nvidia.com/drivers)",
        )
    return Fault("this machine has no NVIDIA GPU that this process can see", "--backend cpu")


def _read_module_version(root: Path) -> str | None:
    """The version of the driver that the kernel has loaded: `580.159.04`."""
    content = tree.read_text(root, "proc/driver/nvidia/version")
    version = re.search(r"Module[^\n]*?\s(\d+\.\d+(?:\.\d+)?)\s", content or "")
    return version[1] if version else None


def _has_card(root: Path) -> bool:
    """Whether a display or compute device (PCI class 03) of NVIDIA is on the bus."""
    try:
        folders = list((root / "sys/bus/pci/devices").iterdir())
    except OSError:
        return False
    return any(
        tree.read_text(root, str((folder / "vendor").relative_to(root))) == NVIDIA
        and (tree.read_text(root, str((folder / "class").relative_to(root))) or "").startswith("0x03")
        for folder in folders
    )
