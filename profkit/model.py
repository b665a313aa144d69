"""The words of the house as frozen types: what rooms hand each other, and nothing else.

Imports nothing of profkit. Every type here is plain data: no files, no processes, no clocks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

Backend = Literal["cuda", "mps", "cpu"]
Quality = Literal["measured", "simulated", "estimated", "multiplexed", "unavailable"]
ScopeKind = Literal["run", "region", "kernel", "function"]
CounterState = Literal["measured", "multiplexed", "not-supported", "not-counted", "hard-zero"]
VerdictWord = Literal["pass", "fail", "not-applicable", "unknown"]
PassName = Literal["timing", "cprofile", "tracemalloc", "trace", "counters"]
PassState = Literal["finished", "skipped", "failed", "interrupted"]
RunState = Literal["running", "complete", "interrupted", "failed"]
Depth = Literal["gate", "standard", "full"]
Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"


# ---------------------------------------------------------------- values


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


@dataclass(frozen=True)
class Report:
    """What a reader made of one artifact, whoever recorded it. `facts` decide what may be compared."""

    tool: str
    format: str
    version: str | None = None
    facts: Mapping[str, str] = field(default_factory=dict)
    counters: tuple[Counter, ...] = ()
    profiles: tuple[Profile, ...] = ()
    stacks: tuple[Stacks, ...] = ()
    warnings: tuple[str, ...] = ()


# ---------------------------------------------------------------- time


@dataclass(frozen=True)
class SampleSet:
    """Samples of one process in seconds per iteration, in the order they were taken.

    `loops` iterations were run per sample (so that a sample is long enough for the clock) and divided out.
    """

    seconds: tuple[float, ...]
    loops: int = 1
    warmup: tuple[float, ...] = ()
    warm: bool = True  # drift was gone before sampling began
    precise: bool = True  # the interval became as narrow as asked before the budget ended
    pid: int | None = None
    spent: float = 0.0  # wall seconds for warm-up and samples together


@dataclass(frozen=True)
class Timing:
    """The timing pass of one region (or of the whole process): samples per process, and what the work is."""

    name: str
    kind: Literal["benchmark", "region", "process"]
    processes: tuple[SampleSet, ...]
    precision: float  # asked relative half-width of the interval, 0.01 is ±1 %
    flops: float | None = None  # per iteration, as the workload declares them
    bytes: float | None = None


# ---------------------------------------------------------------- plan


@dataclass(frozen=True)
class Switch:
    """How `profkit.region` turns the instrument of this pass on and off."""

    kind: Literal["perf-control", "valgrind"]
    control: str | None = None  # perf: the fifo that takes `enable` and `disable`
    ack: str | None = None  # perf: the fifo that answers `ack`


@dataclass(frozen=True)
class Directive:
    """What the workload's own process is told, as JSON in the environment variable PROFKIT_DIRECTIVE.

    `record` is a path prefix: every process that enters a region leaves `<record>.<pid>.json` there.
    `iterations`, or else `seconds`, say how long `profkit.benchmark` keeps an instrument fed after `warmup` calls.
    """

    pass_name: PassName
    record: str
    switch: Switch | None = None
    iterations: int | None = None
    seconds: float | None = None
    warmup: int = 1
    precision: float = 0.01
    budget: float = 30.0  # timing: wall seconds for warm-up and samples of one process


@dataclass(frozen=True)
class Step:
    """One execution of the workload under one instrument, as data: it can be printed, stored and run."""

    name: str
    argv: tuple[str, ...]
    artifacts: tuple[str, ...] = ()  # paths inside the run's folder
    env: Mapping[str, str] = field(default_factory=dict)  # set on top of the caller's environment
    directive: Directive | None = None
    fifos: tuple[str, ...] = ()  # made before the step, removed after it
    tool: str | None = None
    workload_status: str | None = None  # file in which the wrapped workload's own wait status is written
    after: tuple[tuple[str, ...], ...] = ()  # conversions to run afterwards (perf inject), each an argv


@dataclass(frozen=True)
class PassPlan:
    """One pass: its steps, the counters each collects, and what it is expected to cost."""

    name: PassName
    tool: str | None
    steps: tuple[Step, ...] = ()
    counters: tuple[str, ...] = ()
    cost: float | None = None  # expected wall time as a multiple of one plain run; None if unknown
    cost_note: str = ""  # where the figure comes from
    limit: float | None = None  # wall seconds one step may take; None: as long as it needs
    parallel: bool = False  # its steps do not disturb each other (simulation)
    simulated: bool = False
    skipped: str | None = None  # why it will not run, and
    fix: str | None = None  # the line that would let it
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Plan:
    """The passes of one run, in order."""

    backend: Backend
    depth: Depth
    passes: tuple[PassPlan, ...]


@dataclass(frozen=True)
class PassResult:
    """How one pass ended."""

    name: PassName
    tool: str | None
    state: PassState
    reason: str | None = None
    fix: str | None = None
    seconds: float = 0.0
    cost: float | None = None  # as a multiple of one plain run, measured
    artifacts: tuple[str, ...] = ()
    log: str | None = None


# ---------------------------------------------------------------- machine and tools


@dataclass(frozen=True)
class Cache:
    """One data or unified cache as one core sees it. `size` and `line` in bytes; `shared` cores share it."""

    level: int
    size: int
    ways: int
    line: int = 64
    shared: int = 1
    source: str = "sysfs"  # sysfs, or "assumed" where the machine does not say


@dataclass(frozen=True)
class Machine:
    """What decides whether two runs may be compared, without naming the machine."""

    system: str
    release: str
    architecture: str
    cpu: str
    vendor: str
    family: int | None
    model: int | None
    stepping: int | None
    cores: int
    caches: tuple[Cache, ...]
    memory_bytes: int
    virtual: str | None  # hypervisor or container kind, None on bare metal
    governor: str | None
    max_mhz: float | None
    python: str
    features: tuple[str, ...] = ()
    instruction_cache: Cache | None = None  # first level; `caches` holds data and unified ones only


@dataclass(frozen=True)
class Peaks:
    """The machine's own measured limits. Bandwidth in bytes/s, arithmetic in FLOP/s; None if not measured."""

    bandwidth_one: float | None
    bandwidth_all: float | None
    flops_f32_one: float | None
    flops_f32_all: float | None
    threads: int
    method: str


CheckState = Literal["ok", "limited", "missing", "refused"]


@dataclass(frozen=True)
class Check:
    """One line of the doctor: what was tried, what came of it, and the one line that fixes it."""

    name: str
    state: CheckState
    detail: str
    fix: str | None = None
    path: str | None = None
    version: str | None = None


# ---------------------------------------------------------------- answers


@dataclass(frozen=True)
class Table:
    """A small table for people: column titles, rows of text, already rounded for reading."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str | None = None


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


@dataclass(frozen=True)
class Workload:
    """The command being profiled, as the user typed it."""

    command: tuple[str, ...]
    name: str
    folder: str  # working folder the command runs in
    python: str | None = None  # the interpreter, where the command is a Python program


@dataclass(frozen=True)
class RunDocument:
    """All of run.json. Grows while a run goes on; every state of it is a valid document."""

    name: str
    backend: Backend
    state: RunState
    workload: Workload
    started: str  # ISO 8601, UTC
    machine: Machine | None = None
    plan: Plan | None = None
    tools: Mapping[str, str] = field(default_factory=dict)
    peaks: Peaks | None = None
    passes: tuple[PassResult, ...] = ()
    timings: tuple[Timing, ...] = ()
    counters: tuple[Counter, ...] = ()
    readings: tuple[Reading, ...] = ()
    profiles: tuple[Profile, ...] = ()
    summaries: tuple[Summary, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    notes: tuple[str, ...] = ()
    failure: str | None = None
