"""The definition of an operation: its inputs, its value in float64, its costs, and its accuracy.

The operations are layer norm, GELU, Swish, mean squared error and cross entropy.
"""

from __future__ import annotations

import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil, log, sqrt
from typing import Any, ClassVar, TypeAlias

from profkit.core.types import Fact, GridPoint

Tensor: TypeAlias = Any
Call: TypeAlias = Callable[[], Any]  # one call: everything is prepared, it gives a tensor or a tuple of them


@dataclass(frozen=True)
class Dtype:
    """A floating-point format: bytes per element, unit roundoff (half the step after 1), and its least number."""

    itemsize: int
    roundoff: float
    min_number: float  # the smallest subnormal: what is below it is rounded to 0


DTYPES = {
    "float32": Dtype(4, 2.0**-24, 2.0**-149),
    "float16": Dtype(2, 2.0**-11, 2.0**-24),
    "bfloat16": Dtype(2, 2.0**-8, 2.0**-133),
}


class Draw:
    """A source of inputs on a torch.device, which are the same for the same point."""

    def __init__(self, point: GridPoint, device: Any) -> None:
        import torch

        self._device, self._dtype = device, getattr(torch, point.dtype)
        self._random = torch.Generator(device=device)
        self._random.manual_seed(zlib.crc32(point.name.encode()))

    def __call__(self, *shape: int, scale: float = 1.0, mean: float = 0.0) -> Tensor:
        """Draw normal numbers of this mean and standard deviation, in the point's dtype."""
        import torch

        tensor = torch.empty(shape, dtype=self._dtype, device=self._device)
        return tensor.normal_(mean, scale, generator=self._random)

    def labels(self, count: int, classes: int) -> Tensor:
        """Draw int64 numbers of [0, classes)."""
        import torch

        return torch.randint(0, classes, (count,), device=self._device, generator=self._random)


class Operation(ABC):
    """An operation on x of batch x sequence x dimension.

    `gradients` is how many of the first inputs have a gradient. Inputs that are `chunked` begin with the batch
    and can be cut along it, the others belong to all of it.
    """

    name: ClassVar[str]
    gradients: ClassVar[int]
    chunked: ClassVar[tuple[bool, ...]]
    scalar: ClassVar[bool] = False  # its value is one number, the mean over all of the batch
    element_flops: ClassVar[tuple[int, int]]  # for each element of x, forward and backward
    row_flops: ClassVar[tuple[int, int]] = (0, 0)

    @abstractmethod
    def inputs(self, point: GridPoint, draw: Draw) -> tuple[Tensor, ...]:
        """Return the inputs of a forward call, in the order that every implementation takes them."""

    @abstractmethod
    def apply(self, *inputs: Tensor) -> Tensor:
        """Compute the operation by torch's own functions, in the dtype of the inputs: for eager, and the reference."""

    def flops(self, point: GridPoint) -> float:
        """Count the floating-point operations of one call. exp, erf, division and square root count as one each."""
        way = point.direction == "backward"
        rows = point.batch * point.sequence
        return float(self.element_flops[way] * point.elements + self.row_flops[way] * rows)

    @abstractmethod
    def elements(self, point: GridPoint) -> tuple[int, int]:
        """Return how many elements of the dtype a call must move at least, and other bytes (labels, statistics)."""

    def upstream_gradient(self, point: GridPoint, draw: Draw, inputs: tuple[Tensor, ...]) -> Tensor:
        """Return the gradient from above, of a backward call."""
        del inputs
        return draw(point.batch, point.sequence, point.dimension)

    @abstractmethod
    def chain(self, point: GridPoint, place: int) -> int:
        """Return the number of successive float32 roundings behind one number of result `place`."""

    def size(self, place: int, wanted: Tensor, inputs: Sequence[Tensor], above: Tensor | None) -> Tensor:
        """Return the sum of absolute values that are added up for each number of `wanted`: these are rounded.

        `inputs` and `above` are float32, and the batches are those of `wanted`, which is result `place` in float64.
        """
        del place, inputs, above
        return wanted.abs()

    def kept_results(self, point: GridPoint) -> int:
        """Return how many intermediate results may be kept in the dtype: autograd keeps them for a backward call."""
        del point
        return 0

    def bytes(self, point: GridPoint) -> float:
        """Return the bytes that one call must move at least: every input read once, every output written once."""
        elements, extra = self.elements(point)
        return float(elements * DTYPES[point.dtype].itemsize + extra)


@dataclass(frozen=True)
class Problem:
    """A point made concrete: the inputs of the forward call, and the gradient that comes from above."""

    point: GridPoint
    operation: Operation
    inputs: tuple[Tensor, ...]
    above: Tensor | None = None  # backward only

    @property
    def backward(self) -> bool:
        """Return whether the gradients are to be computed, rather than the value."""
        return self.point.direction == "backward"


class FactError(Exception):
    """The end of a test or a case: `reason` says why; a plain text becomes a message."""

    def __init__(self, reason: Fact | str) -> None:
        super().__init__(reason)
        self.reason = Fact.message(reason) if isinstance(reason, str) else reason

    def __str__(self) -> str:
        from profkit.reporting.facts import fact_text  # not in the process of a kernel

        return fact_text(self.reason)


class Unavailable(FactError):
    """An implementation cannot be used here: why, and the line that would change it."""

    def __init__(self, reason: Fact | str, fix: str | None = None) -> None:
        super().__init__(reason)
        self.fix = fix


def check_inputs(problem: Problem) -> None:
    """Raise Unavailable for inputs that our own kernels do not take: they need dense tensors of a few dtypes.

    A dense copy would be easy to make, but would either be timed with the kernel or be hidden from the timing.
    """
    x = problem.inputs[0]
    tensors = (*problem.inputs, *([problem.above] if problem.above is not None else []))
    if x.numel() == 0:
        raise Unavailable(Fact("empty-input"))
    if (dtype := str(x.dtype).removeprefix("torch.")) not in DTYPES:
        raise Unavailable(Fact.of("takes-dtypes", names=", ".join(DTYPES), dtype=dtype))
    if not all(tensor.is_contiguous() for tensor in tensors):
        raise Unavailable(Fact("takes-contiguous"), "call .contiguous() on the inputs")


# ---------------------------------------------------------------- the operations
# ruff: noqa: D102 (the base class documents the methods)

EPS = 1e-5
# Every so many rows one whose variance is about EPS: in the others nobody sees which EPS it is, and where it is added.
QUIET, EVERY = 2.0**-8, 8
LOUDEST = 32.0


class LayerNorm(Operation):
    """Layer norm of the rows.

    FLOPs per element forward: sum, difference, square, sum, times 1/sigma, times w, plus b: 7; per row 4.
    Backward: n = (x - mean) / sigma 2, dw 2, db 1, g * w 1, the sums of it and of it times n 3, dx 4: 13; per row
    2. The formulas: Ba, Kiros and Hinton, 'Layer Normalization', 2016, and its derivative.
    """

    name = "LayerNorm"
    element_flops, row_flops = (7, 13), (4, 2)
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

    def upstream_gradient(self, point: GridPoint, draw: Draw, inputs: tuple[Tensor, ...]) -> Tensor:
        """Return a gradient with larger first and last rows.

        Otherwise sums over thousands of rows would not show that one was left out.
        """
        del inputs
        gradient = draw(point.batch, point.sequence, point.dimension)
        loud = min(max(1.0, sqrt(point.batch * point.sequence) / 4), LOUDEST)
        for end in (gradient[0, 0], gradient[-1, -1]):
            end *= loud
        return gradient

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

    def kept_results(self, point: GridPoint) -> int:
        # torch keeps mean and 1 / sigma for the backward call: on the CPU in the dtype, on a GPU in float32
        return 1 if point.direction == "backward" else 0

    def elements(self, point: GridPoint) -> tuple[int, int]:
        rows = point.batch * point.sequence
        if point.direction == "forward":
            return 2 * rows * point.dimension + 2 * point.dimension, 0
        # mean and 1/sigma of each row, float32
        return 3 * rows * point.dimension + 3 * point.dimension, 8 * rows

    def chain(self, point: GridPoint, place: int) -> int:
        return 8 + (point.dimension if place == 0 else point.batch * point.sequence)


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
        count = point.elements
        return (2 if point.direction == "forward" else 3) * count, 0

    def chain(self, point: GridPoint, place: int) -> int:
        del point, place
        return 8


class Gelu(_Elementwise):
    """x times the normal distribution's function of x, with erf: no approximation by tanh.

    FLOPs: x / sqrt(2), erf, + 1, * x, / 2 forward: 5. Backward dy * (P + x * p): 4 for P, 4 for p (x^2, / 2, exp,
    / sqrt(2 pi)), and 3. The formula: Hendrycks and Gimpel, 'Gaussian Error Linear Units', 2016. A kernel may
    compute P in any way.
    """

    name = "GELU"
    element_flops = (5, 11)

    def apply(self, *inputs: Tensor) -> Tensor:
        from torch.nn.functional import gelu

        return gelu(inputs[0])

    def size(self, place: int, wanted: Tensor, inputs: Sequence[Tensor], above: Tensor | None) -> Tensor:
        # 1 + erf cancels where x is negative: what erf is off by near -1, times x / 2, is all the error there is.
        # Backward the derivative is a sum of P and x * p, neither above 1.
        del place, wanted
        return inputs[0].abs() if above is None else above.abs()


class Swish(_Elementwise):
    """The operation x * sigmoid(x). FLOPs: negate, exp, + 1, division, product: 5.

    Backward dy * s * (1 + x * (1 - s)): s 4, and 5: 9.
    """

    name = "Swish"
    element_flops = (5, 9)

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


# One number has to show what was done with millions. So the first and the last of them (of cross entropy: rows) make a
# sixteenth of the sum each: what a kernel leaves out is at the ends. And target and labels go with x, so that those of
# a neighbour make another sum. float16 holds 2^15, and torch rounds squares to it, so that several numbers at each end
# make the sixteenth.
ENDS = 1 / 16
LARGEST, HALF_LOGIT, HALF_SQUARE = 2.0**14, 2.0**13, 2.0**10
APART = 1.0  # deviation of x - target
LIKELIER = 2.0  # the logit of a label than that of others


def _sum(count: int) -> int:
    """Return the successive roundings in a sum: of its blocks, and of the numbers of a block.

    A single accumulator for all of them would be 2 sqrt(count) times as long, and past 2^24 numbers it no longer
    grows.
    """
    return ceil(2 * sqrt(count))


class _Loss(Operation):
    """A loss: one number, the mean over all of the batch."""

    gradients = 1
    chunked = (True, True)
    scalar = True

    def upstream_gradient(self, point: GridPoint, draw: Draw, inputs: tuple[Tensor, ...]) -> Tensor:
        """Return a gradient as loss scaling gives, so that gradients are no subnormals in half precision."""
        del draw
        return inputs[0].new_full((), min(2.0**15, float(point.elements)))


class Mse(_Loss):
    """The mean squared error, mean((x - target)^2); x alone has a gradient.

    FLOPs: difference, square, sum: 3; backward difference, product: 2.
    """

    name = "MSE"
    element_flops = (3, 2)

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

    def elements(self, point: GridPoint) -> tuple[int, int]:
        return (2 if point.direction == "forward" else 3) * point.elements + 1, 0

    def chain(self, point: GridPoint, place: int) -> int:
        del place
        backward = point.direction == "backward"
        return 4 if backward else _sum(point.elements)

    def size(self, place: int, wanted: Tensor, inputs: Sequence[Tensor], above: Tensor | None) -> Tensor:
        del place, inputs
        return wanted.abs() if above is None else wanted.abs() + wanted.square().mean().sqrt()

    def kept_results(self, point: GridPoint) -> int:
        # torch rounds 2 / N to the dtype, and the product with it, before it multiplies with what comes from above
        return 2 if point.direction == "backward" else 0


class CrossEntropy(_Loss):
    """The mean over rows of log(sum(exp(x))) - x[target]: the dimension is the number of classes.

    FLOPs per element: largest, difference, exp, sum: 4; backward a division and a product more: 6. What a row has
    once (logarithm, target) is left out: at 8 classes it would be 5 %.
    """

    name = "CrossEntropy"
    element_flops = (4, 6)

    def inputs(self, point: GridPoint, draw: Draw) -> tuple[Tensor, ...]:
        x = draw(point.batch, point.sequence, point.dimension)
        labels = draw.labels(point.batch * point.sequence, point.dimension)
        rows, spread = x.view(-1, point.dimension), log(point.dimension)
        rows.scatter_add_(1, labels.unsqueeze(1), rows.new_full((1, 1), LIKELIER).expand(rows.shape[0], 1))
        weight = ENDS * rows.shape[0] * (1 + spread)
        for end in (0, -1):
            # A third of the probability: else it would not show that a class was left out
            rows[:, end] += spread
            rows[end, labels[end]] = -min(weight, HALF_LOGIT if point.dtype == "float16" else weight)
        return x, labels.view(point.batch, point.sequence)

    def apply(self, *inputs: Tensor) -> Tensor:
        from torch.nn.functional import cross_entropy

        x, labels = inputs
        return cross_entropy(x.reshape(-1, x.shape[-1]), labels.reshape(-1))

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
        magnitude = wanted.abs()
        each = above.abs() * (wanted.shape[-1] / wanted.numel())
        return magnitude + logs.exp() * (1 - logs) * each

    def kept_results(self, point: GridPoint) -> int:
        return 1 if point.direction == "backward" else 0  # torch keeps the logarithms, in the dtype
