"""The table `cuda_gpu_trace` of nsys stats: everything that the devices did, one row each, but no call of the host."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from profkit.analysis.timeline.records import Collected, Configuration, Recording
from profkit.analysis.timeline.trace import build_trace
from profkit.core.types import GpuTrace
from profkit.profilers.nsys.stats_cells import COPY, copy_kind, seconds, size_of, whole
from profkit.profilers.nsys.stats_text import Section

_DEVICE = re.compile(r"\((\d{1,4})\)\s*$")  # "NVIDIA H200 (0)"


@dataclass
class Launches:
    """Takes one row after the other. `odd` rows have no time."""

    collected: Collected = field(default_factory=Collected)
    odd: int = 0

    def take(self, section: Section, row: dict[str, str]) -> None:
        """Take note of a row."""
        start, length = seconds(section, row, "start"), seconds(section, row, "duration")
        if start is None or length is None:
            self.odd += 1
            return
        begin = round(start * 1e9)
        end = begin + round(length * 1e9)
        named = _DEVICE.search(row["device"])
        device = int(named[1]) if named else 0
        key, name = whole(row["corrid"]), row["name"]
        key = -1 if key is None else key
        if COPY.match(name):
            size = size_of(section, row, "bytes") or 0
            self.collected.transfer(copy_kind(name), begin, end, size, key=key, device=device)
        else:
            self.collected.kernel(_configuration(section, row), begin, end, key=key, device=device)

    def trace(self) -> tuple[GpuTrace, list[str]]:
        """What the rows tell, and what is to be said of it."""
        collected = self.collected
        trace, notes = build_trace(
            Recording("nsys", collected.activities(), collected.calls(), collected.tables)
        )
        return trace, list(notes)


def _configuration(section: Section, row: dict[str, str]) -> Configuration:
    def three(names: tuple[str, str, str]) -> tuple[int, int, int]:
        x, y, z = (whole(row.get(name)) or 0 for name in names)
        return x, y, z

    parts = [size_of(section, row, name) for name in ("stcsmem", "dymsmem")]
    # In MB with three digits the memory of a kernel is 1 kB more or less: what is told, but no number of bytes.
    exact = section.units.get("stcsmem", "B").lower() == "b"
    return Configuration(
        row["name"],
        three(("grdx", "grdy", "grdz")),
        three(("blkx", "blky", "blkz")),
        None,
        whole(row.get("reg/trd")),
        sum(part or 0 for part in parts) if exact and None not in parts else None,
    )
