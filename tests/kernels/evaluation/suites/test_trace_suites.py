"""Suites out of traces: tritonbench's table, its text files, and what a program of the user wrote."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from profkit.core.errors import UsageError
from profkit.kernels.evaluation.suites.notation import read_traces, write_trace
from profkit.kernels.evaluation.suites.suite import find_suite

pytestmark = pytest.mark.torch
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


def test_a_dtype_replaces_the_usual_one_of_the_trace_and_equal_calls_become_one(trace: Path) -> None:
    tests = _tests(find_suite("traced", trace), dtype="float32")
    assert {test.dtype for test in tests} == {"float32"}
    assert [test.calls for test in tests if test.operation == "embedding.default"] == [6]


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
        ("linalg_cholesky_ex.default", "((T([5, 5], f32),), {})"),
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
        ("relu.default", "((T([1000000, 1000000], f32),), {})", "GB"),
        ("relu.default", "((T([2], f32), 1, 2), {})", "takes 1"),
        (
            "segment_reduce.default",
            "((T([2], f32), 'sum'), {'lengths': T([2], i64)})",
            "range of the indices",
        ),
    ],
)
def test_what_cannot_be_made_is_skipped_with_its_reason(operation: str, arguments: str, reason: str) -> None:
    from profkit.kernels.evaluation.suites.suite import Skip
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


def test_an_unpooling_that_writes_two_values_to_one_place_has_no_one_result() -> None:
    import torch

    from profkit.kernels.evaluation.judging.trial import has_one_result

    unpool = torch.ops.aten.max_unpool2d.default
    for places, one in (([[[0, 5], [7, 3]]], True), ([[[0, 5], [5, 3]]], False)):
        arguments = (torch.randn(1, 2, 2), torch.tensor(places), [2, 4])
        assert has_one_result(unpool, (arguments, {})) is one
