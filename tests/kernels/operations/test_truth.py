"""Every implementation that runs here against float64, and the check against results that are wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from profkit.core.types import GridPoint  # noqa: E402
from profkit.kernels.operations.definitions import Problem  # noqa: E402
from profkit.kernels.operations.float64_check import CHUNK, Incorrect, check_result, reference_result  # noqa: E402
from profkit.kernels.operations.registry import OPERATIONS, Unavailable, build_call  # noqa: E402
from profkit.kernels.sweep.bench import make_problem  # noqa: E402

CPU = torch.device("cpu")


def _problem(
    operation: str, direction: str = "forward", dtype: str = "float32", shape: tuple[int, ...] = (3, 5, 16)
) -> Problem:
    return make_problem(GridPoint(operation, *shape, dtype, direction), CPU)  # type: ignore[arg-type,call-arg]


def test_eager_torch_loses_the_gradient_of_a_mean_over_many_in_half_precision() -> None:
    """2 / N is no number of float16 any more: torch multiplies by it first, and what comes out is 0."""
    problem = _problem("MSE", "backward", "float16", (32, 256, 64))
    with pytest.raises(Incorrect, match="numbers wrong"):
        check_result(problem, build_call("PyTorch", problem)(), reference_result(problem))


@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_reference_in_parts_is_that_of_the_whole(operation: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for direction in ("forward", "backward"):
        problem = _problem(operation, direction)
        whole = reference_result(problem)
        monkeypatch.setattr(
            "profkit.kernels.operations.float64_check.CHUNK", 5 * 16
        )  # one of the batch at a time
        parts = reference_result(problem)
        monkeypatch.setattr("profkit.kernels.operations.float64_check.CHUNK", CHUNK)
        assert len(whole) == len(parts)
        for one, other in zip(whole, parts, strict=True):
            torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-14)


def test_the_same_point_has_the_same_inputs_and_another_point_others() -> None:
    first, again, other = _problem("GELU"), _problem("GELU"), _problem("GELU", shape=(3, 5, 17))
    assert torch.equal(first.inputs[0], again.inputs[0])
    assert not torch.equal(first.inputs[0].flatten()[:8], other.inputs[0].flatten()[:8])


def test_cross_entropy_is_that_of_the_definition() -> None:
    problem = _problem("CrossEntropy", shape=(2, 3, 7))
    x, labels = problem.inputs
    rows = x.double().reshape(-1, 7)
    plain = sum(
        float(torch.log(torch.exp(row).sum()) - row[label])
        for row, label in zip(rows, labels.flatten(), strict=True)
    ) / len(rows)
    assert float(reference_result(problem)[0]) == pytest.approx(plain, rel=1e-12)


@pytest.mark.parametrize(
    ("spoil", "fault"),
    [
        (lambda value: value.flatten(), "shape"),
        (lambda value: value.double(), "dtype"),
        (lambda value: value.to("meta"), "device"),
        (lambda value: (value, value), "count"),
    ],
    ids=["shape", "dtype", "device", "count"],
)
def test_a_result_of_another_form_is_found(spoil: Callable[[Any], Any], fault: str) -> None:
    problem = _problem("Swish")
    with pytest.raises(Incorrect) as wrong:
        check_result(problem, spoil(build_call("PyTorch", problem)()), reference_result(problem))
    assert wrong.value.fault == fault


def test_what_must_be_moved_is_counted_by_the_definition() -> None:
    point = GridPoint("LayerNorm", 2, 3, 8)
    assert OPERATIONS["LayerNorm"].bytes(point) == 4 * (2 * 48 + 16)
    assert OPERATIONS["GELU"].bytes(replace(point, operation="GELU", dtype="float16")) == 2 * 96
    assert OPERATIONS["MSE"].bytes(replace(point, operation="MSE", direction="backward")) == 4 * (3 * 48 + 1)
    assert OPERATIONS["CrossEntropy"].bytes(replace(point, operation="CrossEntropy")) == 4 * 49 + 8 * 6


def test_triton_without_a_gpu_says_how_its_kernels_run_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    with pytest.raises(Unavailable) as missing:
        build_call("Triton", _problem("GELU"))
    assert "TRITON_INTERPRET=1" in str(missing.value.fix)
