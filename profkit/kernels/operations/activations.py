"""GELU and Swish: element by element."""

# ruff: noqa: D102 (the base class documents the methods)

from __future__ import annotations

from collections.abc import Sequence

from profkit.core.types import GridPoint
from profkit.kernels.operations.operation import Draw, Operation, Tensor

FAR = 100.0  # where exp(x) overflows, and a formula that is careless gives a NaN


class _Elementwise(Operation):
    gradients = 1
    chunked = (True,)

    def inputs(self, point: GridPoint, draw: Draw) -> tuple[Tensor, ...]:
        x = draw(point.batch, point.sequence, point.dimension)
        flat = x.view(-1)
        flat[flat.numel() // 2] = -FAR
        flat[0] = flat[-1] = FAR
        return (x,)

    def elements(self, point: GridPoint) -> tuple[int, int]:
        count = point.batch * point.sequence * point.dimension
        return (2 if point.direction == "forward" else 3) * count, 0

    def chain(self, point: GridPoint, place: int) -> int:
        del point, place
        return 8


class Gelu(_Elementwise):
    """x times the normal distribution's function of x, with erf: no approximation by tanh.

    FLOPs: x / sqrt(2), erf, + 1, * x, / 2 forward: 5. Backward dy * (P + x * p): 4 for P, 4 for p (x^2, / 2, exp,
    / sqrt(2 pi)), and 3. The formula: Hendrycks and Gimpel, "Gaussian Error Linear Units", 2016. How a kernel computes
    P is its own affair.
    """

    name = "GELU"

    def apply(self, *inputs: Tensor) -> Tensor:
        from torch.nn.functional import gelu

        return gelu(inputs[0])

    def size(self, place: int, wanted: Tensor, inputs: Sequence[Tensor], above: Tensor | None) -> Tensor:
        # 1 + erf cancels where x is negative: what erf is off by near -1, times x / 2, is all the error there is.
        # Backward the derivative is a sum of P and x * p, neither above 1.
        del place, wanted
        return inputs[0].abs() if above is None else above.abs()

    def flops(self, point: GridPoint) -> float:
        return float(
            (5 if point.direction == "forward" else 11) * point.batch * point.sequence * point.dimension
        )


class Swish(_Elementwise):
    """x * sigmoid(x). FLOPs: negate, exp, + 1, division, product: 5.

    Backward dy * s * (1 + x * (1 - s)): s 4, and 5: 9.
    """

    name = "Swish"

    def apply(self, *inputs: Tensor) -> Tensor:
        from torch.nn.functional import silu

        return silu(inputs[0])

    def size(self, place: int, wanted: Tensor, inputs: Sequence[Tensor], above: Tensor | None) -> Tensor:
        # What is rounded of x before exp is an error of exp as large as x times it.
        del place
        x = inputs[0]
        steep = 1 + x.abs()
        if above is None:
            return wanted.abs() * steep
        sigma = x.sigmoid()
        return above.abs() * sigma * (1 + x.abs() * (1 - sigma)) * steep

    def flops(self, point: GridPoint) -> float:
        return float(
            (5 if point.direction == "forward" else 9) * point.batch * point.sequence * point.dimension
        )
