"""Runs over time: what a history stores of each, and its series."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from profkit.core.types.comparison import Feature
from profkit.core.types.readings import RUN, Direction, Quality, Scope


@dataclass(frozen=True)
class SeriesKey:
    """What makes two values of different days values of one series."""

    workload: str
    backend: str
    metric: str
    scope: Scope = RUN


@dataclass(frozen=True)
class Value:
    """One metric of one run as it is stored: the centre and its interval.

    `doubt` says what contradicts it: it is shown, and decides nothing.
    """

    key: SeriesKey
    unit: str
    better: Direction
    value: float
    quality: Quality
    low: float | None = None
    high: float | None = None
    doubt: str | None = None


@dataclass(frozen=True)
class Entry:
    """One run as a history keeps it. `id` names it for ever: adding the same run twice changes nothing.

    `valid` False: throttled, interrupted, ...; it is kept and shown, decides nothing, and `reason` says why. `outcome`
    is what was decided of it: a nightly's word (`pass`, `regressed`, ...), None where nobody decided.
    """

    id: str
    started: str  # ISO 8601, UTC
    workload: str
    backend: str
    state: str  # of the run: complete, interrupted, failed
    source: str  # "profkit", "pytest-benchmark", "asv", "nvbench", "google-benchmark"
    machine: str  # the fingerprint's id
    features: tuple[Feature, ...] = ()
    commit: str | None = None
    dirty: bool | None = None
    path: str | None = None  # where the run lay
    night: str | None = None  # the nightly that it was part of
    facts: Mapping[str, str] = field(default_factory=dict)
    values: tuple[Value, ...] = ()
    outcome: str | None = None
    valid: bool = True
    reason: str | None = None


@dataclass(frozen=True)
class Point:
    """One value of a series with what is known of its run. `entry` is the run's id."""

    entry: str
    started: str
    machine: str
    value: float
    low: float | None = None
    high: float | None = None
    commit: str | None = None
    valid: bool = True  # False: throttled, interrupted, contradicted; kept, shown, and decides nothing
    reason: str | None = None  # why it is not valid
    night: str | None = None
    outcome: str | None = None  # what was decided of its run
    lost: float = 0.0  # the share of its time that others had the processor, or the machine was taken away


@dataclass(frozen=True)
class AcceptedChange:
    """A known change, the new normal from `since` on: it begins a segment. `metric` None: of the whole workload."""

    workload: str
    since: str  # ISO 8601
    word: str  # why, in the words of whoever accepted it
    metric: str | None = None
    by: str | None = None


@dataclass(frozen=True)
class Series:
    """One metric over time, oldest first."""

    key: SeriesKey
    unit: str
    better: Direction
    points: tuple[Point, ...]


SegmentCause = Literal["begin", "machine", "accepted"]


@dataclass(frozen=True)
class Segment:
    """A stretch of a series within which values may be compared; `first` and `last` are indices.

    `word`: why a change was accepted, in the words of whoever did (`by`).
    """

    first: int
    last: int
    cause: SegmentCause
    word: str = ""
    by: str | None = None


@dataclass(frozen=True)
class ChangePoint:
    """From `index` (the first value after it) on the series is another one."""

    index: int
    before: float  # medians of the stretches that it parts
    after: float
    started: str | None = None  # of the first value after it
    commit: str | None = None
    strength: float | None = None  # standard errors that it stands out by; None where nothing else varies

    @property
    def ratio(self) -> float | None:
        """After over before; None where before is 0."""
        return self.after / self.before if self.before else None


@dataclass(frozen=True)
class Trend:
    """A series with its segments (`epochs`), its change points, and its noise."""

    series: Series
    epochs: tuple[Segment, ...] = ()
    change_points: tuple[ChangePoint, ...] = ()
    noise: float | None = None  # relative, from one value to the next
    detectable: float | None = None  # the smallest relative change that one night could show
    autocorrelation: float | None = None


@dataclass(frozen=True)
class SeriesSummary:
    """A trend with what an overview says of it. `level` and `before` are medians in the series' unit.

    `level`: of the last valid nights; `before`: of those that ended `SUMMARY_DAYS` days earlier, None where they may
    not be compared with each other. `counts`: the smallest relative change that counts, which is what one night can
    show, and no less than the floor of the metric; None where the noise is not known.
    """

    trend: Trend
    gates: bool  # whether it can fail a night
    level: float | None = None
    before: float | None = None
    counts: float | None = None


SUMMARY_DAYS = 30


@dataclass(frozen=True)
class HistorySummary:
    """All series of a history, and its runs (without their values), oldest first."""

    series: tuple[SeriesSummary, ...] = ()
    entries: tuple[Entry, ...] = ()
