#!/usr/bin/env python3
"""Grouped-query attention as a plain PyTorch module that keeps the scores in memory.

Sizes, check and cost come from `benchmark/group_query_attention.py`.

    python benchmark/baselines/pytorch/group_query_attention.py -b 2 --backend cpu
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))  # the project's root, from any working directory

from benchmark import group_query_attention
from benchmark.workload import Array, Step


class Baseline(group_query_attention.GroupQueryAttention):
    """Grouped-query attention, O = softmax(Q·Kᵀ / sqrt(D)) · V, as a plain PyTorch module."""

    implementations = ("torch",)

    def torch(self, q: Array, k: Array, v: Array) -> Step:
        """Return the module applied to q, k and v."""
        import torch
        from torch import nn

        class GroupedQueryAttention(nn.Module):  # type: ignore[misc]
            def __init__(self, causal: bool) -> None:
                super().__init__()
                self.causal = causal

            def forward(self, q: Array, k: Array, v: Array) -> Array:
                group = q.shape[1] // k.shape[1]
                k, v = k.repeat_interleave(group, dim=1), v.repeat_interleave(group, dim=1)
                scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
                if self.causal:
                    later = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).triu(1)
                    scores = scores.masked_fill(later, float("-inf"))
                return torch.softmax(scores, dim=-1) @ v

        module = GroupedQueryAttention(self.causal)
        return lambda: module(q, k, v)


if __name__ == "__main__":
    from benchmark.harness import main

    sys.exit(main(Baseline))
