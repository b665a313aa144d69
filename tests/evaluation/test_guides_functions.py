"""The guides' functions on kernels that are right, wrong, and that end their process; by the real judge."""

from __future__ import annotations

import math
import os
import signal
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

import pytest

torch = pytest.importorskip("torch")

from profkit.core.errors import UsageError  # noqa: E402
from profkit.core.types import EvaluationTest, Speedup, TestResult  # noqa: E402
from profkit.evaluation import (  # noqa: E402
    MultiprocessingEvaluator,
    eval_correctness_test,
    eval_one_op,
    eval_performance,
)
from profkit.evaluation.evaluator import Task, make_rounds  # noqa: E402
from profkit.evaluation.judging import fix_test, mean_speedup, operation_name, pass_share  # noqa: E402
from profkit.kernels.evaluation.sources.source import SourceRequest  # noqa: E402

pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(sys.platform != "linux", reason="kernels are evaluated on Linux"),
]


@dataclass
class Test:
    __test__ = False

    args: tuple[Any, ...]
    kwargs: dict[str, Any] = field(default_factory=dict)


class Redrawn:
    """As the field's smoke suite has it: other numbers whenever somebody looks."""

    kwargs: ClassVar[dict[str, Any]] = {}

    @property
    def args(self) -> tuple[Any, ...]:
        return (torch.randn(3, 5),)


def relu(x: Any) -> Any:
    return torch.clamp(x, min=0)


def in_place_of_a_new_tensor(x: Any) -> Any:
    return x.clamp_(min=0)  # right, and its argument is destroyed


def crash(x: Any) -> Any:
    os.kill(os.getpid(), signal.SIGSEGV)


def absolute(x: Any) -> Any:
    return torch.abs(x) + 1


def test_a_right_kernel_passes_all_its_tests_and_has_a_speed_up() -> None:
    torch.set_num_threads(2)
    grad = torch.is_grad_enabled()
    tests = [Redrawn(), Test((torch.randn(4, requires_grad=True),))]
    score, speed, correctness, performance = eval_one_op(
        torch.ops.aten.relu.default, relu, tests, [Test((torch.randn(64, 64),))], budget=0.1
    )
    assert score == 1.0
    assert [record.args for record in correctness] == ["((T([3, 5], f32),), {})", "((T([4], f32),), {})"]
    (record,) = performance
    assert record.successfully_ran
    assert record.speedup == pytest.approx(speed)
    assert 0 < record.reference_time_ms < 100  # type: ignore[operator]
    assert torch.is_grad_enabled() == grad
    assert torch.get_num_threads() == 2


def test_a_wrong_kernel_is_not_timed_and_its_own_tests_stay_as_they_were() -> None:
    test = Test((torch.tensor([-1.0, 2.0]),))
    record = eval_correctness_test("aten::relu", in_place_of_a_new_tensor, test)
    assert not record.is_correct
    assert record.error_msg.startswith("incorrect: output 0 shares memory with an argument")
    assert test.args[0].tolist() == [-1, 2]
    speed, (row,) = eval_performance("relu", in_place_of_a_new_tensor, [test])
    assert math.isnan(speed)
    assert (row.speedup, row.successfully_ran) == (None, False)


def test_a_crash_costs_its_tests_and_they_stay_in_the_score() -> None:
    test = Test((torch.randn(3),))
    with MultiprocessingEvaluator(2, budget=0.1) as evaluator:
        assert evaluator.submit_task("relu", crash, [test]) == 0
        assert evaluator.submit_task(torch.ops.aten.abs.default, absolute, [test]) == 1
        assert evaluator.submit_task("neg", torch.neg, [test]) == 2
        assert evaluator.submit_task("exp", torch.exp, []) == 3
        evaluator.start_evaluation()
        results = evaluator.get_results()
    assert [result.correctness_score for result in results] == [0.0, 0.0, 1.0, 0.0]
    assert [result.error for result in results] == [None] * 4
    (row,) = results[0].correctness_results
    assert row.error_msg == "crashed: its process was killed by SIGSEGV"
    assert results[1].correctness_results[0].error_msg.startswith("incorrect: output 0")


def test_what_is_no_operation_and_no_test_is_refused() -> None:
    with pytest.raises(UsageError, match="no operation called 'gleu'"):
        eval_one_op("gleu", relu, [], [])
    with pytest.raises(UsageError, match="is no operation"):
        eval_one_op(torch.relu, relu, [], [])
    with pytest.raises(UsageError, match="is no test"):
        eval_one_op("relu", relu, [torch.randn(3)], [])
    with pytest.raises(UsageError, match="0 workers"):
        MultiprocessingEvaluator(0)


def test_an_operation_may_be_named_in_every_way() -> None:
    names = (
        torch.ops.aten.add.Tensor,
        torch.ops.aten.add,
        "add",
        "add.Tensor",
        "aten::add.Tensor",
        "add__Tensor",
    )
    assert {operation_name(name) for name in names} == {"add.Tensor"}


def test_a_second_kernel_of_an_operation_is_in_a_second_round() -> None:
    def tasks(names: str) -> Iterator[Task]:
        for number, name in enumerate(names):
            yield Task(number, name, SourceRequest("aten"), (), ())

    rounds = make_rounds(list(tasks("abaca")))
    assert [[task.number for task in batch] for batch in rounds] == [[0, 1, 3], [2], [4]]


def test_scores_leave_out_what_cannot_be_decided_and_means_leave_out_what_is_wrong() -> None:
    test = EvaluationTest("0" * 12, "given", "relu.default", "float32", "")
    fast = Speedup(4.0, 3.9, 4.1, "FASTER", 30)
    results = [
        TestResult(test, "passed", speedup=fast),
        TestResult(test, "incorrect", speedup=Speedup(1e6, 1e6, 1e6, "FASTER", 30)),
        TestResult(test, "skipped"),
    ]
    assert pass_share(results) == 0.5
    assert mean_speedup(results) == pytest.approx(4.0)
    assert pass_share([]) == 0.0
    assert math.isnan(mean_speedup([]))


def test_a_test_is_read_once() -> None:
    test = fix_test(Redrawn())
    assert test.args[0] is test.args[0]
