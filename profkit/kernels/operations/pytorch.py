"""PyTorch as it is, and as torch.compile makes it: Inductor writes one kernel for an operation where it can."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from typing import Any

from profkit.core.types import GridPoint
from profkit.kernels.operations.definitions import Call, Operation, Problem, Tensor, Unavailable

COMPILED = "torch.compile"


def build_eager(problem: Problem) -> Call:
    """The forward call, or the gradients of the value that a forward call left."""
    operation, inputs = problem.operation, problem.inputs
    if not problem.backward:
        return lambda: operation.apply(*inputs)
    import torch

    leaves = [t.detach().requires_grad_() for t in inputs[: operation.gradients]]
    value = operation.apply(*leaves, *inputs[operation.gradients :])
    return lambda: torch.autograd.grad(value, leaves, problem.above, retain_graph=True)


def build_compiled(problem: Problem) -> Call:
    """The compiled forward call, or the gradients through it. The first call compiles.

    Raises Unavailable where Inductor has no compiler for this device.
    """
    check_compiler(str(problem.inputs[0].device.type))
    load_compilers()
    apply, (leaves, constants) = compile_operation(problem.operation), split_inputs(problem)
    if not problem.backward:
        return lambda: apply(*constants)
    import torch

    value = apply(*leaves, *constants)
    return lambda: torch.autograd.grad(value, leaves, problem.above, retain_graph=True)


def compile_operation(operation: Operation, **how: Any) -> Any:
    """Compiled for these sizes and no others, as it is for a model whose shapes stay what they are.

    Dynamo forgets the shapes before: else it would make the sizes symbolic at the second one, and a reduction whose
    size Inductor does not know is up to 30 times slower (H200, torch 2.11). To forget costs nothing against what is
    compiled, some 0.7 s; Inductor keeps that on disk, and a second sweep reads it back in a twentieth of a second. The
    first call is told apart from the time in any case.
    """
    import torch

    torch._dynamo.reset()
    return torch.compile(operation.apply, dynamic=False, **how)


def split_inputs(problem: Problem) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
    """The inputs that have a gradient, as leaves of a graph of their own, and the others behind them."""
    count = problem.operation.gradients if problem.backward else 0
    return tuple(t.detach().requires_grad_() for t in problem.inputs[:count]), problem.inputs[count:]


def load_compilers() -> None:
    """Load the compilers, which takes seconds, and set what decides how they name what they keep on disk.

    The backward half is compiled with the forward one, and not at its first call: so both can be compiled by a process
    that calls neither. What the forward half saved is not written over, since the backward half is called again and
    again. A kernel is compiled by the process that needs it, and not by a pool that starts beside it.
    """
    os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")  # read when Inductor is loaded
    import torch._dynamo
    import torch._functorch.config
    import torch._inductor.compile_fx

    for setting, value in (("force_non_lazy_backward_lowering", True), ("donated_buffer", False)):
        if hasattr(torch._functorch.config, setting):  # since torch 2.8 and 2.5
            setattr(torch._functorch.config, setting, value)


def check_compiler(device: str) -> None:
    """Raises Unavailable where Inductor has no compiler for `device`."""
    if device == "cpu" and shutil.which("c++") is None and shutil.which("g++") is None:
        raise Unavailable("Inductor needs a C++ compiler for the CPU, and none is here", "apt install g++")
    if device == "cuda":
        try:
            import triton  # noqa: F401
        except ImportError:
            raise Unavailable(
                "Inductor writes Triton kernels, and Triton is not installed", "pip install triton"
            ) from None


class _CompilationDone(BaseException):
    """It is compiled, and nothing is to be called. No Exception: Dynamo would call that a fault of the compiler."""


def compile_ahead(operation: Operation, point: GridPoint, device: Any) -> None:
    """Fill Inductor's caches on disk, without a call: what another process needs is compiled already.

    It keeps what it compiled by the graph, the inputs' sizes and strides, and its settings. So it is enough to compile
    the same graph for tensors without contents. `device`: a torch.device, index included. Raises what compiling raises.
    """
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode

    shapes = operation.inputs(point, _Shapes(point))
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


class _Shapes:
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
