#!/usr/bin/env python3
"""Grouped-query attention: O = softmax(Q·Kᵀ / sqrt(D)) · V, where query heads share heads of K and V.

    python benchmark/group_query_attention.py -b 2 --backend cpu
    python benchmark/group_query_attention.py --backend cuda --impl triton --no-causal

Q and O are B × heads × S × D, K and V are B × kv-heads × S × D; head h of Q reads h // (heads / kv-heads).
FLOPs, with P the pairs of a query and a key that it sees (B·heads·S·(S+1)/2 when causal, else B·heads·S·S):
both products 4·D·P, softmax's scale, difference, exp and sum 4·P, its division B·heads·S·D.
Bytes: (2·B·heads·S·D + 2·B·kv-heads·S·D) elements; the scores need not be stored in memory.
"""

# ruff: noqa: D102 (the base class documents the methods)

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the project's root, from any working directory

from benchmark.workload import Array, Draw, Step, Workload, flag, size


@dataclass(frozen=True)
class GroupQueryAttention(Workload):
    """Grouped-query attention: O = softmax(Q·Kᵀ / sqrt(D)) · V, where query heads share heads of K and V."""

    name: ClassVar[str] = "group_query_attention"
    roundings: ClassVar[int] = 5  # scores, their scale, probabilities, their quotient, output

    batch: int = size("sequences in the batch", cpu=2, gpu=8)
    sequence: int = size("tokens in a sequence", cpu=128, gpu=2048)
    heads: int = size("query heads", cpu=8, gpu=32)
    kv_heads: int = size("heads of K and V; divides the query heads", cpu=2, gpu=8)
    head_dim: int = size("width D of a head", cpu=64, gpu=128)
    causal: bool = flag("a token sees only itself and the tokens before it (default: on)", default=True)

    @property
    def depth(self) -> int:
        return self.head_dim + self.sequence

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        q = (self.batch, self.heads, self.sequence, self.head_dim)
        kv = (self.batch, self.kv_heads, self.sequence, self.head_dim)
        return q, kv, kv, q

    def flops(self) -> int:
        queries = self.batch * self.heads * self.sequence
        pairs = queries * (self.sequence + 1) // 2 if self.causal else queries * self.sequence
        return 4 * self.head_dim * pairs + 4 * pairs + queries * self.head_dim

    def fault(self) -> str | None:
        if self.heads % self.kv_heads:
            return f"--kv-heads {self.kv_heads} does not divide --heads {self.heads}"
        return None

    def inputs(self, draw: Draw) -> tuple[Array, ...]:
        q, k, v, _ = self.shapes
        return draw(*q), draw(*k), draw(*v)

    def reference(self, rows: Array, *inputs: Array) -> Array:
        import numpy as np

        q, k, v = inputs
        output = np.empty((len(rows), self.head_dim))
        for i, row in enumerate(rows):
            b, h, t = np.unravel_index(row, q.shape[:-1])
            seen = slice(0, t + 1) if self.causal else slice(None)
            kv = h // (self.heads // self.kv_heads)
            weights = np.exp(k[b, kv, seen] @ q[b, h, t] / np.sqrt(self.head_dim))
            output[i] = weights / weights.sum() @ v[b, kv, seen]
        return output

    def torch(self, q: Array, k: Array, v: Array) -> Step:
        from torch.nn.functional import scaled_dot_product_attention as attention

        return lambda: attention(q, k, v, is_causal=self.causal, enable_gqa=self.heads != self.kv_heads)

    def triton(self, q: Array, k: Array, v: Array) -> Step:
        from benchmark.kernels.triton_group_query_attention import group_query_attention

        return lambda: group_query_attention(q, k, v, causal=self.causal)

    def numpy(self, q: Array, k: Array, v: Array) -> Step:
        import numpy as np

        # one more dimension, the query heads of a group, over which K and V are broadcast
        groups = q.reshape(self.batch, self.kv_heads, -1, self.sequence, self.head_dim)
        keys, values = k[:, :, None].swapaxes(-1, -2), v[:, :, None]
        scale = np.float32(self.head_dim**-0.5)
        unseen = (
            np.triu(np.full((self.sequence, self.sequence), -np.inf, np.float32), 1) if self.causal else None
        )

        def step() -> Array:
            scores = groups * scale @ keys
            if unseen is not None:
                scores += unseen
            scores -= scores.max(-1, keepdims=True)
            np.exp(scores, out=scores)
            scores /= scores.sum(-1, keepdims=True)
            return (scores @ values).reshape(q.shape)

        return step


if __name__ == "__main__":
    from benchmark.harness import main

    sys.exit(main(GroupQueryAttention))
