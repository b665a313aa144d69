"""Exports that are not whole, beside others of their recording that are: what is read without them."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from profkit.profilers.xctrace.cpu_guided import SCHEMA as GUIDED
from profkit.profilers.xctrace.metal_counters import COUNTER_VALUES, COUNTERS
from profkit.profilers.xctrace.metal_work import INTERVALS, STATES
from profkit.profilers.xctrace.parsing import DamagedExport

# How busy the GPU was is made of these two: without one that was recorded, what is left would say something else.
NEEDED = frozenset((INTERVALS, STATES))
# One of these at least is what a recording was made for.
MAIN = NEEDED | {
    COUNTERS,
    COUNTER_VALUES,
    GUIDED,
    "time-profile",
    "time-sample",
    "cpu-profile",
    "counters-profile",
}
_SCHEMA = re.compile(rb"""<schema\s+name=["']([\w.-]{1,100})["']""")


@dataclass(frozen=True)
class Broken:
    """A file that is not read, with the table in it."""

    path: Path
    schema: str
    error: DamagedExport

    def told(self) -> str:
        """One sentence."""
        return f"{self.path.name} ({self.schema}) is damaged and not read: {self.error.reason}"


def can_do_without(schemas: Collection[str], left: Collection[str]) -> bool:
    """Whether a report without the tables `schemas`, of those that are `left`, still says what it would have said."""
    return not NEEDED.intersection(schemas) and bool(MAIN.intersection(left))


def schema_in(path: Path, head: bytes) -> str | None:
    """The table in a file that breaks off before its first row: by what it says, else by its name."""
    found = _SCHEMA.search(head)
    if found is not None:
        return found[1].decode("ascii", "replace")
    return path.stem if re.fullmatch(r"[\w.-]{1,100}", path.stem) else None
