"""Devices as nvidia-smi lists them, their chips, and which of them a CUDA process may use."""

from __future__ import annotations

import csv
import shutil
import subprocess
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from profkit.core.types import Gpu


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
        _with_index(device.gpu, index) for index, device in enumerate(visible_devices(devices, environ))
    )


def visible_devices(devices: Sequence[ListedGpu], environ: Mapping[str, str]) -> list[ListedGpu]:
    """The same as the driver lists them, in the order of their numbers."""
    listed = _in_cuda_order(devices, environ)
    asked = environ.get("CUDA_VISIBLE_DEVICES")
    return listed if asked is None else _asked_devices(asked, listed, devices)


def _with_index(gpu: Gpu, index: int) -> Gpu:
    from dataclasses import replace

    return replace(gpu, index=index)


def _in_cuda_order(devices: Sequence[ListedGpu], environ: Mapping[str, str]) -> list[ListedGpu]:
    """What CUDA counts from 0 on where nothing is asked for: whole devices, or the first MIG instance alone."""
    whole = [device for device in devices if not device.gpu.mig]
    if not whole:
        return [instance for device in devices for instance in device.instances][:1]
    if environ.get("CUDA_DEVICE_ORDER") == "PCI_BUS_ID":
        return whole
    return sorted(whole, key=lambda device: -device.speed)  # stable: equal ones stay in the order of the bus


def _asked_devices(asked: str, listed: list[ListedGpu], devices: Sequence[ListedGpu]) -> list[ListedGpu]:
    chosen: list[ListedGpu] = []
    for word in asked.split(","):
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
    found = fitting[0]
    return next(iter(found.instances), None) if found.gpu.mig and found.instances else found


_BLOCKS: tuple[tuple[int, int, str], ...] = (  # first and last number
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
_ONLY = {
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
_CORES = {"6.0": 64, "6.1": 128, "7.0": 64, "7.5": 64, "8.0": 64, "8.6": 128, "8.7": 128, "8.9": 128}


def chip_of(pci_device: int | None, capability: str | None) -> str | None:
    """`GH100` for PCI device 0x2335, else by the capability where that has one chip only; None if neither tells."""
    if pci_device is not None:
        place = bisect_right(_BLOCKS, (pci_device, 0x10000, "")) - 1
        if place >= 0 and _BLOCKS[place][0] <= pci_device <= _BLOCKS[place][1]:
            return _BLOCKS[place][2]
    return _ONLY.get(capability or "")


def multiprocessors_of(cores: int | None, capability: str | None) -> int | None:
    """SMs of a device with so many CUDA cores; None where that does not come out even."""
    if cores is None or capability is None or not capability.partition(".")[0].isdecimal():
        return None
    each = _CORES.get(capability) or (128 if int(capability.partition(".")[0]) >= 9 else None)
    return cores // each if each and cores and cores % each == 0 else None


FIELDS = (
    "name",
    "uuid",
    "memory.total",
    "driver_version",
    "clocks.max.sm",
    "mig.mode.current",
    "pci.device_id",
    "compute_cap",  # known to drivers from 2021 on
)
OLD_FIELDS = FIELDS[:-1]
MIB = 1 << 20


@dataclass(frozen=True)
class SmiAnswer:
    """What it printed on both streams, and whether it ended with 0."""

    text: str
    ok: bool


def query_smi(fields: tuple[str, ...], timeout: float) -> SmiAnswer | None:
    """One question to nvidia-smi; None where it is not there or does not answer in time."""
    program = shutil.which("nvidia-smi") or shutil.which("/usr/lib/wsl/lib/nvidia-smi")
    if program is None:
        return None
    argv = [program, f"--query-gpu={','.join(fields)}", "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(
            argv, capture_output=True, text=True, errors="replace", timeout=timeout, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return SmiAnswer(
        f"{done.stdout}\n{done.stderr}".strip() if done.returncode else done.stdout, done.returncode == 0
    )


def smi_devices(timeout: float) -> tuple[ListedGpu, ...]:
    """The devices as nvidia-smi lists them; none where it does not answer."""
    for fields in (FIELDS, OLD_FIELDS):
        answer = query_smi(fields, timeout)
        if answer is not None and answer.ok:
            return parse_smi(answer.text, fields)
        if answer is None or "not a valid field" not in answer.text:
            break
    return ()


def parse_smi(text: str, fields: tuple[str, ...]) -> tuple[ListedGpu, ...]:
    """The rows of `--query-gpu --format=csv,noheader,nounits`; a row that does not fit is left out."""
    found = []
    try:
        rows = list(csv.reader(text.splitlines(), skipinitialspace=True))
    except csv.Error:  # a field of more than 128 KiB; before Python 3.11 also a NUL
        return ()
    for row in rows:
        if len(row) != len(fields):
            continue
        told = {name: value.strip() for name, value in zip(fields, row, strict=True)}
        capability = _smi_text(told.get("compute_cap"))
        memory, clock = _smi_number(told["memory.total"]), _smi_number(told["clocks.max.sm"])
        mig = _smi_text(told["mig.mode.current"])
        gpu = Gpu(
            told["name"],
            capability=capability,
            chip=chip_of(_pci(told["pci.device_id"]), capability),
            memory_bytes=round(memory * MIB) if memory else None,
            driver=_smi_text(told["driver_version"]),
            max_clock=clock * 1e6 if clock else None,
            mig=mig == "Enabled" if mig else None,
        )
        found.append(ListedGpu(gpu, told["uuid"], speed=clock or 0.0))
    return tuple(found)


# What nvidia-smi prints where it fails, and what it means. The first that fits counts.
_TEXTS = (
    ("Driver/library version mismatch", "mismatch"),
    ("couldn't communicate with the NVIDIA driver", "not-loaded"),
    ("GPU is lost", "lost"),
    ("has fallen off the bus", "lost"),
    ("Failed to initialize NVML: Unknown Error", "no-access"),
    ("Insufficient Permissions", "no-access"),
    ("No devices were found", "no-device"),
    ("GPU access blocked by the operating system", "wsl"),
)


def smi_fault_kind(text: str) -> str | None:
    """The kind of fault in nvidia-smi's words (see gpu_fault.FAULTS); None where it says nothing known."""
    return next((kind for words, kind in _TEXTS if words in text), None)


def _smi_text(value: str | None) -> str | None:
    return (
        None
        if value is None or value in ("", "N/A", "[N/A]", "[Not Supported]", "[Unknown Error]")
        else value
    )


def _smi_number(value: str) -> float | None:
    try:
        number = float(value)
    except ValueError:
        return None
    return number if 0 < number < float("inf") else None


def _pci(value: str) -> int | None:
    """0x233510DE: the device in the upper half, NVIDIA in the lower."""
    try:
        return int(value, 16) >> 16
    except ValueError:
        return None
