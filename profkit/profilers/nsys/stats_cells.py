"""What stands in a cell of a table of nsys stats: numbers with the unit of their header, shapes, kinds of copies."""

from __future__ import annotations

import math
import re

from profkit.profilers.nsys.stats_text import Section

_SECONDS = {
    "ns": 1e-9,
    "nsec": 1e-9,
    "us": 1e-6,
    "usec": 1e-6,
    "μs": 1e-6,
    "ms": 1e-3,
    "msec": 1e-3,
    "s": 1.0,
    "sec": 1.0,
}
_BYTES = {"b": 1, "kb": 1e3, "mb": 1e6, "gb": 1e9, "kib": 2**10, "mib": 2**20, "gib": 2**30}
COPY = re.compile(r"\[(?:CUDA )?(?:Unified Memory )?(memcpy|memset|copy)\s*([^\]]*)\]", re.IGNORECASE)
_DIRECTIONS = {
    "htod": "host to device",
    "dtoh": "device to host",
    "dtod": "device to device",
    "htoh": "host to host",
    "ptop": "peer to peer",
}


def split_range(text: str) -> tuple[str, str | None]:
    """A range's name and domain: nsys writes `domain:name`, and `:name` for the default domain."""
    domain, colon, name = text.partition(":")
    return (name, domain or None) if colon else (text, None)


def copy_kind(name: str) -> str:
    """`[CUDA memcpy Host-to-Device]` and `[CUDA memcpy HtoD]` in the house's words."""
    matched = COPY.match(name)
    if matched is None:
        return name
    if matched[1].lower() == "memset":
        return "memset"
    direction = matched[2].strip()
    return _DIRECTIONS.get(direction.lower(), direction.replace("-", " ").lower() or "copy")


def number(text: str | None) -> float | None:
    """A finite number, or None."""
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def whole(text: str | None) -> int | None:
    """A whole number that is not negative, or None."""
    value = number(text)
    return int(value) if value is not None and value >= 0 else None


def seconds(section: Section, row: dict[str, str], column: str) -> float | None:
    """A time in seconds, by the unit in its header; before 2021.4 there was none, and all times were ns."""
    value = number(row.get(column))
    factor = _SECONDS.get(section.units.get(column, "ns").lower())
    return None if value is None or factor is None or value < 0 else value * factor


def size_of(section: Section, row: dict[str, str], column: str) -> int | None:
    """Bytes, by the unit in the header."""
    value = number(row.get(column))
    factor = _BYTES.get(section.units.get(column, "b").lower())
    return None if value is None or factor is None else round(value * factor)


def triple(text: str | None) -> tuple[int, ...]:
    """`   4    1    1` as three numbers; zeros where it is not told."""
    numbers = [int(part) for part in re.findall(r"\d{1,10}", text or "")][:3]
    return tuple((*numbers, 1, 1)[:3]) if numbers else (0, 0, 0)
