"""A binary report of nsys (`.nsys-rep`, formerly `.qdrep`): told by how it begins. Only nsys itself reads it."""

from __future__ import annotations

# As of the nsys 2025.3 reports that were recorded for this project; the importer's name is older than the product's.
_MAGIC = b"NVIDIA Tegra Profiler Report"


def looks_like(head: bytes) -> bool:
    """True for a report of nsys."""
    return head.startswith(_MAGIC)
