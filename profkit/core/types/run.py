"""A run from its plan to the verdicts: passes, timings, the machine, what is wrong, and the whole document."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from profkit.core import errors
from profkit.core.types.account import Account
from profkit.core.types.gpu import (
    Gpu,
    GpuTrace,
    Kernel,
    KernelBottleneck,
    KernelInstruction,
    MetalTrace,
    ToolRule,
)
from profkit.core.types.hot_spots import NOWHERE, CodeSpot, LineCount, Place, SampledTime
from profkit.core.types.readings import (
    BackendName,
    CheckState,
    Counter,
    Depth,
    Directive,
    Fact,
    PassName,
    PassState,
    Profile,
    Reading,
    RunState,
    SampleSet,
    Stacks,
    Summary,
    Verdict,
)
from profkit.core.types.timeline import Timeline
from profkit.core.types.trials import TriedChange


@dataclass(frozen=True)
class Step:
    """One execution of the workload under one instrument, as data: it can be printed, stored and run."""

    name: str
    argv: tuple[str, ...]
    artifacts: tuple[str, ...] = ()  # paths inside the run's folder
    env: Mapping[str, str] = field(default_factory=dict)  # set on top of the caller's environment
    directive: Directive | None = None
    fifos: tuple[str, ...] = ()  # made before the step, removed after it
    files: Mapping[str, str] = field(default_factory=dict)  # path -> text, written before: its tool's options
    tool: str | None = None
    workload_status: str | None = None  # file in which the wrapped workload's own wait status is written
    signals_as_codes: bool = False  # the tool ends with the number of a signal as with an exit code
    after: tuple[tuple[str, ...], ...] = ()  # conversions to run afterwards (perf inject), each an argv
    after_limit: float = 300.0  # seconds that one of them may take
    # Seconds for the tool, asked alone, to end the workload and finish its report. 0: the whole tree is asked.
    finish: float = 0.0
    own_limit: bool = False  # the tool is told its time limit, and keeps to it by itself
    end_signal: int = 2  # which signal asks the tool to end; 2 is SIGINT
    cut: bool = False  # its time limit is no fault: what was written until then is what is wanted
    # Its time limit is of work: on a busy machine it gets the time for which it waited for a processor on top of it, up
    # to as much again.
    extended: bool = False
    fine: tuple[int, ...] = ()  # exit codes of the tool, beside 0, after which all is there
    tells: str | None = None  # the tool's option for a variable (`--env`), where it has the workload started


@dataclass(frozen=True)
class KernelPlan:
    """One launch configuration that is to be counted, and its share of the GPU time."""

    kernel: Kernel
    share: float  # of the region's GPU time, 0..1
    launch: int | None = None  # which of its launches, 0 the first


@dataclass(frozen=True)
class PassPlan:
    """One pass: its steps, the counters each collects, and what it is expected to cost."""

    name: PassName
    tool: str | None
    steps: tuple[Step, ...] = ()
    counters: tuple[str, ...] = ()
    cost: float | None = None  # expected wall time as a multiple of one normal run; None if unknown
    limit: float | None = None  # wall seconds one step may take by plan; None: none is cut
    least: float | None = None  # of them, with which it is worth doing; None: with all
    parallel: bool = False  # its steps do not disturb each other (simulation)
    simulated: bool = False
    skipped: Fact | None = None  # why it will not run, and
    fix: str | None = None  # the line that would let it
    kernels: tuple[KernelPlan, ...] = ()  # GPU: what is counted; empty until the trace has shown it
    notes: tuple[Fact, ...] = ()

    def skip(self, reason: Fact | None, fix: str | None = None) -> PassPlan:
        """Return the pass with nothing to run, the reason, and the line that would let it run."""
        return replace(self, steps=(), skipped=reason, fix=fix)

    def skipped_result(self) -> PassResult:
        """Return the result of a pass that is skipped."""
        return PassResult(self.name, self.tool, "skipped", reason=self.skipped, fix=self.fix)


@dataclass(frozen=True)
class Plan:
    """The passes of one run, in order."""

    backend: BackendName
    depth: Depth
    passes: tuple[PassPlan, ...]
    notes: tuple[Fact, ...] = ()  # what the place adds: what it may cost


@dataclass(frozen=True)
class PassResult:
    """How one pass ended."""

    name: PassName
    tool: str | None
    state: PassState
    reason: Fact | None = None
    fix: str | None = None
    seconds: float = 0.0
    cost: float | None = None  # as a multiple of one normal run, measured
    artifacts: tuple[str, ...] = ()
    log: str | None = None

    @property
    def has_object(self) -> bool:
        """Return whether there was anything for it to look at: a program in C has no Python."""
        return self.state != "skipped" or self.reason is None or self.reason.code not in _WITHOUT_OBJECT


# Of passes that were skipped: the program has nothing of what they look at.
_WITHOUT_OBJECT = frozenset(
    {
        *("no-python-program", "python-runs-nothing", "nothing-to-look-at"),
        *("nothing-worth-counting", "nothing-to-explain", "no-kernel-missed"),
    }
)


@dataclass(frozen=True)
class Gain:
    """The most that a change can save: a share (0..1) of the time that `of` names."""

    at_most: float
    of: str  # "the GPU time", "the run time", "the time of a step"
    bound: str  # how it follows
    tried: bool = False  # the program was run so, and took so much less


@dataclass(frozen=True)
class Insight:
    """One conclusion."""

    rule: str
    title: str  # the change in a few words
    evidence: str  # the numbers, without the kernel and its share, which stand in `where`
    change: str  # how it is made
    where: Place = NOWHERE
    gain: Gain | None = None  # None: no bound follows from what was measured
    source: Literal["profkit", "nsight"] = "profkit"  # or a rule of Nsight Compute in the report
    readings: tuple[Reading, ...] = ()
    targets: tuple[str, ...] = ()  # the missed targets of the run that it explains


@dataclass(frozen=True)
class TimeSplit:
    """Where the wall time of one run of the workload went. Times in seconds; None if not measured."""

    wall: float
    startup: float | None = None  # before the steady part
    steady: float | None = None
    waiting: float | None = None  # no thread ran or could run
    queued: float | None = None  # one could run and had no processor
    cpu: float | None = None  # processor time of all threads
    threads: float | None = None  # that over the time in which it worked
    repeats: int | None = None  # how often what repeats was seen
    loops: float | None = None  # in other loops, before or after the steady part
    untraced: float | None = None  # after the steady part: what was done there was not recorded
    thread_count: int | None = None  # the most that there were
    read: float | None = None  # bytes of `io_calls` calls
    written: float | None = None
    io_calls: int | None = None
    # Of the first process alone, without those that it started (Linux):
    faults: int | None = None  # pages that it got without reading a file
    kernel: float | None = None  # processor time in the kernel


@dataclass(frozen=True)
class Timing:
    """The timing pass of one region (or of the whole process): samples per process, and what the work is."""

    name: str
    kind: Literal["benchmark", "region", "process"]
    processes: tuple[SampleSet, ...]
    precision: float  # asked relative half-width of the interval, 0.01 is ±1 %
    flops: float | None = None  # per iteration, as the workload declares them
    bytes: float | None = None
    group: str | None = None  # of cases that are held against each other: `Triton: GELU forward float32`


@dataclass(frozen=True)
class Report:
    """What a reader made of one artifact, whatever recorded it. `facts` decide which runs may be compared."""

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
    sampled: SampledTime | None = None
    timeline: Timeline | None = None  # of threads; a device's is in `trace`
    warnings: tuple[Fact, ...] = ()
    fault: errors.Fault | None = None  # why the tool lost the kernels that it had recorded
    # Of one device its first launches that count, in order: which of the trace's kernels each is, and its seconds.
    launches: tuple[tuple[int, float], ...] = ()


MemorySeriesKind = Literal["resident", "allocated", "reserved"]


@dataclass(frozen=True)
class AllocationLine:
    """A source line and what it holds, or by how much that grew: bytes and blocks."""

    file: str
    line: int
    size: int
    count: int


@dataclass(frozen=True)
class MemoryGrowth:
    """Bytes that each iteration leaves behind, with a 95 % interval; `leak` is None if that cannot be decided."""

    per_iteration: float | None
    low: float | None
    high: float | None
    iterations: int  # that were looked at, after the first ones
    leak: bool | None
    reason: Fact


@dataclass(frozen=True)
class Allocations:
    """Python's own allocations, in bytes, as tracemalloc saw them: not the memory of the process."""

    peak: int
    region_peak: int | None  # None where no region was marked
    growth: MemoryGrowth
    top: tuple[AllocationLine, ...]
    growing: tuple[AllocationLine, ...]  # between the first iterations and the last
    notes: tuple[Fact, ...]


@dataclass(frozen=True)
class MemorySeries:
    """Memory over one run: bytes at so many seconds after it began; at most some hundred readings.

    `resident` is of the processes of the program together, since its start. `allocated` (by tensors) and
    `reserved` (by torch's allocator) are of the device, since CUDA was first used in the run that recorded
    operations.
    """

    kind: MemorySeriesKind
    seconds: tuple[float, ...]
    bytes: tuple[float, ...]
    peak: float | None = None  # bytes, where something else tells the most: it may lie between two looks
    steps: tuple[
        float, ...
    ] = ()  # when entries of the marked region began, in seconds as above; of many some


@dataclass(frozen=True)
class Workload:
    """The command being profiled, as the user typed it."""

    command: tuple[str, ...]
    name: str
    folder: str  # working folder the command runs in
    python: str | None = None  # the interpreter, where the command is a Python program


@dataclass(frozen=True)
class Revision:
    """What git says of the folder that the workload's script lies in, or runs in; no remote, no author, no path."""

    commit: str | None = None  # 40 or 64 hexadecimal digits; None before the first commit
    dirty: bool | None = None  # tracked files differ from the commit; None where that took too long to tell
    reason: Fact | None = None  # why there is less than that: no git here, no repository, an empty one


@dataclass(frozen=True)
class ProgramWarning:
    """A warning that the program printed by Python's `warnings`: where it was issued, and its text."""

    file: str
    line: int
    category: str  # `PerformanceWarning`
    text: str


@dataclass(frozen=True)
class RunDocument:
    """The content of run.json. It grows while a run goes on; every state of it is a valid document."""

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
    kernels: tuple[KernelBottleneck, ...] = ()  # what limits each, largest share of GPU time first
    instructions: tuple[KernelInstruction, ...] = ()  # the costliest of each kernel
    rules: tuple[ToolRule, ...] = ()  # what rules of the counting tool concluded
    # of the tools' sessions: what decides comparability
    facts: Mapping[str, str] = field(default_factory=dict)
    counters: tuple[Counter, ...] = ()
    readings: tuple[Reading, ...] = ()
    profiles: tuple[Profile, ...] = ()
    summaries: tuple[Summary, ...] = ()
    sampled: tuple[SampledTime, ...] = ()  # lines of the program, by its interpreter's stacks and by perf's
    timeline: Timeline | None = None  # of the program's threads; a device's is in `trace`
    line_counts: tuple[LineCount, ...] = ()  # executions of the program's lines that take most of the time
    hot_spots: tuple[CodeSpot, ...] = ()  # where the time goes, most first; shares add up to 1
    # Of a step on a device: what takes it, and what the hardware would need for that.
    account: Account | None = None
    insights: tuple[Insight, ...] = ()  # what to change: the first is what to do first
    trials: tuple[TriedChange, ...] = ()  # changes that were tried, in the order of the trials
    warnings: tuple[ProgramWarning, ...] = ()  # of the program itself, as Python printed them
    time_split: TimeSplit | None = None
    verdicts: tuple[Verdict, ...] = ()
    allocations: Allocations | None = None  # of Python, as tracemalloc saw them
    memory: tuple[MemorySeries, ...] = ()
    notes: tuple[Fact, ...] = ()
    failure: str | None = None
    revision: Revision | None = None  # None: not asked (a report, an older run)
    disturbances: tuple[Disturbance, ...] = ()  # one for each process of the timing pass, in their order
    # versions of what its process had loaded: "torch"
    packages: Mapping[str, str] = field(default_factory=dict)
    place: str | None = None  # where it ran, as `--on` says it: "ssh:gpu1"; None: where profkit was called

    @property
    def is_sweep(self) -> bool:
        """Return whether its timings are cases of groups, for which a verdict on each is no answer."""
        return any(timing.group is not None for timing in self.timings)


@dataclass(frozen=True)
class Cache:
    """One data or unified cache as a core sees it. `size` and `line` in bytes.

    `shared` is the number of cores that share it.
    """

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
    cores: int
    caches: tuple[Cache, ...]
    memory_bytes: int
    virtual: str | None  # hypervisor or container kind, None on bare metal
    governor: str | None
    max_mhz: float | None
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


@dataclass(frozen=True)
class Disturbance:
    """What other processes took from the processor while one process of the timing pass ran. None if not known."""

    seconds: float  # wall time of the process
    cpu: float | None = None  # CPU seconds of it and its children
    stolen: float | None = None  # seconds of all cores that the hypervisor gave to other guests
    others: float | None = None  # CPU seconds of other processes, of all cores
    waited: float | None = None  # seconds that its own threads could run and had no core


@dataclass(frozen=True)
class Check:
    """One line of the doctor: what was tried, the result, and the line that fixes it."""

    name: str
    state: CheckState
    detail: str
    fix: str | None = None
    path: str | None = None
    version: str | None = None
