"""Suites: ordinary operations, a user's own tests, and traces of programs in the notation of the field."""

from __future__ import annotations

import gzip
import math
import sys
from pathlib import Path

import pytest

from profkit.core.errors import UsageError, WorkloadError
from profkit.kernels.evaluation.suites.find import find_suite
from profkit.kernels.evaluation.suites.notation import (
    Call,
    NotationError,
    Symbol,
    TensorForm,
    format_call,
    parse_call,
    read_calls,
    read_traces,
    record_operations,
    write_trace,
)
from profkit.kernels.evaluation.suites.suite import Skip
from tests.cli_runner import profkit

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch


@pytest.mark.parametrize(
    ("text", "call"),
    [
        ("((T([8, 16], f16), 1.0), {'alpha': 2})", Call((TensorForm((8, 16), "float16"), 1.0), {"alpha": 2})),
        ("((T([4], f32, [2]),), {})", Call((TensorForm((4,), "float32", (2,)),))),
        ("((T([4], f32, stride=(2,)), -inf), {})", Call((TensorForm((4,), "float32", (2,)), -math.inf))),
        (
            "((T([], b8), [T([2], i64), None]), {})",
            Call((TensorForm((), "bool"), [TensorForm((2,), "int64"), None])),
        ),
        (
            "((T([2], f32), ), {'dtype': th.float16, 'device': 'torch.device(\"cuda:0\")', 'layout': torch.strided})",
            Call(
                (TensorForm((2,), "float32"),),
                {
                    "dtype": Symbol("dtype", "float16"),
                    "device": Symbol("device", "cuda:0"),
                    "layout": Symbol("layout", "strided"),
                },
            ),
        ),
        (
            "((T([2], f32),), {'dtype': 'f16'})",
            Call((TensorForm((2,), "float32"),), {"dtype": Symbol("dtype", "float16")}),
        ),
    ],
)
def test_a_call_is_read_and_written_again(text: str, call: Call) -> None:
    assert parse_call(text) == call
    assert parse_call(format_call(call)) == call


def test_offsets_stand_in_a_comment() -> None:
    form = TensorForm((4,), "float32", (1,), offset=3)
    call = Call((TensorForm((4,), "float32"), form, TensorForm((2,), "int64")))
    text = format_call(call)
    assert text.endswith("  # offsets [0, 3, 0]")
    assert parse_call(text) == call
    assert eval(text, {"T": lambda *a, **k: 0, "f32": 0, "i64": 0}) == (
        (0, 0, 0),
        {},
    )  # other readers pass it over


@pytest.mark.parametrize(
    "text",
    ["((__import__('os').system('false'),), {})", "((T([2], f32)", "((T([-2], f32),), {})", "3", "((x,), {})",
     "((T([2, 2], f32, (1,)),), {})", "((T([2], f32, 1),), {})", "((T([2], f32, ['a']),), {})",
     f"((T([{1 << 64}], f32),), {{}})", f"((0x{'f' * 5000},), {{}})", f"(({'9' * 5000},), {{}})", "((1\0,), {})",
     f"(({'9' * 400} + 1j,), {{}})", "((T([2], f32),), {})  # offsets [1 2]",
     f"((T([2], f32),), {{}})  # offsets [{'9' * 5000}]"],
)  # fmt: skip
def test_what_is_no_call_is_refused_and_never_executed(text: str) -> None:
    with pytest.raises(NotationError):
        parse_call(text)


def test_a_file_has_operators_counts_and_names_of_older_versions() -> None:
    lines = ["junk", "cnt: 1, ((), {})", "Operator: aten.sum.SymInt", "cnt: 12, ((T([2], f16), [0]), {})"]
    assert [(call.operation, call.count) for call in read_calls(lines)] == [("sum.dim_IntList", 12)]


TRACE = """Operator: aten.mm.default
cnt: 2, ((T([4, 8], f16), T([8, 4], f16)), {})
Operator: aten.embedding.default
cnt: 5, ((T([10, 8], f16), T([2, 3], i64)), {})
cnt: 1, ((T([10, 8], f32), T([2, 3], i64)), {})
Operator: aten.relu.default
cnt: 9, ((T([4, 8], f16, stride=(16, 2)),), {})
"""


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    (tmp_path / "mine.txt").write_text(TRACE)
    return tmp_path / "mine.txt"


def _tests(suite, *operations: str, dtype: str = ""):
    from profkit.kernels.evaluation.suites.suite import Selection

    return list(suite.tests(Selection(operations, dtype)))


def test_the_most_called_operations_come_first_with_their_counts(trace: Path) -> None:
    tests = _tests(find_suite("traced", trace))
    assert [(test.operation, test.calls) for test in tests] == [
        ("relu.default", 9),
        ("embedding.default", 5),
        ("embedding.default", 1),
        ("mm.default", 2),
    ]


def test_strides_are_as_traced_and_indices_in_range(trace: Path) -> None:
    suite = find_suite("traced", trace)
    relu, embedding, *_ = _tests(suite)
    assert suite.make_arguments(relu, 1).args[0].stride() == (16, 2)
    weight, indices = suite.make_arguments(embedding, 1).args
    assert 0 <= indices.min() <= indices.max() < len(weight)


def test_a_dtype_chooses_calls_of_the_trace(trace: Path) -> None:
    tests = _tests(find_suite("traced", trace), dtype="float32")
    assert [(test.operation, test.dtype, test.calls) for test in tests] == [
        ("embedding.default", "float32", 1)
    ]


def test_a_folder_of_files_and_a_compressed_file_have_the_same_calls(trace: Path, tmp_path: Path) -> None:
    calls = read_traces(trace.parent)
    packed = tmp_path / "calls.gz"
    packed.write_bytes(gzip.compress(write_trace(calls).encode()))
    assert sorted(read_traces(packed), key=str) == sorted(calls, key=str)


def test_tritonbenchs_table_has_all_of_its_calls() -> None:
    from profkit.kernels.evaluation.suites.written import TABLE

    calls = read_traces(TABLE)
    assert len(calls) == 18_208
    assert sum(call.count for call in calls) == 150_445
    assert "BSD" in TABLE.with_name("LICENSE.tritonbench").read_text()


@pytest.mark.parametrize(
    ("operation", "arguments"),
    [
        ("gather.default", "((T([4, 6], f32), 1, T([4, 3], i64)), {})"),
        ("scatter.src", "((T([4, 6], f32), 1, T([4, 3], i64), T([4, 3], f32)), {})"),
        ("nll_loss_forward.default", "((T([8, 5], f32), T([8], i64), None, 1, -100), {})"),
        ("index.Tensor", "((T([4, 6], f32), [None, T([9], i64)]), {})"),
        ("index_put.default", "((T([4, 6], f32), [T([5], i64), T([5], i64)], T([5], f32)), {})"),
        (
            "max_pool2d_with_indices_backward.default",
            "((T([1, 2, 4, 4], f32), T([1, 2, 8, 8], f32), [2, 2], [2, 2], [0, 0], [1, 1], False, "
            "T([1, 2, 4, 4], i64)), {})",
        ),
        (
            "_embedding_bag.default",
            "((T([50, 8], f32), T([20], i64), T([4], i64), False, 0, True, T([20], f32)), {})",
        ),
        ("new_zeros.default", "((T([2], f32), [3]), {'device': 'cuda', 'pin_memory': True})"),
    ],
)
def test_pytorch_takes_the_indices_that_are_made(operation: str, arguments: str) -> None:
    from profkit.kernels.evaluation.sources.names import find_operator
    from profkit.kernels.evaluation.suites.values import make_values

    for seed in range(3):
        made = make_values(operation, arguments, seed)
        find_operator(operation)(*made.args, **made.kwargs)


@pytest.mark.parametrize(
    ("operation", "arguments", "reason"),
    [
        ("_cudnn_rnn_backward.default", "((T([2], f32),), {})", "no CPU kernel"),
        ("bernoulli_.float", "((T([2], f32),), {})", "random"),
        ("new_empty.default", "((T([2], f32), [3]), {})", "no values"),
        ("relu.default", "((T([1000000, 1000000], f32),), {})", "with their copies"),
        ("relu.default", "((T([2], f32), 1, 2), {})", "takes at most 1"),
        (
            "segment_reduce.default",
            "((T([2], f32), 'sum'), {'lengths': T([2], i64)})",
            "range of",
        ),
    ],
)
def test_what_cannot_be_made_is_skipped_with_its_reason(operation: str, arguments: str, reason: str) -> None:
    from profkit.kernels.evaluation.suites.values import make_values

    with pytest.raises(Skip, match=reason):
        make_values(operation, arguments, 1)


def test_a_file_without_calls_is_refused(tmp_path: Path) -> None:
    (tmp_path / "none.txt").write_text("nothing")
    with pytest.raises(UsageError, match="no traced calls"):
        _tests(find_suite("traced", tmp_path / "none.txt"))
    with pytest.raises(UsageError, match="cannot be read"):
        _tests(find_suite("torchbench", tmp_path / "absent.txt"))
    with pytest.raises(UsageError, match="needs a trace"):
        find_suite("traced")


def smoke_tests(*operations: str, dtype: str = ""):
    from profkit.kernels.evaluation.suites.suite import Selection

    return list(find_suite("smoke").tests(Selection(operations, dtype)))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_every_small_test_runs_in_pytorch_and_has_an_id_of_its_own(dtype: str) -> None:
    from profkit.kernels.evaluation.sources.names import find_operator

    tests = smoke_tests(dtype=dtype)
    suite = find_suite("smoke")
    for test in tests:
        if not test.timed:
            arguments = suite.make_arguments(test, 1)
            find_operator(test.operation)(*arguments.args, **arguments.kwargs)
    assert len({test.id for test in tests}) == len(tests) > 60
    assert {test.operation for test in tests if test.timed} == {test.operation for test in tests}


def test_arguments_follow_from_the_seed_and_lie_as_the_text_says() -> None:
    test = next(each for each in smoke_tests("add_.Tensor") if "offsets" in each.arguments)
    suite = find_suite("smoke")
    first, again, other = (suite.make_arguments(test, seed).args for seed in (1, 1, 2))
    assert first[0].equal(again[0])
    assert not first[0].equal(other[0])
    assert (first[0].stride(), first[0].storage_offset()) == ((8, 2), 3)


def test_special_values_are_there_where_the_text_says_so() -> None:
    test = next(each for each in smoke_tests("relu") if "NaN" in each.arguments)
    (values,) = find_suite("smoke").make_arguments(test, 1).args
    assert values.isnan().any()
    assert math.inf in values.abs()


def test_a_bare_name_means_all_overloads_and_a_pattern_what_it_matches() -> None:
    assert {test.operation for test in smoke_tests("relu")} == {"relu.default"}
    assert {test.operation for test in smoke_tests("add*")} == {"add.Tensor", "add_.Tensor"}
    assert {test.operation for test in smoke_tests("add__Tensor", "aten::mul")} == {
        "add.Tensor",
        "mul.Tensor",
    }


def test_a_name_that_nothing_has_is_refused_with_what_is_like_it() -> None:
    with pytest.raises(UsageError) as refused:
        smoke_tests("sofmax")
    assert "_softmax" in (refused.value.fix or "")
    with pytest.raises(UsageError) as refused:
        smoke_tests("relu", "tanh")  # an operation, and not one of this suite
    assert "--suite opinfo has more operations" in (refused.value.fix or "")
    with pytest.raises(UsageError, match="no tests of int7"):
        smoke_tests(dtype="int7")
    with pytest.raises(UsageError, match="no suite called"):
        find_suite("smok")


USER_SUITE = """
import torch

class Test:
    def __init__(self, make):
        self.make, self.kwargs = make, {}

    @property
    def args(self):
        return self.make()

class OpTest:
    def __init__(self, op, correct, fast):
        self.op, self.correctness_tests, self.performance_tests = op, correct, fast

x = torch.zeros(4, 4)
SUITE = [
    OpTest(torch.ops.aten.relu.default, [Test(lambda: (torch.randn(5),))], [Test(lambda: (torch.randn(64, 64),))]),
    OpTest("add_.Tensor", [Test(lambda: (x, x.t()))], []),
    OpTest(torch.ops.aten.abs, [Test(lambda: (torch.randn(torch.randint(1, 99, ())),))], []),
]
"""


def user_suite(folder: Path, text: str = USER_SUITE):
    (folder / "my_suite.py").write_text(text)
    return find_suite("my_suite.py", folder / "my_suite.py")


def test_objects_of_the_guides_shape_are_tests_and_what_is_for_performance_is_timed(tmp_path: Path) -> None:
    state = torch.get_rng_state()
    tests = _tests(user_suite(tmp_path))
    assert torch.get_rng_state().equal(state)
    assert [(test.suite, test.operation, test.dtype, test.timed) for test in tests] == [
        ("my_suite.py", "relu.default", "float32", False),
        ("my_suite.py", "relu.default", "float32", True),
        ("my_suite.py", "add_.Tensor", "float32", False),
        ("my_suite.py", "abs.default", "float32", False),
    ]
    assert _tests(user_suite(tmp_path), "add_") == tests[2:3]
    assert _tests(user_suite(tmp_path), dtype="float16") == []


def test_what_a_file_draws_follows_from_the_seed_and_what_shares_memory_still_does(tmp_path: Path) -> None:
    suite = user_suite(tmp_path)
    relu, _, add, absolute = _tests(suite)
    first, again, other = (suite.make_arguments(relu, seed).args[0] for seed in (1, 1, 2))
    assert first.equal(again)
    assert not first.equal(other)
    left, right = suite.make_arguments(add, 1).args
    assert left.data_ptr() == right.data_ptr()
    shapes = {suite.make_arguments(absolute, seed).args[0].shape for seed in range(9)}
    assert len(shapes) == 1  # where the file draws shapes, those that were listed


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("x = 1\n1 / 0", r"my_suite.py cannot be run: ZeroDivisionError: division by zero \(line 2\)"),
        ("raise SystemExit(0)", "cannot be run: SystemExit"),
        ("def f(:", "cannot be run: SyntaxError"),
        ("import no_such_thing", "cannot be run: ModuleNotFoundError: No module named 'no_such_thing'"),
        ("x = 1", "has no list called SUITE"),
        ("SUITE = 'relu'", "has no list called SUITE"),
        ("SUITE = [3]", "my_suite.py: 3 has no operation"),
        ("SUITE = [OpTest(print, [])]", "is not an operation"),
        ("SUITE = [OpTest(lambda x: x, [])]", "is not an operation"),
        ("SUITE = [OpTest('gleu', [])]", "no operation called 'gleu'"),
        ("SUITE = [OpTest('relu', [3])]", "test 0 of correctness_tests of relu.default: AttributeError"),
        ("SUITE = [OpTest('relu', 3)]", "of correctness_tests of relu.default: TypeError"),
        ("SUITE = [OpTest('relu', [Test(lambda: 1 / 0)])]", "ZeroDivisionError"),
        ("SUITE = [OpTest('relu', [Test({1})])]", "a set among the arguments"),
    ],
)
def test_a_file_that_is_no_suite_is_refused(tmp_path: Path, text: str, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        _tests(
            user_suite(tmp_path, "from profkit.evaluation import OpTest, Test\n" * ("Test" in text) + text)
        )


def test_a_test_that_is_another_now_is_skipped(tmp_path: Path) -> None:
    (test, *_) = _tests(user_suite(tmp_path))
    for other in ("randn(66),", "randn(5) / None,"):
        suite = user_suite(tmp_path, USER_SUITE.replace("randn(5),", other))
        with pytest.raises(Skip):
            suite.make_arguments(test, 1)


PROGRAM = """
import torch

layer = torch.nn.Linear(8, 4)
for factor in (0.1, 0.2):
    layer(torch.ones(2, 8)).sum().backward()
    layer.weight.data.mul_(factor)

def in_other_memory():
    x = torch.ones(6, 6)
    x[1:, 2:].t().relu()
    x.add_(x)

with torch.profiler.record_function("a mark"):  # no operation
    pass
in_other_memory()
"""


@pytest.mark.thorough
def test_forward_and_backward_are_in_the_trace_and_can_be_made_again(tmp_path: Path) -> None:
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
    assert ("relu.default", "((T([4, 5], f32, stride=(1, 6)),), {})  # offsets [8]") in counts
    assert ("add_.Tensor", "((T([6, 6], f32), T([6, 6], f32)), {})") in counts
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


def test_a_program_stands_after_two_dashes_where_it_is_traced(tmp_path: Path) -> None:
    answer = profkit("evaluate", "--trace", cwd=tmp_path)
    assert answer.code == 2
    assert "--trace needs a program" in answer.err
