"""Provide what every launch needs: autotuning, the precision of products, and checks of the inputs."""

from __future__ import annotations

import os
from typing import Any

import triton

from benchmark.refusal import USAGE, Refusal

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"

# How tl.dot multiplies float32: in float32, as torch does by default. "tf32x3" is faster on tensor cores and
# nearly as accurate; "tf32" has 10 bits of mantissa and exceeds the tolerance. Other dtypes ignore it.
PRECISION = "ieee"


def tuned(configs: list[Any], small: dict[str, int], key: list[str]) -> Any:
    """Return a decorator that selects the fastest of `configs` for each `key`, timed at the first call.

    The interpreter uses `small`; a single configuration is not timed.
    """
    return triton.autotune(configs=[triton.Config(small)] if INTERPRETED else configs, key=key)


def gemm_configs() -> list[Any]:
    """Return the tiles for a fused product with up to two float32 accumulators of BLOCK_M × BLOCK_N.

    The largest needs 2 · 128 · 128 · 4 bytes = 128 KiB of registers, half of a multiprocessor's; its three
    stages of 16-bit tiles (128 · 64 + 2 · 64 · 128) use 144 of Hopper's 227 KiB of shared memory.
    """
    return [
        triton.Config({"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": k}, num_warps=warps, num_stages=stages)
        for m, n, k, warps, stages in (
            (128, 128, 64, 8, 3),
            (128, 128, 32, 8, 3),
            (128, 64, 64, 4, 3),
            (64, 128, 64, 4, 3),
            (64, 64, 32, 4, 4),
            (16, 128, 64, 4, 3),
            (16, 64, 64, 4, 4),
        )
    ]


def row_block(width: int) -> tuple[int, int]:
    """Return the size of a block that holds a whole row of this width, and its warps: 16 elements per thread."""
    block = triton.next_power_of_2(width)
    return block, min(max(block // (16 * 32), 1), 16)


def multipliable(array: Any) -> None:
    """Raise Refusal if tl.dot would be wrong: Triton 3.9's interpreter multiplies the bits of bfloat16."""
    if INTERPRETED and str(array.dtype) == "torch.bfloat16":
        raise Refusal(
            USAGE, "Triton's interpreter cannot multiply bfloat16; try --dtype float16 or --impl torch"
        )


def contiguous(*arrays: Any) -> None:
    """Raise ValueError unless every array is contiguous: kernels get shapes, not strides."""
    for array in arrays:
        if not array.is_contiguous():
            raise ValueError(f"the kernel needs contiguous inputs, one has strides {array.stride()}")
