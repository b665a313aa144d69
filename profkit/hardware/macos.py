"""A Mac as `sysctl` and `ioreg` describe it: the machine, its GPU and its chip.

Neither needs root, and neither starts Metal. Built from published examples of what these programs print.
"""

from __future__ import annotations

import platform
import plistlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from profkit.core.tables import load_yaml
from profkit.core.types import Fact, Gpu
from profkit.hardware.system import ask_program


def sysctl_text(name: str) -> str | None:
    """Return the text that `sysctl -n NAME` prints; None where this system has no such name."""
    answer = ask_program("sysctl", "-n", name) if platform.system() == "Darwin" else None
    return answer.decode("utf-8", "replace").strip() if answer is not None else None


def sysctl_number(name: str) -> int | None:
    """Return the whole number that `sysctl -n NAME` prints; None where it prints none."""
    words = sysctl_text(name)
    try:
        return int(words) if words else None
    except ValueError:
        return None


# ------------------------------------------------------------ chips

_NAME = re.compile(r"(?:apple\s+)?(m\d+)(?:\s+(pro|max|ultra))?(?:\s+gpu)?", re.IGNORECASE)


@dataclass(frozen=True)
class AppleChip:
    """The memory bandwidth of the chip `name` as it is sold, in bytes/s; where it is None, `reason` says why.

    `checked` False: it is one report's, or derived from a similar chip, so what is made of it is an estimate.
    """

    name: str
    bandwidth: float | None = None
    checked: bool = False
    reason: Fact | None = None


@lru_cache(maxsize=1)
def chip_table() -> Mapping[str, Mapping[str, Any]]:
    """Load the rows of `apple_chips.yaml` by name, oldest first."""
    return dict(load_yaml(Path(__file__).with_name("apple_chips.yaml")))


def find_chip(name: str | None, cores: int | None = None) -> AppleChip:
    """Find the chip that `sysctl machdep.cpu.brand_string`, ioreg, or a trace's metal-device-name calls `name`.

    'Apple M3 Max', 'M3 Max' and 'Apple M3 Max GPU' are the same. `cores` are GPU cores: chips of one name are
    sold with several numbers of cores, and some of those have less bandwidth.
    """
    words = " ".join((name or "").split()) or "a GPU without a name"
    match = _NAME.fullmatch(words)
    known = f"Apple {match[1].upper()}" + (f" {match[2].capitalize()}" if match[2] else "") if match else ""
    row = chip_table().get(known)
    if row is None:
        return AppleChip(words, reason=Fact.of("unknown-chip", name=known or words))
    sold = {int(kind["cores"]): float(kind["bandwidth"]) for kind in row["configurations"]}
    checked = bool(row["checked"]) and (cores is None or cores in sold)
    if cores in sold or len(set(sold.values())) == 1:
        return AppleChip(words, sold.get(cores or 0, max(sold.values())), checked)
    kinds = " and ".join(map(str, sold))
    reason = Fact.of("chip-of-unknown-cores", name=known, kinds=kinds)
    if cores is not None:
        reason = Fact.of("chip-of-other-cores", name=known, kinds=kinds, cores=cores)
    return AppleChip(words, checked=checked, reason=reason)


# ------------------------------------------------------------ GPUs

_MAX_CORES = 1024  # twelve times as many as any chip has
_CHIP = re.compile(r"AGXAccelerator(G\d\d[A-Z])")


def read_apple_gpus() -> tuple[Gpu, ...]:
    """Read the GPUs of this Mac from ioreg; empty on another system, or where it lists none. Never raises.

    `bandwidth` (bytes/s) is the specification of `find_chip`, None where it has none. `memory_bytes` is the
    memory of the machine, which an Apple GPU shares.
    """
    if platform.system() != "Darwin":
        return ()
    answer = ask_program("ioreg", "-r", "-c", "IOAccelerator", "-d", "1", "-a")
    brand, memory = sysctl_text("machdep.cpu.brand_string"), sysctl_number("hw.memsize")
    guest = bool(sysctl_number("kern.hv_vmm_present"))
    return tuple(
        add_specification(replace(gpu, index=index), brand, memory, guest)
        for index, gpu in enumerate(parse_ioreg(answer or b""))
    )


def parse_ioreg(content: bytes) -> tuple[Gpu, ...]:
    """Parse what `ioreg -r -c IOAccelerator -d 1 -a` prints: a property list with a dictionary per accelerator.

    The name is empty where the entry has none. Returns nothing for content of another form.
    """
    try:
        entries = plistlib.loads(content)
    except Exception:  # plistlib raises what expat, binascii and int() raise; to us it is no answer
        return ()
    if not isinstance(entries, list):
        return ()
    return tuple(
        Gpu(
            name=_registry_text(entry.get("model")),
            chip=chip[1] if (chip := _CHIP.search(str(entry.get("IOClass", "")))) else None,
            cores=_core_count(entry.get("gpu-core-count")),
        )
        for entry in entries
        if isinstance(entry, dict)
    )


def add_specification(gpu: Gpu, brand: str | None, memory: int | None, guest: bool = False) -> Gpu:
    """Return the GPU completed by its chip's specification.

    `brand` is the processor's name; `guest` says that this is a virtual machine, where the bandwidth stays
    unknown. An accelerator without a name of its own gets the processor's, where that is Apple's.
    """
    name = gpu.name or (brand if brand and brand.startswith("Apple") else "") or "GPU"
    return replace(
        gpu,
        name=name,
        virtual="macos guest" if guest else None,
        memory_bytes=memory if name.startswith("Apple") else None,
        bandwidth=None if guest else find_chip(name, gpu.cores).bandwidth,
    )


def _registry_text(value: object) -> str:
    """Return a registry entry's text, given as a string or as the bytes of a C string; empty for anything else."""
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    return " ".join(value.replace("\0", " ").split()) if isinstance(value, str) else ""


def _core_count(value: object) -> int | None:
    """Return a number of cores, given as an integer or its little-endian bytes; None where it is implausible."""
    if isinstance(value, bytes) and len(value) in (4, 8):
        value = int.from_bytes(value, "little")
    return value if type(value) is int and 0 < value <= _MAX_CORES else None
