"""Values and where they come from: scopes, readings, counters, profiles, stacks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from profkit.core.types.words import CounterState, Quality, ScopeKind


@dataclass(frozen=True)
class Scope:
    """What a value speaks of: the whole run, a region, a kernel or a function."""

    kind: ScopeKind = "run"
    name: str | None = None
    id: str | None = None


RUN = Scope("run")


@dataclass(frozen=True)
class Source:
    """Where a value comes from, so that every number on the screen can be traced to a file."""

    tool: str
    counter: str | None = None
    artifact: str | None = None
    formula: str | None = None


@dataclass(frozen=True)
class Reading:
    """One value of one metric.

    `value` is None exactly when `quality` is "unavailable"; then `reason` says why and `fix`, where there
    is one, is the line that would change it. `share` is the part of the time a multiplexed counter ran (0..1).
    `doubt` says which other reading of the same report contradicts it: it is shown, and decides nothing.
    """

    metric: str
    value: float | None
    unit: str
    quality: Quality
    scope: Scope
    source: Source
    reason: str | None = None
    share: float | None = None
    fix: str | None = None
    doubt: str | None = None

    def __post_init__(self) -> None:
        if (self.value is None) != (self.quality == "unavailable"):
            raise ValueError(f"{self.metric}: a reading has a value or is unavailable, never both or neither")
        if self.value is not None and (
            self.value != self.value or self.value in (float("inf"), float("-inf"))
        ):
            raise ValueError(f"{self.metric}: NaN and infinity are not values; make the reading unavailable")
        if self.value is None and not self.reason:
            raise ValueError(f"{self.metric}: an unavailable reading needs its reason")


@dataclass(frozen=True)
class Counter:
    """One raw event count as a tool reported it, with its state. `value` is None unless it was counted.

    `hard-zero` is a count of 0 that the hardware or the hypervisor cannot have meant: it has no value.
    `share` is the part of the time the event was on a hardware counter (0..1); None where the tool has no such idea.
    `pmu` names the PMU of a hybrid part (`cpu_core`, `cpu_atom`) and is None elsewhere.
    """

    name: str
    value: float | None
    state: CounterState
    unit: str = ""
    share: float | None = None
    scope: Scope = RUN
    pmu: str | None = None
    reason: str | None = None


@dataclass(frozen=True)
class Hotspot:
    """One function (or source line) of a profile. `own` and `total` are in the profile's unit."""

    function: str
    own: float
    total: float | None = None
    calls: int | None = None
    file: str | None = None
    line: int | None = None
    library: str | None = None
    counters: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Profile:
    """Where something went, by function, largest own value first. `total` is the sum over everything."""

    title: str
    unit: str
    total: float
    hotspots: tuple[Hotspot, ...]


@dataclass(frozen=True)
class Frame:
    """One stack frame of a sample."""

    function: str
    library: str | None = None
    file: str | None = None
    line: int | None = None


@dataclass(frozen=True)
class Stacks:
    """Samples merged by stack: outermost frame first -> weight in `unit`."""

    title: str
    unit: str
    weights: Mapping[tuple[Frame, ...], float]
