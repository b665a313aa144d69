"""Compute X·W + scale · (X·A)·B with TMA, as `triton_lora.py` does, for Hopper and later.

X·A, a matrix of a few columns, is computed first and starts each tile's sum, which costs one more step of the inner
loop. If it is summed inside the loop, as the plain kernel does, the tensor cores do not work at full width:
543 instead of 609 TFLOP/s on an H200.
"""

# a kernel's parameters have Triton's types
# mypy: disable-error-code="no-untyped-def,untyped-decorator"

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

from benchmark.kernels.launch import INTERPRETED
from benchmark.kernels.tma import config, matrix, programs, tile_of, tiled


def _tiles(arguments: dict[str, Any]) -> bool:
    m, n, k, rank = (arguments[name] for name in ("BLOCK_M", "BLOCK_N", "BLOCK_K", "BLOCK_R"))
    arguments["x"].block_shape = [m, k]
    arguments["w"].block_shape = [k, n]
    arguments["low"].block_shape = [m, rank]
    arguments["b"].block_shape = [rank, n]
    arguments["y"].block_shape = [m, n]
    return True


CONFIGS = [config(128, 256, 64, 8, 8, 3), config(256, 128, 64, 8, 8, 3), config(128, 128, 64, 8, 4, 4)]
SMALL = [config(16, 32, 32, 2, 4, 2)]


@triton.autotune(configs=SMALL if INTERPRETED else CONFIGS, key=["M", "N", "K", "BLOCK_R"])
@tiled(_tiles)
@triton.jit
def _kernel(
    x, w, low, b, y, M, N, K, SCALE: tl.constexpr,
    PROGRAMS: tl.constexpr, BLOCK_R: tl.constexpr, GROUP_M: tl.constexpr,  # noqa: ARG001 (_tiles reads BLOCK_R)
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, TILED: tl.constexpr,  # noqa: ARG001
):  # fmt: skip
    blocks_m, blocks_n = tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N)
    for number in range(tl.program_id(0), blocks_m * blocks_n, PROGRAMS):
        row, column = tile_of(number, blocks_m, blocks_n, GROUP_M)
        row, column = row * BLOCK_M, column * BLOCK_N
        low_tile = (low.load([row, 0]) * SCALE).to(b.dtype)
        total = tl.dot(low_tile, b.load([0, column]))
        for k in range(0, K, BLOCK_K):
            total = tl.dot(x.load([row, k]), w.load([k, column]), total)
        y.store([row, column], total.to(y.dtype))


def lora(x: Any, w: Any, a: Any, b: Any, scale: float) -> Any:
    """Return the adapted layer of x (..., K): w (K, N), a (K, R), b (R, N), which `tma.usable` accepts; (..., N)."""
    (K, N), R = w.shape, a.shape[1]
    M = x.numel() // K
    y = torch.empty((*x.shape[:-1], N), dtype=x.dtype, device=x.device)
    block_r = max(16, triton.next_power_of_2(R))  # tl.dot accepts no side below 16
    count = programs(x.device)
    _kernel[(count,)](
        matrix(x), matrix(w), matrix(x @ a), matrix(b), matrix(y), M, N, K, scale, count, block_r
    )
    return y
