"""`record_operations`: a program's own calls of operations, as a suite."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from profkit.core.errors import UsageError, WorkloadError
from profkit.kernels.evaluation.suites.notation import record_operations
from profkit.kernels.evaluation.suites.suite import find_suite
from tests.cli_runner import profkit

pytestmark = pytest.mark.torch
PROGRAM = """
import threading
import torch

layer = torch.nn.Linear(8, 4)
for factor in (0.1, 0.2):
    layer(torch.ones(2, 8)).sum().backward()
    layer.weight.data.mul_(factor)

def in_a_thread():
    x = torch.ones(6, 6)
    x[1:, 2:].t().relu()
    x.add_(x)

with torch.profiler.record_function("a mark"):  # no operation
    pass
thread = threading.Thread(target=in_a_thread)
thread.start()
thread.join()
"""


def test_forward_backward_and_threads_are_in_the_trace_and_can_be_made_again(tmp_path: Path) -> None:
    from profkit.kernels.evaluation.sources.names import find_operator
    from profkit.kernels.evaluation.suites.suite import Selection

    (tmp_path / "train.py").write_text(PROGRAM)
    trace = tmp_path / "trace.txt"
    calls = record_operations([sys.executable, str(tmp_path / "train.py")], trace)
    suite = find_suite("traced", trace)
    tests = {(test.operation, test.arguments): test for test in suite.tests(Selection())}
    assert sum(test.calls for test in tests.values()) == calls
    counts = {key: test.calls for key, test in tests.items()}
    assert counts["addmm.default", "((T([4], f32), T([2, 8], f32), T([8, 4], f32, stride=(1, 8))), {})"] == 2
    assert counts["mul_.Tensor", "((T([4, 8], f32), 0.1), {})"] == 2  # numbers alone make no other call
    assert any(operation == "mm.default" for operation, _ in counts)  # of the backward pass
    assert ("relu.default", "((T([4, 5], f32, stride=(1, 6)),), {})  # offsets [8] storages [0]") in counts
    assert (
        "add_.Tensor",
        "((T([6, 6], f32), T([6, 6], f32)), {})  # offsets [0, 0] storages [0, 0]",
    ) in counts
    assert not any("profiler" in operation for operation, _ in counts)
    for test in (test for test in tests.values() if test.operation[:5] not in ("empty", "unifo")):
        made = suite.make_arguments(test, 1)
        find_operator(test.operation)(*made.args, **made.kwargs)


def test_a_program_that_fails_or_calls_nothing_is_an_error(tmp_path: Path) -> None:
    trace = tmp_path / "trace.txt"
    with pytest.raises(WorkloadError, match="exited with 3"):
        record_operations([sys.executable, "-c", "raise SystemExit(3)"], trace)
    with pytest.raises(UsageError, match="called no operation"):
        record_operations([sys.executable, "-c", ""], trace)
    with pytest.raises(UsageError, match="not a Python program"):
        record_operations(["sleep", "0"], trace)
    assert not trace.exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["evaluate", "--trace"], "--trace needs a program"),
        (["evaluate", "--trace", "--plan", "--", "python", "train.py"], "--plan runs no program"),
        (["evaluate", "--trace", "--", "sleep", "0"], "not a Python program"),
    ],
)
def test_a_program_stands_after_two_dashes_where_it_is_traced(
    words: list[str], said: str, tmp_path: Path
) -> None:
    answer = profkit(*words, cwd=tmp_path)
    assert answer.code == 2
    assert said in answer.err
