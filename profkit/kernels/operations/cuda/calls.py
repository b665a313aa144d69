"""The CUDA kernels as implementations of the operations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from profkit.kernels.operations.cuda import launch
from profkit.kernels.operations.definitions import EPS, Call, Problem, Tensor, Unavailable, check_inputs


def build(problem: Problem) -> Call:
    """The call, its kernels built. Raises Unavailable without a GPU or NVRTC, and for inputs that are not dense."""
    if problem.inputs[0].device.type != "cuda":
        raise Unavailable("CUDA kernels need an NVIDIA GPU")
    return build_calls(problem)


def build_calls(problem: Problem) -> Call:
    """The same for inputs wherever they are: a test runs the kernels on the CPU."""
    check_inputs(problem)
    return _BUILDERS[problem.operation.name, problem.backward](problem)


def _map(name: str) -> Callable[[Problem], Call]:
    """Element by element: value of x, or gradient of what comes from above and x."""

    def build(problem: Problem) -> Call:
        x, empty = problem.inputs[0], torch.empty_like
        arrays: tuple[Tensor, ...] = (problem.above, x) if problem.backward else (x,)
        kernel, count = launch.flat_launch(name, x, arrays), x.numel()

        def call() -> Tensor:
            y = empty(x)  # torch's memory begins at multiples of 512 bytes
            kernel(*(a.data_ptr() for a in arrays), y.data_ptr(), count)
            return y

        return (lambda: (call(),)) if problem.backward else call

    return build


def _mse(problem: Problem) -> Call:
    x, target = problem.inputs
    return _mean(x, launch.flat_launch("mse", x, (x, target)), target, x.numel(), 1 / x.numel())


def _mse_backward(problem: Problem) -> Call:
    (x, target), above = problem.inputs, problem.above
    kernel, empty = launch.flat_launch("mse_backward", x, (x, target)), torch.empty_like
    count, share = x.numel(), 1 / x.numel()

    def call() -> tuple[Tensor]:
        dx = empty(x)
        kernel(x.data_ptr(), target.data_ptr(), above.data_ptr(), dx.data_ptr(), count, share)  # type: ignore[union-attr]
        return (dx,)

    return call


def _mean(x: Tensor, kernel: Any, target: Tensor, *numbers: float) -> Call:
    """A mean over everything: the block that is done last adds up what all of them found."""
    partial, done = launch.scratch_memory(x.device.index)

    def call() -> Tensor:
        out = torch.empty((), dtype=x.dtype, device=x.device)
        kernel(x.data_ptr(), target.data_ptr(), partial, done, out.data_ptr(), *numbers)
        return out

    return call


def _layer_norm(problem: Problem) -> Call:
    x, w, b = problem.inputs
    kernel, sizes = _over_rows("layer_norm", x, (x, w, b))
    empty = torch.empty_like

    def call() -> Tensor:
        y = empty(x)
        kernel(x.data_ptr(), w.data_ptr(), b.data_ptr(), y.data_ptr(), 0, 0, *sizes, EPS)
        return y

    return call


def _layer_norm_backward(problem: Problem) -> Call:
    x, w, b = problem.inputs
    above: Tensor = problem.above
    width, arrays = x.shape[-1], (x, w, b, above)
    count = x.numel() // width
    mean, rstd = (torch.empty(count, dtype=torch.float32, device=x.device) for _ in range(2))
    forward, sizes = _over_rows("layer_norm", x, arrays)  # leaves what this one needs
    y = torch.empty_like(x)
    forward(
        x.data_ptr(), w.data_ptr(), b.data_ptr(), y.data_ptr(), mean.data_ptr(), rstd.data_ptr(), *sizes, EPS
    )
    kernel = launch.rows_launch("layer_norm_backward", x, arrays, walks=True)
    if kernel is None:
        return _wide_layer_norm_backward(problem, mean, rstd)
    sums = launch.column_sums_launch(w)

    def call() -> tuple[Tensor, Tensor, Tensor]:
        dx, dw, db = torch.empty_like(x), torch.empty_like(w), torch.empty_like(b)
        partial = torch.empty((kernel.blocks, 2 * width), dtype=torch.float32, device=x.device)
        kernel(above.data_ptr(), x.data_ptr(), w.data_ptr(), mean.data_ptr(), rstd.data_ptr(), dx.data_ptr(),
               partial.data_ptr(), count)  # fmt: skip
        sums(partial.data_ptr(), dw.data_ptr(), db.data_ptr(), width, kernel.blocks)
        return dx, dw, db

    return call


def _wide_layer_norm_backward(problem: Problem, mean: Tensor, rstd: Tensor) -> Call:
    """Rows that no warp holds: one kernel goes along them, another one down the columns."""
    x, w, b = problem.inputs
    above: Tensor = problem.above
    width, arrays = x.shape[-1], (x, w, b, above)
    count = x.numel() // width
    along = launch.wide_launch("layer_norm_backward", x, arrays)
    down, each, across, parts = launch.columns_launch(x, arrays)
    sums = launch.column_sums_launch(w)

    def call() -> tuple[Tensor, Tensor, Tensor]:
        dx, dw, db = torch.empty_like(x), torch.empty_like(w), torch.empty_like(b)
        partial = torch.empty((parts, 2 * width), dtype=torch.float32, device=x.device)
        dy, values, means, rstds = above.data_ptr(), x.data_ptr(), mean.data_ptr(), rstd.data_ptr()
        along(dy, values, w.data_ptr(), means, rstds, dx.data_ptr(), count, width)
        down(dy, values, means, rstds, partial.data_ptr(), count, width, each, across)
        sums(partial.data_ptr(), dw.data_ptr(), db.data_ptr(), width, parts)
        return dx, dw, db

    return call


def _cross_entropy(problem: Problem) -> Call:
    x, labels = problem.inputs
    kernel, sizes = _over_rows("cross_entropy", x, (x,), walks=True)
    return _mean(x, kernel, labels, *sizes, 1 / sizes[0])


def _cross_entropy_backward(problem: Problem) -> Call:
    (x, labels), above = problem.inputs, problem.above
    kernel, sizes = _over_rows("cross_entropy_backward", x, (x,))
    part, empty = 1 / sizes[0], torch.empty_like

    def call() -> tuple[Tensor]:
        dx = empty(x)
        kernel(x.data_ptr(), labels.data_ptr(), above.data_ptr(), dx.data_ptr(), *sizes, part)  # type: ignore[union-attr]
        return (dx,)

    return call


def _over_rows(
    name: str, x: Tensor, arrays: tuple[Tensor, ...], walks: bool = False
) -> tuple[Any, tuple[int, ...]]:
    """The kernel for rows as wide as x's, and its sizes: rows, and the width where it is no constant of it."""

    width = x.shape[-1]
    held = launch.rows_launch(name, x, arrays, walks)
    if held is not None:
        return held, (x.numel() // width,)
    return launch.wide_launch(name, x, arrays), (x.numel() // width, width)


_BUILDERS: dict[tuple[str, bool], Callable[[Problem], Call]] = {
    ("LayerNorm", False): _layer_norm,
    ("LayerNorm", True): _layer_norm_backward,
    ("GELU", False): _map("gelu"),
    ("GELU", True): _map("gelu_backward"),
    ("Swish", False): _map("swish"),
    ("Swish", True): _map("swish_backward"),
    ("MSE", False): _mse,
    ("MSE", True): _mse_backward,
    ("CrossEntropy", False): _cross_entropy,
    ("CrossEntropy", True): _cross_entropy_backward,
}
