"""Counts of a whole region become counts of one iteration, so that they can be held against its time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from profkit.core.types import Counter, Profile
from profkit.runtime.passes.read_records import read_records
from profkit.runtime.region.perf_control import OTHER_INSIDE

_NOT_COUNTS = ("line_bytes",)  # properties of the machine among the counters


@dataclass(frozen=True)
class Done:
    """What one step did inside the region.

    `seconds` is its wall time, None where nothing was marked or processes overlap. `notes` are what the workload's
    processes remarked; `shared`: several of them marked at once, so that the window is not known to be theirs.
    `entries`: how often the process that did it least entered regions, of so many `processes`.
    """

    iterations: int = 1
    seconds: float | None = None
    odd: str | None = None
    marked: bool = False
    notes: tuple[str, ...] = ()
    shared: bool = False
    entries: int = 0
    processes: int = 0


def done_in_region(folder: Path, step: str) -> Done:
    """How often and how long `step` ran what counts. Raises UnreadableReport for a damaged record."""
    written = read_records(sorted((folder / "artifacts").glob(f"{step}.region.*.json")))
    records = [record for record in written if record.regions or record.benchmarks]
    notes = tuple(dict.fromkeys(note for record in records for note in record.notes))
    shared = any(OTHER_INSIDE in note for note in notes)
    entries = min((sum(r.entries for r in record.regions) for record in records), default=0)
    per_name: dict[str, int] = {}
    seconds = 0.0
    for record in records:
        for region in record.regions:
            per_name[region.name] = per_name.get(region.name, 0) + region.iterations
            seconds += sum(region.seconds) * region.every
    if len(per_name) > 1:
        names = ", ".join(sorted(per_name))
        odd = f"the workload marks several regions ({names}): counts are of all in one process"
        return Done(
            1, seconds if len(records) == 1 else None, odd, True, notes, shared, entries, len(records)
        )
    alone = seconds if seconds and len(records) == 1 else None
    return Done(
        max(1, sum(per_name.values())), alone, None, bool(per_name), notes, shared, entries, len(records)
    )


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


def profile_per_iteration(profile: Profile, count: int) -> Profile:
    """The profile divided by `count`; calls stay whole, since half a call is none."""
    if count == 1:
        return profile
    hotspots = tuple(
        replace(
            hotspot,
            own=hotspot.own / count,
            total=hotspot.total / count if hotspot.total is not None else None,
            counters={name: value / count for name, value in hotspot.counters.items()},
        )
        for hotspot in profile.hotspots
    )
    return replace(profile, total=profile.total / count, hotspots=hotspots)
