"""Compute silu(X·W1) * (X·W2) in one kernel: both products use each tile of X and stay in registers."""

# a kernel's parameters have Triton's types
# mypy: disable-error-code="no-untyped-def,untyped-decorator"

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

from benchmark.kernels import tma
from benchmark.kernels.launch import PRECISION, contiguous, gemm_configs, multipliable, tuned


@tuned(gemm_configs(), small={"BLOCK_M": 16, "BLOCK_N": 32, "BLOCK_K": 32}, key=["M", "N", "K"])
@triton.jit
def _kernel(
    x, w1, w2, y, M, N, K,
    PRECISION: tl.constexpr, GROUP_M: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    # Programs go down GROUP_M row blocks before the next column, so that the weights' tiles stay in L2.
    pid = tl.program_id(0)
    blocks_m, blocks_n = tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N)
    first = pid // (GROUP_M * blocks_n) * GROUP_M
    group = min(blocks_m - first, GROUP_M)
    pid_m = first + pid % (GROUP_M * blocks_n) % group
    pid_n = pid % (GROUP_M * blocks_n) // group

    rows = (pid_m * BLOCK_M + tl.arange(0, BLOCK_M)).to(tl.int64)
    columns = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    inner = tl.arange(0, BLOCK_K).to(tl.int64)
    row_there, column_there = rows[:, None] < M, columns[None, :] < N

    gate = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    up = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for k in range(0, K, BLOCK_K):
        at = k + inner
        x_tile = tl.load(x + rows[:, None] * K + at[None, :], mask=row_there & (at[None, :] < K), other=0.0)
        weights = at[:, None] * N + columns[None, :]
        there = (at[:, None] < K) & column_there
        gate = tl.dot(x_tile, tl.load(w1 + weights, mask=there, other=0.0), gate, input_precision=PRECISION)
        up = tl.dot(x_tile, tl.load(w2 + weights, mask=there, other=0.0), up, input_precision=PRECISION)

    result = gate * tl.sigmoid(gate) * up
    tl.store(
        y + rows[:, None] * N + columns[None, :], result.to(y.dtype.element_ty), mask=row_there & column_there
    )


def gated_mlp(x: Any, w1: Any, w2: Any) -> Any:
    """Return the gated MLP of x (..., K) with w1 and w2 (K, N), contiguous and of one dtype, as (..., N)."""
    contiguous(x, w1, w2)
    multipliable(x)
    if tma.usable(x, w1, w2):
        from benchmark.kernels import triton_gated_mlp_tma

        return triton_gated_mlp_tma.gated_mlp(x, w1, w2)
    K, N = w1.shape
    M = x.numel() // K
    y = torch.empty((*x.shape[:-1], N), dtype=x.dtype, device=x.device)

    def grid(chosen: Any) -> tuple[int]:
        return (triton.cdiv(M, chosen["BLOCK_M"]) * triton.cdiv(N, chosen["BLOCK_N"]),)

    _kernel[grid](x, w1, w2, y, M, N, K, PRECISION, GROUP_M=8)
    return y
