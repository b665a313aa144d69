#!/usr/bin/env python3
"""Gated MLP as a plain PyTorch module; sizes, check and cost come from `benchmark/gated_mlp.py`.

python benchmark/baselines/pytorch/gated_mlp.py -b 8 --backend cpu
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))  # the project's root, from any working directory

from benchmark import gated_mlp
from benchmark.workload import Array, Step


class Baseline(gated_mlp.GatedMlp):
    """Gated MLP, Y = silu(X·W1) * (X·W2), as a plain PyTorch module."""

    implementations = ("torch",)

    def torch(self, x: Array, w1: Array, w2: Array) -> Step:
        """Return the module, which holds the weights, applied to x."""
        from torch import nn
        from torch.nn.functional import silu

        class GatedMLP(nn.Module):  # type: ignore[misc]
            def __init__(self, hidden: int, intermediate: int) -> None:
                super().__init__()
                self.gate = nn.Linear(hidden, intermediate, bias=False)
                self.up = nn.Linear(hidden, intermediate, bias=False)

            def forward(self, x: Array) -> Array:
                return silu(self.gate(x)) * self.up(x)

        module = GatedMLP(self.hidden, self.intermediate).to(x)
        module.gate.weight.copy_(w1.T)
        module.up.weight.copy_(w2.T)
        return lambda: module(x)


if __name__ == "__main__":
    from benchmark.harness import main

    sys.exit(main(Baseline))
