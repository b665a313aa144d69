"""Compute X·W + scale · (X·A)·B in one kernel: X·A is summed with X·W from the same tiles of X.

Each program computes X·A for its rows again, R / BLOCK_N more work, which avoids a round trip through memory
and a second launch. This pays off while the rank is small compared with a block's columns.
"""

# a kernel's parameters have Triton's types
# mypy: disable-error-code="no-untyped-def,untyped-decorator"

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

from benchmark.kernels import tma
from benchmark.kernels.launch import PRECISION, contiguous, gemm_configs, multipliable, tuned


@tuned(gemm_configs(), small={"BLOCK_M": 16, "BLOCK_N": 32, "BLOCK_K": 32}, key=["M", "N", "K", "R"])
@triton.jit
def _kernel(
    x, w, a, b, y, M, N, K, R,
    SCALE: tl.constexpr, PRECISION: tl.constexpr, BLOCK_R: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    rows = (tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)).to(tl.int64)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    ranks = tl.arange(0, BLOCK_R)
    inner = tl.arange(0, BLOCK_K).to(tl.int64)
    row_there, column_there, rank_there = rows[:, None] < M, columns[None, :] < N, ranks[None, :] < R

    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    low = tl.zeros((BLOCK_M, BLOCK_R), tl.float32)
    for k in range(0, K, BLOCK_K):
        at = k + inner
        k_there = at[:, None] < K
        x_tile = tl.load(x + rows[:, None] * K + at[None, :], mask=row_there & (at[None, :] < K), other=0.0)
        w_tile = tl.load(w + at[:, None] * N + columns[None, :], mask=k_there & column_there, other=0.0)
        a_tile = tl.load(a + at[:, None] * R + ranks[None, :], mask=k_there & rank_there, other=0.0)
        total = tl.dot(x_tile, w_tile, total, input_precision=PRECISION)
        low = tl.dot(x_tile, a_tile, low, input_precision=PRECISION)

    b_tile = tl.load(
        b + ranks[:, None] * N + columns[None, :], mask=(ranks[:, None] < R) & column_there, other=0.0
    )
    total = tl.dot((low * SCALE).to(b_tile.dtype), b_tile, total, input_precision=PRECISION)
    tl.store(
        y + rows[:, None] * N + columns[None, :], total.to(y.dtype.element_ty), mask=row_there & column_there
    )


def lora(x: Any, w: Any, a: Any, b: Any, scale: float) -> Any:
    """Return the adapted layer of x (..., K): w (K, N), a (K, R), b (R, N), contiguous, of one dtype; (..., N)."""
    contiguous(x, w, a, b)
    multipliable(x)
    if tma.usable(x, w, a, b):
        from benchmark.kernels import triton_lora_tma

        return triton_lora_tma.lora(x, w, a, b, scale)
    (K, N), R = w.shape, a.shape[1]
    M = x.numel() // K
    y = torch.empty((*x.shape[:-1], N), dtype=x.dtype, device=x.device)
    block_r = max(16, triton.next_power_of_2(R))  # tl.dot accepts no side below 16

    def grid(chosen: Any) -> tuple[int, int]:
        return triton.cdiv(M, chosen["BLOCK_M"]), triton.cdiv(N, chosen["BLOCK_N"])

    _kernel[grid](x, w, a, b, y, M, N, K, R, scale, PRECISION, block_r)
    return y
