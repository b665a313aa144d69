"""What Apple's chips can do at most, by name and number of GPU cores: bandwidth and FP32 arithmetic."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from profkit.core.errors import Fault

ALUS = 128  # of one GPU core (github.com/philipturner/metal-benchmarks)
_NAME = re.compile(r"(?:apple\s+)?(m\d+)(?:\s+(pro|max|ultra))?(?:\s+gpu)?", re.IGNORECASE)
_OTHERS = re.compile(r"\b(amd|ati|radeon|intel|nvidia|geforce|iris|uhd|hd graphics)\b", re.IGNORECASE)
_VIRTUAL = re.compile(r"virtual", re.IGNORECASE)
_HOW_MANY = "ioreg -r -c IOAccelerator -d 1 | grep gpu-core-count"


@dataclass(frozen=True)
class Chip:
    """One chip as it is sold. `cores` None: its number of GPU cores is not known.

    `bandwidth` (bytes/s), `clock` (Hz) and `flops` (FP32, FLOP/s: cores x 128 ALUs x 2 x clock) are None where they
    are not known, or depend on a number of cores that is not known; then the pairs have the least and the most that
    any configuration has, and `reason` says why. `..._checked` False: what is made of it is an estimate, since it is
    one report's, or worked out of a neighbour.
    """

    name: str
    cores: int | None
    bandwidth: float | None
    clock: float | None
    flops: float | None
    bandwidth_range: tuple[float, float]
    flops_range: tuple[float, float] | None
    bandwidth_checked: bool
    flops_checked: bool
    bandwidth_from: str
    clock_from: str | None
    reason: str | None = None
    fix: str | None = None


def find_chip(name: str | None, cores: int | None = None) -> Chip | Fault:
    """The chip that `sysctl machdep.cpu.brand_string`, ioreg, or a trace's metal-device-name calls `name`.

    "Apple M3 Max", "M3 Max" and "Apple M3 Max GPU" are the same. `cores` are GPU cores: chips of one name are sold
    with several, and some of those have less bandwidth. A Fault says why there is nothing to hold a value against.
    """
    told = " ".join((name or "").split())
    if not told:
        return Fault("the GPU is not named", None)
    if _VIRTUAL.search(told):
        return Fault(
            f"{told} is the GPU of a virtual machine: it has no specification", "measure on the Mac itself"
        )
    if _OTHERS.search(told):
        return Fault(f"{told} is not Apple's: the table of chips has Apple silicon only", None)
    match = _NAME.fullmatch(told)
    if match is None:
        return Fault(f"{told} is in no table of chips", None)
    known = f"Apple {match[1].upper()}" + (f" {match[2].capitalize()}" if match[2] else "")
    row = _table().get(known)
    if row is None:
        return Fault(
            f"{known} is not in profkit's table of chips", "add it to profkit/hardware/apple_chips.yaml"
        )
    return _chip(known, row, cores)


def all_chips() -> tuple[str, ...]:
    """The names in the table, oldest first."""
    return tuple(_table())


def configurations_of(name: str) -> tuple[int, ...]:
    """The numbers of GPU cores that this chip of the table is sold with. Raises KeyError where it is not there."""
    return tuple(int(row["cores"]) for row in _table()[name]["configurations"])


@lru_cache(maxsize=1)
def _table() -> Mapping[str, Mapping[str, Any]]:
    import yaml  # here: it costs 10 ms that `profkit --help` need not pay

    with Path(__file__).with_name("apple_chips.yaml").open("rb") as file:
        return dict(yaml.load(file, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)))


def _chip(name: str, row: Mapping[str, Any], cores: int | None) -> Chip:
    sold = {int(one["cores"]): float(one["bandwidth"]) for one in row["configurations"]}
    clock = float(row["clock"]) if row.get("clock") else None
    widths = (min(sold.values()), max(sold.values()))
    listed = cores in sold
    # A number of cores that is not listed says nothing where the bandwidth depends on it.
    bandwidth = sold[cores] if cores is not None and listed else widths[0] if widths[0] == widths[1] else None
    flops = cores * ALUS * 2 * clock if cores is not None and listed and clock is not None else None
    span = None if clock is None else (min(sold) * ALUS * 2 * clock, max(sold) * ALUS * 2 * clock)
    reason, fix = _why(name, sold, cores, bandwidth, clock)
    return Chip(
        name,
        cores,
        bandwidth,
        clock,
        flops,
        widths,
        span,
        (listed or cores is None) and "bandwidth" in row["checked"],
        listed and "clock" in row["checked"],
        str(row["bandwidth_from"]),
        str(row["clock_from"]) if row.get("clock_from") else None,
        reason,
        fix,
    )


def _why(
    name: str, sold: Mapping[int, float], cores: int | None, bandwidth: float | None, clock: float | None
) -> tuple[str | None, str | None]:
    """Why something of the chip is not known, and how to get it; None where all is."""
    kinds = " and ".join(str(number) for number in sold)
    widths = " or ".join(f"{value / 1e9:g} GB/s" for value in dict.fromkeys(sold.values()))
    if cores is None and (bandwidth is None or (clock is not None and len(sold) > 1)):
        share = f" and {widths}" if bandwidth is None else ""
        return (
            f"{name} is sold with {kinds} GPU cores{share}, and how many this one has is not told",
            _HOW_MANY,
        )
    if cores is not None and cores not in sold:
        return f"profkit's table has {name} with {kinds} GPU cores, not with {cores}", None
    if clock is None:
        return f"the clock of the GPU of {name} is not known, so its peak of arithmetic is not either", None
    return None, None
