"""What a reader of the guides types: suites to loop over, backends that are asked by operation, tests of one's own."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from profkit.core.errors import UsageError  # noqa: E402
from profkit.evaluation import (  # noqa: E402
    LoadError,
    MultiprocessingEvaluator,
    OpTest,
    Skip,
    Test,
    eval_correctness_test,
    eval_one_op,
    open_backend,
    open_suite,
)

pytestmark = pytest.mark.torch
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="kernels are evaluated on Linux")

FILE = """
import torch
from profkit.evaluation import OpTest, Test

kept = torch.zeros(4, 4)
drawn = torch.randn(3)
SUITE = [
    OpTest(
        torch.ops.aten.relu.default,
        correctness_tests=[Test(drawn), Test(lambda: torch.randn(3, 1))],
        performance_tests=[Test(lambda: torch.randn(64, 64))],
    ),
    OpTest("add_.Tensor", [Test(kept, kept.t(), alpha=2)]),
]
"""


def test_a_suite_is_looped_over_as_the_guide_does() -> None:
    suite = open_suite("smoke", ops="relu,add.Tensor", device="cpu")
    assert [op_test.op for op_test in suite] == [torch.ops.aten.relu.default, torch.ops.aten.add.Tensor]
    for op_test in suite:
        assert 0 < len(op_test.performance_tests) < len(op_test.correctness_tests)
        for test in op_test.correctness_tests:
            assert isinstance(op_test.op(*test.args, **test.kwargs), torch.Tensor)


def test_a_test_of_a_suite_has_the_same_inputs_on_each_access_and_others_by_another_seed() -> None:
    (relu,) = open_suite("smoke", ["relu"], "bfloat16", "cpu", seed=5)
    (again,) = open_suite("smoke", ["relu"], "bfloat16", "cpu", seed=5)
    (other,) = open_suite("smoke", ["relu"], "bfloat16", "cpu")
    test = relu.performance_tests[0]
    (first,) = test.args
    assert first.dtype is torch.bfloat16
    assert test.args[0].equal(first)
    assert again.performance_tests[0].args[0].equal(first)
    assert not other.performance_tests[0].args[0].equal(first)
    test.args[0].zero_()  # a copy of its own
    assert test.args[0].equal(first)


@pytest.mark.thorough
def test_the_other_suites_are_opened_by_their_names_too(tmp_path: Path) -> None:
    (op_test,) = open_suite("opinfo", ops="nextafter", device="cpu")
    assert op_test.op is torch.ops.aten.nextafter.default
    assert torch.is_tensor(op_test.op(*op_test.correctness_tests[0].args))
    (relu,) = open_suite("torchbench", ops="relu.default", dtype="float16", device="cpu")
    assert len(relu.performance_tests) == len(relu.correctness_tests) > 50
    trace = tmp_path / "mine.txt"
    trace.write_text("Operator: aten.bernoulli.default\ncnt: 2, ((T([4], f32),), {})\n")
    (random,) = open_suite("traced", traces=trace, device="cpu")
    with pytest.raises(Skip):
        _ = random.correctness_tests[0].args


@on_linux
def test_what_a_suite_cannot_make_is_skipped_in_an_evaluation(tmp_path: Path) -> None:
    trace = tmp_path / "mine.txt"
    trace.write_text("Operator: aten.bernoulli.default\ncnt: 2, ((T([4], f32),), {})\n")
    (random,) = open_suite("traced", traces=trace, device="cpu")
    record = eval_correctness_test(random.op, torch.bernoulli, random.correctness_tests[0])
    assert record.status == "skipped"


@pytest.mark.thorough
@on_linux
def test_suite_and_backend_go_straight_into_eval_one_op(tmp_path: Path) -> None:
    (tmp_path / "relu__default").mkdir()
    (tmp_path / "relu__default" / "relu__default_implementation_v1.py").write_text(
        "import torch\ndef relu__default_kernel_impl(x): return torch.clamp(x, min=0)\n"
    )
    backend, done = open_backend("directory", tmp_path), []
    for op_test in open_suite("smoke", ops="relu,mul", device="cpu"):
        if op_test.op in backend:
            tests = op_test.correctness_tests, op_test.performance_tests[:1]
            score, speed, correctness, _ = eval_one_op(op_test.op, backend[op_test.op], *tests, budget=0.1)
            done.append((op_test.op, score, speed > 0, len(correctness) == len(tests[0])))
    assert done == [(torch.ops.aten.relu.default, 1.0, True, True)]


def test_a_backend_is_asked_by_operation_or_name(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "import functools, torch\n"
        "relu_kernel_impl = lambda x: x.clamp(min=0)\n"
        "def add__Tensor_kernel_impl(a, b): return 'tensor'\n"
        "def add__Scalar_kernel_impl(a, b): return 'scalar'\n"
    )
    backend = open_backend(tmp_path / "mine.py")
    add = torch.ops.aten.add
    for op in (
        torch.ops.aten.relu.default,
        torch.ops.aten.relu,
        "relu",
        "relu__default",
        "aten::relu.default",
    ):
        assert op in backend
        assert backend[op](torch.tensor([-1.0, 2.0])).tolist() == [0, 2]
    assert (backend[add.Tensor](1, 2), backend[add.Scalar](1, 2), backend["add"](1, 2)) == (
        "tensor",
        "scalar",
        "tensor",
    )
    assert "sigmoid" not in backend
    assert "no.such" not in backend
    with pytest.raises(KeyError):
        backend["sigmoid"]
    assert sorted(backend) == ["add.Scalar", "add.Tensor", "relu.default"]
    assert open_backend("aten")[add.Tensor] is add.Tensor
    assert torch.ops.aten.relu.default in open_backend()


def test_a_backend_that_is_not_there_is_refused(tmp_path: Path) -> None:
    for name, said in (("atn", "no backend, folder or file called 'atn'"), ("llm", "lie in a folder")):
        with pytest.raises(UsageError, match=said):
            open_backend(name)
    with pytest.raises(UsageError, match="named like an operation"):
        open_backend(tmp_path)
    (tmp_path / "broken.py").write_text("relu_kernel_impl = 3\n")
    with pytest.raises(LoadError, match="did not define"):
        open_backend(tmp_path / "broken.py")["relu"]


@pytest.mark.thorough
@on_linux
def test_two_folders_with_the_same_operation_are_evaluated_side_by_side(tmp_path: Path) -> None:
    for name, text in (("good", "x.clamp(min=0)"), ("bad", "x + 1")):
        (tmp_path / name / "relu").mkdir(parents=True)
        (tmp_path / name / "relu" / "relu.py").write_text(f"def relu_kernel_impl(x): return {text}\n")
    kernels = [open_backend(tmp_path / name)["relu"] for name in ("good", "bad")]
    test = Test(torch.randn(5))
    with MultiprocessingEvaluator() as evaluator:
        for kernel in kernels:
            evaluator.submit_task("relu", kernel, [test])
        assert [result.correctness_score for result in evaluator.get_results()] == [1.0, 0.0]


# ---------------------------------------------------------------- tests of one's own


def test_tests_of_ones_own_are_written_in_one_line_each() -> None:
    op_test = OpTest("relu", [Test(torch.ones(2), dim=lambda: 3)])
    assert op_test.correctness_tests[0].args[0].tolist() == [1, 1]
    assert op_test.correctness_tests[0].kwargs == {"dim": 3}
    assert Test(torch.device("cpu")).args == (torch.device("cpu"),)


@pytest.mark.thorough
def test_a_file_of_ones_own_is_opened_like_a_suite(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(FILE)
    relu, add = open_suite(file, device="cpu", seed=1)
    assert (relu.op, add.op) == (torch.ops.aten.relu.default, torch.ops.aten.add_.Tensor)
    assert (len(relu.correctness_tests), len(relu.performance_tests)) == (3, 1)
    (again, _) = open_suite(str(file), device="cpu", seed=1)
    for test, other in zip(relu.correctness_tests, again.correctness_tests, strict=True):
        assert test.args[0].equal(other.args[0])  # what is drawn at the top of the file, too
        assert test.args[0].equal(test.args[0])
    left, right = add.correctness_tests[0].args
    assert left.data_ptr() == right.data_ptr()
    left.fill_(9)
    assert add.correctness_tests[0].args[0].sum() == 0
    assert add.correctness_tests[0].kwargs == {"alpha": 2}
    (only,) = open_suite(file, "add_", device="cpu")
    assert only.op is torch.ops.aten.add_.Tensor
