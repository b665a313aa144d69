"""What rounding explains is allowed, and nothing more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("torch")

import torch

from profkit.kernels.evaluation.judging.reference import (
    CallReference,
    make_reference,
    written_places,
)
from profkit.kernels.operations.float64_check import Incorrect, compare

aten = torch.ops.aten
F32, F16, BF16 = torch.float32, torch.float16, torch.bfloat16


def reference_of(operation: Any, *args: Any, **kwargs: Any) -> CallReference:
    """The reference of a call, which gets copies of the arguments."""

    def copy(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return value.clone()
        return [copy(each) for each in value] if isinstance(value, list) else value

    def make() -> tuple[Any, ...]:
        return tuple(map(copy, args)), {name: copy(value) for name, value in kwargs.items()}, []

    return make_reference(operation, make, seed=1)


def share(reference: CallReference, *outputs: torch.Tensor) -> float:
    """The largest error as a share of what is allowed. Raises Incorrect."""
    return max(
        compare(output, expected).share for output, expected in zip(outputs, reference.outputs, strict=True)
    )


def randn(*shape: int, dtype: torch.dtype = F32, seed: int = 0) -> torch.Tensor:
    """Normal numbers."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


@pytest.mark.parametrize("dtype", [F32, F16, BF16])
@pytest.mark.parametrize(
    ("operation", "args"),
    [
        (aten.add.Tensor, lambda dtype: (randn(99, 33, dtype=dtype), randn(33, dtype=dtype, seed=1))),
        (aten.exp.default, lambda dtype: (randn(999, dtype=dtype),)),
        (aten.sum.dim_IntList, lambda dtype: (randn(40, 1000, dtype=dtype), [1])),
        (aten._softmax.default, lambda dtype: (randn(20, 300, dtype=dtype), -1, False)),
        (aten.mm.default, lambda dtype: (randn(50, 200, dtype=dtype), randn(200, 30, dtype=dtype, seed=1))),
        (aten.mean.dim, lambda dtype: (randn(3, 4000, dtype=dtype), [1])),
        (aten.native_layer_norm.default, lambda dtype: (randn(9, 64, dtype=dtype), [64], None, None, 1e-5)),
        (aten.gelu.default, lambda dtype: (randn(500, dtype=dtype),)),
    ],
    ids=lambda value: None if "lambda" in str(value) else str(value),  # no address: workers collect alike
)
def test_pytorch_keeps_within_a_half_of_what_is_allowed(
    operation: Any, args: Callable[[torch.dtype], tuple[Any, ...]], dtype: torch.dtype
) -> None:
    values = args(dtype)
    reference = reference_of(operation, *values)
    for expected in reference.outputs:
        assert expected.truth is not None
        assert expected.allowed is not None
        error = (expected.native.to(torch.float64) - expected.truth).abs()
        assert bool((error <= expected.allowed / 2).all())


def test_a_sum_one_number_after_the_other_is_right_and_one_in_half_precision_is_wrong() -> None:
    x = randn(4, 4096)
    reference = reference_of(aten.sum.dim_IntList, x, [1])
    one_by_one = torch.zeros(4)
    for column in x.unbind(1):
        one_by_one = one_by_one + column
    assert 0 < share(reference, one_by_one) <= 1
    with pytest.raises(Incorrect, match="numbers wrong"):
        share(reference, x.half().float().sum(1))


def test_a_result_that_is_cut_off_instead_of_rounded_leans() -> None:
    x = randn(100, 100, dtype=BF16)
    reference = reference_of(aten.exp.default, x)
    exact = torch.exp(x.double())
    rounded = exact.to(BF16)
    cut = torch.where(rounded.double() > exact, torch.nextafter(rounded, torch.zeros_like(rounded)), rounded)
    assert share(reference, rounded) <= 1
    with pytest.raises(Incorrect, match="is biased by"):
        share(reference, cut)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("operation", "args", "output"),
    [
        (aten.floor.default, (torch.tensor([1.0, 2.0, 2.5]),), torch.tensor([1.0, 1.0, 2.0])),  # a jump
        (aten._softmax.default, (randn(8, 30522, dtype=F16), -1, False), torch.zeros(8, 30522, dtype=F16)),
    ],
    ids=["jump", "zeros"],
)
def test_what_is_wrong_by_more_than_rounding_is_wrong_however_small(
    operation: Any, args: Any, output: torch.Tensor
) -> None:
    with pytest.raises(Incorrect, match=r"wrong|is biased"):
        share(reference_of(operation, *args), output)


def test_nan_and_infinity_stand_where_pytorch_has_them() -> None:
    x = torch.tensor([-1.0, 0.0, 1.0, torch.inf])
    reference = reference_of(aten.log.default, x)
    assert share(reference, torch.log(x)) == 0
    with pytest.raises(Incorrect) as wrong:
        share(reference, torch.tensor([0.0, -torch.inf, 0.0, torch.inf]))
    assert wrong.value.fault == "not-finite"


def test_whole_numbers_are_equal_or_wrong() -> None:
    reference = reference_of(aten.add.Tensor, torch.tensor([1, 2]), torch.tensor([3, 4]))
    assert share(reference, torch.tensor([4, 6])) == 0
    with pytest.raises(Incorrect, match="output 0 at \\[1\\] is 7 instead of 6; 1 of 2 numbers wrong"):
        share(reference, torch.tensor([4, 7]))


def test_the_schema_says_which_arguments_are_changed() -> None:
    x = randn(3)
    assert written_places(aten.add_.Tensor, (x, x), {}) == {0}
    assert written_places(aten.add.out, (x, x), {"out": x}) == {2}
    assert written_places(aten.add.Tensor, (x, x), {}) == set()
    assert written_places(aten.native_batch_norm.default, (x, x, x, x, x, True, 0.1, 1e-5), {}) == {3, 4}
    reference = reference_of(aten.add_.Tensor, x, x)
    assert [place for place, _ in reference.arguments] == [0]


def test_where_pytorchs_own_number_is_right_by_luck_another_right_rounding_is_right_too() -> None:
    """log_softmax where one number has nearly all: log(1.002) is known to a roundoff of 1, not of its own size."""
    for shape, scale, seed in (((5, 5), 3, 34), ((5,), 3, 26), ((5,), 5, 26), ((5,), 9, 16)):
        x = randn(*shape, seed=seed) * scale
        moved = x - x.amax(-1, keepdim=True)
        assert (
            share(
                reference_of(aten._log_softmax.default, x, -1, False), moved - moved.exp().sum(-1, True).log()
            )
            <= 1
        )
        with pytest.raises(Incorrect):
            share(
                reference_of(aten._log_softmax.default, x, -1, False),
                torch.log_softmax(x.to(BF16), -1).to(F32),
            )


def test_what_a_batch_norm_changes_without_saying_so_is_right_within_rounding_and_wrong_beyond() -> None:
    x, mean, variance = randn(8, 4, 6, dtype=BF16), torch.zeros(4, dtype=BF16), torch.ones(4, dtype=BF16)
    arguments = (x, None, None, mean, variance, True, 0.5, 1e-5)
    reference = reference_of(aten.native_batch_norm.default, *arguments)
    places = dict(reference.arguments)
    assert sorted(places) == [1, 2]
    assert not torch.equal(places[1].native, mean)  # PyTorch changes it
    exact = (0.5 * x.float().mean((0, 2))).to(BF16)
    assert compare(exact, places[1]).share <= 1
    with pytest.raises(Incorrect):
        compare(mean, places[1])


@pytest.mark.parametrize(
    ("operation", "args"),
    [
        (aten.add.Tensor, (randn(9, 33), randn(33, seed=1))),
        (aten.native_layer_norm.default, (randn(9, 64, dtype=BF16), [64], None, None, 1e-5)),
        (aten.relu_.default, (randn(5, 7).t(),)),
        (aten.mul.Tensor, (randn(3, 1).expand(3, 4), randn(0, 3, 4))),
    ],
    ids=["add", "layer norm", "in place", "empty"],
)
def test_all_that_is_made_for_a_reference_lies_where_its_arguments_do(operation: Any, args: Any) -> None:
    """Whatever is made without a device would be on that of nobody, where it meets no argument."""
    with torch.device("meta"):
        reference = reference_of(operation, *args)
        for expected in (*reference.outputs, *(each for _, each in reference.arguments)):
            assert expected.truth is not None
            assert compare(expected.native, expected).share <= 1
