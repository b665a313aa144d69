"""The small functions of the kernel-evaluation guides: time, errors, memory."""

from __future__ import annotations

import gc
from collections.abc import Callable
from time import perf_counter
from typing import Any

import torch

WARM_UPS = 10


def cpu_bench(fn: Callable[[], object], num_runs: int = 100) -> float:
    """Seconds of one call of `fn`: the mean of `num_runs` after 10 calls that are not counted.

    It is one mean on one machine: what else runs there is in it. `eval_performance` measures kernel and reference in
    turns, and says how sure it is.
    """
    for _ in range(WARM_UPS):
        fn()
    begin = perf_counter()
    for _ in range(num_runs):
        fn()
    return (perf_counter() - begin) / num_runs


def compute_errors(ref: Any, res: Any, eps: float = 1e-10) -> tuple[float | None, float | None]:
    """The largest |ref - res| and the largest |ref - res| / (|ref| + eps), computed in float64.

    Lists and tuples of tensors give the largest over all of them. NaN where both are NaN is no error, and so is the
    same infinity; where one alone is not finite, the error is infinite. (None, None) where there is nothing to
    subtract: other shapes, other lengths, no tensors.
    """
    if isinstance(ref, torch.Tensor) and isinstance(res, torch.Tensor):
        return _tensor_errors(ref, res, eps)
    both_lists = isinstance(ref, (list, tuple)) and isinstance(res, (list, tuple))
    if not both_lists or len(ref) != len(res):
        return None, None
    errors = [compute_errors(one, other, eps) for one, other in zip(ref, res, strict=True)]
    absolute = [error for error, _ in errors if error is not None]
    relative = [error for _, error in errors if error is not None]
    return max(absolute, default=None), max(relative, default=None)


def _tensor_errors(ref: torch.Tensor, res: torch.Tensor, eps: float) -> tuple[float | None, float | None]:
    if ref.shape != res.shape or ref.layout is not torch.strided or res.layout is not torch.strided:
        return None, None
    if not ref.numel():
        return 0.0, 0.0
    wide = torch.complex128 if ref.is_complex() or res.is_complex() else torch.float64
    one, other = ref.detach().cpu().to(wide), res.detach().cpu().to(wide)
    same = (one == other) | (one.isnan() & other.isnan())
    finite = one.isfinite() & other.isfinite()
    difference = torch.where(finite, (one - other).abs(), torch.inf).masked_fill(same, 0.0)
    size = torch.where(finite, one.abs(), 0.0)
    return float(difference.max()), float((difference / (size + eps)).max())


def cleanup_memory_and_gpu() -> None:
    """Free what is not used any more, wait for the GPU, and give its cached memory back: between two tests.

    Without a GPU it only collects garbage.
    """
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
