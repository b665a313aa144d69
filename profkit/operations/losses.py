"""The mean squared error, and cross entropy over the last dimension: one number for all of the batch."""

# ruff: noqa: D102 (the base class documents the methods)

from __future__ import annotations

from profkit.model import GridPoint
from profkit.operations.operation import Draw, Operation, Tensor


class Mse(Operation):
    """mean((x - target)^2); x alone has a gradient.

    FLOPs: difference, square, sum: 3; backward difference, product: 2.
    """

    name = "MSE"
    roundings = 1
    gradients = 1
    chunked = (True, True)
    scalar = True

    def inputs(self, point: GridPoint, draw: Draw) -> tuple[Tensor, ...]:
        shape = (point.batch, point.sequence, point.dimension)
        return draw(*shape), draw(*shape)

    def apply(self, *inputs: Tensor) -> Tensor:
        from torch.nn.functional import mse_loss

        return mse_loss(*inputs)

    def flops(self, point: GridPoint) -> float:
        return float(
            (3 if point.direction == "forward" else 2) * point.batch * point.sequence * point.dimension
        )

    def elements(self, point: GridPoint) -> tuple[int, int]:
        count = point.batch * point.sequence * point.dimension
        return (2 * count + 1, 0) if point.direction == "forward" else (3 * count + 1, 0)

    def terms(self, point: GridPoint) -> int:
        return point.batch * point.sequence * point.dimension if point.direction == "forward" else 1


class CrossEntropy(Operation):
    """mean over rows of log(sum(exp(x))) - x[target]: the dimension is the number of classes.

    FLOPs per element: largest, difference, exp, sum: 4; backward a division and a product more: 6. What a row has once
    (logarithm, target) is left out: at 8 classes it would be 5 %.
    """

    name = "CrossEntropy"
    roundings = 1
    gradients = 1
    chunked = (True, True)
    scalar = True

    def inputs(self, point: GridPoint, draw: Draw) -> tuple[Tensor, ...]:
        x = draw(point.batch, point.sequence, point.dimension)
        labels = draw.labels(point.batch * point.sequence, point.dimension)
        return x, labels.view(point.batch, point.sequence)

    def apply(self, *inputs: Tensor) -> Tensor:
        from torch.nn.functional import cross_entropy

        x, labels = inputs
        return cross_entropy(x.reshape(-1, x.shape[-1]), labels.reshape(-1))

    def flops(self, point: GridPoint) -> float:
        return float(
            (4 if point.direction == "forward" else 6) * point.batch * point.sequence * point.dimension
        )

    def elements(self, point: GridPoint) -> tuple[int, int]:
        rows = point.batch * point.sequence
        return (
            rows * point.dimension + 1 if point.direction == "forward" else 2 * rows * point.dimension + 1
        ), 8 * rows

    def terms(self, point: GridPoint) -> int:
        return (
            point.batch * point.sequence + point.dimension
            if point.direction == "forward"
            else point.dimension
        )
