"""What people get to read: tables, summaries, verdicts."""

from __future__ import annotations

from dataclasses import dataclass

from profkit.core.types.values import Reading, Scope
from profkit.core.types.words import Quality, VerdictWord


@dataclass(frozen=True)
class Table:
    """A small table for people: column titles, rows of text, already rounded for reading.

    Raises ValueError for a row that has more or fewer cells than there are columns.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str | None = None

    def __post_init__(self) -> None:
        for number, row in enumerate(self.rows):
            if len(row) != len(self.columns):
                raise ValueError(f"row {number} has {len(row)} cells for {len(self.columns)} columns")


@dataclass(frozen=True)
class Summary:
    """The readings that answer one concern (time, cache, python, memory, ...), with tables and remarks."""

    concern: str
    headline: str
    readings: tuple[Reading, ...] = ()
    tables: tuple[Table, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Verdict:
    """What the judge says of one target in one scope. `advice` is what to try; unknown is never pass."""

    target: str
    metric: str
    verdict: VerdictWord
    reason: str
    threshold: str  # as people read it: "< 5 %"
    value: float | None
    unit: str
    scope: Scope
    quality: Quality
    advice: tuple[str, ...] = ()
    # Of a kernel: its share of the region's GPU time, 0..1. Of a run: the share of the kernels that decide it.
    weight: float | None = None
    # The most that keeping the target could win over the whole run, as a share of its time (Amdahl), 0..1.
    gain: float | None = None
