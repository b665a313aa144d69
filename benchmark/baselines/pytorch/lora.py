#!/usr/bin/env python3
"""LoRA as a plain PyTorch module; sizes, check and cost come from `benchmark/lora.py`.

python benchmark/baselines/pytorch/lora.py -b 8 --backend cpu
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))  # the project's root, from any working directory

from benchmark import lora
from benchmark.workload import Array, Step


class Baseline(lora.Lora):
    """LoRA, Y = X·W + scale · (X·A)·B, as a plain PyTorch module."""

    implementations = ("torch",)

    def torch(self, x: Array, w: Array, a: Array, b: Array) -> Step:
        """Return the module, which holds the weights, applied to x."""
        from torch import nn

        class LoraLinear(nn.Module):  # type: ignore[misc]
            def __init__(self, hidden: int, features: int, rank: int, scale: float) -> None:
                super().__init__()
                self.linear = nn.Linear(hidden, features, bias=False)
                self.down = nn.Linear(hidden, rank, bias=False)
                self.up = nn.Linear(rank, features, bias=False)
                self.scale = scale

            def forward(self, x: Array) -> Array:
                return self.linear(x) + self.up(self.down(x)) * self.scale

        module = LoraLinear(self.hidden, self.features, self.rank, lora.SCALE).to(x)
        for layer, weight in ((module.linear, w), (module.down, a), (module.up, b)):
            layer.weight.copy_(weight.T)
        return lambda: module(x)


if __name__ == "__main__":
    from benchmark.harness import main

    sys.exit(main(Baseline))
