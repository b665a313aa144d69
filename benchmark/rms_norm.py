#!/usr/bin/env python3
"""RMS norm: Y = X / sqrt(mean(X²) + eps) * W, row by row. Memory-bound on every device.

    python benchmark/rms_norm.py -b 8 --backend cpu
    python benchmark/rms_norm.py --backend cuda --impl triton --hidden 8192

X and Y are M × H with M = batch · sequence, W has H elements.
FLOPs: per element a square, a sum, and the products with 1/rms and W: 4·M·H; per row the mean's division, the
sum with eps and the reciprocal root: 3·M.
Bytes: (2·M·H + H) elements.
"""

# ruff: noqa: D102 (the base class documents the methods)

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the project's root, from any working directory

from benchmark.workload import Array, Draw, Step, Workload, size

EPS = 1e-6


@dataclass(frozen=True)
class RmsNorm(Workload):
    """RMS norm: Y = X / sqrt(mean(X²) + eps) * W, row by row."""

    name: ClassVar[str] = "rms_norm"
    roundings: ClassVar[int] = 3  # 1/rms, X/rms, the product with W

    batch: int = size("sequences in the batch", cpu=8, gpu=8)
    sequence: int = size("tokens in a sequence", cpu=128, gpu=2048)
    hidden: int = size("width of X", cpu=1024, gpu=4096)

    @property
    def depth(self) -> int:
        return self.hidden

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        x = (self.batch, self.sequence, self.hidden)
        return x, (self.hidden,), x

    def flops(self) -> int:
        rows = self.batch * self.sequence
        return 4 * rows * self.hidden + 3 * rows

    def inputs(self, draw: Draw) -> tuple[Array, ...]:
        x, w, _ = self.shapes
        return draw(*x), draw(*w, scale=0.1, mean=1.0)

    def reference(self, rows: Array, *inputs: Array) -> Array:
        x, w = inputs
        return _numpy(x.reshape(-1, self.hidden)[rows], w)

    def torch(self, x: Array, w: Array) -> Step:
        from torch.nn.functional import rms_norm

        return lambda: rms_norm(x, (self.hidden,), w, EPS)

    def triton(self, x: Array, w: Array) -> Step:
        from benchmark.kernels.triton_rms_norm import rms_norm

        return lambda: rms_norm(x, w, EPS)

    def numpy(self, x: Array, w: Array) -> Step:
        return lambda: _numpy(x, w)


def _numpy(x: Array, w: Array) -> Array:
    import numpy as np

    return x / np.sqrt(np.mean(np.square(x), axis=-1, keepdims=True) + x.dtype.type(EPS)) * w


if __name__ == "__main__":
    from benchmark.harness import main

    sys.exit(main(RmsNorm))
