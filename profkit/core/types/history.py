"""Runs over time, and a nightly: many workloads, each compared with its own past."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from profkit.core.types.comparison import Change, Feature, Pairing
from profkit.core.types.readings import RUN, Direction, Fact, Quality, Scope, Verdict


@dataclass(frozen=True)
class SeriesKey:
    """What identifies a series: values of different days with the same key belong together."""

    workload: str
    backend: str
    metric: str
    scope: Scope = RUN


@dataclass(frozen=True)
class Value:
    """One metric of one run as it is stored: the centre and its interval."""

    key: SeriesKey
    unit: str
    better: Direction
    value: float
    quality: Quality
    low: float | None = None
    high: float | None = None
    doubt: Fact | None = None  # what contradicts it: it is shown, and decides nothing


@dataclass(frozen=True)
class Entry:
    """One run as a history keeps it."""

    id: str  # for ever: adding the same run twice changes nothing
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
    outcome: str | None = None  # a nightly's word; None where nobody decided
    valid: bool = True  # False: throttled, interrupted, ...: shown, decides nothing, and
    reason: Fact | None = None  # why


@dataclass(frozen=True)
class HistoryPoint:
    """One value of a series with what is known of its run."""

    entry: str  # the run's id
    started: str
    machine: str
    value: float
    low: float | None = None
    high: float | None = None
    commit: str | None = None
    valid: bool = True  # as that of the entry; False where the value is contradicted, too
    reason: Fact | None = None


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
    points: tuple[HistoryPoint, ...]


@dataclass(frozen=True)
class Segment:
    """A stretch of a series within which values may be compared; `first` and `last` are indices."""

    first: int
    last: int
    cause: Literal["begin", "machine", "accepted"]
    word: str = ""  # why a change was accepted, in the words of
    by: str | None = None  # whoever did


@dataclass(frozen=True)
class ChangePoint:
    """A place where a series changes its level: `index` is the first value after it."""

    index: int
    before: float  # medians of the stretches that it parts
    after: float
    started: str | None = None  # of the first value after it
    commit: str | None = None

    @property
    def ratio(self) -> float | None:
        """Return after over before; None if before is 0."""
        return self.after / self.before if self.before else None


@dataclass(frozen=True)
class Trend:
    """A series with its segments (`epochs`), its change points, and its noise."""

    series: Series
    epochs: tuple[Segment, ...] = ()
    change_points: tuple[ChangePoint, ...] = ()
    noise: float | None = None  # relative, from one value to the next
    autocorrelation: float | None = None


# ---------------------------------------------------------------- a night

# `pass`: held, and nothing worse than what `detectable` says; `invalid`: throttled, or another machine; `missing`: it
# was declared, and not measured; `new`: too few nights to compare it with. Only `pass`, `improved`, `new` are green.
Outcome = Literal["pass", "regressed", "improved", "ambiguous", "invalid", "missing", "new"]
# The worst first. What was not measured is worse than what could not be decided.
OUTCOME_ORDER: tuple[Outcome, ...] = (
    "regressed", "missing", "invalid", "ambiguous", "improved", "new", "pass",
)  # fmt: skip
MISSED_TARGET = "target"  # the code of a workload that only misses a target: nothing need have become slower
# Not what could not be decided: its commit may be slower, and to hold the next night against it would hide that.
GOOD: tuple[Outcome, ...] = ("pass", "improved", "new")
PAIRED = "paired"  # the code of what the pairs decided
EXACTLY = "exact"  # of what was counted beside the base
FIRST = "first-night"  # of a new one, where nothing was good before
SAME_CODE = "same-code"  # of what was measured of the very commit that was good before
NOT_COMPARED = "not-compared"  # of what has no past, where pairs were to be run and could not be


@dataclass(frozen=True)
class MetricOutcome:
    """What the nightly says about one metric of one workload, by a `code`: a short fixed word."""

    metric: str
    outcome: Outcome
    code: str
    reason: Fact | None = None  # of a run that is not valid: what is known of it
    unit: str = ""
    better: Direction = "lower"
    scope: Scope = RUN
    value: float | None = None
    expected: float | None = None  # the median of the past that it is compared with
    band: tuple[float, ...] = ()  # low, high: the control limits; a night outside is a candidate regression
    detectable: float | None = None  # the smallest relative change that tonight could have shown
    change: Change | None = None  # of the interleaved re-run, where there was one
    trend: Trend | None = None  # what a plot shows
    nights: int = 0  # for how many nights in a row it has been outside
    by_past: str = ""  # the code of what its past alone says, where that is worse than what decided
    gates: bool = True  # False: shown, and sets no outcome of the night
    since: str | None = None  # when the regression, or the candidate, began: `started` of its first night
    commit: str | None = None  # of that night
    good_commit: str | None = None  # of the last good night before it
    # What a regression that stood already has lost on top since the night before, and that night's commit.
    step: float | None = None
    step_since: str | None = None


@dataclass(frozen=True)
class PairsCommand:
    """How `profkit compare --base` and `profkit bisect` are called to run two of a workload's commits in pairs."""

    command: tuple[str, ...]
    setup: tuple[str, ...] = ()  # makes a checkout ready
    env: tuple[str, ...] = ()  # NAME=value


@dataclass(frozen=True)
class NightPairs:
    """The result of running a workload alternately with the commit `base`."""

    base: str | None = None
    why: Fact | None = None  # why they were not run alternately, or too few times
    fix: str | None = None
    same: bool = False  # the base is tonight's own commit, so no code could be slower
    first: bool = False  # no night was good yet, and tonight's commit stands for later nights
    failed: bool = False  # something that can be mended prevented the pairs
    changes: tuple[Change, ...] = ()
    exact: tuple[Change, ...] = ()  # of what was counted and not timed
    pairing: Pairing | None = None
    notes: tuple[Fact, ...] = ()
    uncounted: tuple[Fact, ...] = ()  # why a count beside the base decides nothing


@dataclass(frozen=True)
class WorkloadOutcome:
    """What the nightly says about one workload: the worst of its metrics, and where its run lies."""

    name: str
    backend: str
    outcome: Outcome
    code: str
    reason: Fact | None = None  # why its profile did not end well, or decides nothing
    run: str | None = None
    seconds: float = 0.0
    metrics: tuple[MetricOutcome, ...] = ()  # the one that decides first
    verdicts: tuple[Verdict, ...] = ()  # of its targets
    fix: str | None = None
    ending: str = "done"  # of its profile: "workload-failed", "machine", "out-of-time", ...
    log: str | None = None  # what its profile printed; like `run` relative to the night's folder
    pairs: NightPairs | None = None  # without their changes, which the metrics have
    in_pairs: PairsCommand | None = None


@dataclass(frozen=True)
class Night:
    """One complete nightly."""

    id: str
    name: str
    started: str
    outcome: Outcome
    seconds: float = 0.0
    commit: str | None = None
    workloads: tuple[WorkloadOutcome, ...] = ()  # worst first
    notes: tuple[Fact, ...] = ()  # what could not be stored or written
    exit_code: int = 0
    interrupted: bool = False  # Ctrl-C: what was finished is in it, and the rest missing
