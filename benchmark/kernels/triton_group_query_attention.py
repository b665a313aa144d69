"""Compute grouped-query attention in one kernel: softmax block by block, without storing scores in memory.

The online softmax of "FlashAttention-2" (Dao, 2023): scores that raise a row's maximum from m to m' scale
what was summed before by exp(m - m'). Exponents have base 2, which the hardware computes directly.
"""

# a kernel's parameters have Triton's types
# mypy: disable-error-code="no-untyped-def,untyped-decorator"

from __future__ import annotations

from math import e, log2
from typing import Any

import torch
import triton
import triton.language as tl

from benchmark.kernels.launch import PRECISION, contiguous, multipliable, tuned

CONFIGS = [
    triton.Config({"BLOCK_M": m, "BLOCK_N": n}, num_warps=warps, num_stages=stages)
    for m, n, warps, stages in (
        (128, 128, 8, 2),
        (128, 64, 8, 3),
        (128, 64, 4, 3),
        (64, 64, 4, 3),
        (64, 32, 4, 3),
    )
]


@triton.jit
def _attend(
    total, norm, top, q_tile, keys, values, tokens, start, stop, S, D,
    MASKED: tl.constexpr, CAUSAL: tl.constexpr, PRECISION: tl.constexpr,
    BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    # Adds the keys start..stop to the running softmax; MASKED if some row must not see some key.
    columns = tl.arange(0, BLOCK_N)
    dims = tl.arange(0, BLOCK_D)
    for n in range(start, stop, BLOCK_N):
        at = n + columns
        there = (at[:, None] < S) & (dims[None, :] < D)
        k_tile = tl.load(keys + at[:, None] * D + dims[None, :], mask=there, other=0.0)
        scores = tl.dot(q_tile, tl.trans(k_tile), input_precision=PRECISION)
        if MASKED:
            seen = at[None, :] < S
            if CAUSAL:
                seen = seen & (at[None, :] <= tokens[:, None])
            scores = tl.where(seen, scores, float("-inf"))
        new_top = tl.maximum(top, tl.max(scores, axis=1))
        weights = tl.exp2(scores - new_top[:, None])
        shrink = tl.exp2(top - new_top)
        norm = norm * shrink + tl.sum(weights, axis=1)
        v_tile = tl.load(values + at[:, None] * D + dims[None, :], mask=there, other=0.0)
        total = tl.dot(weights.to(v_tile.dtype), v_tile, total * shrink[:, None], input_precision=PRECISION)
        top = new_top
    return total, norm, top


@tuned(CONFIGS, small={"BLOCK_M": 32, "BLOCK_N": 16}, key=["S", "D", "CAUSAL"])
@triton.jit
def _kernel(
    q, k, v, o, S, D, scale, HEADS: tl.constexpr, KV_HEADS: tl.constexpr,
    CAUSAL: tl.constexpr, PRECISION: tl.constexpr, BLOCK_D: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    head = tl.program_id(1)  # of all heads of the batch
    kv_head = head // HEADS * KV_HEADS + head % HEADS // (HEADS // KV_HEADS)
    keys, values = k + kv_head.to(tl.int64) * S * D, v + kv_head.to(tl.int64) * S * D
    first = tl.program_id(0) * BLOCK_M
    tokens = first + tl.arange(0, BLOCK_M)
    dims = tl.arange(0, BLOCK_D)
    here = head.to(tl.int64) * S * D + tokens[:, None] * D + dims[None, :]
    there = (tokens[:, None] < S) & (dims[None, :] < D)
    q_tile = tl.load(q + here, mask=there, other=0.0)
    q_tile = (q_tile * scale).to(q_tile.dtype)  # 1/sqrt(D) and the factor for base 2, once for all keys

    total = tl.zeros((BLOCK_M, BLOCK_D), tl.float32)
    norm = tl.zeros((BLOCK_M,), tl.float32)
    top = tl.full((BLOCK_M,), float("-inf"), tl.float32)
    # Blocks of keys that every row sees need no mask; the others end at the diagonal, or at the last key.
    full = min(first + 1, S) if CAUSAL else S
    full = full // BLOCK_N * BLOCK_N
    end = min(first + BLOCK_M, S) if CAUSAL else S
    total, norm, top = _attend(
        total,
        norm,
        top,
        q_tile,
        keys,
        values,
        tokens,
        0,
        full,
        S,
        D,
        False,
        CAUSAL,
        PRECISION,
        BLOCK_N,
        BLOCK_D,
    )
    total, norm, top = _attend(
        total,
        norm,
        top,
        q_tile,
        keys,
        values,
        tokens,
        full,
        end,
        S,
        D,
        True,
        CAUSAL,
        PRECISION,
        BLOCK_N,
        BLOCK_D,
    )
    tl.store(o + here, (total / norm[:, None]).to(o.dtype.element_ty), mask=there)


def group_query_attention(q: Any, k: Any, v: Any, *, causal: bool) -> Any:
    """Return attention of q (batch, heads, S, D) to k, v (batch, kv heads, S, D), contiguous, of one dtype."""
    contiguous(q, k, v)
    multipliable(q)
    batch, heads, S, D = q.shape
    o = torch.empty_like(q)
    block_d = max(16, triton.next_power_of_2(D))  # tl.dot accepts no side below 16

    def grid(chosen: Any) -> tuple[int, int]:
        return triton.cdiv(S, chosen["BLOCK_M"]), batch * heads

    _kernel[grid](q, k, v, o, S, D, D**-0.5 * log2(e), heads, k.shape[1], causal, PRECISION, block_d)
    return o
