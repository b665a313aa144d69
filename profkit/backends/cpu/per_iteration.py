"""Counts of a whole region become counts of one iteration, so that they can be held against its time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from profkit.model import Counter
from profkit.passes.read_records import read_records

_NOT_COUNTS = ("line_bytes",)  # properties of the machine among the counters


def iterations(folder: Path, step: str) -> tuple[int, str | None]:
    """How many iterations `step` ran inside the region, and what is odd about that. 1 where nothing was marked.

    Raises UnreadableReport for a damaged record.
    """
    records = read_records(sorted((folder / "artifacts").glob(f"{step}.region.*.json")))
    per_name: dict[str, int] = {}
    for record in records:
        for region in record.regions:
            per_name[region.name] = per_name.get(region.name, 0) + region.iterations
    if len(per_name) > 1:
        names = ", ".join(sorted(per_name))
        return 1, f"the workload marks several regions ({names}): counts are of all of them in one process"
    return max(1, sum(per_name.values())), None


def per_iteration(counters: Sequence[Counter], count: int) -> tuple[Counter, ...]:
    """The counters divided by `count`; states and ratios between them stay as they are."""
    if count == 1:
        return tuple(counters)
    return tuple(
        counter
        if counter.value is None or counter.name in _NOT_COUNTS
        else replace(counter, value=counter.value / count)
        for counter in counters
    )
