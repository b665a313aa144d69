"""Every test ends in exactly one status, whatever its kernel does to its process."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")

import torch
from judging import evaluator_of, judge_operation

from profkit.core.types import Fact
from profkit.kernels.evaluation.worker.server import _describe_error
from tests.spoken import spoken


@pytest.mark.thorough
def test_each_bad_end_has_its_status_and_the_next_kernel_is_judged(tmp_path: Path) -> None:
    with evaluator_of(
        "crashes.py", tmp_path, timeout=1.0, operations=("ceil",), correctness_only=True
    ) as evaluator:
        found = {
            name: judge_operation(evaluator, f"{name}.default")
            for name in ("relu", "sigmoid", "exp", "sin", "cos", "sign", "sqrt", "ceil", "abs")
        }
    assert {name: result.status for name, result in found.items()} == {
        "relu": "crashed",
        "sigmoid": "timeout",
        "exp": "incorrect",
        "sin": "incorrect",
        "cos": "out-of-memory",
        "sign": "out-of-memory",
        "sqrt": "crashed",
        "ceil": "load-error",
        "abs": "passed",
    }
    assert spoken(found["relu"].reason) == "its process was killed by SIGSEGV"
    assert found["relu"].last_line == "half way through"
    assert spoken(found["sin"].reason) == "ValueError: no such thing: <script>"
    assert (found["sin"].fault, found["sin"].error_type) == ("raised", "ValueError")
    assert 'raise ValueError("no such thing: <script>")' in found["sin"].traceback
    assert spoken(found["sqrt"].reason) == "its process wrote what is not an answer"
    assert "has no kernel for ceil.default" in spoken(found["ceil"].reason)


@pytest.mark.thorough
@pytest.mark.skipif(torch.cuda.is_available(), reason="Triton has its GPU")
def test_a_kernel_of_triton_without_a_gpu_is_not_run_and_what_only_looks_like_one_is_tested(
    tmp_path: Path,
) -> None:
    pytest.importorskip("triton")
    with evaluator_of("triton_cuda.py", tmp_path, correctness_only=True) as evaluator:
        found = {name: judge_operation(evaluator, f"{name}.default") for name in ("relu", "abs")}
    assert (found["relu"].status, found["relu"].reason) == ("not-run", Fact("needs-gpu"))
    assert (found["relu"].fault, found["relu"].traceback) == (None, "")
    assert found["abs"].status == "passed"


def _raise(code: str) -> bool:
    try:
        exec(code, {})
    except Exception as error:
        return bool(_describe_error(error)["needs_gpu"])
    raise AssertionError(code)


@pytest.mark.parametrize(
    ("code", "needs_gpu"),
    [
        ("raise ModuleNotFoundError(name='triton.language')", True),
        ("@triton.jit\ndef f(): pass", True),  # a text without its import
        ("try: triton.jit\nexcept NameError as e: raise RuntimeError from e", True),
        ("raise RuntimeError('0 active drivers ([]). There should only be one.')", False),
        ("x.cuda()", False),
    ],
)
def test_only_an_error_of_triton_itself_says_that_a_gpu_is_missing(code: str, needs_gpu: bool) -> None:
    assert _raise(code) is needs_gpu
