"""Made-up generations of kernels for tests: operations that end in every way."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from profkit.analysis.evaluation.scores import speed_word
from profkit.core.types import (
    Attempt,
    AttemptStatus,
    Gain,
    GenerationDocument,
    GenerationLimits,
    Insight,
    OperationAttempts,
    Place,
    Speedup,
)
from tests.spoken import message

FLOOR = 0.05
VECTORIZE = Insight(
    "vectorize",
    "load 16 bytes at once",
    "34 % of the peak bandwidth; each thread loads 4 bytes",
    "Let each program handle a block of 4 x 128 elements.",
    Place(kernel="relu_kernel", file="relu_attempt_2.py", line=12),
    Gain(0.61, "the GPU time", "at the measured bandwidth the bytes take 39 % of it"),
)
FUSE = Insight(
    "launches", "fuse the two kernels", "2 launches of 4 µs each for 3 µs of work", "Use one kernel."
)


def speedup(value: float, half: float = 0.03) -> Speedup:
    """A speed-up, and `half` of its interval as a share of it."""
    low, high = value / (1 + half), value * (1 + half)
    return Speedup(value, low, high, speed_word(value, low, high, FLOOR), 40)


TOKENS = (1500, 700)  # of a request


def correct(number: int, value: float | None, half: float = 0.03, **fields: Any) -> Attempt:
    """A correct attempt; timed where a speed-up is given."""
    timed: dict[str, Any] = {}
    if value is not None:
        timed = {
            "speedup": speedup(value, half),
            "bound_share": min(1.0, value / 2.4),
            "bottleneck": message("memory, 34 % of its peak"),
        }
    return replace(Attempt(number, "passed", *TOKENS, tests=6, passed=6), **{**timed, **fields})


def failed(number: int, status: AttemptStatus = "incorrect", reason: str = "", **fields: Any) -> Attempt:
    """An attempt that did not pass."""
    return replace(Attempt(number, status, *TOKENS, reason=message(reason), tests=6), **fields)


def operation(name: str, *attempts: Attempt, folder: str = "", **fields: Any) -> OperationAttempts:
    """An operation, with the files of its attempts named as the field does."""
    folder = folder or name.partition(".")[0]
    placed = []
    for attempt in attempts:
        stem = f"{folder}/{folder}_attempt_{attempt.number}"
        has_code = attempt.status not in ("no-code", "no-answer")
        tested = has_code and attempt.status not in ("repeated",)
        placed.append(
            replace(
                attempt,
                file=f"{stem}.py" if has_code else "",
                feedback=f"{stem}_feedback.txt" if attempt.status != "no-answer" else "",
                evaluation=f"{folder}/attempt_{attempt.number}" if tested else "",
                profile=f"{folder}/attempt_{attempt.number}/profiles/1" if attempt.insights else "",
            )
        )
    return OperationAttempts(name, folder, tuple(placed), **fields)


def generation(*operations: OperationAttempts, **fields: Any) -> GenerationDocument:
    """A whole generation of these operations."""
    attempts = [attempt for each in operations for attempt in each.attempts]
    document = GenerationDocument(
        "2026-11-23T04:00:00+00:00",
        "spring",
        "anthropic",
        "a-model-5",
        "smoke",
        "NVIDIA H100",
        "triton",
        operations,
        GenerationLimits(5, 200_000),
        command=("profkit", "generate", "--suite", "smoke", "--ops", "relu,add", "--run-id", "spring"),
        dtype="float32",
        versions={"torch": "2.13.0", "triton": "3.5.0"},
        input_tokens=sum(attempt.input_tokens or 0 for attempt in attempts),
        output_tokens=sum(attempt.output_tokens or 0 for attempt in attempts),
        seconds=245.0,
        complete=True,
        floor=FLOOR,
    )
    return replace(document, **fields)


def every_way() -> GenerationDocument:
    """Four operations: one that becomes faster by a feedback, one that only works, one that never does, one cut off."""
    relu = operation(
        "relu.default",
        failed(1, "load-error", "line 7: '(' was never closed", tests=0),
        correct(2, 0.82, insights=(VECTORIZE, FUSE)),
        correct(3, 1.64, insights=(FUSE,)),
        correct(4, 1.67),
        failed(5, "repeated", "the same code as attempt 4", tests=0),
        best=3,
        stopped="attempts",
    )
    add = operation(
        "add.Tensor",
        failed(1, "incorrect", "(64, 64) float32: element (0, 3) is 1.5, not 2.5", passed=2),
        correct(2, 1.01, 0.01),
        best=2,
        stopped="bound",
    )
    softmax = operation(
        "_softmax.default",
        failed(1, "no-code", "the answer holds no block of code", tests=0),
        failed(2, "crashed", "SIGSEGV in the kernel", passed=0),
        failed(3, "incorrect", "NaN where the reference has 0.25", passed=3),
        failed(4, "cheat", "wrong in 3 of 9 timed calls", passed=5),
        failed(5, "timeout", "no answer for 30 s", passed=1),
        stopped="attempts",
    )
    mul = operation(
        "mul.Tensor",
        failed(1, "out-of-memory", "38 GiB of 32 GiB"),
        failed(2, "no-answer", "the service answers 529: overloaded", tests=0),
        stopped="interrupted",
        reason=message("Ctrl-C"),
    )
    return generation(relu, add, softmax, mul, complete=False)
