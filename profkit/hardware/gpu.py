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
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from ctypes import c_void_p
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from profkit.core.errors import Fault
from profkit.core.types import Gpu
from profkit.hardware import system
from profkit.hardware.machine import container_kind
from profkit.hardware.nvml import MEMORY_CLOCK, SM_CLOCK, Nvml, NvmlError, nvml_session
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
    wsl = "microsoft" in (system.read_text(root, "proc/sys/kernel/osrelease") or "").lower()
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
    content = system.read_text(root, "proc/driver/nvidia/version")
    version = re.search(r"Module[^\n]*?\s(\d+\.\d+(?:\.\d+)?)\s", content or "")
    return version[1] if version else None


def _has_card(root: Path) -> bool:
    """Whether a display or compute device (PCI class 03) of NVIDIA is on the bus."""
    try:
        folders = list((root / "sys/bus/pci/devices").iterdir())
    except OSError:
        return False
    return any(
        system.read_text(root, str((folder / "vendor").relative_to(root))) == NVIDIA
        and (system.read_text(root, str((folder / "class").relative_to(root))) or "").startswith("0x03")
        for folder in folders
    )


# ------------------------------------------------------------ which devices a process sees

# NVML_GPU_VIRTUALIZATION_MODE_VGPU: a guest with a part of a device; passed through (1) it is whole.
_VGPU = 2


@dataclass(frozen=True)
class ListedGpu:
    """One device as the driver lists it, with the instances that it is cut into."""

    gpu: Gpu
    uuid: str = ""
    instances: tuple[ListedGpu, ...] = ()  # MIG
    speed: float = 0.0  # for CUDA's order: fastest first


def visible_gpus(devices: Sequence[ListedGpu], environ: Mapping[str, str]) -> tuple[Gpu, ...]:
    """The devices that a process with this environment sees, numbered as it numbers them."""
    return tuple(
        replace(device.gpu, index=index) for index, device in enumerate(visible_devices(devices, environ))
    )


def visible_devices(devices: Sequence[ListedGpu], environ: Mapping[str, str]) -> list[ListedGpu]:
    """The same as the driver lists them, in the order of their numbers."""
    listed = _sort_in_cuda_order(devices, environ)
    selection = environ.get("CUDA_VISIBLE_DEVICES")
    return listed if selection is None else _select_devices(selection, listed, devices)


def _sort_in_cuda_order(devices: Sequence[ListedGpu], environ: Mapping[str, str]) -> list[ListedGpu]:
    """What CUDA counts from 0 on where nothing is asked for: whole devices, or the first MIG instance alone."""
    whole = [device for device in devices if not device.gpu.mig]
    if not whole:
        return [instance for device in devices for instance in device.instances][:1]
    if environ.get("CUDA_DEVICE_ORDER") == "PCI_BUS_ID":
        return whole
    return sorted(whole, key=lambda device: -device.speed)  # stable: equal ones stay in the order of the bus


def _select_devices(selection: str, listed: list[ListedGpu], devices: Sequence[ListedGpu]) -> list[ListedGpu]:
    chosen: list[ListedGpu] = []
    for word in selection.split(","):
        device = _find_device(word.strip(), listed, devices)
        if device is None:
            break
        if device in chosen:
            return []  # CUDA sees none where one is named twice
        chosen.append(device)
    return chosen


def _find_device(word: str, listed: list[ListedGpu], devices: Sequence[ListedGpu]) -> ListedGpu | None:
    if word.isdecimal():
        return listed[int(word)] if int(word) < len(listed) else None
    everything = [*devices, *(instance for device in devices for instance in device.instances)]
    fitting = [device for device in everything if word and device.uuid.lower().startswith(word.lower())]
    if len(fitting) != 1 or not word.upper().startswith(("GPU-", "MIG-")):
        return None
    match = fitting[0]
    return next(iter(match.instances), None) if match.gpu.mig and match.instances else match


# ------------------------------------------------------------ the driver's list


def list_devices(virtual: str | None) -> tuple[ListedGpu, ...]:
    """The devices in the order of the bus. Raises OSError where there is no library, NvmlError where it fails."""
    with nvml_session() as library:
        driver = library.text("nvmlSystemGetDriverVersion")
        return tuple(_read_device(library, handle, driver, virtual) for handle in library.handles())


def _read_device(library: Nvml, handle: c_void_p, driver: str | None, virtual: str | None) -> ListedGpu:
    mig = library.mig_mode(handle)
    if library.number("nvmlDeviceGetVirtualizationMode", handle) == _VGPU:
        virtual = virtual or "vgpu"
    pair = library.capability(handle)
    capability = None if pair is None else f"{pair[0]}.{pair[1]}"
    chip = find_chip_name(library.pci_device(handle), capability)
    clock = _to_hertz(library.number("nvmlDeviceGetMaxClockInfo", handle, SM_CLOCK))
    cores = library.number("nvmlDeviceGetNumGpuCores", handle)
    power = library.number("nvmlDeviceGetEnforcedPowerLimit", handle)  # mW
    gpu = Gpu(
        library.text("nvmlDeviceGetName", handle) or "NVIDIA device",
        capability=capability,
        chip=chip,
        multiprocessors=count_multiprocessors(cores, capability),
        memory_bytes=library.memory(handle),
        bandwidth=None if virtual == "vgpu" else _memory_bandwidth(library, handle),
        driver=driver,
        mig=mig,
        virtual=virtual,
        power_limit=power / 1000 if power else None,
        clock_lock=_clock_lock(library, handle, clock),
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


def _memory_bandwidth(library: Nvml, handle: c_void_p) -> float | None:
    clock = _to_hertz(library.number("nvmlDeviceGetMaxClockInfo", handle, MEMORY_CLOCK))
    width = library.number("nvmlDeviceGetMemoryBusWidth", handle)
    return 2 * clock * width / 8 if clock and width else None


def _clock_lock(library: Nvml, handle: c_void_p, most: float | None) -> float | None:
    """The application clock of the SMs, where it is set below the most that they can do."""
    application_clock = _to_hertz(library.number("nvmlDeviceGetApplicationsClock", handle, SM_CLOCK))
    return application_clock if application_clock and most and application_clock < most else None


def _to_hertz(mhz: int | None) -> float | None:
    return mhz * 1e6 if mhz else None


# ------------------------------------------------------------ chips

# PCI device numbers are given to chips in blocks, read off the PCI ID database (pci-ids.ucw.cz, 2026-08); the names are
# those by which Nsight Compute knows the chips (`ncu --list-chips`).
_CHIP_BLOCKS: tuple[tuple[int, int, str], ...] = (  # first and last number
    (0x15F0, 0x15FF, "GP100"),
    (0x1D80, 0x1DFF, "GV100"),
    (0x1E00, 0x1E7F, "TU102"),
    (0x1E80, 0x1EFF, "TU104"),
    (0x1F00, 0x1F7F, "TU106"),
    (0x1F80, 0x1FFF, "TU117"),
    (0x2080, 0x20FF, "GA100"),
    (0x2180, 0x21FF, "TU116"),
    (0x2200, 0x227F, "GA102"),
    (0x2300, 0x23FF, "GH100"),
    (0x2400, 0x247F, "GA103"),
    (0x2480, 0x24FF, "GA104"),
    (0x2500, 0x257F, "GA106"),
    (0x2580, 0x25FF, "GA107"),
    (0x2680, 0x26FF, "AD102"),
    (0x2700, 0x277F, "AD103"),
    (0x2780, 0x27FF, "AD104"),
    (0x2800, 0x287F, "AD106"),
    (0x2880, 0x28FF, "AD107"),
    (0x2900, 0x297F, "GB100"),
    (0x2980, 0x29FF, "GB102"),
    (0x2B00, 0x2B7F, "GB10B"),
    (0x2B80, 0x2BFF, "GB202"),
    (0x2C00, 0x2C7F, "GB203"),
    (0x2D00, 0x2D7F, "GB206"),
    (0x2D80, 0x2DFF, "GB207"),
    (0x2E00, 0x2E7F, "GB20B"),
    (0x2F00, 0x2F7F, "GB205"),
    (0x3180, 0x31FF, "GB110"),
    (0x3200, 0x327F, "GB112"),
)
# Where a capability has one chip only; 7.5, 8.6, 8.9 and 12.0 have several.
_CHIP_BY_CAPABILITY = {
    "6.0": "GP100",
    "7.0": "GV100",
    "8.0": "GA100",
    "8.7": "GA10B",
    "9.0": "GH100",
    "10.1": "GB10B",
    "11.0": "GB10B",
    "12.1": "GB20B",
}
# FP32 units of an SM by capability (CUDA C++ programming guide, "Arithmetic instructions"); from 9.0 on always 128.
_CORES_PER_SM = {"6.0": 64, "6.1": 128, "7.0": 64, "7.5": 64, "8.0": 64, "8.6": 128, "8.7": 128, "8.9": 128}


def find_chip_name(pci_device: int | None, capability: str | None) -> str | None:
    """`GH100` for PCI device 0x2335, else by the capability where that has one chip only; None if neither tells."""
    if pci_device is not None:
        place = bisect_right(_CHIP_BLOCKS, (pci_device, 0x10000, "")) - 1
        if place >= 0 and _CHIP_BLOCKS[place][0] <= pci_device <= _CHIP_BLOCKS[place][1]:
            return _CHIP_BLOCKS[place][2]
    return _CHIP_BY_CAPABILITY.get(capability or "")


def count_multiprocessors(cores: int | None, capability: str | None) -> int | None:
    """SMs of a device with so many CUDA cores; None where that does not come out even."""
    if cores is None or capability is None or not capability.partition(".")[0].isdecimal():
        return None
    each = _CORES_PER_SM.get(capability) or (128 if int(capability.partition(".")[0]) >= 9 else None)
    return cores // each if each and cores and cores % each == 0 else None
