#!/usr/bin/env python3
"""Layer norm: Y = (X - mean(X)) / sqrt(var(X) + eps) * W + B, row by row. Memory-bound on every device.

    python benchmark/layer_norm.py -b 8 --backend cpu
    python benchmark/layer_norm.py --backend cuda --impl triton --hidden 8192

X and Y are M × H with M = batch · sequence, W and B have H elements.
FLOPs: per element a sum, the difference from the mean, its square, a sum, the products with 1/sigma and W,
the sum with B: 7·M·H; per row two divisions by H, the sum with eps and the reciprocal root: 4·M.
Bytes: (2·M·H + 2·H) elements.
"""

# ruff: noqa: D102 (the base class documents the methods)

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the project's root, from any working directory

from benchmark.workload import Array, Draw, Step, Workload, size

EPS = 1e-5


@dataclass(frozen=True)
class LayerNorm(Workload):
    """Layer norm: Y = (X - mean(X)) / sqrt(var(X) + eps) * W + B, row by row."""

    name: ClassVar[str] = "layer_norm"
    roundings: ClassVar[int] = 4  # mean, 1/sigma, the product with W, the sum with B

    batch: int = size("sequences in the batch", cpu=8, gpu=8)
    sequence: int = size("tokens in a sequence", cpu=128, gpu=2048)
    hidden: int = size("width of X", cpu=1024, gpu=4096)

    @property
    def depth(self) -> int:
        return self.hidden

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        x = (self.batch, self.sequence, self.hidden)
        return x, (self.hidden,), (self.hidden,), x

    def flops(self) -> int:
        rows = self.batch * self.sequence
        return 7 * rows * self.hidden + 4 * rows

    def inputs(self, draw: Draw) -> tuple[Array, ...]:
        x, w, b, _ = self.shapes
        return draw(*x, mean=0.5), draw(*w, scale=0.1, mean=1.0), draw(*b, scale=0.1)

    def reference(self, rows: Array, *inputs: Array) -> Array:
        x, w, b = inputs
        return _numpy(x.reshape(-1, self.hidden)[rows], w, b)

    def torch(self, x: Array, w: Array, b: Array) -> Step:
        from torch.nn.functional import layer_norm

        return lambda: layer_norm(x, (self.hidden,), w, b, EPS)

    def triton(self, x: Array, w: Array, b: Array) -> Step:
        from benchmark.kernels.triton_layer_norm import layer_norm

        return lambda: layer_norm(x, w, b, EPS)

    def numpy(self, x: Array, w: Array, b: Array) -> Step:
        return lambda: _numpy(x, w, b)


def _numpy(x: Array, w: Array, b: Array) -> Array:
    import numpy as np

    centred = x - np.mean(x, axis=-1, keepdims=True)
    return centred / np.sqrt(np.mean(np.square(centred), axis=-1, keepdims=True) + x.dtype.type(EPS)) * w + b


if __name__ == "__main__":
    from benchmark.harness import main

    sys.exit(main(LayerNorm))
