"""Layer norm over the last dimension: y = (x - mean) / sqrt(var + eps) * w + b."""

# ruff: noqa: D102 (the base class documents the methods)

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

from profkit.core.types import GridPoint
from profkit.kernels.operations.operation import Draw, Operation, Tensor

EPS = 1e-5
# Every so many rows one whose variance is about EPS: in the others nobody sees which EPS it is, and where it is added.
QUIET, EVERY = 2.0**-8, 8
LOUDEST = 32.0


class LayerNorm(Operation):
    """FLOPs per element forward: sum, difference, square, sum, times 1/sigma, times w, plus b: 7; per row 4.

    Backward: n = (x - mean) / sigma 2, dw 2, db 1, g * w 1, the sums of it and of it times n 3, dx 4: 13; per row 2.
    The formulas: Ba, Kiros and Hinton, "Layer Normalization", 2016, and its derivative.
    """

    name = "LayerNorm"
    gradients = 3
    chunked = (True, False, False)

    def inputs(self, point: GridPoint, draw: Draw) -> tuple[Tensor, ...]:
        x = draw(point.batch, point.sequence, point.dimension, mean=0.5)
        x[:, 1::EVERY] *= QUIET
        return x, draw(point.dimension, scale=0.1, mean=1.0), draw(point.dimension, scale=0.1)

    def apply(self, *inputs: Tensor) -> Tensor:
        from torch.nn.functional import layer_norm

        x, w, b = inputs
        return layer_norm(x, (x.shape[-1],), w, b, EPS)

    def above(self, point: GridPoint, draw: Draw, inputs: tuple[Tensor, ...]) -> Tensor:
        """The first and last row weigh more: sums over thousands of rows would not show that one was left out."""
        del inputs
        found = draw(point.batch, point.sequence, point.dimension)
        loud = min(max(1.0, sqrt(point.batch * point.sequence) / 4), LOUDEST)
        for end in (found[0, 0], found[-1, -1]):
            end *= loud
        return found

    def size(self, place: int, wanted: Tensor, inputs: Sequence[Tensor], above: Tensor | None) -> Tensor:
        # x - mean cancels: the error of n = (x - mean) / sigma is one of (|x| + mean |x|) / sigma.
        if place > 0:  # a sum over rows of either sign, as large as it may come out
            return wanted.abs() + wanted.square().mean().sqrt()
        x, w, b = inputs
        mean = x.mean(-1, keepdim=True)
        scale = (x.var(-1, correction=0, keepdim=True) + EPS).rsqrt()
        wide = (x.abs() + x.abs().mean(-1, keepdim=True)) * scale
        if above is None:
            return wide * w.abs() + b.abs()
        n, g = ((x - mean) * scale).abs(), (above * w).abs()
        means = g.mean(-1, keepdim=True), (g * n).mean(-1, keepdim=True), (g * wide).mean(-1, keepdim=True)
        return scale * (g + means[0] + (n + wide) * means[1] + n * means[2])

    def kept(self, point: GridPoint) -> int:
        # torch keeps mean and 1 / sigma for the backward call: on the CPU in the dtype, on a GPU in float32
        return 1 if point.direction == "backward" else 0

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

    def chain(self, point: GridPoint, place: int) -> int:
        return 8 + (point.dimension if place == 0 else point.batch * point.sequence)
