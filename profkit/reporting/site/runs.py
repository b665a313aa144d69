"""The runs of each workload, and the moments that they belong to. A year of 400 workloads has 146,000 of them.

So each is looked at few times, and none is looked up by its id where the points of a series are its workload's runs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import floor

from profkit.core.types import Entry, HistorySummary
from profkit.reporting.charts.trend import seconds


@dataclass(frozen=True)
class NightRuns:
    """All runs of one night, or of one commit on one day; `minute` (since 1970, UTC) is that of the first of them."""

    number: int
    minute: int
    night: str | None
    commits: Counter[str | None] = field(default_factory=Counter)
    workloads: set[str] = field(default_factory=set)

    @cached_property
    def commit(self) -> str | None:
        """The commit of most of its runs."""
        return max(self.commits, key=lambda commit: self.commits[commit])


@dataclass(frozen=True)
class WorkloadRuns:
    """Runs of one workload, oldest first; of each its moment, and its minute (since 1970, UTC)."""

    entries: list[Entry] = field(default_factory=list)
    moments: list[NightRuns] = field(default_factory=list)
    minutes: list[int] = field(default_factory=list)

    @cached_property
    def ids(self) -> list[str]:
        """The id of each."""
        return [entry.id for entry in self.entries]

    @cached_property
    def places(self) -> dict[str, int]:
        """By its id, where it stands among these."""
        return {name: place for place, name in enumerate(self.ids)}


@dataclass(frozen=True)
class AllRuns:
    """Every moment, oldest first, and the runs that speak of each workload: by its name, or by a value of it."""

    moments: tuple[NightRuns, ...]
    by_workload: Mapping[str, WorkloadRuns]


def runs_of(summary: HistorySummary) -> AllRuns:
    """All runs of a history, by workload; one that has series and no run of its own is there too."""
    moments, at, minutes = _moments(summary.entries)
    rows = [*zip(summary.entries, at, minutes, strict=True)]
    names = [entry.workload for entry in summary.entries]
    names += [one.trend.series.key.workload for one in summary.series]
    found = _grouped(names, rows, {})
    others: dict[str, set[str]] = {}  # a run may hold values of another workload than its own
    for one in summary.series:
        name = one.trend.series.key.workload
        points = [point.entry for point in one.trend.series.points]
        if points != found[name].ids:
            for entry in points:
                if entry not in found[name].places:
                    others.setdefault(entry, set()).add(name)
    return AllRuns(moments, _grouped(names, rows, others) if others else found)


def _moments(entries: Sequence[Entry]) -> tuple[tuple[NightRuns, ...], list[NightRuns], list[int]]:
    """All moments; then of each run its moment, and its minute."""
    moments: dict[tuple[str, str], NightRuns] = {}
    at, minutes = [], []
    for entry in entries:
        minute = floor((seconds(entry.started) or 0.0) / 60)
        key = ("", entry.night) if entry.night else (entry.started[:10], entry.commit or "")
        moment = moments.get(key)
        if moment is None:
            moment = moments[key] = NightRuns(len(moments), minute, entry.night)
        moment.commits[entry.commit] += 1
        moment.workloads.add(entry.workload)
        at.append(moment)
        minutes.append(minute)
    return tuple(moments.values()), at, minutes


def _grouped(
    names: Iterable[str], rows: Sequence[tuple[Entry, NightRuns, int]], others: Mapping[str, Iterable[str]]
) -> dict[str, WorkloadRuns]:
    found = {name: WorkloadRuns() for name in dict.fromkeys(names)}
    for entry, moment, minute in rows:
        for name in (entry.workload, *others.get(entry.id, ())) if others else (entry.workload,):
            runs = found[name]
            runs.entries.append(entry)
            runs.moments.append(moment)
            runs.minutes.append(minute)
    return found
