"""What of Nsight Compute's can be read. A reader is imported when its turn comes."""

from __future__ import annotations

from collections.abc import Callable

from profkit.tools.formats import Format, later


def is_rep(head: bytes) -> bool:
    """Whether `head`, the beginning of a file, is that of an .ncu-rep."""
    return head.startswith(b"NVR\0")


def _format(name: str, title: str, looks_like: Callable[[bytes], bool], module: str, read: str) -> Format:
    return Format(name, "ncu", title, looks_like, later(f"profkit.tools.ncu.{module}", read))


FORMATS = (_format("ncu-rep", ".ncu-rep", is_rep, "rep", "read_ncu_rep"),)
