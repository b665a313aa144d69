"""GELU, Swish and the mean squared error in Triton: arrays are flat, a program computes one block of them."""

# a kernel's parameters have Triton's types
# mypy: disable-error-code="no-untyped-def,untyped-decorator,no-untyped-call"
# sizes are in capitals, as Triton's own tutorials write them

from __future__ import annotations

from functools import lru_cache
from typing import Any

import torch
import triton
import triton.language as tl

# One load of 16 bytes for each thread of a program is never far from the best.
WARPS, LOAD = 4, 16
SUM_BLOCK = 4096  # where a program walks over the array and keeps a sum
PROGRAMS = 8  # of 4 warps that a multiprocessor runs at a time, where they walk; half as many of 8 warps
CHUNK = 1024  # sums of programs that are added up at a time


@triton.jit
def _tail_probability(size):
    """Return P(X > size) of a normal X, for size >= 0: the polynomial of flat.cu, which gives its source."""
    power = -1.9919056e-06 * size + 2.9272091e-05
    power = power * size - 1.3808868e-04
    power = power * size - 2.5343554e-04
    power = power * size + 7.2163888e-03
    power = power * size - 5.2603050e-02
    power = power * size - 4.5917222e-01
    power = power * size - 1.1511097
    return tl.exp2(power * size - 0.9999999)


@triton.jit
def _gelu(x, y, N, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < N).to(tl.float32)
    size = tl.minimum(tl.abs(value), 16.0)
    result = 0.5 * (value + tl.abs(value)) - size * _tail_probability(size)
    tl.store(y + at, result.to(y.dtype.element_ty), mask=at < N)


@triton.jit
def _gelu_backward(dy, x, dx, N, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < N).to(tl.float32)
    grad = tl.load(dy + at, mask=at < N).to(tl.float32)
    size = tl.minimum(tl.abs(value), 16.0)
    density = 0.39894228 * tl.exp2(-0.72134752 * value * value)
    away = size * density - _tail_probability(size)
    result = grad * tl.where(value > 0.0, 1.0 + away, -away)
    tl.store(dx + at, result.to(dx.dtype.element_ty), mask=at < N)


@triton.jit
def _swish(x, y, N, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < N).to(tl.float32)
    tl.store(y + at, (value * tl.sigmoid(value)).to(y.dtype.element_ty), mask=at < N)


@triton.jit
def _swish_backward(dy, x, dx, N, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < N).to(tl.float32)
    grad = tl.load(dy + at, mask=at < N).to(tl.float32)
    sigma = tl.sigmoid(value)
    tl.store(dx + at, (grad * sigma * (1.0 + value * (1.0 - sigma))).to(dx.dtype.element_ty), mask=at < N)


@triton.jit
def add_up_programs(own, partial, done, out, SCALE, CHUNK: tl.constexpr):
    """Add up every program's sum, in the same order always, in the program that ends last. `done` is left at 0."""
    tl.store(partial + tl.program_id(0), own)
    before = tl.atomic_add(done, 1, sem="acq_rel")
    if before == tl.num_programs(0) - 1:
        total = tl.zeros((CHUNK,), tl.float32)
        for first in range(0, tl.num_programs(0), CHUNK):
            at = first + tl.arange(0, CHUNK)
            # Without a mask four are loaded at a time; `partial` is whole chunks long.
            part = tl.load(partial + at, cache_modifier=".cg")
            total += tl.where(at < tl.num_programs(0), part, 0.0)
        tl.store(out, (tl.sum(total, axis=0) * SCALE).to(out.dtype.element_ty))
        tl.store(done, 0)


@triton.jit
def _mse(x, target, partial, done, out, N, SCALE, BLOCK: tl.constexpr, CHUNK: tl.constexpr):
    steps = tl.cdiv(N, BLOCK * tl.num_programs(0))
    first = tl.program_id(0).to(tl.int64) * steps * BLOCK
    total = tl.zeros((BLOCK,), tl.float32)
    for step in range(steps):
        at = first + step * BLOCK + tl.arange(0, BLOCK)
        away = tl.load(x + at, mask=at < N, other=0.0).to(tl.float32)
        away -= tl.load(target + at, mask=at < N, other=0.0).to(tl.float32)
        total += away * away
    add_up_programs(tl.sum(total, axis=0), partial, done, out, SCALE, CHUNK)


@triton.jit
def _mse_backward(x, target, dout, dx, N, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    away = tl.load(x + at, mask=at < N).to(tl.float32) - tl.load(target + at, mask=at < N).to(tl.float32)
    scale = 2.0 * tl.load(dout).to(tl.float32) / N
    tl.store(dx + at, (away * scale).to(dx.dtype.element_ty), mask=at < N)


def _launch_map(kernel: Any, like: Any, *arrays: Any) -> Any:
    out = torch.empty_like(like)
    block = WARPS * 32 * LOAD // like.element_size()
    kernel[(triton.cdiv(like.numel(), block),)](*arrays, out, like.numel(), block, num_warps=WARPS)
    return out


def gelu(x: Any) -> Any:
    """Return x times the normal distribution's function of x."""
    return _launch_map(_gelu, x, x)


def gelu_backward(dy: Any, x: Any) -> Any:
    """Return dx, the gradient for x."""
    return _launch_map(_gelu_backward, x, dy, x)


def swish(x: Any) -> Any:
    """Return x * sigmoid(x)."""
    return _launch_map(_swish, x, x)


def swish_backward(dy: Any, x: Any) -> Any:
    """Return dx, the gradient for x."""
    return _launch_map(_swish_backward, x, dy, x)


def mse(x: Any, target: Any) -> Any:
    """Return the mean of the squared differences, one number of x's dtype; the same at every call."""
    N = x.numel()
    max_programs, partial, done = scratch_memory(x.device)
    small = max_programs * SUM_BLOCK > N  # less than one block for each program
    block, warps, max_programs = (
        (SUM_BLOCK // 4, 4, max_programs) if small else (SUM_BLOCK, 8, max_programs // 2)
    )
    count = min(triton.cdiv(N, block), max_programs)
    out = torch.empty((), dtype=x.dtype, device=x.device)
    _mse[(count,)](x, target, partial, done, out, N, 1.0 / N, block, CHUNK, num_warps=warps)
    return out


@lru_cache(maxsize=8)
def scratch_memory(device: Any) -> tuple[int, Any, Any]:
    """Return how many programs of 4 warps fill the device, memory for their sums, and the count of those done.

    All calls on a device share it: they must follow one another on one stream.
    """
    max_programs = PROGRAMS
    if device.type == "cuda":
        max_programs *= torch.cuda.get_device_properties(device).multi_processor_count
    room = triton.cdiv(4 * max_programs, CHUNK) * CHUNK  # for as many programs of one warp
    partial = torch.empty(room, dtype=torch.float32, device=device)
    return max_programs, partial, torch.zeros((), dtype=torch.int32, device=device)


def mse_backward(dout: Any, x: Any, target: Any) -> Any:
    """Return dx, the gradient for x; `dout` is one number on the device."""
    return _launch_map(_mse_backward, x, x, target, dout)
