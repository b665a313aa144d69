"""What `nvidia-smi` says: for machines whose management library cannot be loaded into this process."""

from __future__ import annotations

import csv
import shutil
import subprocess
from dataclasses import dataclass

from profkit.core.types import Gpu
from profkit.hardware.gpu_chips import chip_of
from profkit.hardware.gpu_visible import Device

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
class Answer:
    """What it printed on both streams, and whether it ended with 0."""

    text: str
    ok: bool


def ask(fields: tuple[str, ...], timeout: float) -> Answer | None:
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
    return Answer(
        f"{done.stdout}\n{done.stderr}".strip() if done.returncode else done.stdout, done.returncode == 0
    )


def devices(timeout: float) -> tuple[Device, ...]:
    """The devices as nvidia-smi lists them; none where it does not answer."""
    for fields in (FIELDS, OLD_FIELDS):
        answer = ask(fields, timeout)
        if answer is not None and answer.ok:
            return parse(answer.text, fields)
        if answer is None or "not a valid field" not in answer.text:
            break
    return ()


def parse(text: str, fields: tuple[str, ...]) -> tuple[Device, ...]:
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
        capability = _known(told.get("compute_cap"))
        memory, clock = _number(told["memory.total"]), _number(told["clocks.max.sm"])
        mig = _known(told["mig.mode.current"])
        gpu = Gpu(
            told["name"],
            capability=capability,
            chip=chip_of(_pci(told["pci.device_id"]), capability),
            memory_bytes=round(memory * MIB) if memory else None,
            driver=_known(told["driver_version"]),
            max_clock=clock * 1e6 if clock else None,
            mig=mig == "Enabled" if mig else None,
        )
        found.append(Device(gpu, told["uuid"], speed=clock or 0.0))
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


def meaning(text: str) -> str | None:
    """The kind of fault in nvidia-smi's words (see gpu_fault.FAULTS); None where it says nothing known."""
    return next((kind for words, kind in _TEXTS if words in text), None)


def _known(value: str | None) -> str | None:
    return (
        None
        if value is None or value in ("", "N/A", "[N/A]", "[Not Supported]", "[Unknown Error]")
        else value
    )


def _number(value: str) -> float | None:
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
