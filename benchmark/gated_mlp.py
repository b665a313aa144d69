#!/usr/bin/env python3
"""Gated MLP: Y = silu(X·W1) * (X·W2), the feed-forward block of most language models without its last product.

    python benchmark/gated_mlp.py -b 8 --backend cpu
    python benchmark/gated_mlp.py --backend cuda --impl triton --dtype bfloat16

X is M × H with M = batch · sequence, W1 and W2 are H × I, Y is M × I.
FLOPs: two products of 2·M·H·I; silu(g) = g / (1 + exp(-g)) is 3 and the product 1 per element of Y: 4·M·I.
Bytes: (M·H + 2·H·I + M·I) elements.
"""

# ruff: noqa: D102 (the base class documents the methods)

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the project's root, from any working directory

from benchmark.workload import Array, Draw, Step, Workload, size


@dataclass(frozen=True)
class GatedMlp(Workload):
    """Gated MLP: Y = silu(X·W1) * (X·W2)."""

    name: ClassVar[str] = "gated_mlp"
    roundings: ClassVar[int] = 4  # X·W1, X·W2, silu, their product

    batch: int = size("sequences in the batch", cpu=8, gpu=8)
    sequence: int = size("tokens in a sequence", cpu=4, gpu=512)
    hidden: int = size("width of X", cpu=512, gpu=4096)
    intermediate: int = size("width of Y", cpu=1376, gpu=11008)

    @property
    def depth(self) -> int:
        return self.hidden

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        weights = (self.hidden, self.intermediate)
        rows = (self.batch, self.sequence)
        return (*rows, self.hidden), weights, weights, (*rows, self.intermediate)

    def flops(self) -> int:
        rows = self.batch * self.sequence
        return 4 * rows * self.hidden * self.intermediate + 4 * rows * self.intermediate

    def inputs(self, draw: Draw) -> tuple[Array, ...]:
        x, w1, w2, _ = self.shapes
        scale = self.hidden**-0.5  # keeps X·W in the range of X
        return draw(*x), draw(*w1, scale=scale), draw(*w2, scale=scale)

    def reference(self, rows: Array, *inputs: Array) -> Array:
        x, w1, w2 = inputs
        return _numpy(x.reshape(-1, self.hidden)[rows], w1, w2)

    def torch(self, x: Array, w1: Array, w2: Array) -> Step:
        from torch.nn.functional import silu

        return lambda: silu(x @ w1) * (x @ w2)

    def triton(self, x: Array, w1: Array, w2: Array) -> Step:
        from benchmark.kernels.triton_gated_mlp import gated_mlp

        return lambda: gated_mlp(x, w1, w2)

    def numpy(self, x: Array, w1: Array, w2: Array) -> Step:
        return lambda: _numpy(x, w1, w2)


def _numpy(x: Array, w1: Array, w2: Array) -> Array:
    import numpy as np

    gate = x @ w1
    return gate / (1 + np.exp(-gate)) * (x @ w2)


if __name__ == "__main__":
    from benchmark.harness import main

    sys.exit(main(GatedMlp))
