"""PyTorch as it is: each function by its own kernel, gradients by autograd."""

from __future__ import annotations

from profkit.kernels.operations.operation import Call, Problem


def build(problem: Problem) -> Call:
    """The forward call, or the gradients of the value that a forward call left."""
    operation, inputs = problem.operation, problem.inputs
    if not problem.backward:
        return lambda: operation.apply(*inputs)
    import torch

    leaves = [t.detach().requires_grad_() for t in inputs[: operation.gradients]]
    value = operation.apply(*leaves, *inputs[operation.gradients :])
    return lambda: torch.autograd.grad(value, leaves, problem.above, retain_graph=True)
