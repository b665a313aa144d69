"""Compiles what torch.compile will ask for, without memory for its inputs and without a call: only caches are filled.

Inductor keeps what it compiled on disk, by the graph, the inputs' sizes and strides, and its settings. So a process
that compiles the same graph for tensors without contents saves another one all of that.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from profkit.core.types import GridPoint
from profkit.kernels.operations.compiled import arguments, compiled
from profkit.kernels.operations.operation import Problem, Tensor
from profkit.kernels.operations.registry import OPERATIONS


class _Enough(BaseException):
    """It is compiled, and nothing is to be called. No Exception: Dynamo would call that a fault of the compiler."""


def compile_ahead(point: GridPoint, device: Any) -> None:
    """Fill Inductor's caches for the point. `device`: a torch.device, index included. Raises what compiling raises."""
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode

    operation = OPERATIONS[point.operation]
    shapes = operation.inputs(point, Shapes(point))
    with FakeTensorMode():
        inputs = tuple(torch.empty_strided(t.shape, t.stride(), dtype=t.dtype, device=device) for t in shapes)
        leaves, others = arguments(Problem(point, operation, inputs))
    try:
        compiled(operation, backend=_fill)(*leaves, *others)
    except _Enough:
        return


def _fill(graph: Any, inputs: Sequence[Any]) -> Any:
    """A backend of torch.compile: Inductor, and then the end."""
    import torch
    from torch._inductor.compile_fx import compile_fx

    for node in graph.graph.nodes:  # the kind of an input is in the graph's text, and that is in the key
        if node.op == "placeholder" and node.type is not None:
            node.type = torch.Tensor
    graph.recompile()
    compile_fx(graph, inputs)
    raise _Enough


class Shapes:
    """Draws inputs as the sweep does, without contents; but labels are numbers: an operation may look at one."""

    def __init__(self, point: GridPoint) -> None:
        self._dtype = point.dtype

    def __call__(self, *shape: int, scale: float = 1.0, mean: float = 0.0) -> Tensor:
        """Numbers that are not there."""
        import torch

        del scale, mean
        return torch.empty(shape, dtype=getattr(torch, self._dtype), device="meta")

    def labels(self, count: int, classes: int) -> Tensor:
        """Zeros, on the CPU."""
        import torch

        del classes
        return torch.zeros(count, dtype=torch.int64)
