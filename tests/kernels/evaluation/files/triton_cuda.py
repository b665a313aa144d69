"""Kernels of Triton, and two that only look like some."""

import torch
import triton
import triton.language as tl

from profkit.evaluation import kernel

aten = torch.ops.aten


@triton.jit
def own_relu(x, out, count, block: tl.constexpr):
    offsets = tl.program_id(0) * block + tl.arange(0, block)
    inside = offsets < count
    tl.store(out + offsets, tl.maximum(tl.load(x + offsets, inside), 0.0), inside)


@kernel("relu.default")
def by_triton(x):
    out = torch.empty_like(x)
    own_relu[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), block=1024)
    return out


@kernel("abs.default")
def by_pytorch(x):
    return torch.where(x < 0, -x, x)


@kernel("exp.default")
def with_a_decoy(x):
    own_relu[(1,)](x, torch.empty_like(x), 4, block=1024)
    return aten.exp.default(x)
