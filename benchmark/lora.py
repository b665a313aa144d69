#!/usr/bin/env python3
"""LoRA: Y = X·W + scale · (X·A)·B, a linear layer and a low-rank adapter that is not merged into it.

    python benchmark/lora.py -b 8 --backend cpu
    python benchmark/lora.py --backend cuda --impl triton --rank 64

X is M × K with M = batch · sequence, W is K × N, A is K × R, B is R × N, Y is M × N.
FLOPs: 2·M·K·N + 2·M·K·R + 2·M·R·N for the products, M·R for the scale, M·N for the sum.
Bytes: (M·K + K·N + K·R + R·N + M·N) elements.
"""

# ruff: noqa: D102 (the base class documents the methods)

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the project's root, from any working directory

from benchmark.workload import Array, Draw, Step, Workload, size

SCALE = 2.0  # alpha / rank (Hu et al., "LoRA", 2021, section 4.1) at the common choice alpha = 2 · rank


@dataclass(frozen=True)
class Lora(Workload):
    """LoRA: Y = X·W + scale · (X·A)·B, a linear layer with a low-rank adapter."""

    name: ClassVar[str] = "lora"
    roundings: ClassVar[int] = 5  # X·W, X·A, its scale, the product with B, the sum

    batch: int = size("sequences in the batch", cpu=8, gpu=8)
    sequence: int = size("tokens in a sequence", cpu=4, gpu=512)
    hidden: int = size("width of X", cpu=1024, gpu=4096)
    features: int = size("width of Y", cpu=1024, gpu=4096)
    rank: int = size("rank of the adapter", cpu=16, gpu=16)

    @property
    def depth(self) -> int:
        return self.hidden + self.rank

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        rows, k, n, r = (self.batch, self.sequence), self.hidden, self.features, self.rank
        return (*rows, k), (k, n), (k, r), (r, n), (*rows, n)

    def flops(self) -> int:
        m, k, n, r = self.batch * self.sequence, self.hidden, self.features, self.rank
        return 2 * m * k * n + 2 * m * k * r + 2 * m * r * n + m * r + m * n

    def inputs(self, draw: Draw) -> tuple[Array, ...]:
        x, w, a, b, _ = self.shapes
        k, r = self.hidden**-0.5, self.rank**-0.5  # keeps each product in the range of X
        return draw(*x), draw(*w, scale=k), draw(*a, scale=k), draw(*b, scale=r)

    def reference(self, rows: Array, *inputs: Array) -> Array:
        x, w, a, b = inputs
        return _adapted(x.reshape(-1, self.hidden)[rows], w, a, b)

    def torch(self, x: Array, w: Array, a: Array, b: Array) -> Step:
        return lambda: _adapted(x, w, a, b)

    def triton(self, x: Array, w: Array, a: Array, b: Array) -> Step:
        from benchmark.kernels.triton_lora import lora

        return lambda: lora(x, w, a, b, SCALE)

    def numpy(self, x: Array, w: Array, a: Array, b: Array) -> Step:
        return lambda: _adapted(x, w, a, b)


def _adapted(x: Array, w: Array, a: Array, b: Array) -> Array:
    return x @ w + (x @ a * SCALE) @ b


if __name__ == "__main__":
    from benchmark.harness import main

    sys.exit(main(Lora))
