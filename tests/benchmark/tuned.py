"""Tunes the kernels for Hopper where there is none: prints whether each one's tiles are those that were chosen.

A process of its own, with a stand-in for the device. Triton's tuner is the real one; the times are made up (the second
configuration is best), and nothing is launched.
"""

from __future__ import annotations

import torch
from triton.backends.compiler import GPUTarget
from triton.runtime.driver import driver

from benchmark.kernels import triton_gated_mlp_tma, triton_lora_tma


class Hopper:
    """What the tuner asks a driver for."""

    def get_current_target(self):
        return GPUTarget("cuda", 90, 32)

    def get_benchmarker(self):
        times = iter([3.0, 1.0, 2.0])
        return lambda _call, quantiles: [next(times)] * len(quantiles)


if __name__ == "__main__":
    driver.set_active(Hopper())
    square = torch.zeros(64, 64, dtype=torch.float16)
    for module in (triton_gated_mlp_tma, triton_lora_tma):
        module.programs = lambda _device: 132
        innermost = module._kernel.fn.fn
        innermost.run = lambda x, *_, **chosen: print(x.block_shape == [chosen["BLOCK_M"], chosen["BLOCK_K"]])
    triton_gated_mlp_tma.gated_mlp(square, square, square)
    triton_lora_tma.lora(square, square, square, square, 1.0)
