"""A run from the command to the verdicts: its timings, reports of tools, allocations, and the whole document."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from profkit.core.errors import Fault
from profkit.core.types.exchange import SampleSet, TritonWork
from profkit.core.types.gpu import Gpu, GpuTrace, KernelBottleneck, KernelInstruction, ToolRule
from profkit.core.types.insights import Insight, TimeSplit
from profkit.core.types.machine import Disturbance, Machine, Moment, Peaks, RunSpread
from profkit.core.types.metal import MetalTrace
from profkit.core.types.plan import PassResult, Plan
from profkit.core.types.readings import (
    BackendName,
    Counter,
    Profile,
    Reading,
    RunState,
    Stacks,
    Summary,
    Verdict,
)


@dataclass(frozen=True)
class Timing:
    """The timing pass of one region (or of the whole process): samples per process, and what the work is."""

    name: str
    kind: Literal["benchmark", "region", "process"]
    processes: tuple[SampleSet, ...]
    precision: float  # asked relative half-width of the interval, 0.01 is ±1 %
    flops: float | None = None  # per iteration, as the workload declares them
    bytes: float | None = None
    # What it is a case of, where cases are held against each other together: of a sweep `Triton: GELU forward float32`.
    group: str | None = None


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
    trace: GpuTrace | None = None
    metal: MetalTrace | None = None
    gpus: tuple[Gpu, ...] = ()
    instructions: tuple[KernelInstruction, ...] = ()
    rules: tuple[ToolRule, ...] = ()
    warnings: tuple[str, ...] = ()
    fault: Fault | None = None  # why the tool lost the kernels that it had recorded


@dataclass(frozen=True)
class AllocationLine:
    """A source line and what it holds, or what that grew by: bytes and blocks."""

    file: str
    line: int
    size: int
    count: int


@dataclass(frozen=True)
class SteadyLine:
    """A line that held more at each of `looks` looks than at the one before. Bytes, and seconds since the start."""

    file: str
    line: int
    first: int
    last: int
    blocks: int  # at the last look
    looks: int
    begin: float
    end: float


@dataclass(frozen=True)
class MemoryGrowth:
    """Bytes that each iteration leaves behind, with a 95 % interval; `leak` is None where nothing tells."""

    per_iteration: float | None
    low: float | None
    high: float | None
    iterations: int  # that were looked at, after the first ones
    leak: bool | None
    reason: str


@dataclass(frozen=True)
class Allocations:
    """Python's own allocations, in bytes. `start` to `region_peak` are None where no region was marked.

    `growing` lines are what grew between the iterations `growth_between`; all sizes are as tracemalloc saw
    them, which is not the memory of the process.
    """

    peak: int
    end: int
    start: int | None
    region_peak: int | None
    entries: int
    growth: MemoryGrowth
    top: tuple[AllocationLine, ...]
    growing: tuple[AllocationLine, ...]
    growth_between: tuple[int, int] | None
    python: str
    notes: tuple[str, ...]
    points: tuple[tuple[int, int], ...] = ()  # (iteration, bytes held after it)
    steady: tuple[SteadyLine, ...] = ()  # where no region was marked


@dataclass(frozen=True)
class Workload:
    """The command being profiled, as the user typed it."""

    command: tuple[str, ...]
    name: str
    folder: str  # working folder the command runs in
    python: str | None = None  # the interpreter, where the command is a Python program
    stdin: str | None = None  # the file that is its standard input; "-": what profkit was given; None: empty


@dataclass(frozen=True)
class RunProcess:
    """The process that carries a run out, while it does; `host` and `boot` say of which machine and of which start."""

    pid: int
    start: float  # seconds
    boot: str
    host: str  # a digest


@dataclass(frozen=True)
class Revision:
    """What git says of the folder that the workload's script lies in, else runs in; no remote, no author, no path.

    What is None was not told.
    """

    commit: str | None = None  # 40 or 64 hexadecimal digits; None before the first commit
    branch: str | None = None  # None where the head is detached
    dirty: bool | None = None  # tracked files differ from the commit; None where that took too long to tell
    reason: str | None = None  # why there is less than that: no git here, no repository, an empty one


@dataclass(frozen=True)
class RunDocument:
    """All of run.json. Grows while a run goes on; every state of it is a valid document."""

    name: str
    backend: BackendName
    state: RunState
    workload: Workload
    started: str  # ISO 8601, UTC
    machine: Machine | None = None
    plan: Plan | None = None
    tools: Mapping[str, str] = field(default_factory=dict)
    peaks: Peaks | None = None
    passes: tuple[PassResult, ...] = ()
    timings: tuple[Timing, ...] = ()
    gpus: tuple[Gpu, ...] = ()
    trace: GpuTrace | None = None
    metal: MetalTrace | None = None
    triton: tuple[TritonWork, ...] = ()  # one for each process that told of it, in the order of the passes
    kernels: tuple[KernelBottleneck, ...] = ()  # what limits each, largest share of GPU time first
    instructions: tuple[KernelInstruction, ...] = ()  # the costliest of each kernel
    rules: tuple[ToolRule, ...] = ()  # what rules of the counting tool concluded
    # Of the tools' sessions: what decides comparability
    facts: Mapping[str, str] = field(default_factory=dict)
    counters: tuple[Counter, ...] = ()
    readings: tuple[Reading, ...] = ()
    profiles: tuple[Profile, ...] = ()
    summaries: tuple[Summary, ...] = ()
    insights: tuple[Insight, ...] = ()  # what to change, the largest gain first
    time_split: TimeSplit | None = None
    verdicts: tuple[Verdict, ...] = ()
    allocations: Allocations | None = None  # of Python, as tracemalloc saw them; without `points`
    notes: tuple[str, ...] = ()
    failure: str | None = None
    revision: Revision | None = None  # None: not asked (a report, an older run)
    moments: tuple[Moment, ...] = ()  # the machine right before and right after the timing pass
    disturbances: tuple[Disturbance, ...] = ()  # one for each process of the timing pass, in their order
    # Of this machine, as it was known before this run; None: not asked, or no program was measured twice here.
    run_spread: RunSpread | None = None
    # Versions in the workload's own process: "python", "torch", "triton", "numpy"; only what it had loaded.
    packages: Mapping[str, str] = field(default_factory=dict)
    place: str | None = None  # where it ran, as `--on` says it: "ssh:gpu1"; None: where profkit was called
    process: RunProcess | None = None  # while the state is "running"
