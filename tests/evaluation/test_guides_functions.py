"""The guides' functions on kernels that are right, wrong, and that end their process; by the real judge."""

from __future__ import annotations

import functools
import math
import sys
from dataclasses import dataclass, field
from typing import Any, ClassVar

import pytest

torch = pytest.importorskip("torch")

from guide_kernels import (  # noqa: E402
    crash,
    gated,
    gated_in_half,
    gated_otherwise,
    in_place_of_a_new_tensor,
    relu,
)

from profkit.core.errors import UsageError  # noqa: E402
from profkit.evaluation import (  # noqa: E402
    CorrectnessTestResult,
    MultiprocessingEvaluator,
    PerformanceTestResult,
    eval_correctness_test,
    eval_one_op,
    eval_performance,
    prepare_results_data,
)

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


@pytest.mark.thorough
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


@pytest.mark.thorough
def test_a_wrong_kernel_is_not_timed_and_its_own_tests_stay_as_they_were() -> None:
    test = Test((torch.tensor([-1.0, 2.0]),))
    record = eval_correctness_test("aten::relu", in_place_of_a_new_tensor, test)
    assert not record.is_correct
    assert record.error_msg.startswith("incorrect: output 0 shares memory with an argument")
    assert test.args[0].tolist() == [-1, 2]
    speed, (row,) = eval_performance("relu", in_place_of_a_new_tensor, [test])
    assert math.isnan(speed)
    assert (f"{row.speedup:.2f} {row.benchmark_time_ms:.3f}", row.successfully_ran) == ("nan nan", False)


@pytest.mark.thorough
def test_a_function_of_python_is_a_reference_like_an_operation() -> None:
    test = Test((torch.randn(64, 64), torch.randn(64, 64)), {"scale": 2.0})
    score, speed, (row,), (timed,) = eval_one_op(gated, gated_otherwise, [test], [test], budget=0.1)
    assert (score, row.op_name, row.is_correct, timed.successfully_ran) == (1.0, "gated", True, True)
    assert speed == pytest.approx(timed.speedup)
    wrong = eval_correctness_test(gated, gated_in_half, test)
    assert wrong.error_msg.startswith("incorrect: output 0")


@pytest.mark.thorough
def test_a_reference_may_have_the_name_of_an_operation() -> None:
    test = Test((torch.linspace(-1, 1, 5),))
    score, speed, *_ = eval_one_op(relu, torch.ops.aten.relu, [test], [test], budget=0.1)
    assert (score, speed > 0) == (1.0, True)
    # and after it one of torch's own
    assert eval_correctness_test("abs", torch.ops.aten.relu.default, test).status == "incorrect"


def test_the_summaries_of_records_in_memory_are_those_of_the_guides() -> None:
    from profkit.evaluation import _prepare_results_data

    assert _prepare_results_data is prepare_results_data
    right = CorrectnessTestResult("relu.default", "a", True, max_abs_error=1e-6, max_rel_error=0.0)
    wrong = CorrectnessTestResult("relu.default", "b", False, "incorrect: 1 and not 2")
    fast = PerformanceTestResult("relu.default", "a", 4.0, 1.0, 4.0, successfully_ran=True)
    rows, failed, summaries = prepare_results_data(
        [right, wrong], [fast, PerformanceTestResult("abs.default", "c")]
    )
    assert [row["op_name"] for row in rows] == ["abs.default", *["relu.default"] * 3]
    assert [row["args"] for row in failed] == ["c", "b"]
    relu_row = summaries["relu.default"]
    assert (relu_row["correctness_rate"], relu_row["avg_speedup"], relu_row["geomean_speedup"]) == (
        0.5,
        4.0,
        4.0,
    )
    assert (relu_row["max_abs_error"], relu_row["max_rel_error"]) == (1e-6, 0.0)
    assert summaries["abs.default"]["geomean_speedup"] is None


@pytest.mark.thorough
def test_a_crash_costs_its_tests_and_they_stay_in_the_score() -> None:
    test = Test((torch.randn(3),))
    with MultiprocessingEvaluator(2, budget=0.1) as evaluator:
        assert evaluator.submit_task("relu", crash, [test]) == 0
        assert evaluator.submit_task(torch.ops.aten.neg.default, torch.neg, [test]) == 1
        assert evaluator.submit_task("exp", torch.exp, []) == 2
        evaluator.start_evaluation()
        results = evaluator.get_results()
    assert [result.correctness_score for result in results] == [0.0, 1.0, 0.0]
    assert [result.error for result in results] == [None] * 3
    (row,) = results[0].correctness_results
    assert row.error_msg == "crashed: its process was killed by SIGSEGV"


class Clamp:
    def __call__(self, x: Any) -> Any:
        return x.clamp(min=0)


@pytest.mark.thorough
def test_lambdas_partial_functions_and_objects_are_submitted_like_functions() -> None:
    low, test = 0, Test((torch.tensor([-1.0, 2.0]),))
    kernels: list[tuple[Any, float]] = [
        (lambda x: torch.clamp(x, min=low), 1.0),
        (lambda x: x + low, 0.0),
        (functools.partial(torch.clamp, min=0), 1.0),
        (Clamp(), 1.0),
    ]
    with MultiprocessingEvaluator() as evaluator:
        for kernel, _ in kernels:
            evaluator.submit_task(torch.ops.aten.relu.default, kernel, [test])
        results = evaluator.get_results()
    assert [result.correctness_score for result in results] == [score for _, score in kernels]


@pytest.mark.thorough
def test_what_is_no_operation_and_no_test_is_refused() -> None:
    with pytest.raises(UsageError, match="no operation called 'gleu'"):
        eval_one_op("gleu", relu, [], [])
    with pytest.raises(UsageError, match="is not an operation"):
        eval_one_op(3, relu, [], [])
    with pytest.raises(UsageError, match="a text is a kernel of an operation"):
        eval_one_op(torch.relu, "def relu_kernel_impl(x): ...", [], [])
    with pytest.raises(UsageError, match="is not a test"):
        eval_one_op("relu", relu, [torch.randn(3)], [])
    with pytest.raises(UsageError, match="0 workers"):
        MultiprocessingEvaluator(0)
