"""The generation of kernels: attempts of a model at operations, and what became of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from profkit.core.types.evaluation import Speedup
from profkit.core.types.insights import Insight

# What became of an attempt: the worst status of its tests, or why there was nothing to test.
AttemptStatus = Literal[
    "passed",
    "incorrect",
    "load-error",  # it is no Python, cannot be run, or does not define the kernel
    "crashed",
    "timeout",
    "out-of-memory",
    "cheat",
    "skipped",  # no test decides anything
    "not-run",  # this machine has not what it needs
    "lost",
    "no-code",  # the answer holds no code, several kernels, or code that is cut off
    "repeated",  # the same code as an earlier attempt
    "no-answer",  # the model refused, or its service failed for good
]
# Why an operation has no further attempt.
StopReason = Literal[
    "bound",  # correct, and at the least time that the hardware allows
    "correct",  # as --until asks, or where nothing is timed
    "reached",  # as fast as --until asks for
    "attempts",
    "repeated",  # the model gives the same code again and again
    "budget",  # of tokens
    "failed",  # the model cannot be asked
    "interrupted",
    "",  # it goes on
]


@dataclass(frozen=True)
class ModelCall:
    """One request to a model, with its retries. Tokens are None where nobody says."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    seconds: float = 0.0  # wall time, with what was waited for
    retries: int = 0
    stop: str = ""  # why the text ends: end, length, refused


@dataclass(frozen=True)
class TimedCall:
    """One timed test of an attempt, for tables: seconds of one call, and the least that the hardware allows."""

    arguments: str
    dtype: str
    speedup: Speedup
    seconds: float | None = None
    bound_seconds: float | None = None


@dataclass(frozen=True)
class Attempt:
    """One attempt at an operation.

    Paths are relative to the folder of the generation. `speedup` is the geometric mean over the timed tests, with its
    95 % interval, and `pairs` those of all; None where the kernel is not correct, or nothing was timed.
    """

    number: int  # from 1
    status: AttemptStatus
    call: ModelCall = ModelCall()
    file: str = ""  # of the kernel; empty where there is none
    feedback: str = ""  # the file with what the model was told of this attempt
    reason: str = ""  # why it did not pass: of the first test that did not
    tests: int = 0  # that count
    passed: int = 0
    speedup: Speedup | None = None
    timed: tuple[TimedCall, ...] = ()
    bound_share: float | None = None  # the least time of the hardware over the measured one, geometric mean
    # of the device's time in kernels of the attempt's own, the least of its tests
    own_share: float | None = None
    evaluation: str = ""  # the folder with its tests
    profile: str = ""  # the folder of its slowest test's profile
    bottleneck: str | None = None
    insights: tuple[Insight, ...] = ()  # of that profile, in their order
    evaluated_seconds: float = 0.0
    profiled_seconds: float = 0.0


@dataclass(frozen=True)
class OperationAttempts:
    """All attempts at one operation. `best` is the number of the kernel that is kept; None where none is correct."""

    operation: str  # the overload as torch names it: add.Tensor
    folder: str  # relative to that of the generation: relu, add__Tensor
    attempts: tuple[Attempt, ...] = ()
    best: int | None = None
    stopped: StopReason = ""
    reason: str = ""  # for `failed`: why


@dataclass(frozen=True)
class GenerationLimits:
    """What a generation may spend; None is no limit."""

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
    device_type: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)
    input_tokens: int = 0
    output_tokens: int = 0
    seconds: float = 0.0  # wall time of all sessions together
    complete: bool = False
    notes: tuple[str, ...] = ()
    floor: float = 0.05  # of SAME, as the evaluation of the attempts has it
