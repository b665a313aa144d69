"""What an operation is: its inputs, its value in float64, what it costs, and how exact it can be."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, TypeAlias

from profkit.core.types import GridPoint

Tensor: TypeAlias = Any
Call: TypeAlias = Callable[[], Any]  # one call: everything is prepared, it gives a tensor or a tuple of them


@dataclass(frozen=True)
class Dtype:
    """A floating-point format: bytes per element, unit roundoff (half the step after 1), and its least number."""

    itemsize: int
    roundoff: float
    least: float  # the smallest subnormal: what is below it is rounded to 0


DTYPES = {
    "float32": Dtype(4, 2.0**-24, 2.0**-149),
    "float16": Dtype(2, 2.0**-11, 2.0**-24),
    "bfloat16": Dtype(2, 2.0**-8, 2.0**-133),
}


class Draw(Protocol):
    """Draws inputs on the device of the sweep; the same ones for the same point."""

    def __call__(self, *shape: int, scale: float = 1.0, mean: float = 0.0) -> Tensor:
        """Normal numbers of this mean and standard deviation, in the point's dtype."""

    def labels(self, count: int, classes: int) -> Tensor:
        """int64 numbers of [0, classes)."""


class Operation(ABC):
    """One operation on x of batch x sequence x dimension.

    `gradients` is how many of the first inputs have one. `chunked` of the inputs begin with the batch and can be cut
    along it, the others belong to all of it.
    """

    name: ClassVar[str]
    gradients: ClassVar[int]
    chunked: ClassVar[tuple[bool, ...]]
    scalar: ClassVar[bool] = False  # its value is one number, the mean over all of the batch

    @abstractmethod
    def inputs(self, point: GridPoint, draw: Draw) -> tuple[Tensor, ...]:
        """The inputs of a forward call, in the order that every implementation takes them."""

    @abstractmethod
    def apply(self, *inputs: Tensor) -> Tensor:
        """The operation by torch's own functions, in the dtype of the inputs. So eager runs it, and the reference."""

    @abstractmethod
    def flops(self, point: GridPoint) -> float:
        """Floating-point operations of one call. exp, erf, division and square root count as one each."""

    @abstractmethod
    def elements(self, point: GridPoint) -> tuple[int, int]:
        """Elements of the dtype that a call must move at least, and other bytes (labels, statistics)."""

    def upstream_gradient(self, point: GridPoint, draw: Draw, inputs: tuple[Tensor, ...]) -> Tensor:
        """The gradient from above, of a backward call."""
        del inputs
        return draw(point.batch, point.sequence, point.dimension)

    @abstractmethod
    def chain(self, point: GridPoint, place: int) -> int:
        """Roundings in float32 one after the other, behind one number of result `place`."""

    def size(self, place: int, wanted: Tensor, inputs: Sequence[Tensor], above: Tensor | None) -> Tensor:
        """How large the numbers are that are added behind each one of `wanted`, in absolute values: what rounds.

        `inputs` and `above` are float32, and the batches are those of `wanted`, which is result `place` in float64.
        """
        del place, inputs, above
        return wanted.abs()

    def kept_results(self, point: GridPoint) -> int:
        """How many intermediate results may be kept in the dtype: what autograd keeps for a backward call."""
        del point
        return 0

    def bytes(self, point: GridPoint) -> float:
        """What one call must move at least: every input read once, every output written once."""
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
        """Whether the gradients are asked for, and not the value."""
        return self.point.direction == "backward"


class Unavailable(Exception):
    """This implementation cannot be had here: why, and the line that would change it."""

    def __init__(self, reason: str, fix: str | None = None) -> None:
        super().__init__(reason)
        self.reason, self.fix = reason, fix


def check_inputs(problem: Problem) -> None:
    """Our own kernels take dense tensors of a few formats. Raises Unavailable for others.

    A copy that is dense would be easy to make, and would either be timed with the kernel or be hidden from the timing.
    """
    x = problem.inputs[0]
    tensors = (*problem.inputs, *([problem.above] if problem.above is not None else []))
    if x.numel() == 0:
        raise Unavailable("there is nothing to compute: its input has no elements")
    if (dtype := str(x.dtype).removeprefix("torch.")) not in DTYPES:
        raise Unavailable(f"its kernels take {', '.join(DTYPES)}, not {dtype}")
    if not all(tensor.is_contiguous() for tensor in tensors):
        raise Unavailable("its kernels take contiguous tensors", "call .contiguous() on the inputs")
