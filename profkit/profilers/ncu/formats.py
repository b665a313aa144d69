"""How reports of Nsight Compute begin."""

from __future__ import annotations


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
