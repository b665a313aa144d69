"""Made-up evaluations for tests: small ones, and one of each way in which a test can end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Any

from profkit.analysis.evaluation.scores import speed_word
from profkit.core.types import (
    STATUSES,
    EvaluationDocument,
    EvaluationTest,
    Fact,
    Speedup,
    TestResult,
    TestStatus,
)
from tests.spoken import message

FLOOR = 0.03


def a_test(
    operation: str, size: Sequence[int] = (64, 64), dtype: str = "float32", **fields: Any
) -> EvaluationTest:
    """A test of one tensor; its id follows from what it is."""
    word = {"float32": "f32", "float16": "f16", "bfloat16": "bf16"}[dtype]
    arguments = f"((T({list(size)}, {word}),), {{}})"
    id = sha256(f"{operation} {arguments}".encode()).hexdigest()[:12]
    return EvaluationTest(id, "opinfo", operation, dtype, arguments, **fields)


def speedup(value: float, half: float = 0.02, pairs: int = 30) -> Speedup:
    """A speed-up, and `half` of its interval as a share of it."""
    low, high = value / (1 + half), value * (1 + half)
    return Speedup(value, low, high, speed_word(value, low, high, FLOOR), pairs)


def passed(test: EvaluationTest, value: float | None = None, half: float = 0.02, **fields: Any) -> TestResult:
    """A correct test; timed, `value` times as fast as PyTorch, where that is given."""
    errors = {"max_abs_error": 1e-6, "max_rel_error": 2e-6, "allowed_share": 0.25}
    times: dict[str, Any] = {}
    if value is not None:
        times = {
            "speedup": speedup(value, half),
            "reference_seconds": 1e-4,
            "seconds": 1e-4 / value,
            "bound_seconds": 2e-5,
            "verified": 4,
        }
    return TestResult(test, "passed", **{**errors, **times, "spent": 0.02, **fields})


def failed(
    test: EvaluationTest, status: TestStatus = "incorrect", reason: str = "", **fields: Any
) -> TestResult:
    """A test that did not pass."""
    return TestResult(test, status, message(reason or None), **fields)


def evaluation(*results: TestResult, **fields: Any) -> EvaluationDocument:
    """A whole evaluation of these results."""
    document = EvaluationDocument(
        "2026-11-22T12:00:00+00:00",
        "opinfo",
        "directory",
        "cpu",
        results,
        command=(
            "profkit",
            "evaluate",
            "--suite",
            "opinfo",
            "--backend",
            "directory",
            "--kernels",
            "kernels",
        ),
        dtype="float32",
        floor=FLOOR,
        versions={"torch": "2.13.0"},
        planned=len(results),
        complete=True,
        seconds=12.0,
    )
    return replace(document, **fields)


def every_status() -> EvaluationDocument:
    """A test of each status, each of an operation of its own."""
    wrong = failed(
        a_test("sum.default", (1000,)),
        "incorrect",
        "element (3,) is 1.5, not 2.5",
        fault="values",
        max_abs_error=1.0,
        max_rel_error=0.4,
        allowed_share=3500.0,
    )
    results = (
        passed(a_test("relu.default", (64, 64), calls=10), 1.8, bottleneck=message("memory")),
        passed(a_test("relu.default", (1024, 1024), calls=5), 1.2, bottleneck=message("memory")),
        passed(a_test("relu.default", (4,), timed=False)),
        passed(a_test("add.Tensor", (64, 64), calls=20), 0.7),
        passed(a_test("add.Tensor", (1024, 1024)), 1.0),
        passed(a_test("mul.Tensor", (1024, 1024)), 1.0, 0.01),
        passed(a_test("isnan.default", (64, 64)), 40.0),
        passed(a_test("isnan.default", (2, 2), timed=False)),
        wrong,
        replace(wrong, test=a_test("sum.default", (2000,)), reason=message("element (7,) is 3.25, not 0")),
        passed(a_test("sum.default", (64, 64)), 1.5),
        failed(
            a_test("mm.default"), "crashed", "its process was killed by SIGSEGV", last_line="half way through"
        ),
        failed(a_test("bmm.default"), "timeout", "no answer for 30 s"),
        failed(a_test("conv.default"), "out-of-memory", "38 GiB of 32 GiB"),
        failed(a_test("gelu.default"), "load-error", "SyntaxError: invalid syntax", error_type="SyntaxError"),
        failed(
            a_test("tanh.default"),
            "cheat",
            "wrong in 3 of 9 timed calls",
            allowed_share=9e4,
        ),
        failed(a_test("cos.default"), "lost", "the worker ended"),
        failed(a_test("dropout.default"), "skipped", "its result is random"),
        failed(a_test("rand.default"), "skipped", "its result is random"),
        failed(a_test("addmm.default"), "not-run", "Triton needs a GPU"),
        failed(a_test("add.Tensor", (3,)), "skipped", "dtype float8 is not on this device"),
    )
    document = evaluation(*results, notes=(Fact.of("of-flag-gems", version="5.0.2"),))
    assert {result.status for result in results} == set(STATUSES)
    return document
