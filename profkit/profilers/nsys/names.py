"""Names as nsys writes them, and as programs do."""

from __future__ import annotations


def call_name(name: str) -> str:
    """`cudaLaunchKernel_v7000` as it is called in a program; nsys adds the version in which it last changed."""
    stem, mark, version = name.rpartition("_v")
    return stem if mark and version.isdigit() and len(version) > 2 else name
