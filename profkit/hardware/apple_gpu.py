"""The GPUs of a Mac, and what Apple's chips can do at most. Asking needs no root and starts no Metal."""

from __future__ import annotations

import json
import platform
import plistlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from profkit.core.errors import Fault
from profkit.core.tables import load_yaml
from profkit.core.types import Gpu
from profkit.hardware.macos import sysctl_number, sysctl_text
from profkit.hardware.system import ask_program

ALUS = 128  # of one GPU core (github.com/philipturner/metal-benchmarks)
_NAME = re.compile(r"(?:apple\s+)?(m\d+)(?:\s+(pro|max|ultra))?(?:\s+gpu)?", re.IGNORECASE)
_OTHER_VENDORS = re.compile(r"\b(amd|ati|radeon|intel|nvidia|geforce|iris|uhd|hd graphics)\b", re.IGNORECASE)
_VIRTUAL = re.compile(r"virtual", re.IGNORECASE)
_CORE_COUNT_COMMAND = "ioreg -r -c IOAccelerator -d 1 | grep gpu-core-count"


@dataclass(frozen=True)
class AppleChip:
    """One chip as it is sold. `cores` None: its number of GPU cores is not known.

    `bandwidth` (bytes/s), `clock` (Hz) and `flops` (FP32, FLOP/s: cores x 128 ALUs x 2 x clock) are None where they
    are not known, or depend on a number of cores that is not known; then `reason` says why.
    `..._checked` False: what is made of it is an estimate, since it is
    one report's, or derived from a similar chip.
    """

    name: str
    cores: int | None
    bandwidth: float | None
    clock: float | None
    flops: float | None
    bandwidth_checked: bool
    flops_checked: bool
    reason: str | None = None
    fix: str | None = None


def find_chip(name: str | None, cores: int | None = None) -> AppleChip | Fault:
    """The chip that `sysctl machdep.cpu.brand_string`, ioreg, or a trace's metal-device-name calls `name`.

    "Apple M3 Max", "M3 Max" and "Apple M3 Max GPU" are the same. `cores` are GPU cores: chips of one name are sold
    with several, and some of those have less bandwidth. A Fault says why there is nothing to hold a value against.
    """
    words = " ".join((name or "").split())
    if not words:
        return Fault("the GPU is not named", None)
    if _VIRTUAL.search(words):
        return Fault(
            f"{words} is the GPU of a virtual machine: it has no specification", "measure on the Mac itself"
        )
    if _OTHER_VENDORS.search(words):
        return Fault(f"{words} is not Apple's: the table of chips has Apple silicon only", None)
    match = _NAME.fullmatch(words)
    if match is None:
        return Fault(f"{words} is in no table of chips", None)
    known = f"Apple {match[1].upper()}" + (f" {match[2].capitalize()}" if match[2] else "")
    row = _chip_table().get(known)
    if row is None:
        return Fault(
            f"{known} is not in profkit's table of chips", "add it to profkit/hardware/apple_chips.yaml"
        )
    return _make_chip(known, row, cores)


def list_chip_names() -> tuple[str, ...]:
    """The names in the table, oldest first."""
    return tuple(_chip_table())


def core_configurations(name: str) -> tuple[int, ...]:
    """The numbers of GPU cores that this chip of the table is sold with. Raises KeyError where it is not there."""
    return tuple(int(row["cores"]) for row in _chip_table()[name]["configurations"])


@lru_cache(maxsize=1)
def _chip_table() -> Mapping[str, Mapping[str, Any]]:
    return dict(load_yaml(Path(__file__).with_name("apple_chips.yaml")))


def _make_chip(name: str, row: Mapping[str, Any], cores: int | None) -> AppleChip:
    sold = {
        int(configuration["cores"]): float(configuration["bandwidth"])
        for configuration in row["configurations"]
    }
    clock = float(row["clock"]) if row.get("clock") else None
    widths = set(sold.values())
    listed = cores in sold
    # A number of cores that is not listed says nothing where the bandwidth depends on it.
    bandwidth = sold[cores] if cores is not None and listed else widths.pop() if len(widths) == 1 else None
    flops = cores * ALUS * 2 * clock if cores is not None and listed and clock is not None else None
    reason, fix = _explain_unknown(name, sold, cores, bandwidth, clock)
    return AppleChip(
        name,
        cores,
        bandwidth,
        clock,
        flops,
        (listed or cores is None) and "bandwidth" in row["checked"],
        listed and "clock" in row["checked"],
        reason,
        fix,
    )


def _explain_unknown(
    name: str, sold: Mapping[int, float], cores: int | None, bandwidth: float | None, clock: float | None
) -> tuple[str | None, str | None]:
    """Why something of the chip is not known, and how to get it; None where all is."""
    kinds = " and ".join(str(number) for number in sold)
    widths = " or ".join(f"{value / 1e9:g} GB/s" for value in dict.fromkeys(sold.values()))
    if cores is None and (bandwidth is None or (clock is not None and len(sold) > 1)):
        share = f" and {widths}" if bandwidth is None else ""
        return (
            f"{name} is sold with {kinds} GPU cores{share}, and how many this one has is not told",
            _CORE_COUNT_COMMAND,
        )
    if cores is not None and cores not in sold:
        return f"profkit's table has {name} with {kinds} GPU cores, not with {cores}", None
    if clock is None:
        return f"the clock of the GPU of {name} is not known, so its peak of arithmetic is not either", None
    return None, None


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
    answer = ask_program("ioreg", "-r", "-c", "IOAccelerator", "-d", "1", "-a")
    gpus = parse_ioreg(answer.output) if answer is not None and answer.status == 0 else ()
    if not gpus or any(not gpu.name for gpu in gpus):
        shown = ask_program("system_profiler", "SPDisplaysDataType", "-json", seconds=_PROFILER_SECONDS)
        gpus = _join_sources(gpus, parse_displays(shown.output) if shown is not None else ())
    brand, memory = sysctl_text("machdep.cpu.brand_string"), sysctl_number("hw.memsize")
    guest = bool(sysctl_number("kern.hv_vmm_present"))
    return tuple(
        add_specification(replace(gpu, index=index), brand, memory, guest) for index, gpu in enumerate(gpus)
    )


def parse_ioreg(content: bytes) -> tuple[Gpu, ...]:
    """What `ioreg -r -c IOAccelerator -d 1 -a` prints: a property list with one dictionary for each accelerator.

    The name is "" where the entry has none (it stands at its parent on Intel Macs). Empty for what is no such list.
    """
    try:
        entries = plistlib.loads(content)
    except Exception:  # plistlib raises what expat, binascii and int() raise; to us it is no answer
        return ()
    if not isinstance(entries, list):
        return ()
    return tuple(_parse_accelerator(entry) for entry in entries if isinstance(entry, dict))


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
        Gpu(name=name, cores=_core_count(card.get("sppci_cores")))
        for card, name in names
        if isinstance(name, str)
    )


def add_specification(gpu: Gpu, brand: str | None, memory: int | None, guest: bool = False) -> Gpu:
    """The GPU with what its chip's specification adds. `brand` is the processor's name, `guest` a virtual machine.

    An accelerator without a name of its own is the processor's, where that is Apple's.
    """
    name = gpu.name or (brand if brand and brand.startswith("Apple") else "") or "GPU"
    virtual = "macos guest" if guest or _PARAVIRTUAL.search(name) else None
    chip = find_chip(name, gpu.cores) if virtual is None else None
    known = chip if isinstance(chip, AppleChip) else None
    return replace(
        gpu,
        name=name,
        virtual=virtual,
        memory_bytes=memory if name.startswith("Apple") else None,
        bandwidth=known.bandwidth if known else None,
        flops=known.flops if known else None,
        max_clock=known.clock if known else None,
    )


def explain_missing_specification(gpu: Gpu) -> Fault | None:
    """Why a value of this GPU cannot be held against a specification; None where it can."""
    if gpu.virtual is not None:
        return Fault("this is a virtual machine: its GPU has no specification", "measure on the Mac itself")
    chip = find_chip(gpu.name, gpu.cores)
    if isinstance(chip, Fault):
        return chip
    return Fault(chip.reason, chip.fix) if chip.reason is not None else None


def _parse_accelerator(entry: Mapping[str, Any]) -> Gpu:
    chip = _CHIP.search(str(entry.get("IOClass", "")))
    name = _registry_text(entry.get("model"))
    if not name and _PARAVIRTUAL.search(str(entry.get("IOClass", ""))):
        name = "Apple Paravirtual device"
    return Gpu(name=name, chip=chip[1] if chip else None, cores=_core_count(entry.get("gpu-core-count")))


def _join_sources(accelerators: Sequence[Gpu], shown: Sequence[Gpu]) -> tuple[Gpu, ...]:
    """The accelerators with the names of the cards, where there are as many of both; else the cards."""
    if not accelerators or len(accelerators) != len(shown):
        return tuple(shown) or tuple(accelerators)
    return tuple(
        replace(gpu, name=gpu.name or card.name, cores=gpu.cores or card.cores)
        for gpu, card in zip(accelerators, shown, strict=True)
    )


def _registry_text(value: object) -> str:
    """Text, or the bytes of a C string, as registry entries have it; "" for anything else."""
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    return " ".join(value.replace("\0", " ").split()) if isinstance(value, str) else ""


def _core_count(value: object) -> int | None:
    """A number of cores: an integer, its little-endian bytes, or its digits; None where it is none that can be."""
    if isinstance(value, bytes) and len(value) in (4, 8):
        value = int.from_bytes(value, "little")
    if isinstance(value, str) and value.strip().isdecimal() and len(value) < 9:
        value = int(value)
    return value if type(value) is int and 0 < value <= _CORES_MOST else None
