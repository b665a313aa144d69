"""Define a workload: its sizes, inputs, float64 reference, cost formulas and implementations.

A workload is a frozen dataclass whose fields are its sizes; the harness builds the command line from them.
Nothing here imports NumPy or torch, so that `--help` and the cost formulas are fast.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from math import prod
from typing import Any, ClassVar, Protocol, TypeAlias

Array: TypeAlias = Any  # a torch.Tensor or a numpy.ndarray
Step: TypeAlias = Callable[[], Array]  # one iteration: it only computes, everything is prepared before


@dataclass(frozen=True)
class Dtype:
    """Describe a floating-point format: bytes per element, and the unit roundoff u (half of the step after 1)."""

    itemsize: int
    roundoff: float


DTYPES = {
    "float32": Dtype(4, 2.0**-24),
    "float16": Dtype(2, 2.0**-11),
    "bfloat16": Dtype(2, 2.0**-8),
}


class Draw(Protocol):
    """Draw an array of normally distributed numbers, in the run's dtype and on its device."""

    def __call__(self, *shape: int, scale: float = 1.0, mean: float = 0.0) -> Array:
        """Return values of the given mean and standard deviation."""


def size(text: str, *, cpu: int, gpu: int) -> Any:
    """Return a workload's field for a size, with its defaults on a CPU and on a GPU.

    The default for a CPU keeps an iteration at 1 ms, because a simulator runs it too: valgrind 3.19 takes
    65 ns for each lane of a fused multiply-add, which is 3 s for the 90 MFLOP of the gated MLP.
    """
    return field(metadata={"help": text, "cpu": cpu, "gpu": gpu})


def flag(text: str, *, default: bool) -> Any:
    """Return a workload's field for a switch."""
    return field(metadata={"help": text, "cpu": default, "gpu": default})


@dataclass(frozen=True)
class Workload(ABC):
    """Define one operation with one set of sizes.

    `roundings` is the number of results that are rounded to the run's dtype between the inputs and the output;
    with `depth`, the terms of the longest sum, it determines the tolerance of a result (`check.py`).
    """

    name: ClassVar[str]
    roundings: ClassVar[int]
    implementations: ClassVar[tuple[str, ...]] = ("torch", "triton", "numpy")

    # Each implementation takes the inputs, does its preparation, and returns one iteration as a `Step`.
    torch: ClassVar[Callable[..., Step]]
    triton: ClassVar[Callable[..., Step]]
    numpy: ClassVar[Callable[..., Step]]

    @classmethod
    def sized(cls, given: Mapping[str, int | None], *, gpu: bool) -> Workload:
        """Return the workload with the given sizes, by name, and the defaults for those that are None or missing."""
        column = "gpu" if gpu else "cpu"
        found = ((each, given.get(each.name)) for each in fields(cls))
        return cls(**{each.name: each.metadata[column] if value is None else value for each, value in found})

    @property
    @abstractmethod
    def depth(self) -> int:
        """Return the number of terms in the longest sum for one output element."""

    @property
    @abstractmethod
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """Return the shapes of the inputs in order, weights included, then of the output: the compulsory traffic."""

    @abstractmethod
    def inputs(self, draw: Draw) -> tuple[Array, ...]:
        """Return the inputs, in the order in which every implementation takes them."""

    @abstractmethod
    def reference(self, rows: Array, *inputs: Array) -> Array:
        """Return the output's rows (all dimensions but the last, flattened) with these indices, in float64 NumPy."""

    @abstractmethod
    def flops(self) -> int:
        """Return the floating-point operations of one iteration: multiply-add counts 2; exp, sqrt, division 1."""

    def bytes(self, itemsize: int) -> int:
        """Return the compulsory traffic of an iteration: inputs, weights and output are each moved once."""
        return itemsize * sum(map(prod, self.shapes))

    def fault(self) -> str | None:
        """Return an error message if these sizes do not fit together, else None."""
        return None
