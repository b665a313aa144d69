"""What a worker sees of an implementation that does not compute, and what it keeps from the next one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

pytest.importorskip("torch")

import torch

from profkit.core.types import CaseResult, Fact, GridPoint
from profkit.kernels.operations import registry
from profkit.kernels.operations.definitions import Call, Problem
from profkit.kernels.operations.float64_check import (
    Incorrect,
    RepeatedCheck,
    check_result,
    fingerprint,
    reference_result,
)
from profkit.kernels.operations.registry import OPERATIONS, build_call, implementation
from profkit.kernels.sweep.bench import Bench, make_problem
from profkit.kernels.sweep.request import TimingOptions
from tests.spoken import spoken

gelu = torch.nn.functional.gelu
CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def _as_it_was(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(registry, "_registered", {})
    monkeypatch.setattr("profkit.kernels.sweep.bench.limit_memory", lambda *_: None)  # of this process
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def cases(direction: str, **builders: Callable[[Problem], object]) -> dict[str, CaseResult]:
    """What becomes of each of these implementations of GELU, and of PyTorch's after them."""
    for name, made in builders.items():
        implementation("GELU", name)(made)  # type: ignore[type-var]
    point = GridPoint("GELU", 2, 3, 8, direction=direction)  # type: ignore[arg-type]
    bench = Bench("cpu", TimingOptions(0.5, 0.01))
    return {name: bench.measure(point, name) for name in (*builders, "PyTorch")}


def _by_address(problem: Problem) -> Call:
    known: dict[int, Any] = {}

    def call() -> Any:
        x = problem.inputs[0]
        return known.setdefault(x.data_ptr(), None) if x.data_ptr() in known else _keep(known, x)

    return call


def _keep(known: dict[int, Any], x: Any) -> Any:
    known[x.data_ptr()] = gelu(x)
    return known[x.data_ptr()]


def _computed_before(problem: Problem) -> Call:
    y = gelu(problem.inputs[0])
    return lambda: y


def _adds_up(problem: Problem) -> Call:
    y = torch.zeros_like(problem.inputs[0])
    return lambda: y.add_(gelu(problem.inputs[0]))


class Lazy(torch.Tensor):  # type: ignore[misc, name-defined]
    """A tensor that could compute when it is looked at."""


def test_what_does_not_compute_in_its_call_is_wrong_though_its_first_result_was_right() -> None:
    found = cases(
        "forward",
        before=_computed_before,
        address=_by_address,
        adds=_adds_up,
        lazy=lambda problem: lambda: gelu(problem.inputs[0]).as_subclass(Lazy),
        none=lambda problem: lambda: None,
    )
    assert {name: result.state for name, result in found.items()} == {
        **dict.fromkeys(("before", "address", "adds", "lazy", "none"), "wrong"),
        "PyTorch": "measured",
    }
    for name in ("before", "address", "adds"):
        assert spoken(found[name].reason).startswith(
            "wrong after it was timed, with other numbers in x: the value at"
        )
        assert (found[name].median, found[name].samples, found[name].seconds) == (None, 0, ())
    assert spoken(found["lazy"].reason) == "it returns a Lazy instead of a plain tensor"


def test_a_gradient_that_was_computed_before_is_wrong() -> None:
    def before(problem: Problem) -> Call:
        grads = build_call("PyTorch", problem)()
        return lambda: grads

    found = cases("backward", before=before)
    assert "with other numbers in the gradient from above" in spoken(found["before"].reason)
    assert (found["before"].state, found["PyTorch"].state) == ("wrong", "measured")


def test_inputs_that_one_changes_are_whole_again_for_the_next() -> None:
    def asks(problem: Problem) -> Call:
        x = problem.inputs[0].requires_grad_()
        return lambda: gelu(x)

    def in_place(problem: Problem) -> Call:
        return lambda: problem.inputs[0].copy_(gelu(problem.inputs[0]))

    def turned(problem: Problem) -> Call:
        x = problem.inputs[0].transpose_(0, 2)
        return lambda: gelu(x).transpose(0, 2)

    found = cases("forward", asks=asks, place=in_place, turned=turned, wrong=lambda problem: lambda: 1)
    assert found["place"].state == "wrong"
    assert found["place"].reason == Fact("changes-inputs")
    assert [found[name].state for name in ("asks", "turned", "PyTorch")] == ["measured"] * 3


@pytest.mark.parametrize("name", list(OPERATIONS))
@pytest.mark.parametrize(
    ("direction", "dtype"), [("forward", "float32"), ("forward", "bfloat16"), ("backward", "float32")]
)
def test_every_operation_is_looked_at_again_with_other_numbers_which_are_put_back(
    name: str, direction: str, dtype: str
) -> None:
    problem = make_problem(GridPoint(name, 80, 40, 32, dtype, direction), CPU)  # type: ignore[arg-type]
    before, expected = fingerprint(problem), reference_result(problem)
    call = build_call("PyTorch", problem)
    stale = call()
    check_result(problem, stale, expected)
    look = RepeatedCheck(problem, expected)
    look.ask(problem, call, lambda: None)
    with pytest.raises(Incorrect, match="wrong after it was timed"):
        look.ask(problem, lambda: stale, lambda: None)
    assert fingerprint(problem) == before
    problem.inputs[0][-1, -1, -1] += 1
    assert fingerprint(problem) != before
