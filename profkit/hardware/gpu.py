"""The NVIDIA devices that a workload started from here would see, and why there are none where it would see none."""

from __future__ import annotations

import contextlib
import os
import platform
import re
import threading
from collections.abc import Callable, Mapping
from ctypes import c_void_p
from pathlib import Path
from typing import TypeVar

from profkit.core.errors import Fault
from profkit.core.types import Gpu
from profkit.hardware import gpu_devices, tree
from profkit.hardware.container import container_kind
from profkit.hardware.gpu_devices import ListedGpu, chip_of, multiprocessors_of, visible_gpus
from profkit.hardware.nvml import MEMORY_CLOCK, SM_CLOCK, Nvml, NvmlError, nvml_session
from profkit.hardware.system import as_superuser

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
    kind = _CODES.get(code) if code is not None and code != NO_LIBRARY else gpu_devices.smi_fault_kind(said)
    if kind is None and code is None:
        return Fault(
            "NVIDIA's driver does not answer: a device hangs, or another process holds the driver",
            as_superuser("dmesg | grep -i -e NVRM -e Xid"),
        )
    if kind == "mismatch":
        return _explain_mismatch(root)
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
        return _explain_no_access(root)
    return _explain_absence(root, library=code != NO_LIBRARY)


def _explain_mismatch(root: Path) -> Fault:
    kernel = _kernel_module(root)
    loaded = f" (the kernel runs {kernel})" if kernel else ""
    return Fault(
        f"the driver was updated but its kernel module was not reloaded{loaded}: Driver/library version mismatch",
        "restart the machine; in a container, restart the container",
    )


def _explain_no_access(root: Path) -> Fault:
    if container_kind(root) is not None:
        return Fault(
            "this container has lost its GPU, or was never given its device files (/dev/nvidia*)",
            f"start it anew: {RESTART_CONTAINER}",
        )
    return Fault(
        "this user may not open the GPU's device files (/dev/nvidia*)",
        f"ls -l /dev/nvidia*; {as_superuser('usermod -aG video,render $USER')}, then log in again",
    )


def _explain_absence(root: Path, library: bool) -> Fault:
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
    said = tree.read_text(root, "proc/driver/nvidia/version")
    found = re.search(r"Module[^\n]*?\s(\d+\.\d+(?:\.\d+)?)\s", said or "")
    return found[1] if found else None


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


# A driver answers within 50 ms; without persistence mode it first wakes every device, one or two seconds each.
ANSWER_SECONDS = 5.0
_VGPU = (
    2  # NVML_GPU_VIRTUALIZATION_MODE_VGPU: a guest with a part of a device; passed through (1) it is whole
)

T = TypeVar("T")


def read_gpus(environ: Mapping[str, str] | None = None, root: Path = Path("/")) -> tuple[Gpu, ...]:
    """The devices that a process with this environment (else our own) may use, as CUDA numbers them.

    Empty where there is no device or no driver; never raises. `bandwidth` is memory clock x 2 (double data rate) x
    bus width / 8, which data sheets round; None for a part of a device (MIG, vGPU).
    """
    virtual = "wsl" if is_wsl(root) else None
    found = call_within(ANSWER_SECONDS, lambda: list_devices(virtual))
    if found is None:
        found = gpu_devices.smi_devices(ANSWER_SECONDS)
    return visible_gpus(found, os.environ if environ is None else environ)


def driver_fault(environ: Mapping[str, str] | None = None, root: Path = Path("/")) -> Fault | None:
    """Why no device can be used here, with the line that mends it; None where one can."""
    environ = os.environ if environ is None else environ
    code = call_within(ANSWER_SECONDS, _nvml_code)
    answer = (
        gpu_devices.query_smi(gpu_devices.OLD_FIELDS, ANSWER_SECONDS) if code in (None, NO_LIBRARY) else None
    )
    hidden = environ.get("CUDA_VISIBLE_DEVICES")
    if (code == 0 or (answer is not None and answer.ok)) and read_gpus(environ, root):
        return None
    return fault_of(code, answer.text if answer is not None else "", hidden, root)


def is_wsl(root: Path = Path("/")) -> bool:
    """Whether this is Linux inside Windows: its driver is the host's."""
    return "microsoft" in (tree.read_text(root, "proc/sys/kernel/osrelease") or "").lower()


# ------------------------------------------------------------ NVML


def _nvml_code() -> int:
    """0 where the driver answers (perhaps that there is no device), the code of its error, or NO_LIBRARY."""
    try:
        with nvml_session() as library:
            return 0 if library.handles() else library.first_error()
    except NvmlError as error:
        return error.code
    except OSError:
        return NO_LIBRARY


def list_devices(virtual: str | None) -> tuple[ListedGpu, ...]:
    """The devices in the order of the bus. Raises OSError where there is no library, NvmlError where it fails."""
    with nvml_session() as library:
        driver = library.text("nvmlSystemGetDriverVersion")
        return tuple(_device(library, handle, driver, virtual) for handle in library.handles())


def _device(library: Nvml, handle: c_void_p, driver: str | None, virtual: str | None) -> ListedGpu:
    mig = library.mig_mode(handle)
    if library.number("nvmlDeviceGetVirtualizationMode", handle) == _VGPU:
        virtual = virtual or "vgpu"
    pair = library.capability(handle)
    capability = None if pair is None else f"{pair[0]}.{pair[1]}"
    chip = chip_of(library.pci_device(handle), capability)
    clock = _hertz(library.number("nvmlDeviceGetMaxClockInfo", handle, SM_CLOCK))
    cores = library.number("nvmlDeviceGetNumGpuCores", handle)
    gpu = Gpu(
        library.text("nvmlDeviceGetName", handle) or "NVIDIA device",
        capability=capability,
        chip=chip,
        multiprocessors=multiprocessors_of(cores, capability),
        memory_bytes=library.memory(handle),
        bandwidth=None if virtual == "vgpu" else _bandwidth(library, handle),
        driver=driver,
        max_clock=clock,
        mig=mig,
        virtual=virtual,
        power_limit=_watts(library.number("nvmlDeviceGetEnforcedPowerLimit", handle)),
        clock_lock=_lock(library, handle, clock),
    )
    instances = tuple(
        ListedGpu(
            Gpu(
                library.text("nvmlDeviceGetName", instance) or f"{gpu.name} MIG",
                capability=capability,
                chip=chip,
                multiprocessors=library.mig_multiprocessors(instance),
                memory_bytes=library.memory(instance),
                driver=driver,
                max_clock=clock,
                mig=True,
                virtual=virtual,
            ),
            library.text("nvmlDeviceGetUUID", instance) or "",
        )
        for instance in (library.mig_devices(handle) if mig else ())
    )
    return ListedGpu(
        gpu, library.text("nvmlDeviceGetUUID", handle) or "", instances, (clock or 0.0) * (cores or 1)
    )


def _bandwidth(library: Nvml, handle: c_void_p) -> float | None:
    clock = _hertz(library.number("nvmlDeviceGetMaxClockInfo", handle, MEMORY_CLOCK))
    width = library.number("nvmlDeviceGetMemoryBusWidth", handle)
    return 2 * clock * width / 8 if clock and width else None


def _lock(library: Nvml, handle: c_void_p, most: float | None) -> float | None:
    """The application clock of the SMs, where it is set below the most that they can do."""
    asked = _hertz(library.number("nvmlDeviceGetApplicationsClock", handle, SM_CLOCK))
    return asked if asked and most and asked < most else None


def _watts(milliwatts: int | None) -> float | None:
    return milliwatts / 1000 if milliwatts else None


def _hertz(mhz: int | None) -> float | None:
    return mhz * 1e6 if mhz else None


def call_within(seconds: float, ask: Callable[[], T]) -> T | None:
    """The answer, or None where there is none in time: a device in trouble can hold the driver for ever."""
    found: list[T] = []

    def run() -> None:
        with contextlib.suppress(Exception):  # whatever a driver in trouble answers, it is no device
            found.append(ask())

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    return found[0] if found else None
