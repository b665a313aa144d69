"""Names of operations and implementations, and what users add."""

from __future__ import annotations

import pytest

from profkit.core.errors import UsageError
from profkit.core.types import GridPoint
from profkit.kernels.operations.definitions import Problem
from profkit.kernels.operations.registry import (
    OPERATIONS,
    Unavailable,
    build_call,
    canonical_implementation,
    canonical_operation,
    has_implementation,
    implementation,
    implementations,
)


def _problem(operation: str) -> Problem:
    return Problem(GridPoint(operation, 1, 1, 8), OPERATIONS[operation], ())


def test_names_are_known_however_they_are_spelled() -> None:
    for name in ("LayerNorm", "layer_norm", "layernorm", "LAYER-NORM", "layer norm"):
        assert canonical_operation(name) == ("LayerNorm",)
    for name, known in (("pytorch", "PyTorch"), ("triton", "Triton"), ("cuda", "CUDA")):
        assert canonical_implementation(name) == known
    with pytest.raises(UsageError, match="no implementation"):
        canonical_implementation("jax")


@pytest.mark.parametrize("spelled", ["GELU", "gelu"])
def test_what_a_user_registers_is_found_however_its_operation_was_spelled(spelled: str) -> None:
    @implementation(spelled, "mine")
    def mine(problem: Problem):  # type: ignore[no-untyped-def]
        return lambda: problem.point.dimension

    assert build_call("mine", _problem("GELU"))() == 8
    assert has_implementation("mine", "GELU")
    assert not has_implementation("mine", "Swish")
    assert implementations()[-1] == "mine"
    with pytest.raises(Unavailable, match="mine does not implement Swish"):
        build_call("mine", _problem("Swish"))


def test_a_name_that_is_taken_is_refused() -> None:
    implementation("GELU", "mine")(lambda problem: lambda: None)
    for operation, name in (
        ("gelu", "mine"),
        ("Swish", "Triton"),
        ("Swish", "triton"),
        ("Swish", "Mine"),
    ):
        with pytest.raises(UsageError, match="already"):
            implementation(operation, name)


@pytest.mark.parametrize("name", ["", " ", "a,b", "a\nb", "half \udc80", "\x1b[31m", "x" * 101, " mine"])
def test_what_cannot_be_told_on_a_command_line_is_no_name(name: str) -> None:
    with pytest.raises(UsageError, match="is not a name of an implementation"):
        implementation("GELU", name)


def test_flops_are_those_of_the_formulas() -> None:
    count = 2 * 3 * 8
    for name, forward, backward in (
        ("LayerNorm", 7 * count + 4 * 6, 13 * count + 2 * 6),
        ("GELU", 5 * count, 11 * count),
        ("Swish", 5 * count, 9 * count),
        ("MSE", 3 * count, 2 * count),
        ("CrossEntropy", 4 * count, 6 * count),
    ):
        operation = OPERATIONS[name]
        assert operation.flops(GridPoint(name, 2, 3, 8)) == forward
        assert operation.flops(GridPoint(name, 2, 3, 8, direction="backward")) == backward
