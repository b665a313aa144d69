"""What changed lately: change points of many series at one place are one event, beside the nights that regressed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import log

from profkit.core.types import ChangePoint, Entry, SeriesSummary

TOGETHER = 3  # runs: changes of one workload that lie no farther apart are one event


@dataclass(frozen=True)
class SeriesChange:
    """A change point with its series."""

    series: SeriesSummary
    point: ChangePoint

    @property
    def worse(self) -> bool | None:
        """Whether it went the wrong way; None where neither way is."""
        better = self.series.trend.series.better
        if better == "none" or self.point.after == self.point.before:
            return None
        return (self.point.after > self.point.before) == (better == "lower")

    @property
    def size(self) -> float:
        """How large it is: the logarithm of the ratio, without its sign; 0 where there is none."""
        ratio = self.point.ratio
        return abs(log(ratio)) if ratio is not None and ratio > 0 else 0.0


@dataclass(frozen=True)
class Event:
    """All that happened to a workload at one place, the change that matters most first.

    `night`: the run of a night that was decided to be regressed; None where nobody decided so.
    """

    workload: str
    entry: Entry  # the first run after it
    before: Entry | None  # the last valid run before it
    changes: tuple[SeriesChange, ...]
    night: Entry | None = None

    @property
    def worse(self) -> bool:
        """Whether something got worse that decides: the first change, or the night."""
        return self.night is not None or bool(self.changes and self.changes[0].worse)


def events_of(
    series: Mapping[str, Sequence[SeriesSummary]], runs: Mapping[str, Sequence[Entry]]
) -> tuple[Event, ...]:
    """The events of all workloads, the newest first; of one day what got worse comes first, the largest of it first."""
    found = [event for workload in series for event in _events(workload, series[workload], runs[workload])]
    return tuple(sorted(found, key=_rank, reverse=True))


def _rank(event: Event) -> tuple[str, bool, bool, float]:
    lead = event.changes[0] if event.changes else None
    return event.entry.started[:10], event.worse, bool(lead and lead.series.gates), lead.size if lead else 0.0


def _events(workload: str, series: Sequence[SeriesSummary], entries: Sequence[Entry]) -> Iterator[Event]:
    places = {entry.id: place for place, entry in enumerate(entries)}
    for backend in dict.fromkeys(one.trend.series.key.backend for one in series):
        changes = [
            (places[one.trend.series.points[point.index].entry], SeriesChange(one, point))
            for one in series
            if one.trend.series.key.backend == backend
            for point in one.trend.change_points
        ]
        nights = list(_regressed(entries, backend))
        for place, together in _groups(sorted(changes, key=lambda change: change[0])):
            night = next((n for n in nights if abs(n - place) <= TOGETHER), None)
            nights = [n for n in nights if n != night]
            ordered = tuple(sorted(together, key=_matters))
            at = places[_first_entry(ordered[0])]
            before = _valid_before(entries, at, backend)
            yield Event(workload, entries[at], before, ordered, entries[night] if night is not None else None)
        for night in nights:
            yield Event(workload, entries[night], _valid_before(entries, night, backend), (), entries[night])


def _first_entry(change: SeriesChange) -> str:
    return change.series.trend.series.points[change.point.index].entry


def _groups(changes: Sequence[tuple[int, SeriesChange]]) -> list[tuple[int, list[SeriesChange]]]:
    groups: list[tuple[int, list[SeriesChange]]] = []
    for place, change in changes:
        if not groups or place > groups[-1][0] + TOGETHER:
            groups.append((place, []))
        groups[-1][1].append(change)
    return groups


def _matters(change: SeriesChange) -> tuple[bool, bool, bool, float]:
    """What gates first, then what got worse, then times, then the largest."""
    metric = change.series.trend.series.key.metric
    return not change.series.gates, not change.worse, not metric.startswith("time."), -change.size


def _regressed(entries: Sequence[Entry], backend: str) -> Iterator[int]:
    """Where nights begin that were decided to be regressed."""
    before = ""
    for place, entry in enumerate(entries):
        if entry.backend == backend and entry.outcome:
            if entry.outcome == "regressed" != before:
                yield place
            before = entry.outcome


def _valid_before(entries: Sequence[Entry], place: int, backend: str) -> Entry | None:
    return next((e for e in reversed(entries[:place]) if e.valid and e.backend == backend), None)
