"""Which of a machine's devices a CUDA process may use, and in which order it numbers them.

CUDA_VISIBLE_DEVICES names them by number, UUID (or the beginning of one) or MIG instance; the list ends at the first
name that fits nothing, as in CUDA itself (CUDA C++ programming guide, "CUDA environment variables").
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from profkit.core.types import Gpu


@dataclass(frozen=True)
class Device:
    """One device as the driver lists it, with the instances that it is cut into."""

    gpu: Gpu
    uuid: str = ""
    instances: tuple[Device, ...] = ()  # MIG
    speed: float = 0.0  # for CUDA's order: fastest first


def visible_gpus(devices: Sequence[Device], environ: Mapping[str, str]) -> tuple[Gpu, ...]:
    """The devices that a process with this environment sees, numbered as it numbers them."""
    return tuple(_at(device.gpu, index) for index, device in enumerate(visible_devices(devices, environ)))


def visible_devices(devices: Sequence[Device], environ: Mapping[str, str]) -> list[Device]:
    """The same as the driver lists them, in the order of their numbers."""
    listed = _numbered(devices, environ)
    asked = environ.get("CUDA_VISIBLE_DEVICES")
    return listed if asked is None else _chosen(asked, listed, devices)


def _at(gpu: Gpu, index: int) -> Gpu:
    from dataclasses import replace

    return replace(gpu, index=index)


def _numbered(devices: Sequence[Device], environ: Mapping[str, str]) -> list[Device]:
    """What CUDA counts from 0 on where nothing is asked for: whole devices, or the first MIG instance alone."""
    whole = [device for device in devices if not device.gpu.mig]
    if not whole:
        return [instance for device in devices for instance in device.instances][:1]
    if environ.get("CUDA_DEVICE_ORDER") == "PCI_BUS_ID":
        return whole
    return sorted(whole, key=lambda device: -device.speed)  # stable: equal ones stay in the order of the bus


def _chosen(asked: str, listed: list[Device], devices: Sequence[Device]) -> list[Device]:
    chosen: list[Device] = []
    for word in asked.split(","):
        device = _named(word.strip(), listed, devices)
        if device is None:
            break
        if device in chosen:
            return []  # CUDA sees none where one is named twice
        chosen.append(device)
    return chosen


def _named(word: str, listed: list[Device], devices: Sequence[Device]) -> Device | None:
    if word.isdecimal():
        return listed[int(word)] if int(word) < len(listed) else None
    everything = [*devices, *(instance for device in devices for instance in device.instances)]
    fitting = [device for device in everything if word and device.uuid.lower().startswith(word.lower())]
    if len(fitting) != 1 or not word.upper().startswith(("GPU-", "MIG-")):
        return None
    found = fitting[0]
    return next(iter(found.instances), None) if found.gpu.mig and found.instances else found
