"""The suite `smoke`: every test can be made and run by PyTorch, twice alike from one seed."""

from __future__ import annotations

import math

import pytest

from profkit.core.errors import UsageError
from profkit.kernels.evaluation.suites.suite import find_suite

pytestmark = pytest.mark.torch


def _tests(*operations: str, dtype: str = ""):
    from profkit.kernels.evaluation.suites.suite import Selection

    return list(find_suite("smoke").tests(Selection(operations, dtype)))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_every_small_test_runs_in_pytorch_and_has_an_id_of_its_own(dtype: str) -> None:
    from profkit.kernels.evaluation.sources.names import find_operator

    tests = _tests(dtype=dtype)
    suite = find_suite("smoke")
    for test in tests:
        if not test.timed:
            arguments = suite.make_arguments(test, 1)
            find_operator(test.operation)(*arguments.args, **arguments.kwargs)
    assert len({test.id for test in tests}) == len(tests) > 60
    assert {test.operation for test in tests if test.timed} == {test.operation for test in tests}


def test_arguments_follow_from_the_seed_and_lie_as_the_text_says() -> None:
    test = next(each for each in _tests("add_.Tensor") if "offsets" in each.arguments)
    suite = find_suite("smoke")
    first, again, other = (suite.make_arguments(test, seed).args for seed in (1, 1, 2))
    assert first[0].equal(again[0])
    assert not first[0].equal(other[0])
    assert (first[0].stride(), first[0].storage_offset()) == ((8, 2), 3)


def test_special_values_are_there_where_the_text_says_so() -> None:
    test = next(each for each in _tests("relu") if "NaN" in each.arguments)
    (values,) = find_suite("smoke").make_arguments(test, 1).args
    assert values.isnan().any()
    assert math.inf in values.abs()


def test_a_bare_name_means_all_overloads_and_a_pattern_what_it_matches() -> None:
    assert {test.operation for test in _tests("relu")} == {"relu.default"}
    assert {test.operation for test in _tests("add*")} == {"add.Tensor", "add_.Tensor"}
    assert {test.operation for test in _tests("add__Tensor", "aten::mul")} == {"add.Tensor", "mul.Tensor"}


def test_a_name_that_nothing_has_is_refused_with_what_is_like_it() -> None:
    with pytest.raises(UsageError) as refused:
        _tests("sofmax")
    assert "_softmax" in (refused.value.fix or "")
    with pytest.raises(UsageError) as refused:
        _tests("relu", "tanh")  # an operation, and not one of this suite
    assert "--suite opinfo has more operations" in (refused.value.fix or "")
    with pytest.raises(UsageError, match="no tests of int7"):
        _tests(dtype="int7")
    with pytest.raises(UsageError, match="no suite called"):
        find_suite("smok")
