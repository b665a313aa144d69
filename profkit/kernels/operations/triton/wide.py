"""Layer norm and cross entropy in Triton over rows that no program can hold: it goes over a row several times.

Between two times the row lies in the first or second cache, so that memory is read once.
"""

# a kernel's parameters have Triton's types
# mypy: disable-error-code="no-untyped-def,untyped-decorator,no-untyped-call"

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

from profkit.kernels.operations.triton.flat import CHUNK, add_up_programs, scratch_memory
from profkit.kernels.operations.triton.rows import column_sums

BLOCK, WARPS = 4096, 8
PART, ACROSS = 32, 128  # rows and columns that are loaded together on the way down the columns


@triton.jit
def _layer_norm(
    x, w, b, y, mean_out, rstd_out, H, EPS: tl.constexpr, BLOCK: tl.constexpr, KEEP: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    sums = tl.zeros((BLOCK,), tl.float32)
    for first in range(0, H, BLOCK):
        at = first + column
        sums += tl.load(x + row * H + at, mask=at < H, other=0.0).to(tl.float32)
    mean = tl.sum(sums, axis=0) / H
    squares = tl.zeros((BLOCK,), tl.float32)
    for first in range(0, H, BLOCK):
        at = first + column
        away = tl.load(x + row * H + at, mask=at < H, other=0.0).to(tl.float32) - mean
        squares += tl.where(at < H, away * away, 0.0)
    rstd = tl.rsqrt(tl.sum(squares, axis=0) / H + EPS)
    if KEEP:
        tl.store(mean_out + row, mean)
        tl.store(rstd_out + row, rstd)
    for first in range(0, H, BLOCK):
        at = first + column
        value = tl.load(x + row * H + at, mask=at < H, other=0.0).to(tl.float32)
        weight = tl.load(w + at, mask=at < H, other=0.0).to(tl.float32)
        bias = tl.load(b + at, mask=at < H, other=0.0).to(tl.float32)
        result = (value - mean) * rstd * weight + bias
        tl.store(y + row * H + at, result.to(y.dtype.element_ty), mask=at < H)


@triton.jit
def _layer_norm_backward(dy, x, w, mean_in, rstd_in, dx, H, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    mean, rstd = tl.load(mean_in + row), tl.load(rstd_in + row)
    alongs = tl.zeros((BLOCK,), tl.float32)
    levels = tl.zeros((BLOCK,), tl.float32)
    for first in range(0, H, BLOCK):
        at = first + column
        value = tl.load(x + row * H + at, mask=at < H, other=0.0).to(tl.float32)
        grad = tl.load(dy + row * H + at, mask=at < H, other=0.0).to(tl.float32)
        scaled = grad * tl.load(w + at, mask=at < H, other=0.0).to(tl.float32)
        alongs += scaled * ((value - mean) * rstd)
        levels += scaled
    along = tl.sum(alongs, axis=0) / H
    level = tl.sum(levels, axis=0) / H
    for first in range(0, H, BLOCK):
        at = first + column
        value = tl.load(x + row * H + at, mask=at < H, other=0.0).to(tl.float32)
        grad = tl.load(dy + row * H + at, mask=at < H, other=0.0).to(tl.float32)
        scaled = grad * tl.load(w + at, mask=at < H, other=0.0).to(tl.float32)
        result = (scaled - level - (value - mean) * rstd * along) * rstd
        tl.store(dx + row * H + at, result.to(dx.dtype.element_ty), mask=at < H)


@triton.jit
def _layer_norm_columns(
    dy, x, mean_in, rstd_in, partial, M, H, EACH, PART: tl.constexpr, ACROSS: tl.constexpr
):
    # The sums for weight and bias over EACH rows of ACROSS columns.
    column = tl.program_id(0) * ACROSS + tl.arange(0, ACROSS)
    dw = tl.zeros((PART, ACROSS), tl.float32)
    db = tl.zeros((PART, ACROSS), tl.float32)
    begin = tl.program_id(1).to(tl.int64) * EACH
    for first in range(0, EACH, PART):
        row = begin + first + tl.arange(0, PART)
        inside = (first + tl.arange(0, PART) < EACH) & (row < M)
        there = inside[:, None] & (column < H)[None, :]
        at = row[:, None] * H + column[None, :]
        value = tl.load(x + at, mask=there, other=0.0).to(tl.float32)
        grad = tl.load(dy + at, mask=there, other=0.0).to(tl.float32)
        mean = tl.load(mean_in + row, mask=inside, other=0.0)
        rstd = tl.load(rstd_in + row, mask=inside, other=0.0)
        dw += grad * ((value - mean[:, None]) * rstd[:, None])
        db += grad
    place = partial + tl.program_id(1).to(tl.int64) * 2 * H
    tl.store(place + column, tl.sum(dw, axis=0), mask=column < H)
    tl.store(place + H + column, tl.sum(db, axis=0), mask=column < H)


@triton.jit
def _row_exponentials(x, row, C, BLOCK: tl.constexpr):
    """The row's largest, and its sum of exp(x - largest)."""
    column = tl.arange(0, BLOCK)
    most = tl.full((BLOCK,), float("-inf"), tl.float32)
    for first in range(0, C, BLOCK):
        at = first + column
        value = tl.load(x + row * C + at, mask=at < C, other=float("-inf")).to(tl.float32)
        most = tl.maximum(most, value)
    top = tl.max(most, axis=0)
    sums = tl.zeros((BLOCK,), tl.float32)
    for first in range(0, C, BLOCK):
        at = first + column
        value = tl.load(x + row * C + at, mask=at < C, other=float("-inf")).to(tl.float32)
        sums += tl.exp2((value - top) * 1.4426950408889634)
    return top, tl.sum(sums, axis=0)


@triton.jit
def _cross_entropy(x, target, partial, done, out, M, C, SCALE, BLOCK: tl.constexpr, CHUNK: tl.constexpr):
    losses = tl.program_id(0).to(tl.float32) * 0.0
    steps = tl.cdiv(M, tl.num_programs(0))
    begin = tl.program_id(0).to(tl.int64) * steps
    for row in range(begin, tl.minimum(begin + steps, M)):
        top, total = _row_exponentials(x, row, C, BLOCK)
        wanted = tl.load(target + row)
        known = (wanted >= 0) & (wanted < C)
        chosen = tl.load(x + row * C + wanted, mask=known, other=float("nan")).to(tl.float32)
        losses += tl.log(total) + (top - chosen)
    add_up_programs(losses, partial, done, out, SCALE, CHUNK)


@triton.jit
def _cross_entropy_backward(x, target, dout, dx, C, SCALE, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    top, total = _row_exponentials(x, row, C, BLOCK)
    scale = tl.load(dout).to(tl.float32) * SCALE
    wanted = tl.load(target + row)
    for first in range(0, C, BLOCK):
        at = first + tl.arange(0, BLOCK)
        value = tl.load(x + row * C + at, mask=at < C, other=float("-inf")).to(tl.float32)
        share = tl.exp2((value - top) * 1.4426950408889634) / total
        result = (share - tl.where(at == wanted, 1.0, 0.0)) * scale
        tl.store(dx + row * C + at, result.to(dx.dtype.element_ty), mask=at < C)


def layer_norm(x: Any, w: Any, b: Any, eps: float, keep: tuple[Any, Any] | None = None) -> Any:
    """Layer norm over the last dimension. `keep`: where each row's mean and 1 / sigma are left, float32."""
    H = x.shape[-1]
    y = torch.empty_like(x)
    mean, rstd = keep if keep is not None else (y, y)
    _layer_norm[(x.numel() // H,)](x, w, b, y, mean, rstd, H, eps, BLOCK, keep is not None, num_warps=WARPS)
    return y


def layer_norm_backward(dy: Any, x: Any, w: Any, mean: Any, rstd: Any) -> tuple[Any, Any, Any]:
    """The gradients for x, w and b, of `dy` from above and what the forward call left."""
    H = x.shape[-1]
    M = x.numel() // H
    dx, dw, db = torch.empty_like(x), torch.empty_like(w), torch.empty_like(w)
    _layer_norm_backward[(M,)](dy, x, w, mean, rstd, dx, H, BLOCK, num_warps=WARPS)
    across = triton.cdiv(H, ACROSS)
    each = max(PART, triton.cdiv(M * across, scratch_memory(x.device)[0]))
    parts = triton.cdiv(M, each)
    partial = torch.empty((parts, 2, H), dtype=torch.float32, device=x.device)
    _layer_norm_columns[(across, parts)](dy, x, mean, rstd, partial, M, H, each, PART, ACROSS, num_warps=4)
    column_sums(partial, dw, db, parts, H)
    return dx, dw, db


def cross_entropy(x: Any, target: Any) -> Any:
    """The mean loss over rows of logits, one number of x's dtype; the same at every call."""
    C = x.shape[-1]
    M = x.numel() // C
    most, partial, done = scratch_memory(x.device)
    out = torch.empty((), dtype=x.dtype, device=x.device)
    grid = (min(M, most // 2),)
    _cross_entropy[grid](x, target, partial, done, out, M, C, 1.0 / M, BLOCK, CHUNK, num_warps=WARPS)
    return out


def cross_entropy_backward(dout: Any, x: Any, target: Any) -> Any:
    """The gradient for the logits, of one number `dout` from above."""
    C = x.shape[-1]
    M = x.numel() // C
    dx = torch.empty_like(x)
    _cross_entropy_backward[(M,)](x, target, dout, dx, C, 1.0 / M, BLOCK, num_warps=WARPS)
    return dx
