#!/usr/bin/env python3
"""Layer norm as a plain PyTorch module; sizes, check and cost come from `benchmark/layer_norm.py`.

python benchmark/baselines/pytorch/layer_norm.py -b 8 --backend cpu
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))  # the project's root, from any working directory

from benchmark import layer_norm
from benchmark.workload import Array, Step


class Baseline(layer_norm.LayerNorm):
    """Layer norm, Y = (X - mean(X)) / sqrt(var(X) + eps) * W + B, as a plain PyTorch module."""

    implementations = ("torch",)

    def torch(self, x: Array, w: Array, b: Array) -> Step:
        """Return the module, which holds the weights, applied to x."""
        import torch
        from torch import nn

        class LayerNorm(nn.Module):  # type: ignore[misc]
            def __init__(self, hidden: int, eps: float) -> None:
                super().__init__()
                self.weight = nn.Parameter(torch.ones(hidden))
                self.bias = nn.Parameter(torch.zeros(hidden))
                self.eps = eps

            def forward(self, x: Array) -> Array:
                wide = x.float()
                centred = wide - wide.mean(-1, keepdim=True)
                normed = centred * torch.rsqrt(centred.pow(2).mean(-1, keepdim=True) + self.eps)
                return normed.to(x.dtype) * self.weight + self.bias

        module = LayerNorm(self.hidden, layer_norm.EPS).to(x)
        module.weight.copy_(w)
        module.bias.copy_(b)
        return lambda: module(x)


if __name__ == "__main__":
    from benchmark.harness import main

    sys.exit(main(Baseline))
