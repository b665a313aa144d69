"""The mean squared error, and cross entropy over the last dimension: one number for all of the batch."""

# ruff: noqa: D102 (the base class documents the methods)

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, log, sqrt

from profkit.core.types import GridPoint
from profkit.kernels.operations.operation import Draw, Operation, Tensor

# One number has to show what was done with millions. So the first and the last of them (of cross entropy: rows) make a
# sixteenth of the sum each: what a kernel leaves out is at the ends. And target and labels go with x, so that those of
# a neighbour make another sum. float16 holds 2^15, also when x is made four times as large, and torch rounds squares to
# it, so that several numbers at each end make the sixteenth.
ENDS = 1 / 16
LARGEST, HALF_LOGIT, HALF_SQUARE = 2.0**14, 2.0**13, 2.0**10
APART = 1.0  # deviation of x - target
LIKELIER = 2.0  # the logit of a label than that of others


def _sum(count: int) -> int:
    """Roundings one after the other in a sum: of its blocks, and of the numbers of a block.

    One accumulator for all of them would be 2 sqrt(count) times as long, and past 2^24 numbers it stands still.
    """
    return ceil(2 * sqrt(count))


class _Loss(Operation):
    """One number, the mean over all of the batch."""

    gradients = 1
    chunked = (True, True)
    scalar = True

    def above(self, point: GridPoint, draw: Draw, inputs: tuple[Tensor, ...]) -> Tensor:
        """As loss scaling does, so that gradients are no subnormals in half precision."""
        del draw
        return inputs[0].new_full((), min(2.0**15, float(point.batch * point.sequence * point.dimension)))


class Mse(_Loss):
    """mean((x - target)^2); x alone has a gradient.

    FLOPs: difference, square, sum: 3; backward difference, product: 2.
    """

    name = "MSE"

    def inputs(self, point: GridPoint, draw: Draw) -> tuple[Tensor, ...]:
        shape = (point.batch, point.sequence, point.dimension)
        x, target = draw(*shape), draw(*shape, scale=APART)
        target += x
        flat = x.view(-1)
        square = ENDS * flat.numel() * APART**2
        count = ceil(square / (HALF_SQUARE if point.dtype == "float16" else LARGEST**2))
        flat[:count] = flat[-count:] = sqrt(square / count)
        return x, target

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

    def chain(self, point: GridPoint, place: int) -> int:
        del place
        backward = point.direction == "backward"
        return 4 if backward else _sum(point.batch * point.sequence * point.dimension)

    def size(self, place: int, wanted: Tensor, inputs: Sequence[Tensor], above: Tensor | None) -> Tensor:
        del place, inputs
        return wanted.abs() if above is None else wanted.abs() + wanted.square().mean().sqrt()

    def kept(self, point: GridPoint) -> int:
        # torch rounds 2 / N to the dtype, and the product with it, before it multiplies with what comes from above
        return 2 if point.direction == "backward" else 0


class CrossEntropy(_Loss):
    """mean over rows of log(sum(exp(x))) - x[target]: the dimension is the number of classes.

    FLOPs per element: largest, difference, exp, sum: 4; backward a division and a product more: 6. What a row has once
    (logarithm, target) is left out: at 8 classes it would be 5 %.
    """

    name = "CrossEntropy"

    def inputs(self, point: GridPoint, draw: Draw) -> tuple[Tensor, ...]:
        x = draw(point.batch, point.sequence, point.dimension)
        labels = draw.labels(point.batch * point.sequence, point.dimension)
        rows, spread = x.view(-1, point.dimension), log(point.dimension)
        rows.scatter_add_(1, labels.unsqueeze(1), rows.new_full((1, 1), LIKELIER).expand(rows.shape[0], 1))
        weight = ENDS * rows.shape[0] * (1 + spread)
        for end in (0, -1):
            rows[:, end] += (
                spread  # a third of the probability: else it would not show that a class was left out
            )
            rows[end, labels[end]] = -min(weight, HALF_LOGIT if point.dtype == "float16" else weight)
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

    def chain(self, point: GridPoint, place: int) -> int:
        del place
        backward = point.direction == "backward"
        return 8 + point.dimension + (0 if backward else _sum(point.batch * point.sequence))

    def size(self, place: int, wanted: Tensor, inputs: Sequence[Tensor], above: Tensor | None) -> Tensor:
        # Backward a probability less 1 where the label is. It is exp of a logarithm, whose error is as large as that.
        if above is None:
            return wanted.abs()
        del place
        logs = inputs[0].log_softmax(-1)
        found = wanted.abs()
        each = above.abs() * (wanted.shape[-1] / wanted.numel())
        return found + logs.exp() * (1 - logs) * each

    def kept(self, point: GridPoint) -> int:
        return 1 if point.direction == "backward" else 0  # torch keeps the logarithms, in the dtype
