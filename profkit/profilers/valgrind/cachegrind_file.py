"""Reads cachegrind files of valgrind 3.19 to 3.24, with simulated caches or with instructions only."""

from __future__ import annotations

from pathlib import Path

from profkit.core.errors import UnreadableReport
from profkit.core.types import Report
from profkit.profilers.valgrind.callgrind_file import report_of
from profkit.profilers.valgrind.callgrind_tally import tally

_HEADER = (b"desc:", b"cmd:", b"events:")


def looks_like(head: bytes) -> bool:
    """Whether `head` begins a cachegrind file: descriptions, `cmd:`, `events:`, and no other header."""
    if b"\0" in head[:4096]:
        return False
    seen: list[bytes] = []
    for line in head.splitlines():
        if line.startswith((b"fl=", b"fn=", b"summary:")):
            break
        if line.strip() and not line.startswith(b"#"):
            if not line.startswith(_HEADER):
                return False
            seen.append(line.partition(b":")[0])
    return b"cmd" in seen and b"events" in seen


def read_cachegrind(path: Path) -> Report:
    """The report in the cachegrind file at `path`: counters of the run, and a profile by own cost.

    Cachegrind knows no callers, so a function's total is unknown. Its `summary:` is right, other than
    callgrind's, and tells whether the file is whole. Raises UnreadableReport where it is not.
    """
    dumps = tally(path)
    last = dumps[-1]
    if last.summary is None:
        raise UnreadableReport(
            f"{path} was cut short: it has no summary line",
            "record it again, and let the program end by itself",
        )
    own = tuple(sum(column) for column in zip(*last.own.values(), strict=True))
    if own != last.summary[: len(own)]:
        raise UnreadableReport(
            f"{path} contradicts itself: its lines add up to {own}, its summary says {last.summary}"
        )
    return report_of(dumps, format="cachegrind", callers=False)
