"""Compute silu(X·W1) * (X·W2) in one kernel with TMA, as `triton_gated_mlp.py` does, for Hopper and later.

Both products use each tile of X and stay in registers: two accumulators of 128 × 128 fill half of these.
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
    m, n, k = (arguments[name] for name in ("BLOCK_M", "BLOCK_N", "BLOCK_K"))
    arguments["x"].block_shape = [m, k]
    arguments["w1"].block_shape = arguments["w2"].block_shape = [k, n]
    arguments["y"].block_shape = [m, n]
    return True


# Four stages of (128 · 64 + 2 · 64 · 128) 16-bit elements take 192 of the 227 KiB of shared memory.
CONFIGS = [config(128, 128, 64, 16, 8, 4), config(128, 128, 64, 8, 8, 3), config(128, 64, 64, 8, 4, 4)]
SMALL = [config(16, 32, 32, 2, 4, 2)]


@triton.autotune(configs=SMALL if INTERPRETED else CONFIGS, key=["M", "N", "K"])
@tiled(_tiles)
@triton.jit
def _kernel(
    x, w1, w2, y, M, N, K,
    PROGRAMS: tl.constexpr, GROUP_M: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, TILED: tl.constexpr,  # noqa: ARG001
):  # fmt: skip
    blocks_m, blocks_n = tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N)
    for number in range(tl.program_id(0), blocks_m * blocks_n, PROGRAMS):
        row, column = tile_of(number, blocks_m, blocks_n, GROUP_M)
        row, column = row * BLOCK_M, column * BLOCK_N
        gate = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        up = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        for k in range(0, K, BLOCK_K):
            x_tile = x.load([row, k])
            gate = tl.dot(x_tile, w1.load([k, column]), gate)
            up = tl.dot(x_tile, w2.load([k, column]), up)
        y.store([row, column], (gate * tl.sigmoid(gate) * up).to(y.dtype))


def gated_mlp(x: Any, w1: Any, w2: Any) -> Any:
    """Return the gated MLP of x (..., K) with w1 and w2 (K, N), which `tma.usable` accepts, as (..., N)."""
    K, N = w1.shape
    M = x.numel() // K
    y = torch.empty((*x.shape[:-1], N), dtype=x.dtype, device=x.device)
    count = programs(x.device)
    _kernel[(count,)](matrix(x), matrix(w1), matrix(w2), matrix(y), M, N, K, count)
    return y
