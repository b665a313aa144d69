"""Kernels: what a sweep measured, an evaluation tested, and a model wrote."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

from profkit.core.types.readings import Clock, Fact, Json
from profkit.core.types.run import Insight

# ---------------------------------------------------------------- a sweep

SweepDirection = Literal["forward", "backward"]
# `measured` is right and timed; `wrong` was timed by nobody. `unavailable`: this implementation is not to be had here.
LARGEST_NUMBER = 1e30  # of any unit here
CaseState = Literal["measured", "wrong", "unavailable", "too large", "failed", "crashed", "timed out"]


@dataclass(frozen=True)
class GridPoint:
    """One place of the grid: what every implementation has to do. x has batch x sequence x dimension elements."""

    operation: str
    batch: int
    sequence: int
    dimension: int
    dtype: str = "float32"
    direction: SweepDirection = "forward"

    @property
    def name(self) -> str:
        """Return `LayerNorm forward float32 16x256x64`."""
        return f"{self.operation} {self.direction} {self.dtype} {self.shape}"

    @property
    def elements(self) -> int:
        """Return the number of elements of x."""
        return self.batch * self.sequence * self.dimension

    @property
    def shape(self) -> str:
        """Return `16x256x64`."""
        return f"{self.batch}x{self.sequence}x{self.dimension}"


@dataclass(frozen=True)
class MeasuredCeilings:
    """The most that the device was measured to do, right before the sweep: bytes/s and FLOP/s of float32."""

    bandwidth: float | None = None
    flops: float | None = None
    method: Fact | None = None


@dataclass(frozen=True)
class CaseResult:
    """The result of one implementation at one point. Times in seconds; a field that is None was not measured."""

    point: GridPoint
    implementation: str
    state: CaseState
    reason: Fact | None = None  # why there is no time
    fix: str | None = None
    median: float | None = None
    half_width: float | None = None  # of the median's 95 % interval, as a share of it
    samples: int = 0
    calls: int = 1  # of which each sample is the mean
    precise: bool = False  # the interval is as narrow as was asked
    # samples of single calls in their order, spread evenly; of a device its own time
    seconds: tuple[float, ...] = ()
    cache: Literal["warm", "cold"] | None = None
    clock: Clock | None = None
    first: float | None = None  # the very first call: compiling and tuning are in it
    memory: int | None = None  # bytes: the inputs, and the most that a call allocated at a time beside them
    flops: float | None = None  # of one call, as the operation declares them
    bytes: float | None = None  # that one call must move
    error: float | None = None  # the largest, as a share of what rounding explains; at most 1 is right
    clocks: tuple[float, ...] = ()  # the device's clock in Hz, between samples
    throttled: tuple[str, ...] = ()  # why the device held its clock down meanwhile
    device: int | None = None  # which one
    spent: float = 0.0  # wall seconds that the case took, the check included
    remarks: tuple[Fact, ...] = ()

    def __post_init__(self) -> None:
        """Raise ValueError for numbers that cannot have been measured: a file may say anything."""
        numbers = (self.median, self.half_width, self.first, self.memory, self.flops, self.bytes, self.spent)
        ends = (min(self.seconds), max(self.seconds)) if self.seconds else ()
        if any(number is not None and not 0 <= number < LARGEST_NUMBER for number in (*numbers, *ends)):
            raise ValueError("a number of the case is negative, or too large for one")


@dataclass(frozen=True)
class SweepDocument:
    """A whole sweep. `complete` is False while it goes on, and after it was interrupted."""

    started: str  # ISO 8601, UTC
    device: str
    results: tuple[CaseResult, ...]
    roofs: MeasuredCeilings = MeasuredCeilings()
    versions: Mapping[str, str] = field(default_factory=dict)
    planned: int = 0  # cases
    complete: bool = False
    seconds: float = 0.0  # wall time of all sittings together


# ---------------------------------------------------------------- an evaluation

# Every test ends in exactly one of these. `incorrect` and `cheat` have a reason; so has everything but `passed`.
TestStatus = Literal[
    "passed",
    "incorrect",
    "load-error",  # the kernel could not be loaded, or its file does not define it
    "crashed",
    "timeout",
    "out-of-memory",
    "skipped",  # by the suite or the judge, not by the kernel: its reason says why nothing can be decided
    "not-run",  # the kernel needs what this machine has not: nothing is known of it
    "cheat",  # it was right where it knew that it was looked at, and wrong where it did not
    "lost",  # no process was left that could have done it
]
STATUSES: tuple[TestStatus, ...] = get_args(TestStatus)
UNDECIDED: tuple[TestStatus, ...] = ("skipped", "not-run")  # neither right nor wrong: in no denominator
# What of a result is wrong.
Fault = Literal[
    "values",
    "not-finite",  # NaN or infinity where the reference has a number, or the reverse
    "shape",
    "dtype",
    "device",
    "stride",
    "type",
    "count",  # of outputs
    "aliasing",  # it shares memory with an input, and the schema says no; or it should and does not
    "mutation",  # an input was changed that the schema does not name; or one was not changed that it names
    "raised",
]
SpeedWord = Literal["FASTER", "SAME", "SLOWER", "AMBIGUOUS"]


@dataclass(frozen=True)
class EvaluationTest:
    """One call of one operation."""

    id: str  # of 12 hexadecimal digits, the same in every run
    suite: str
    operation: str  # the overload as torch names it: `add.Tensor`
    dtype: str
    arguments: str  # in the notation of operator traces: `((T([8, 16], f16), 1.0), {'alpha': 2})`
    source: Json = None  # what the suite needs to make the arguments again
    calls: int = 0  # in a trace
    timed: bool = True  # where it is correct; tests of a few elements are for correctness alone


@dataclass(frozen=True)
class Speedup:
    """How many times as fast as the reference: its time over the kernel's, median of `pairs` paired measurements."""

    median: float
    low: float  # the 95 % interval; it reaches 1 where a busy machine, or processes that do not agree, speak against it
    high: float
    # SAME: the interval lies within the floor around 1; FASTER, SLOWER: on one side of 1, the median beyond the floor
    word: SpeedWord
    pairs: int


@dataclass(frozen=True)
class TestResult:
    """The result of a test. Times in seconds of one call, by the judge's clock.

    A field that is None was not measured.
    """

    __test__ = False  # for pytest

    test: EvaluationTest
    status: TestStatus
    reason: Fact | None = None
    fault: Fault | None = None
    max_abs_error: float | None = None  # against the result in float64, over all numbers of all outputs
    max_rel_error: float | None = None
    allowed_share: float | None = None  # the largest error as a share of what is allowed: at most 1
    error_type: str = ""  # of what the kernel raised
    traceback: str = ""
    last_line: str = ""  # that its process printed before it crashed
    speedup: Speedup | None = None
    seconds: float | None = None
    reference_seconds: float | None = None
    bytes: float | None = None  # that a call must move at least
    flops: float | None = None
    bound_seconds: float | None = None  # the least time that the hardware allows for them
    own_share: float | None = None  # of the device's time, that was spent in the candidate's own kernels
    # What its own profile says: what limits it, and what to change first with the most that this can win
    bottleneck: Fact | None = None
    insight: Fact | None = None
    verified: int = 0  # timed calls of which the result was verified
    remarks: tuple[Fact, ...] = ()
    spent: float = 0.0  # wall seconds that the test took
    profile: str | None = None  # the folder of its own `profkit profile`, below the evaluation's


@dataclass(frozen=True)
class EvaluationDocument:
    """A whole evaluation. `complete` is False while it goes on, and after it was interrupted."""

    started: str  # ISO 8601, UTC
    suite: str
    backend: str  # where the kernels come from: aten, directory, ...
    device: str
    results: tuple[TestResult, ...]
    name: str = "evaluation"
    command: tuple[str, ...] = ()
    dtype: str = ""
    floor: float = 0.05  # of SAME
    versions: Mapping[str, str] = field(default_factory=dict)
    planned: int = 0  # tests
    complete: bool = False
    seconds: float = 0.0  # wall time of all sessions together
    notes: tuple[Fact, ...] = ()  # what else must be known of its kernels
    device_type: str = ""  # as torch names it: cpu
    kernels: str = ""  # the names of the files or folders that hold them, without the folders above


# ---------------------------------------------------------------- a generation

# What became of an attempt: the worst status of its tests, or why there was nothing to test.
AttemptStatus = Literal[
    TestStatus,
    "no-code",  # the answer holds no code, several kernels, or code that is cut off
    "repeated",  # the same code as an earlier attempt
    "no-answer",  # the model refused, or its service failed for good
]
# Why an operation has no further attempt.
StopReason = Literal[
    "bound",  # correct, and at the least time that the hardware allows
    "correct",  # and nothing is timed
    "attempts",
    "repeated",  # the model gives the same code again and again
    "budget",  # of tokens
    "failed",  # the model cannot be asked
    "interrupted",
    "",  # it goes on
]


@dataclass(frozen=True)
class Attempt:
    """One attempt at an operation. Paths are relative to the folder of the generation."""

    number: int  # from 1
    status: AttemptStatus
    input_tokens: int | None = None  # of the request to the model; None where nobody says
    output_tokens: int | None = None
    file: str = ""  # of the kernel; empty if there is none
    feedback: str = ""  # the file with what the model was told of this attempt
    reason: Fact | None = None  # why it did not pass: of the first test that did not
    tests: int = 0  # that count
    passed: int = 0
    speedup: Speedup | None = None  # geometric mean over the timed tests, with all of their pairs
    bound_share: float | None = None  # the least time of the hardware over the measured one, geometric mean
    own_share: float | None = None  # of the device's time in kernels of its own, the least of its tests
    evaluation: str = ""  # the folder with its tests
    profile: str = ""  # the folder of its slowest test's profile
    bottleneck: Fact | None = None
    insights: tuple[Insight, ...] = ()  # of that profile, in their order


@dataclass(frozen=True)
class OperationAttempts:
    """All attempts at one operation. `best` is the number of the kernel that is kept; None if none is correct."""

    operation: str  # the overload as torch names it: add.Tensor
    folder: str  # relative to that of the generation: relu, add__Tensor
    attempts: tuple[Attempt, ...] = ()
    best: int | None = None
    stopped: StopReason = ""
    reason: Fact | None = None  # for `failed`: why


@dataclass(frozen=True)
class GenerationLimits:
    """What a generation may spend; None means no limit."""

    attempts: int = 5
    tokens: int | None = None


@dataclass(frozen=True)
class GenerationDocument:
    """A generation of kernels. `complete` is False while it goes on, and after it was interrupted."""

    started: str  # ISO 8601, UTC
    name: str  # the run id
    provider: str  # openai, anthropic, command
    model: str
    suite: str
    device: str
    language: str  # that the kernels are to be written in
    operations: tuple[OperationAttempts, ...]
    limits: GenerationLimits = GenerationLimits()
    server: str = ""  # host and port of --base-url, without what may be secret
    command: tuple[str, ...] = ()
    dtype: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)
    input_tokens: int = 0
    output_tokens: int = 0
    seconds: float = 0.0  # wall time of all sessions together
    complete: bool = False
    floor: float = 0.05  # of SAME, as the evaluation of the attempts has it
