"""What the check is worth: mistakes that implementations make, each must fail, and right ones, which must not."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from mutants import exact, mutants  # noqa: E402

from profkit.core.types import GridPoint  # noqa: E402
from profkit.kernels.operations.definitions import Problem  # noqa: E402
from profkit.kernels.operations.float64_check import Incorrect, check_result, reference_result  # noqa: E402
from profkit.kernels.operations.registry import OPERATIONS, build_call  # noqa: E402
from profkit.kernels.sweep.bench import make_problem  # noqa: E402

SHAPE = (8, 128, 8)
BOTH, DTYPES = ("forward", "backward"), ("float32", "float16", "bfloat16")
# PyTorch on the CPU adds up the gradients of weight and bias in 16 bits: in bfloat16 a tenth of them is lost over 4,096
# rows. And float16 cannot hold what its gradient of a mean, or its sum of losses, passes through on the way.
LOST = {("LayerNorm", "backward", "float16"), ("LayerNorm", "backward", "bfloat16")}


def _problem(operation: str, direction: str, dtype: str, shape: tuple[int, int, int] = SHAPE) -> Problem:
    return make_problem(GridPoint(operation, *shape, dtype, direction), torch.device("cpu"))  # type: ignore[arg-type]


@pytest.mark.thorough
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("direction", BOTH)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_every_mistake_is_found(operation: str, direction: str, dtype: str) -> None:
    problem = _problem(operation, direction, dtype)
    expected = reference_result(problem)
    passed = []
    for name, mutant in mutants(problem):
        try:
            check_result(problem, mutant(problem), expected)
            passed.append(name)
        except Incorrect:
            pass
    assert passed == []
    assert check_result(problem, exact(problem), expected) < 0.51


@pytest.mark.parametrize("shape", [(3, 7, 5), (1, 1, 2), (16, 256, 8), (2, 16, 512)])
@pytest.mark.parametrize("direction", BOTH)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_pytorch_is_right(operation: str, direction: str, shape: tuple[int, int, int]) -> None:
    for dtype in DTYPES:
        problem = _problem(operation, direction, dtype, shape)
        if (operation, direction, dtype) not in LOST or shape[0] * shape[1] < 100:
            assert check_result(problem, build_call("PyTorch", problem)(), reference_result(problem)) < 1


@pytest.mark.thorough
def test_bessels_correction_is_seen_where_it_is_a_thousandth() -> None:
    """And a number of bfloat16 is known to four."""
    problem = _problem("LayerNorm", "forward", "bfloat16", (16, 256, 512))
    (true,) = reference_result(problem)
    x, w, b = (t.double() for t in problem.inputs)
    plain = (x - x.mean(-1, keepdim=True)) / (x.var(-1, correction=1, keepdim=True) + 1e-5).sqrt() * w + b
    with pytest.raises(Incorrect):
        check_result(problem, plain.bfloat16(), (true,))


@pytest.mark.parametrize(("dtype", "factor"), [("float16", 0.9995), ("bfloat16", 0.996)])
def test_a_factor_that_no_single_number_shows_leans(dtype: str, factor: float) -> None:
    problem = _problem("GELU", "forward", dtype, (16, 256, 8))
    (true,) = reference_result(problem)
    with pytest.raises(Incorrect, match="is biased by"):
        check_result(problem, (true * factor).to(getattr(torch, dtype)), (true,))
