"""What of Nsight Compute's can be read. A reader is imported when its turn comes."""

from __future__ import annotations

from collections.abc import Callable

from profkit.profilers.formats import Format, later


def is_rep(head: bytes) -> bool:
    """Whether `head`, the beginning of a file, is that of an .ncu-rep."""
    return head.startswith(b"NVR\0")


def is_repz(head: bytes) -> bool:
    """Whether `head` begins a Zstandard frame, as an .ncu-repz does: what is in it is seen when it is read."""
    return head.startswith(b"\x28\xb5\x2f\xfd")


def is_csv(head: bytes) -> bool:
    """Whether in `head`, the beginning of a file, a table of `ncu --csv` begins, with whatever before it."""
    if b"Process ID" not in head or b"Kernel Name" not in head:
        return False
    return any(line.replace(b'"', b"").startswith(b"ID,Process ID,") for line in head.splitlines())


def _format(name: str, title: str, looks_like: Callable[[bytes], bool], module: str, read: str) -> Format:
    return Format(name, "ncu", title, looks_like, later(f"profkit.profilers.ncu.{module}", read))


FORMATS = (
    _format("ncu-rep", ".ncu-rep", is_rep, "rep", "read_ncu_rep"),
    _format("ncu-repz", ".ncu-repz", is_repz, "repz", "read_ncu_repz"),
    _format("ncu-csv", "ncu --csv", is_csv, "csv_raw", "read_ncu_csv"),
)
