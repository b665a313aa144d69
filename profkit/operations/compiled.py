"""torch.compile of what eager runs: Inductor writes one kernel for it where it can."""

from __future__ import annotations

import shutil
from typing import Any

from profkit.operations.operation import Call, Operation, Problem
from profkit.operations.unavailable import Unavailable


def build(problem: Problem) -> Call:
    """The compiled forward call, or the gradients through it. The first call compiles.

    Raises Unavailable where Inductor has no compiler for this device.
    """
    _possible(str(problem.inputs[0].device.type))
    operation, inputs = problem.operation, problem.inputs
    apply = _compiled(operation)
    if not problem.backward:
        return lambda: apply(*inputs)
    import torch

    leaves = [t.detach().requires_grad_() for t in inputs[: operation.gradients]]
    value = apply(*leaves, *inputs[operation.gradients :])
    return lambda: torch.autograd.grad(value, leaves, problem.above, retain_graph=True)


def _compiled(operation: Operation) -> Any:
    """Compiled for these sizes and no others, as it is for a model whose shapes stay what they are.

    Dynamo forgets the shapes before: else it would make the sizes symbolic at the second one, and a reduction whose
    size Inductor does not know is up to 30 times slower (H200, torch 2.11). To forget costs nothing against what is
    compiled, some 0.7 s; Inductor keeps that on disk, and a second sweep reads it back in a twentieth of a second. The
    first call is told apart from the time in any case.
    """
    import torch

    torch._dynamo.reset()
    return torch.compile(operation.apply, dynamic=False)


def _possible(device: str) -> None:
    if device == "cpu" and shutil.which("c++") is None and shutil.which("g++") is None:
        raise Unavailable("Inductor needs a C++ compiler for the CPU, and none is here", "apt install g++")
    if device == "cuda":
        try:
            import triton  # noqa: F401
        except ImportError:
            raise Unavailable(
                "Inductor writes Triton kernels, and Triton is not installed", "pip install triton"
            ) from None
