"""The NVIDIA devices that a workload started from here would see, and why there are none where it would see none.

Asks the driver's management library, else `nvidia-smi`; neither initialises CUDA nor makes a context.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Mapping
from ctypes import c_void_p
from pathlib import Path
from typing import TypeVar

from profkit.core.errors import Fault
from profkit.core.types import Gpu
from profkit.hardware import nvidia_smi, tree
from profkit.hardware.gpu_chips import chip_of, multiprocessors_of
from profkit.hardware.gpu_fault import NO_LIBRARY, fault_of
from profkit.hardware.gpu_visible import Device, visible_gpus
from profkit.hardware.nvml import MEMORY_CLOCK, SM_CLOCK, Nvml, NvmlError, nvml

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
    found = within(ANSWER_SECONDS, lambda: listed(virtual))
    if found is None:
        found = nvidia_smi.devices(ANSWER_SECONDS)
    return visible_gpus(found, os.environ if environ is None else environ)


def driver_fault(environ: Mapping[str, str] | None = None, root: Path = Path("/")) -> Fault | None:
    """Why no device can be used here, with the line that mends it; None where one can."""
    environ = os.environ if environ is None else environ
    code = within(ANSWER_SECONDS, _code)
    answer = nvidia_smi.ask(nvidia_smi.OLD_FIELDS, ANSWER_SECONDS) if code in (None, NO_LIBRARY) else None
    hidden = environ.get("CUDA_VISIBLE_DEVICES")
    if (code == 0 or (answer is not None and answer.ok)) and read_gpus(environ, root):
        return None
    return fault_of(code, answer.text if answer is not None else "", hidden, root)


def is_wsl(root: Path = Path("/")) -> bool:
    """Whether this is Linux inside Windows: its driver is the host's."""
    return "microsoft" in (tree.text(root, "proc/sys/kernel/osrelease") or "").lower()


# ------------------------------------------------------------ NVML


def _code() -> int:
    """0 where the driver answers (perhaps that there is no device), the code of its error, or NO_LIBRARY."""
    try:
        with nvml() as library:
            return 0 if library.handles() else library.first_error()
    except NvmlError as error:
        return error.code
    except OSError:
        return NO_LIBRARY


def listed(virtual: str | None) -> tuple[Device, ...]:
    """The devices in the order of the bus. Raises OSError where there is no library, NvmlError where it fails."""
    with nvml() as library:
        driver = library.text("nvmlSystemGetDriverVersion")
        return tuple(_device(library, handle, driver, virtual) for handle in library.handles())


def _device(library: Nvml, handle: c_void_p, driver: str | None, virtual: str | None) -> Device:
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
        Device(
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
    return Device(
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


def within(seconds: float, ask: Callable[[], T]) -> T | None:
    """The answer, or None where there is none in time: a device in trouble can hold the driver for ever."""
    found: list[T] = []

    def run() -> None:
        with contextlib.suppress(Exception):  # whatever a driver in trouble answers, it is no device
            found.append(ask())

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    return found[0] if found else None
