"""Layer norm over the last dimension: y = (x - mean) / sqrt(var + eps) * w + b."""

# ruff: noqa: D102 (the base class documents the methods)

from __future__ import annotations

from profkit.model import GridPoint
from profkit.operations.operation import Draw, Operation, Tensor

EPS = 1e-5


class LayerNorm(Operation):
    """FLOPs per element forward: sum, difference, square, sum, times 1/sigma, times w, plus b: 7; per row 4.

    Backward: n = (x - mean) / sigma 2, dw 2, db 1, g * w 1, the sums of it and of it times n 3, dx 4: 13; per row 2.
    The formulas: Ba, Kiros and Hinton, "Layer Normalization", 2016, and its derivative.
    """

    name = "LayerNorm"
    roundings = 4
    gradients = 3
    chunked = (True, False, False)

    def inputs(self, point: GridPoint, draw: Draw) -> tuple[Tensor, ...]:
        x = draw(point.batch, point.sequence, point.dimension, mean=0.5)
        return x, draw(point.dimension, scale=0.1, mean=1.0), draw(point.dimension, scale=0.1)

    def apply(self, *inputs: Tensor) -> Tensor:
        from torch.nn.functional import layer_norm

        x, w, b = inputs
        return layer_norm(x, (x.shape[-1],), w, b, EPS)

    def condition(self, *inputs: Tensor) -> Tensor | None:
        # x - mean cancels: an error of the mean is one of mean / sigma in units of the result.
        x = inputs[0]
        spread = (x.var(-1, correction=0, keepdim=True) + EPS).sqrt()
        return 1 + x.mean(-1, keepdim=True).abs() / spread

    def flops(self, point: GridPoint) -> float:
        rows = point.batch * point.sequence
        element, row = (7, 4) if point.direction == "forward" else (13, 2)
        return float(element * rows * point.dimension + row * rows)

    def elements(self, point: GridPoint) -> tuple[int, int]:
        rows = point.batch * point.sequence
        if point.direction == "forward":
            return 2 * rows * point.dimension + 2 * point.dimension, 0
        return (
            3 * rows * point.dimension + 3 * point.dimension,
            8 * rows,
        )  # mean and 1/sigma of each row, float32

    def terms(self, point: GridPoint) -> int:
        return point.dimension if point.direction == "forward" else point.batch * point.sequence
