"""What a workload is: its sizes, its inputs, a float64 reference, what it costs, and who can compute it.

A workload is a frozen dataclass whose fields are its sizes; the harness makes the command line out of them.
Nothing here imports NumPy or torch, so `--help` and the cost formulas are free.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from math import prod
from typing import Any, ClassVar, Protocol, TypeAlias

Array: TypeAlias = Any  # a torch.Tensor or a numpy.ndarray
Step: TypeAlias = Callable[[], Array]  # one iteration: everything is prepared, it only computes


@dataclass(frozen=True)
class Dtype:
    """A floating-point format: bytes per element, and the unit roundoff u (half the step after 1)."""

    itemsize: int
    roundoff: float


DTYPES = {
    "float32": Dtype(4, 2.0**-24),
    "float16": Dtype(2, 2.0**-11),
    "bfloat16": Dtype(2, 2.0**-8),
}


class Draw(Protocol):
    """Draws an array of normal numbers, in the run's dtype and on its device."""

    def __call__(self, *shape: int, scale: float = 1.0, mean: float = 0.0) -> Array:
        """Values of the given mean and standard deviation."""


def size(text: str, *, cpu: int, gpu: int) -> Any:
    """Return a field of a workload: a size, with its default on a processor and on a GPU.

    The default for a CPU keeps an iteration at 1 ms, because a simulator is to run it too: valgrind 3.19
    takes 65 ns for each lane of a fused multiply-add, 3 s for the 90 MFLOP of the gated MLP.
    """
    return field(metadata={"help": text, "cpu": cpu, "gpu": gpu})


def flag(text: str, *, default: bool) -> Any:
    """Return a field of a workload: a switch."""
    return field(metadata={"help": text, "cpu": default, "gpu": default})


@dataclass(frozen=True)
class Workload(ABC):
    """One operation at one set of sizes.

    `roundings` counts the results that are rounded to the run's dtype between the inputs and the output; with
    `depth`, the terms of the longest sum, it decides how far a result may be from the reference (`check.py`).
    """

    name: ClassVar[str]
    roundings: ClassVar[int]
    implementations: ClassVar[tuple[str, ...]] = ("torch", "triton", "numpy")

    # Each implementation takes the inputs, prepares itself, and returns one iteration as a `Step`.
    torch: ClassVar[Callable[..., Step]]
    triton: ClassVar[Callable[..., Step]]
    numpy: ClassVar[Callable[..., Step]]

    @classmethod
    def sized(cls, given: Mapping[str, int | None], *, gpu: bool) -> Workload:
        """Return the workload with the given sizes, by name, and defaults for those that are None or not given."""
        column = "gpu" if gpu else "cpu"
        found = ((each, given.get(each.name)) for each in fields(cls))
        return cls(**{each.name: each.metadata[column] if value is None else value for each, value in found})

    @property
    @abstractmethod
    def depth(self) -> int:
        """Terms of the longest sum behind one output element."""

    @property
    @abstractmethod
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """Shapes of the inputs in order, weights included, then of the output: the compulsory traffic."""

    @abstractmethod
    def inputs(self, draw: Draw) -> tuple[Array, ...]:
        """Return the inputs, in the order in which every implementation takes them."""

    @abstractmethod
    def reference(self, rows: Array, *inputs: Array) -> Array:
        """Return the output's rows (all dimensions but the last, flattened) with these indices, in float64 NumPy."""

    @abstractmethod
    def flops(self) -> int:
        """Floating-point operations of one iteration. A multiply-add is two; exp, sqrt, division are one."""

    def bytes(self, itemsize: int) -> int:
        """Compulsory traffic of an iteration: each element of inputs, weights and output is moved once."""
        return itemsize * sum(map(prod, self.shapes))

    def fault(self) -> str | None:
        """Return what is wrong with these sizes together, if anything."""
        return None
