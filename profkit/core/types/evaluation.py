"""An evaluation of kernels: tests of operations, and what became of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from profkit.core.types.readings import Json

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
STATUSES: tuple[TestStatus, ...] = (
    "passed",
    "incorrect",
    "load-error",
    "crashed",
    "timeout",
    "out-of-memory",
    "skipped",
    "not-run",
    "cheat",
    "lost",
)
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
    """One call of one operation.

    `operation` is the overload as torch names it: `add.Tensor`. `arguments` is for people and for the field's files,
    in the notation of operator traces: `((T([8, 16], f16), 1.0), {'alpha': 2})`. `source` is what the suite needs to
    make the arguments again. `calls`: how often a trace has it, 0 where no trace does. `timed`: whether it is timed
    where it is correct; tests of a few elements are for correctness alone.
    """

    id: str  # of 12 hexadecimal digits, the same in every run
    suite: str
    operation: str
    dtype: str
    arguments: str
    source: Json = None
    calls: int = 0
    timed: bool = True


@dataclass(frozen=True)
class Speedup:
    """How many times as fast as the reference: its time over the kernel's, median of `pairs` paired measurements.

    `low` and `high` are its 95 % interval. SAME: the interval lies within the floor around 1; FASTER and SLOWER: it
    lies on one side of 1, and the median beyond the floor; AMBIGUOUS: neither, or what the pairs cannot show is against
    it (a busy machine, new processes that do not agree); then the interval is stretched until 1 is in it.
    """

    median: float
    low: float
    high: float
    word: SpeedWord
    pairs: int


@dataclass(frozen=True)
class TestResult:
    """What became of a test. Times in seconds of one call, by the judge's clock; what is None was not measured."""

    __test__ = False  # for pytest

    test: EvaluationTest
    status: TestStatus
    reason: str = ""
    fault: Fault | None = None
    max_abs_error: float | None = None  # against the result in float64, over all numbers of all outputs
    max_rel_error: float | None = None
    # the largest error as a share of what is allowed there: at most 1 is correct
    allowed_share: float | None = None
    error_type: str = ""  # of what the kernel raised
    traceback: str = ""
    last_line: str = ""  # that its process printed before it crashed
    speedup: Speedup | None = None
    seconds: float | None = None
    reference_seconds: float | None = None
    compiled: Speedup | None = None  # against torch.compile, where that was asked for
    bytes: float | None = None  # that a call must move at least
    flops: float | None = None
    bound_seconds: float | None = None  # the least time that the hardware allows for them
    own_share: float | None = None  # of the device's time, that was spent in the candidate's own kernels
    # What its own profile says: "memory, 82 % of its peak"; what to change first, and the most that this can win.
    bottleneck: str | None = None
    insight: str | None = None
    verified: int = 0  # timed calls of which the result was verified
    remarks: tuple[str, ...] = ()
    spent: float = 0.0  # wall seconds that the test took
    slot: int = 0
    profile: str | None = None  # the folder of its own `profkit profile`, below the evaluation's


@dataclass(frozen=True)
class EvaluationDocument:
    """All of an evaluation. `complete` is False while it goes on, and after it was interrupted."""

    started: str  # ISO 8601, UTC
    suite: str
    backend: str  # where the kernels come from: aten, directory, ...
    device: str
    results: tuple[TestResult, ...]
    name: str = "evaluation"
    command: tuple[str, ...] = ()
    dtype: str = ""
    against: str = "eager"
    floor: float = 0.05  # of SAME
    versions: Mapping[str, str] = field(default_factory=dict)
    planned: int = 0  # tests
    complete: bool = False
    seconds: float = 0.0  # wall time of all sessions together
    notes: tuple[str, ...] = ()  # what else must be known to believe the times: a busy machine
    device_type: str = ""  # as torch names it: cpu
    kernels: str = ""  # the names of the files or folders that hold them, without the folders above
