"""The NVIDIA devices that a workload started from here would see, and the reason where it would see none.

This asks the driver's management library (NVML), which neither initialises CUDA nor creates a context.
Nothing is repaired here: reloading a driver or restarting a container is for their owner to do.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from ctypes import c_void_p
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from profkit.core.errors import Fault
from profkit.core.types import Gpu
from profkit.hardware import system
from profkit.hardware.machine import is_container
from profkit.hardware.nvml import MEMORY_CLOCK, SM_CLOCK, Nvml, NvmlError, nvml_session
from profkit.hardware.system import superuser_command

# A driver answers within 50 ms; without persistence mode it first wakes every device, one or two seconds each.
ANSWER_SECONDS = 5.0
NVIDIA = "0x10de"  # PCI vendor
NO_LIBRARY = -1  # beside NVML's own codes (nvmlReturn_t)
_NO_ACCESS, _LOST, _RESET, _MISMATCH = (4, 999), 15, 16, 18
RESTART_CONTAINER = "docker run --gpus all -e NVIDIA_DRIVER_CAPABILITIES=compute,utility ..."

T = TypeVar("T")


def read_gpus(environ: Mapping[str, str] | None = None, root: Path = Path("/")) -> tuple[Gpu, ...]:
    """Return the devices that a process with this environment (default: our own) may use, as CUDA numbers them.

    Empty where there is no device or no driver; never raises. `bandwidth` is memory clock x 2 (double data rate)
    x bus width / 8, which data sheets round; None for a part of a device (MIG, vGPU).
    """
    return tuple(replace(device.gpu, index=index) for index, device in enumerate(_ask_devices(environ, root)))


def read_gpu_uuids(environ: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """Return the UUIDs of the devices of `read_gpus`, in the same order. Never raises.

    A MIG instance has a UUID of its own.
    """
    return tuple(device.uuid for device in _ask_devices(environ, Path("/")))


def _ask_devices(environ: Mapping[str, str] | None, root: Path) -> list[ListedGpu]:
    """Ask the driver for its devices and return those visible in this environment; none where it does not answer."""
    # Linux inside Windows has the host's driver
    wsl = "microsoft" in (system.read_text(root, "proc/sys/kernel/osrelease") or "").lower()
    devices = call_with_timeout(ANSWER_SECONDS, lambda: list_devices("wsl" if wsl else None)) or ()
    return visible_devices(devices, os.environ if environ is None else environ)


def driver_fault(environ: Mapping[str, str] | None = None, root: Path = Path("/")) -> Fault | None:
    """Return why no device can be used here, with the line that fixes it; None where a device can be used."""
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
    """Return what `ask` returns, or None if it raises or takes longer than `seconds`.

    It is called in a separate thread, since a device in trouble can block a call into the driver for ever.
    """
    answers: list[T] = []

    def run() -> None:
        with contextlib.suppress(Exception):  # whatever a driver in trouble answers, it is no device
            answers.append(ask())

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    return answers[0] if answers else None


def _ask_nvml_code() -> int:
    """Return 0 where the driver answers (perhaps that there is no device), else its error code or NO_LIBRARY."""
    try:
        with nvml_session() as library:
            return 0 if library.handles() else library.first_error()
    except NvmlError as error:
        return error.code
    except OSError:
        return NO_LIBRARY


# ------------------------------------------------------------ faults


def _explain_code(code: int | None, root: Path) -> Fault:
    """Return the fault behind NVML's error code (None: no answer in time).

    Files below `root` tell a missing driver from a container that was started without devices.
    """
    if code == _MISMATCH:
        return Fault(
            "the driver was updated but its kernel module was not reloaded: Driver/library version mismatch",
            "restart the machine; in a container, restart the container",
        )
    if code in (None, _LOST, _RESET):
        log, reset = map(superuser_command, ("dmesg | grep -i -e NVRM -e Xid", "nvidia-smi --gpu-reset"))
        return Fault(
            "a GPU or its driver does not answer: it hangs, is held by a process, has lost its power, or needs a reset",
            f"{log}; then {reset}, or restart the machine",
        )
    loaded, card = (root / "proc/driver/nvidia/version").exists(), _has_card(root)
    if is_container(root) and (card or loaded or code in _NO_ACCESS):
        return Fault(
            "this container has no access to the GPU: its device files (/dev/nvidia*) or its driver's libraries",
            f"start it anew: {RESTART_CONTAINER} (it needs the nvidia-container-toolkit)",
        )
    if code in _NO_ACCESS:
        return Fault(
            "this user may not open the GPU's device files (/dev/nvidia*)",
            f"ls -l /dev/nvidia*; {superuser_command('usermod -aG video,render $USER')}, then log in again",
        )
    if loaded and not any((root / "dev").glob("nvidia[0-9]*")):
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


def _has_card(root: Path) -> bool:
    """Return whether a display or compute device (PCI class 03) of NVIDIA is on the bus."""
    return any(
        system.read_text(folder, "vendor") == NVIDIA
        and (system.read_text(folder, "class") or "").startswith("0x03")
        for folder in (root / "sys/bus/pci/devices").glob("*")
    )


# ------------------------------------------------------------ which devices a process sees

# NVML_GPU_VIRTUALIZATION_MODE_VGPU: a guest with a part of a device; passed through (1) it is whole.
_VGPU = 2


@dataclass(frozen=True)
class ListedGpu:
    """A device as the driver lists it, with the MIG instances it is divided into."""

    gpu: Gpu
    uuid: str = ""
    instances: tuple[ListedGpu, ...] = ()  # MIG
    speed: float = 0.0  # for CUDA's order: fastest first


def visible_devices(devices: Sequence[ListedGpu], environ: Mapping[str, str]) -> list[ListedGpu]:
    """Return the devices that a process with this environment sees, in the order in which it numbers them."""
    listed = _sort_in_cuda_order(devices, environ)
    selection = environ.get("CUDA_VISIBLE_DEVICES")
    return listed if selection is None else _select_devices(selection, listed, devices)


def _sort_in_cuda_order(devices: Sequence[ListedGpu], environ: Mapping[str, str]) -> list[ListedGpu]:
    """Return what CUDA numbers from 0 on by default: the whole devices, or the first MIG instance alone."""
    whole = [device for device in devices if not device.gpu.mig]
    if not whole:
        return [instance for device in devices for instance in device.instances][:1]
    if environ.get("CUDA_DEVICE_ORDER") == "PCI_BUS_ID":
        return whole
    return sorted(whole, key=lambda device: -device.speed)  # stable: equal ones stay in the order of the bus


def _select_devices(selection: str, listed: list[ListedGpu], devices: Sequence[ListedGpu]) -> list[ListedGpu]:
    """Return the devices that a CUDA_VISIBLE_DEVICES value names, up to the first name that fits none."""
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
    """Return the device that a number or the beginning of a UUID names; None where none or several fit."""
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
    """List the devices in bus order. Raises OSError where there is no library, NvmlError where it fails."""
    with nvml_session() as library:
        driver = library.text("nvmlSystemGetDriverVersion")
        return tuple(_read_device(library, handle, driver, virtual) for handle in library.handles())


def _read_device(library: Nvml, handle: c_void_p, driver: str | None, virtual: str | None) -> ListedGpu:
    mig = library.mig_mode(handle)
    if library.number("nvmlDeviceGetVirtualizationMode", handle) == _VGPU:
        virtual = virtual or "vgpu"
    pair = library.capability(handle)
    capability = None if pair is None else f"{pair[0]}.{pair[1]}"
    clock = _to_hertz(library.number("nvmlDeviceGetMaxClockInfo", handle, SM_CLOCK))
    cores = library.number("nvmlDeviceGetNumGpuCores", handle)
    power = library.number("nvmlDeviceGetEnforcedPowerLimit", handle)  # mW
    gpu = Gpu(
        library.text("nvmlDeviceGetName", handle) or "NVIDIA device",
        capability=capability,
        multiprocessors=count_multiprocessors(cores, capability),
        memory_bytes=library.memory(handle),
        bandwidth=None if virtual == "vgpu" else _memory_bandwidth(library, handle),
        driver=driver,
        mig=mig,
        virtual=virtual,
        power_limit=power / 1000 if power else None,
        clock_lock=_clock_lock(library, handle, clock),
        highest_clock=clock,
    )
    instances = tuple(
        ListedGpu(
            replace(
                gpu,
                name=library.text("nvmlDeviceGetName", instance) or f"{gpu.name} MIG",
                multiprocessors=None,
                memory_bytes=library.memory(instance),
                bandwidth=None,
            ),
            library.text("nvmlDeviceGetUUID", instance) or "",
        )
        for instance in (library.mig_devices(handle) if mig else ())
    )
    return ListedGpu(
        gpu, library.text("nvmlDeviceGetUUID", handle) or "", instances, (clock or 0.0) * (cores or 1)
    )


def _memory_bandwidth(library: Nvml, handle: c_void_p) -> float | None:
    """Return the peak memory bandwidth in bytes/s: clock x 2 (double data rate) x bus width in bits / 8."""
    clock = _to_hertz(library.number("nvmlDeviceGetMaxClockInfo", handle, MEMORY_CLOCK))
    width = library.number("nvmlDeviceGetMemoryBusWidth", handle)
    return 2 * clock * width / 8 if clock and width else None


def _clock_lock(library: Nvml, handle: c_void_p, most: float | None) -> float | None:
    """Return the SMs' application clock in Hz if it is set below `most`, their highest clock; else None."""
    application_clock = _to_hertz(library.number("nvmlDeviceGetApplicationsClock", handle, SM_CLOCK))
    return application_clock if application_clock and most and application_clock < most else None


def _to_hertz(mhz: int | None) -> float | None:
    return mhz * 1e6 if mhz else None


# FP32 units of an SM by capability (CUDA C++ programming guide, "Arithmetic instructions"); from 9.0 on always 128.
_CORES_PER_SM = {"6.0": 64, "6.1": 128, "7.0": 64, "7.5": 64, "8.0": 64, "8.6": 128, "8.7": 128, "8.9": 128}


def count_multiprocessors(cores: int | None, capability: str | None) -> int | None:
    """Return the number of SMs of a device with `cores` CUDA cores; None where the division leaves a rest."""
    if cores is None or capability is None or not capability.partition(".")[0].isdecimal():
        return None
    each = _CORES_PER_SM.get(capability) or (128 if int(capability.partition(".")[0]) >= 9 else None)
    return cores // each if each and cores and cores % each == 0 else None
