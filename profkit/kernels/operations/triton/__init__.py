"""The Triton kernels as implementations of the operations."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeAlias

from profkit.core.types import Fact
from profkit.kernels.operations.definitions import EPS, Call, Problem, Tensor, Unavailable, check_inputs

# Elements of a row that a program holds: 16,384 are 64 KiB in float32, a quarter of a multiprocessor's registers. The
# backward pass of layer norm holds five numbers for each.
WIDEST, WIDEST_BACK = 16384, 4096
MAX_ROWS = (1 << 31) - (1 << 24)  # what 32 bits count, less those of a tile more for each program


Builder: TypeAlias = Callable[[Problem], Call]


def build(problem: Problem) -> Call:
    """Build the call.

    Raises Unavailable without Triton, without a device for it, and for inputs that are not dense.
    """
    x = problem.inputs[0]
    if x.device.type != "cuda":
        if os.environ.get("TRITON_INTERPRET") != "1":
            raise Unavailable(Fact("needs-gpu"), "TRITON_INTERPRET=1 runs its kernels slowly on the CPU")
        if problem.point.dtype == "bfloat16":
            raise Unavailable(Fact("bfloat16-cut-off"))
    try:
        import triton  # noqa: F401
    except ImportError:
        raise Unavailable(Fact("no-triton"), "pip install triton") from None
    check_inputs(problem)
    return _BUILDERS[problem.operation.name, problem.backward](problem)


def _elementwise(kernel: Callable[..., Any], problem: Problem) -> Call:
    """Return the call of a kernel of flat.py: the value of the inputs, or the gradient of the first."""
    inputs, above = problem.inputs, problem.above
    return (lambda: (kernel(above, *inputs),)) if problem.backward else (lambda: kernel(*inputs))


def _gelu(problem: Problem) -> Call:
    from profkit.kernels.operations.triton.flat import gelu, gelu_backward

    return _elementwise(gelu_backward if problem.backward else gelu, problem)


def _swish(problem: Problem) -> Call:
    from profkit.kernels.operations.triton.flat import swish, swish_backward

    return _elementwise(swish_backward if problem.backward else swish, problem)


def _mse(problem: Problem) -> Call:
    from profkit.kernels.operations.triton.flat import mse, mse_backward

    return _elementwise(mse_backward if problem.backward else mse, problem)


def _by_rows(x: Tensor, widest: int = WIDEST) -> Any:
    """Return the kernels for rows. Raises Unavailable for rows too wide for a program, and for too many rows."""
    from profkit.kernels.operations.triton import rows

    if x.numel() // x.shape[-1] > MAX_ROWS:
        raise Unavailable(Fact.of("too-many-rows", most=MAX_ROWS))
    if x.shape[-1] > widest:
        raise Unavailable(Fact.of("too-wide-rows", most=widest))
    return rows


def _layer_norm(problem: Problem) -> Call:
    x, w, b = problem.inputs
    layer_norm = _by_rows(x).layer_norm
    return lambda: layer_norm(x, w, b, EPS)


def _layer_norm_backward(problem: Problem) -> Call:
    import torch

    x, w, b = problem.inputs
    kernels, count = _by_rows(x, WIDEST_BACK), x.numel() // x.shape[-1]
    mean, rstd = (torch.empty(count, dtype=torch.float32, device=x.device) for _ in range(2))
    kernels.layer_norm(x, w, b, EPS, (mean, rstd))  # what a forward call keeps for this one
    above, backward = problem.above, kernels.layer_norm_backward
    return lambda: backward(above, x, w, mean, rstd)


def _cross_entropy(problem: Problem) -> Call:
    x, labels = problem.inputs
    cross_entropy = _by_rows(x).cross_entropy
    return lambda: cross_entropy(x, labels)


def _cross_entropy_backward(problem: Problem) -> Call:
    (x, labels), above = problem.inputs, problem.above
    backward = _by_rows(x).cross_entropy_backward
    return lambda: (backward(above, x, labels),)


_BUILDERS: dict[tuple[str, bool], Builder] = {
    ("LayerNorm", False): _layer_norm,
    ("LayerNorm", True): _layer_norm_backward,
    ("GELU", False): _gelu,
    ("GELU", True): _gelu,
    ("Swish", False): _swish,
    ("Swish", True): _swish,
    ("MSE", False): _mse,
    ("MSE", True): _mse,
    ("CrossEntropy", False): _cross_entropy,
    ("CrossEntropy", True): _cross_entropy_backward,
}
