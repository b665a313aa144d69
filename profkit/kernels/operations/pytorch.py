"""PyTorch as it is, and as torch.compile makes it: Inductor writes one kernel for an operation where it can."""

from __future__ import annotations

import os
import shutil
from typing import Any

from profkit.core.types import Fact
from profkit.kernels.operations.definitions import Call, Operation, Problem, Tensor, Unavailable

COMPILED = "torch.compile"


def build_eager(problem: Problem) -> Call:
    """Build the forward call, or the call for the gradients of a value that was computed before."""
    operation, inputs = problem.operation, problem.inputs
    if not problem.backward:
        return lambda: operation.apply(*inputs)
    import torch

    leaves = [t.detach().requires_grad_() for t in inputs[: operation.gradients]]
    value = operation.apply(*leaves, *inputs[operation.gradients :])
    return lambda: torch.autograd.grad(value, leaves, problem.above, retain_graph=True)


def build_compiled(problem: Problem) -> Call:
    """Build the compiled forward call, or the gradients through it. The first call compiles.

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


def compile_operation(operation: Operation) -> Any:
    """Compile the operation for these sizes only, as for a model whose shapes are constant.

    Dynamo forgets the shapes before: else it would make the sizes symbolic at the second one, and a reduction
    whose size Inductor does not know is up to 30 times slower (H200, torch 2.11). To forget costs nothing against
    what is compiled, some 0.7 s; Inductor keeps that on disk, and a second sweep reads it back in a twentieth of
    a second. The first call is reported apart from the time in any case.
    """
    import torch

    torch._dynamo.reset()
    return torch.compile(operation.apply, dynamic=False)


def split_inputs(problem: Problem) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
    """Return the inputs that have a gradient, as leaves of a graph of their own, and the remaining inputs."""
    count = problem.operation.gradients if problem.backward else 0
    return tuple(t.detach().requires_grad_() for t in problem.inputs[:count]), problem.inputs[count:]


def load_compilers() -> None:
    """Load the compilers, which takes seconds.

    Buffers that the forward half saved are not reused, since the backward half is called again and again. A
    kernel is compiled by the process that needs it, and not by a pool that starts beside it.
    """
    os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")  # read when Inductor is loaded
    import torch._dynamo
    import torch._functorch.config
    import torch._inductor.compile_fx

    if hasattr(torch._functorch.config, "donated_buffer"):  # since torch 2.5
        torch._functorch.config.donated_buffer = False


def check_compiler(device: str) -> None:
    """Raise Unavailable where Inductor has no compiler for `device`."""
    if device == "cpu" and shutil.which("c++") is None and shutil.which("g++") is None:
        raise Unavailable(Fact("no-cpp-compiler"), "apt install g++")
    if device == "cuda":
        try:
            import triton  # noqa: F401
        except ImportError:
            raise Unavailable(Fact("inductor-without-triton"), "pip install triton") from None
