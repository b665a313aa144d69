#!/usr/bin/env python3
"""RMS norm as a plain PyTorch module; sizes, check and cost come from `benchmark/rms_norm.py`.

python benchmark/baselines/pytorch/rms_norm.py -b 8 --backend cpu
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))  # the project's root, from any working directory

from benchmark import rms_norm
from benchmark.workload import Array, Step


class Baseline(rms_norm.RmsNorm):
    """RMS norm, Y = X / sqrt(mean(X²) + eps) * W, as a plain PyTorch module."""

    implementations = ("torch",)

    def torch(self, x: Array, w: Array) -> Step:
        """Return the module, which holds the weights, applied to x."""
        import torch
        from torch import nn

        class RMSNorm(nn.Module):  # type: ignore[misc]
            def __init__(self, hidden: int, eps: float) -> None:
                super().__init__()
                self.weight = nn.Parameter(torch.ones(hidden))
                self.eps = eps

            def forward(self, x: Array) -> Array:
                wide = x.float()
                normed = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.eps)
                return normed.to(x.dtype) * self.weight

        module = RMSNorm(self.hidden, rms_norm.EPS).to(x)
        module.weight.copy_(w)
        return lambda: module(x)


if __name__ == "__main__":
    from benchmark.harness import main

    sys.exit(main(Baseline))
