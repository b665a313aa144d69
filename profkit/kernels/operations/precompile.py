"""Fills the compilers' caches on disk, without a call: what another process needs is compiled already.

Inductor keeps what it compiled by the graph, the inputs' sizes and strides, and its settings. So it is enough to
compile the same graph for tensors without contents. Our own kernels are built as a call would build them, by Triton and
NVRTC; nothing is launched meanwhile, so this is for a process that does nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from profkit.core.types import GridPoint
from profkit.kernels.operations.operation import Problem, Tensor
from profkit.kernels.operations.pytorch import compile_operation, split_inputs
from profkit.kernels.operations.registry import OPERATIONS, build_call


class _CompilationDone(BaseException):
    """It is compiled, and nothing is to be called. No Exception: Dynamo would call that a fault of the compiler."""


def compile_by_inductor(point: GridPoint, device: Any) -> None:
    """Fill Inductor's caches for the point. `device`: a torch.device, index included. Raises what compiling raises."""
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode

    operation = OPERATIONS[point.operation]
    shapes = operation.inputs(point, Shapes(point))
    with FakeTensorMode():
        inputs = tuple(torch.empty_strided(t.shape, t.stride(), dtype=t.dtype, device=device) for t in shapes)
        leaves, constants = split_inputs(Problem(point, operation, inputs))
    try:
        compile_operation(operation, backend=_fill_caches)(*leaves, *constants)
    except _CompilationDone:
        return


def _fill_caches(graph: Any, inputs: Sequence[Any]) -> Any:
    """A backend of torch.compile: Inductor, and then the end."""
    import torch
    from torch._inductor.compile_fx import compile_fx

    for node in graph.graph.nodes:  # the kind of an input is in the graph's text, and that is in the key
        if node.op == "placeholder" and node.type is not None:
            node.type = torch.Tensor
    graph.recompile()
    compile_fx(graph, inputs)
    raise _CompilationDone


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


def build_kernels(implementation: str, point: GridPoint, device: Any) -> None:
    """Build what `implementation` needs at the point. Raises what building raises.

    Its inputs are allocated on the device, since their addresses decide which kernel it is; nothing is in them.
    """
    import torch

    operation, shapes = OPERATIONS[point.operation], Shapes(point)
    inputs = operation.inputs(point, shapes)
    above = operation.upstream_gradient(point, shapes, inputs) if point.direction == "backward" else None
    placeholders = tuple(
        torch.empty_strided(t.shape, t.stride(), dtype=t.dtype, device=device) for t in inputs
    )
    problem = Problem(
        point, operation, placeholders, None if above is None else torch.empty_like(above, device=device)
    )
    with without_launches():
        build_call(implementation, problem)()


@contextmanager
def without_launches() -> Iterator[None]:
    """Within it Triton's kernels are compiled, all that an autotuner would try; none is launched, nor one of CUDA."""
    import torch

    from profkit.kernels.operations.cuda.launch import CudaKernel

    with _replaced_by(torch, "zeros", torch.empty), _replaced_by(CudaKernel, "__call__", _do_nothing):
        try:
            from triton.runtime.autotuner import Autotuner
            from triton.runtime.jit import JITFunction
        except ImportError:
            yield
            return
        run = JITFunction.run

        def compile_only(self: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
            del warmup
            return run(self, *args, grid=grid, warmup=True, **kwargs)

        def compile_all(self: Any, *args: Any, warmup: bool = False, **kwargs: Any) -> Any:
            del warmup
            return self.warmup(*args, **kwargs)

        with _replaced_by(JITFunction, "run", compile_only), _replaced_by(Autotuner, "run", compile_all):
            yield


@contextmanager
def _replaced_by(holder: Any, name: str, value: Any) -> Iterator[None]:
    before = getattr(holder, name)
    setattr(holder, name, value)
    try:
        yield
    finally:
        setattr(holder, name, before)


def _do_nothing(*_: object) -> None:
    return None
