"""The GPUs of a Mac, as IOKit's registry and `system_profiler` tell them; neither needs root, nor starts Metal."""

from __future__ import annotations

import json
import platform
import plistlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from profkit.core.errors import Fault
from profkit.core.types import Gpu
from profkit.hardware.apple_chips import Chip, find_chip
from profkit.hardware.asking import ask
from profkit.hardware.sysctl import number, text

_PROFILER_SECONDS = 20.0  # system_profiler takes one second, and several right after the start of the machine
_CORES_MOST = 1024  # twelve times as many as any chip has
_CHIP = re.compile(r"AGXAccelerator(G\d\d[A-Z])")
_PARAVIRTUAL = re.compile(r"paravirt", re.IGNORECASE)


def read_apple_gpus() -> tuple[Gpu, ...]:
    """The GPUs of this Mac; empty on another system, or where neither source tells one. Never raises.

    `bandwidth` (bytes/s), `flops` (FP32) and `max_clock` are the specification of `find_chip`, None where it has none:
    the chip is not in its table, the GPU is AMD's or Intel's, or this is a virtual machine. `memory_bytes` is the
    memory of the machine, which an Apple GPU shares.
    """
    if platform.system() != "Darwin":
        return ()
    answer = ask("ioreg", "-r", "-c", "IOAccelerator", "-d", "1", "-a")
    found = parse_ioreg(answer.output) if answer is not None and answer.status == 0 else ()
    if not found or any(not gpu.name for gpu in found):
        shown = ask("system_profiler", "SPDisplaysDataType", "-json", seconds=_PROFILER_SECONDS)
        found = _named(found, parse_displays(shown.output) if shown is not None else ())
    brand, memory = text("machdep.cpu.brand_string"), number("hw.memsize")
    guest = bool(number("kern.hv_vmm_present"))
    return tuple(
        specified(replace(gpu, index=index), brand, memory, guest) for index, gpu in enumerate(found)
    )


def parse_ioreg(content: bytes) -> tuple[Gpu, ...]:
    """What `ioreg -r -c IOAccelerator -d 1 -a` prints: a property list with one dictionary for each accelerator.

    The name is "" where the entry has none (it stands at its parent on Intel Macs). Empty for what is no such list.
    """
    try:
        entries = plistlib.loads(content)
    except Exception:  # plistlib raises what expat, binascii and int() raise; to us it is no answer
        return ()
    return (
        tuple(_accelerator(entry) for entry in entries if isinstance(entry, dict)) if _listed(entries) else ()
    )


def parse_displays(content: bytes) -> tuple[Gpu, ...]:
    """What `system_profiler SPDisplaysDataType -json` prints; empty for anything else."""
    try:
        cards = json.loads(content)["SPDisplaysDataType"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return ()
    if not isinstance(cards, list):
        return ()
    names = [(card, card.get("sppci_model") or card.get("_name")) for card in cards if isinstance(card, dict)]
    return tuple(
        Gpu(name=name, cores=_count(card.get("sppci_cores"))) for card, name in names if isinstance(name, str)
    )


def specified(gpu: Gpu, brand: str | None, memory: int | None, guest: bool = False) -> Gpu:
    """The GPU with what its chip's specification adds. `brand` is the processor's name, `guest` a virtual machine.

    An accelerator without a name of its own is the processor's, where that is Apple's.
    """
    name = gpu.name or (brand if brand and brand.startswith("Apple") else "") or "GPU"
    virtual = "macos guest" if guest or _PARAVIRTUAL.search(name) else None
    chip = find_chip(name, gpu.cores) if virtual is None else None
    known = chip if isinstance(chip, Chip) else None
    return replace(
        gpu,
        name=name,
        virtual=virtual,
        memory_bytes=memory if name.startswith("Apple") else None,
        bandwidth=known.bandwidth if known else None,
        flops=known.flops if known else None,
        max_clock=known.clock if known else None,
    )


def why_unspecified(gpu: Gpu) -> Fault | None:
    """Why a value of this GPU cannot be held against a specification; None where it can."""
    if gpu.virtual is not None:
        return Fault("this is a virtual machine: its GPU has no specification", "measure on the Mac itself")
    chip = find_chip(gpu.name, gpu.cores)
    if isinstance(chip, Fault):
        return chip
    return Fault(chip.reason, chip.fix) if chip.reason is not None else None


def _listed(entries: object) -> bool:
    return isinstance(entries, list)


def _accelerator(entry: Mapping[str, Any]) -> Gpu:
    chip = _CHIP.search(str(entry.get("IOClass", "")))
    name = _words(entry.get("model"))
    if not name and _PARAVIRTUAL.search(str(entry.get("IOClass", ""))):
        name = "Apple Paravirtual device"
    return Gpu(name=name, chip=chip[1] if chip else None, cores=_count(entry.get("gpu-core-count")))


def _named(found: Sequence[Gpu], shown: Sequence[Gpu]) -> tuple[Gpu, ...]:
    """The accelerators with the names of the cards, where there are as many of both; else the cards."""
    if not found or len(found) != len(shown):
        return tuple(shown) or tuple(found)
    return tuple(
        replace(gpu, name=gpu.name or card.name, cores=gpu.cores or card.cores)
        for gpu, card in zip(found, shown, strict=True)
    )


def _words(value: object) -> str:
    """Text, or the bytes of a C string, as registry entries have it; "" for anything else."""
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    return " ".join(value.replace("\0", " ").split()) if isinstance(value, str) else ""


def _count(value: object) -> int | None:
    """A number of cores: an integer, its little-endian bytes, or its digits; None where it is none that can be."""
    if isinstance(value, bytes) and len(value) in (4, 8):
        value = int.from_bytes(value, "little")
    if isinstance(value, str) and value.strip().isdecimal() and len(value) < 9:
        value = int(value)
    return (
        value if isinstance(value, int) and not isinstance(value, bool) and 0 < value <= _CORES_MOST else None
    )
