"""The suite `opinfo`, on a few entries of torch's own database: listing all of it takes seven seconds."""

from __future__ import annotations

from pathlib import Path

import pytest

from profkit.kernels.evaluation.suites.find import find_suite

pytestmark = pytest.mark.torch
ENTRIES = ("add", "nn.functional.relu", "bernoulli", "searchsorted", "softmax", "addmm", "empty_like")


@pytest.fixture(autouse=True)
def _few_entries(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from profkit.kernels.evaluation.suites import opinfo

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    few = {key: entry for key, entry in opinfo.load_entries().items() if key.name in ENTRIES}
    monkeypatch.setattr(opinfo, "load_entries", lambda: few)


def _tests(*operations: str, dtype: str = "bfloat16"):
    from profkit.kernels.evaluation.suites.suite import Selection

    return list(find_suite("opinfo").tests(Selection(operations, dtype)))


def _tensors(arguments):
    import torch

    return [
        value for value in (*arguments.args, *arguments.kwargs.values()) if isinstance(value, torch.Tensor)
    ]


def test_samples_of_one_call_are_tests_and_what_is_random_or_unwritten_is_none() -> None:
    tests = _tests()
    operations = [test.operation for test in tests]
    assert {"add.Tensor", "relu.default", "addmm.default"} <= set(operations)
    assert not {"bernoulli.default", "empty_like.default"} & set(operations)
    assert operations == sorted(operations, key=operations.index)  # one operation after the other
    assert len({test.id for test in tests}) == len(tests)


def test_a_test_is_made_again_alone_and_only_its_seed_decides_its_values() -> None:
    tests = _tests("addmm.default", "relu.default")
    suite = find_suite("opinfo")
    in_order = [_tensors(suite.make_arguments(test, 5)) for test in tests]
    for test, values in zip(reversed(tests), reversed(in_order), strict=True):
        again, other = (_tensors(find_suite("opinfo").make_arguments(test, seed)) for seed in (5, 6))
        assert all(map(_alike, values, again))
        assert sum(tensor.numel() for tensor in values) < 4 or not all(map(_alike, values, other))


def _alike(left, right) -> bool:
    return left.shape == right.shape and left.nan_to_num().equal(right.nan_to_num())


def test_a_sample_with_a_random_number_among_its_arguments_is_made_as_it_was_listed() -> None:
    from profkit.kernels.evaluation.suites.capture import describe_call
    from profkit.kernels.evaluation.suites.notation import format_call

    suite = find_suite("opinfo")
    for test in _tests("searchsorted.Scalar")[:4]:
        arguments = suite.make_arguments(test, 99)
        assert format_call(describe_call(arguments.args, arguments.kwargs)) == test.arguments


@pytest.mark.thorough
def test_many_samples_of_an_operation_are_taken_evenly_with_the_largest() -> None:
    from profkit.kernels.evaluation.suites.opinfo import OpInfo
    from profkit.kernels.evaluation.suites.suite import Selection

    few = list(OpInfo(max_tests=4).tests(Selection((), "float32")))
    for operation in {test.operation for test in few}:
        assert sum(test.operation == operation for test in few) <= 4
    numbers = [test.source["sample"] for test in few if test.operation == "searchsorted.Tensor"]
    assert numbers[0] == 0
    assert numbers[-1] > 100
