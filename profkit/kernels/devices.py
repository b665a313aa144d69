"""The devices that a sweep or an evaluation of kernels uses, and which of them each worker sees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from profkit.core.errors import MachineError, UsageError

LONGEST = 1e7  # seconds, 116 days: clocks of the system take no infinite ones


def split_list(text: str) -> tuple[str, ...]:
    """Split a text at its commas into words without blanks; empty words are left out."""
    return tuple(word.strip() for word in text.split(",") if word.strip())


def choose_device(name: str, gpus: tuple[str, ...], what: str) -> tuple[str, tuple[str, ...]]:
    """Return cuda or cpu for a --device, and for cuda the numbers of the devices by --gpus that share `what`.

    Raises UsageError for a name that is not a device, MachineError where there is no such device.
    """
    if name not in ("auto", "cuda", "cpu"):
        raise UsageError(f"there is no device called {name!r} here", "--device cuda, with --gpus 0 for one")
    if name == "cpu":
        if gpus:
            raise UsageError(f"--gpus are devices of cuda, and {what} is on {name}", "--device cuda")
        return name, ()
    from profkit.hardware.nvidia import driver_fault, read_gpus

    devices = read_gpus()
    if not devices:
        if name == "auto" and not gpus:
            return "cpu", ()
        fault = driver_fault()
        fix = fault.fix if fault is not None else None
        raise MachineError(
            f"no GPU can be used: {fault.reason if fault is not None else 'none is visible'}",
            fix if fix and not fix.startswith("--backend") else "--device cpu",
        )
    if unknown := [number for number in gpus if not number.isdecimal() or int(number) >= len(devices)]:
        raise UsageError(f"there is no GPU {unknown[0]}; there are {len(devices)}", "--gpus 0")
    return "cuda", gpus


def choose_device_elsewhere(name: str, gpus: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """Choose likewise for other places, whose devices are not known yet. Raises UsageError."""
    if name == "auto":
        raise UsageError("the device of another place must be named", "--device cuda   (or cpu)")
    if wrong := [gpu for gpu in gpus if not gpu.isdecimal() or name != "cuda"]:
        raise UsageError(f"--gpus {wrong[0]} is not a number of a GPU of cuda", "--device cuda --gpus 0,1")
    return name, gpus


def device_names(gpus: Sequence[str], visible: str | None) -> tuple[str, ...]:
    """Return what CUDA_VISIBLE_DEVICES calls each GPU: where it is set, number 0 is the first of its names."""
    if visible is None:
        return tuple(gpus)
    names = [name.strip() for name in visible.split(",")]
    return tuple(names[int(gpu)] for gpu in gpus)


def worker_uuids(gpus: Sequence[str]) -> tuple[str, ...]:
    """Return the UUIDs of the devices that workers here will use: those of `--gpus`, or the first visible one."""
    from profkit.hardware.nvidia import read_gpu_uuids

    uuids = read_gpu_uuids()
    numbers = [int(gpu) for gpu in gpus] or [0]
    return tuple(uuids[number] for number in numbers if number < len(uuids))


def check_device(slot: int, about: Mapping[str, object], first: Mapping[str, object]) -> None:
    """Raise MachineError where a worker has another kind of device, or another torch, than the first worker."""
    if about["device"] != first["device"]:
        raise MachineError(
            f"the device of worker {slot} is {about['device']}, and that of the first {first['device']}",
            "--gpus or --on with devices of one kind",
        )
    if about.get("versions") != first.get("versions"):
        raise MachineError(
            f"worker {slot} has {about.get('versions')}, and the first {first.get('versions')}",
            "--on-python with the same libraries everywhere",
        )
