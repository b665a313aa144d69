"""Values and where they come from: scopes, readings, counters, profiles, stacks, concerns, verdicts.

Also what passes between profkit and the workload's own process: its instructions, and what it records.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import Literal, TypeAlias, get_args

from profkit.core.errors import NotANumber

BackendName: TypeAlias = str  # one of `profkit.backends.backend_names()`
Direction = Literal["lower", "higher", "none"]  # which way is good
Quality = Literal["measured", "multiplexed", "simulated", "estimated", "unavailable"]  # the surer comes first
QUALITY_ORDER: dict[Quality, int] = {quality: place for place, quality in enumerate(get_args(Quality))}
ScopeKind = Literal["run", "region", "kernel", "function"]
CounterState = Literal["measured", "multiplexed", "not-supported", "not-counted", "hard-zero"]
VerdictWord = Literal["pass", "fail", "not-applicable", "unknown"]
PassName = Literal["timing", "stacks", "cprofile", "tracemalloc", "trace", "counters", "explain", "try"]
PassState = Literal["finished", "skipped", "failed", "interrupted"]
RunState = Literal["running", "complete", "interrupted", "failed"]
CheckState = Literal["ok", "limited", "missing", "refused"]
Depth = Literal["quick", "gate", "standard", "full"]
# What limits a kernel. `issue`: the schedulers are busy; `latency`: nothing is busy, warps wait for each other's or
# their own results; `launch`: too small to fill the device, or shorter than the time it takes to launch it;
# `compute`: some unit of the multiprocessors, where the report does not say which; `xu`: special functions.
Bound = Literal[
    "dram", "l2", "l1", "shared",
    "tensor", "fp32", "fp64", "fp16", "integer", "xu", "compute",
    "issue", "latency", "launch", "unknown",
]  # fmt: skip
# What the functions of a profile are and what they were measured by.
ProfileKind = Literal[
    "functions", "python-functions", "libraries", "threads", "counted-functions", "counted-lines", "raises",
    "own-time", "imports",
    # Inner loops of compiled code: instructions, entries as calls, `rounds` of each, and `serial`: how many times as
    # long its chain of sums takes.
    "counted-loops",
    "operators",  # of torch, on a CPU: time in s, and `own_bytes` and `bytes` that they allocated less what they freed
    "line-operators",  # of torch, by the line of the program: time in s; with `flop_fp32` and `needed_bytes`
    "xla-operations",  # of JAX on a CPU, by the line of the program: s, of the seconds of the window in `total`
    "program-calls",  # of and from the program's own functions, by caller and callee
    "growing-lines",  # lines whose tensors stay on the device: bytes by which they grew
    "held-lines",  # lines that held the device's memory when it was full: bytes
    "tuned-kernels",  # kernels that Triton tuned for several keys
    "copied-arguments",  # arguments that a program of XLA copies whole in each call: bytes
    # Lines that start workers of torch's loaders: `own` seconds of starting and ending them, `total` with the waits for
    # the first batches after it; `again`: how often a loader's that had some before.
    "started-workers",
    "widened-products",  # products in kernels of Triton of operands that were made float32 before
    "debug-checks",  # switches for debugging that are on
    "recompilations",  # functions that a compiler compiles again
    "repeated-results",  # large results of torch that came again, made of the same tensors: how many
    "padded-batches",  # lines that bring padding to a device: columns in which no row holds anything else
    "graph-breaks",  # lines at which torch.compile leaves a function, and why
    # Of sampled Python stacks: functions by processor time, imports by wall time, threads by both; lines of the program
    # that ran outside of its regions, by wall time.
    "sampled-functions", "sampled-imports", "sampled-threads", "sampled-outside",
]  # fmt: skip
Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"


@dataclass(frozen=True)
class Fact:
    """Something to be said to the user, as a code with its numbers (SI units, shares 0..1) and names.

    `reporting/sentences/` has a sentence for each code. `parts` are the facts that stand in it: what it follows
    from is the last one. Under the code `text`, the name `text` is the message of another program, or a line to
    type.
    """

    code: str
    numbers: Mapping[str, float] = field(default_factory=dict, hash=False)
    names: Mapping[str, str] = field(default_factory=dict, hash=False)
    parts: tuple[Fact, ...] = ()

    @classmethod
    def of(cls, code: str, *parts: Fact, **values: float | str) -> Fact:
        """Build a fact of these values: texts become names, the rest numbers."""
        names = {name: value for name, value in values.items() if isinstance(value, str)}
        return cls(code, {n: float(v) for n, v in values.items() if not isinstance(v, str)}, names, parts)

    @classmethod
    def message(cls, text: str, fault: str | None = None) -> Fact:
        """Build a fact of another program's message, or of an error; `fault` is its code if it is a known fault."""
        return cls("text", names={"text": text, **({"fault": fault} if fault is not None else {})})

    @property
    def root(self) -> Fact:
        """Return the fact at the bottom, following what each one follows from.

        Facts that hold together are kept whole.
        """
        return self.parts[-1].root if self.parts and self.code not in WHOLE else self

    @property
    def kind(self) -> tuple[object, ...]:
        """Return what it says without its numbers and names: equal for two facts that differ in these alone."""
        said = re.sub(r"[0-9]+(?:[.,][0-9]+)*", "#", self.names.get("text", ""))
        return (self.code, said, *(part.kind for part in self.parts))


def message_of(fact: Fact | None) -> str:
    """Return another program's message at the bottom of a fact; empty if there is none."""
    return fact.root.names.get("text", "") if fact is not None else ""


TOGETHER = "together"  # facts that hold at once
WHOLE = (TOGETHER, "not-supported", "not-counted", "hard-zero")  # whose parts say nothing without them


def together(*facts: Fact | None) -> Fact | None:
    """Combine the facts that are not None to one fact; None if there are none."""
    known = tuple(fact for fact in facts if fact is not None)
    return known[0] if len(known) == 1 else Fact(TOGETHER, parts=known) if known else None


@dataclass(frozen=True)
class Scope:
    """What a value is about: the whole run, a region, a kernel or a function."""

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
    """One value of one metric; None exactly when `quality` is "unavailable"."""

    metric: str
    value: float | None
    unit: str
    quality: Quality
    scope: Scope
    source: Source
    reason: Fact | None = None  # why there is no value, and
    share: float | None = None  # part of the time that a multiplexed counter ran (0..1)
    fix: str | None = None  # the line that would change that
    doubt: Fact | None = None  # which other reading contradicts it: it is shown, and decides nothing

    def __post_init__(self) -> None:
        if (self.value is None) != (self.quality == "unavailable"):
            raise ValueError(f"{self.metric}: a reading has a value or is unavailable, never both or neither")
        if self.value is not None and not isfinite(self.value):
            raise NotANumber(f"{self.metric}: NaN and infinity are not values; make the reading unavailable")
        if self.value is None and not self.reason:
            raise ValueError(f"{self.metric}: an unavailable reading needs its reason")


@dataclass(frozen=True)
class Counter:
    """One raw event count as a tool reported it, with its state. `value` is None unless it was counted."""

    name: str
    value: float | None
    state: CounterState  # hard-zero: a count of 0 that the hardware or the hypervisor cannot have meant
    unit: str = ""
    share: float | None = None  # part of the time the event was on a hardware counter (0..1)
    scope: Scope = RUN
    pmu: str | None = None  # of a hybrid part: `cpu_core`, `cpu_atom`
    reason: Fact | None = None
    doubt: Fact | None = None  # what else in the report contradicts it: what is made of it decides nothing


@dataclass(frozen=True)
class Frame:
    """One stack frame of a sample."""

    function: str
    library: str | None = None
    file: str | None = None
    line: int | None = None


@dataclass(frozen=True)
class CodeLine:
    """A line of source in a function, and how much of the profile's unit is spent there."""

    function: str
    file: str | None
    line: int | None
    value: float


# Counters of a function whose calls took longer and longer: seconds of one among the first and among the last of all.
FIRST_CALLS, LAST_CALLS = "first_calls_seconds", "last_calls_seconds"
# Of a line's backward pass: nodes of the kinds of which there were more than operations, and the operations themselves.
BACKWARD_NODES, OPERATIONS_MADE = "backward_nodes", "differentiated_operations"
# Of an operation: its calls in one entry of the marked region, or one call of the benchmark.
CALLS_PER_UNIT = "calls_per_unit"


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
    lines: tuple[CodeLine, ...] = ()  # of the function itself where most of its own is spent
    callers: tuple[CodeLine, ...] = ()  # the lines that called it
    callee: Frame | None = None  # where calls are told apart: what is called there, for `total` in all
    shapes: str | None = None  # of an operator's tensors, where most of its own time went


@dataclass(frozen=True)
class Profile:
    """Where something went, by function, largest own value first. `total` is the sum over everything."""

    title: str
    unit: str
    total: float
    hotspots: tuple[Hotspot, ...]
    kind: ProfileKind | None = None
    partial: bool = False  # of the first part of the run alone: calls are at least so many
    doubt: Fact | None = None  # what contradicts its values: what is made of it decides nothing


@dataclass(frozen=True)
class Stacks:
    """Samples merged by stack: outermost frame first -> weight in `unit`."""

    title: str
    unit: str
    weights: Mapping[tuple[Frame, ...], float]


@dataclass(frozen=True)
class Summary:
    """The readings that answer one concern: time, cache, python, memory.

    `reporting/` makes words and tables of them.
    """

    concern: str
    readings: tuple[Reading, ...]


Operator = Literal["<", ">", "<=", ">="]


@dataclass(frozen=True)
class Threshold:
    """What a value is compared with, in the metric's unit."""

    operator: Operator
    value: float
    unit: str


@dataclass(frozen=True)
class Verdict:
    """The judgement of one target in one scope. `advice` is what to try; unknown is never pass."""

    target: str
    metric: str
    verdict: VerdictWord
    reason: Fact
    threshold: Threshold | None  # None: the one that the run asked for, and did not say
    value: float | None
    unit: str
    scope: Scope
    quality: Quality
    advice: tuple[str, ...] = ()
    weight: float | None = None  # share of GPU time (0..1); of a run, of the kernels that decide it

    @property
    def cause(self) -> Fact | None:
        """Return why there is no value, for an unknown verdict; several targets may share the cause. Else None."""
        reason = self.reason.parts[-1] if self.reason.code == "unknown-kernels" else self.reason
        return reason.root if reason.code in ("not-known", "uncertain", "limit-unknown") else None


@dataclass(frozen=True)
class Switch:
    """How `profkit.region` turns the instrument of this pass on and off."""

    kind: Literal["perf-control", "valgrind", "cuda", "signpost"]
    control: str | None = None  # perf: the fifo that takes `enable` and `disable`
    ack: str | None = None  # perf: the fifo that answers `ack`


@dataclass(frozen=True)
class CountedLine:
    """A line of the program whose executions are to be counted.

    `each`: whenever the interpreter comes to it, which of a statement over several lines it does more than once.
    `names`: what its expression works on, as paths: `("self", ".weights", "[0]")`. `loop`: it is the first one in the
    body of a loop, whose iterations are timed.
    """

    file: str
    line: int
    function: str
    each: bool = True
    names: tuple[tuple[str, ...], ...] = ()
    loop: bool = False


@dataclass(frozen=True)
class Directive:
    """Instructions for the workload's own process, as JSON in the environment variable PROFKIT_DIRECTIVE."""

    pass_name: PassName
    record: str  # a path prefix: every process that enters a region leaves `<record>.<pid>.json` there
    switch: Switch | None = None
    iterations: int | None = None  # how long `profkit.benchmark` keeps an instrument fed; else
    seconds: float | None = None
    warmup: int = 1  # calls before
    precision: float = 0.01
    sampling: float = 30.0  # timing: wall seconds for warm-up and samples of one process
    longest: float | None = None  # wall seconds after which an instrument of Python's own stops
    stops_program: bool = False  # then, where nothing of it is looked at any more
    delay: float | None = None  # wall seconds after which a simulation of an unmarked program begins
    entries: tuple[int, int] | None = None  # of regions that the switch leaves out, and then runs in
    ends: bool = False  # after these entries: what would follow is not looked at, and takes minutes
    lines: tuple[CountedLine, ...] = ()  # whose executions a pass that counts calls counts as well


# `synchronized`: the wall clock, with the GPU waited for at both ends of a sample
Clock = Literal["wall", "cuda-events", "cuda-synchronized", "mps-synchronized"]
# Clocks of a device whose times vary between processes as was measured for `DEVICE_SIGMA` of a comparison, and not as
# those of the host do. `mps-synchronized` is not among them: nobody has measured it.
DEVICE_CLOCKS: frozenset[Clock] = frozenset({"cuda-events", "cuda-synchronized"})


@dataclass(frozen=True)
class SampleSet:
    """Samples of one process in seconds per iteration, in the order they were taken."""

    seconds: tuple[float, ...]
    loops: int = 1  # iterations per sample, so that it is long enough for the clock; divided out
    warmup: tuple[float, ...] = ()
    warm: bool = True  # drift was gone before sampling began
    precise: bool = True  # the interval became as narrow as asked before the budget ended
    pid: int | None = None
    spent: float = 0.0  # wall seconds for warm-up and samples together
    clock: Clock = "wall"
    clocks: tuple[float, ...] = ()  # the device's SM clock in Hz, between samples; empty where not told
    throttled: int = 0  # samples thrown away because the device slowed itself down, and
    throttle_reasons: tuple[str, ...] = ()  # why it did; with none thrown away, it did so all the time
    remarks: tuple[Fact, ...] = ()  # what else must be known to believe these seconds
    # seconds of a fixed piece of arithmetic: how fast the processor was
    reference_loop: tuple[float, ...] = ()

    @property
    def on_device(self) -> bool:
        """Return whether the samples are times of a device, which do not depend on the host's processor."""
        return self.clock in DEVICE_CLOCKS
