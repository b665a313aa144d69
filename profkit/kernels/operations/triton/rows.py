"""Layer norm and cross entropy in Triton: a program takes a tile of whole rows.

So short rows fill it, too. A tile is laid out so that no two warps share a row: their exchange would go
through shared memory, with barriers, and cost cross entropy in 16 bits half of its speed. Only rows that one
warp cannot hold are shared.
"""

# a kernel's parameters have Triton's types
# mypy: disable-error-code="no-untyped-def,untyped-decorator,no-untyped-call"
# sizes are in capitals, as Triton's own tutorials write them; a row has UNITS * STEP elements, so that the compiler
# knows by how much the rows' addresses can be divided; rows are counted in 32 bits, which take fewer registers

from __future__ import annotations

from math import gcd
from typing import Any

import torch
import triton
import triton.language as tl

from profkit.kernels.operations.triton.flat import CHUNK, PROGRAMS, add_up_programs, scratch_memory

WARP_LOAD = 512  # bytes that a warp loads at a time: 16 for each thread
NARROW, NARROW_WARPS = 4096, 4  # bytes of a tile of rows no longer than that: 32 for each of 4 warps' threads
# Bytes of a tile of longer rows, which one warp holds. Layer norm's is larger: each tile needs weight and bias, and the
# device starts no more than 1.6 programs in a nanosecond (H200, 128 x 2048 x 512 in float16: 96 % of a copy's
# bandwidth, with half of it 89 %). In its backward pass a thread keeps the sums for weight and bias besides.
LAYER_NORM, LAYER_NORM_BACK, CROSS_ENTROPY = 4096, 1024, 2048
HELD = 1024  # elements of a row that a warp holds
# Warps of a multiprocessor, where programs walk over tiles. All of them should run at a time: one program too many
# begins when the others are done. So where 32 walk each thread gets its share of the registers and no more.
WALKERS, WALKERS_BACK = 32, 16
REGISTERS = 2048  # of a multiprocessor, for each thread of a warp
LIGHT = 64  # bytes of a tile for each thread: with more of them half as many warps walk


def tile_shape(x: Any, elements: int) -> tuple[int, int, int]:
    """Return rows and columns of a tile of whole rows, and its warps. `elements`: bytes of a tile of long rows."""
    block = int(triton.next_power_of_2(x.shape[-1]))
    row = block * int(x.element_size())
    if row <= WARP_LOAD:
        return NARROW // row, block, NARROW_WARPS
    return max(1, elements // row), block, min(max(1, block // HELD), 16)


def program_count(rows: int, height: int, max_programs: int, walkers: int, warps: int) -> int:
    """Return how many programs run: one for each tile, at most `walkers` warps per multiprocessor.

    `max_programs` is that of `scratch_memory`.
    """
    return min(-(-rows // height), max(1, max_programs // PROGRAMS * max(1, walkers // warps)))


def register_limit(walkers: int) -> dict[str, int]:
    """Return the option that gives each thread its share of the registers."""
    return {"maxnreg": REGISTERS // walkers} if torch.version.cuda else {}


def units_and_step(width: int) -> tuple[int, int]:
    """Return UNITS and STEP of rows of this width."""
    step = gcd(width, 16)
    return width // step, step


@triton.jit
def _layer_norm(
    x,
    w,
    b,
    y,
    mean_out,
    rstd_out,
    M,
    UNITS,
    STEP: tl.constexpr,
    EPS: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
    KEEP: tl.constexpr,
):
    H = UNITS * STEP
    first = tl.program_id(0) * ROWS
    here = tl.arange(0, ROWS)
    column = tl.arange(0, BLOCK)[None, :]
    inside = tl.arange(0, ROWS) < M - first
    there = inside[:, None] & (column < H)
    at = here[:, None] * H + column
    value = tl.load(x + first.to(tl.int64) * H + at, mask=there, other=0.0).to(tl.float32)
    weight = tl.load(w + column, mask=column < H, other=0.0)
    bias = tl.load(b + column, mask=column < H, other=0.0)
    mean = tl.sum(value, axis=1) / H
    centred = tl.where(there, value - mean[:, None], 0.0)
    rstd = tl.rsqrt(tl.sum(centred * centred, axis=1) / H + EPS)
    if KEEP:
        tl.store(mean_out + first + here, mean, mask=inside)
        tl.store(rstd_out + first + here, rstd, mask=inside)
    result = centred * rstd[:, None] * weight.to(tl.float32) + bias.to(tl.float32)
    tl.store(y + first.to(tl.int64) * H + at, result.to(y.dtype.element_ty), mask=there)


@triton.jit
def _gradients(dy, x, mean_in, rstd_in, first, at, M, H, column, ROWS: tl.constexpr):
    """Load what the backward pass of layer norm reads of a tile, with zeros past the end."""
    inside = tl.arange(0, ROWS) < M - first
    there = inside[:, None] & (column < H)
    row = first + tl.arange(0, ROWS)
    value = tl.load(x + first.to(tl.int64) * H + at, mask=there, other=0.0)
    grad = tl.load(dy + first.to(tl.int64) * H + at, mask=there, other=0.0)
    mean = tl.load(mean_in + row, mask=inside, other=0.0)
    rstd = tl.load(rstd_in + row, mask=inside, other=0.0)
    return value, grad, mean, rstd


@triton.jit
def _layer_norm_backward(
    dy,
    x,
    w,
    mean_in,
    rstd_in,
    dx,
    partial,
    M,
    UNITS,
    STEP: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
    AHEAD: tl.constexpr,
):
    # Each program walks over tiles and keeps the sums for weight and bias in registers. AHEAD: it asks for the next
    # tile before it works on this one, where registers are left for that.
    H = UNITS * STEP
    here = tl.arange(0, ROWS)
    column = tl.arange(0, BLOCK)[None, :]
    at = here[:, None] * H + column
    stride = tl.num_programs(0) * ROWS
    first = tl.program_id(0) * ROWS
    weight = tl.load(w + column, mask=column < H, other=0.0)
    dw = tl.zeros((ROWS, BLOCK), tl.float32)
    db = tl.zeros((ROWS, BLOCK), tl.float32)
    if AHEAD:
        value_next, grad_next, mean_next, rstd_next = _gradients(
            dy, x, mean_in, rstd_in, first, at, M, H, column, ROWS
        )
    for step in range(tl.cdiv(M - first, stride)):
        begin = first + step * stride
        if AHEAD:
            value, grad, mean, rstd = value_next, grad_next, mean_next, rstd_next
            value_next, grad_next, mean_next, rstd_next = _gradients(
                dy, x, mean_in, rstd_in, begin + stride, at, M, H, column, ROWS
            )
        else:
            value, grad, mean, rstd = _gradients(dy, x, mean_in, rstd_in, begin, at, M, H, column, ROWS)
        # Where there is no row or no column the gradient is 0, and adds nothing anywhere.
        grad = grad.to(tl.float32)
        normal = (value.to(tl.float32) - mean[:, None]) * rstd[:, None]
        dw += grad * normal
        db += grad
        scaled = grad * weight.to(tl.float32)
        along = tl.sum(scaled * normal, axis=1) / H
        level = tl.sum(scaled, axis=1) / H
        result = (scaled - level[:, None] - normal * along[:, None]) * rstd[:, None]
        there = (here < M - begin)[:, None] & (column < H)
        tl.store(dx + begin.to(tl.int64) * H + at, result.to(dx.dtype.element_ty), mask=there)
    flat = tl.arange(0, BLOCK)
    place = partial + tl.program_id(0).to(tl.int64) * 2 * H
    tl.store(place + flat, tl.sum(dw, axis=0), mask=flat < H)
    tl.store(place + H + flat, tl.sum(db, axis=0), mask=flat < H)


@triton.jit
def _column_sums(partial, dw, db, P, H, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    column = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((ROWS, BLOCK), tl.float32)
    for first in range(0, P, ROWS):
        row = first + tl.arange(0, ROWS)
        there = (row < P)[:, None] & (column < 2 * H)[None, :]
        total += tl.load(partial + row.to(tl.int64)[:, None] * 2 * H + column[None, :], mask=there, other=0.0)
    total = tl.sum(total, axis=0)
    tl.store(dw + column, total.to(dw.dtype.element_ty), mask=column < H)
    tl.store(db + column - H, total.to(db.dtype.element_ty), mask=(column >= H) & (column < 2 * H))


def layer_norm(x: Any, w: Any, b: Any, eps: float, keep: tuple[Any, Any] | None = None) -> Any:
    """Return each row of x normalized, times w, plus b; mean and 1/sigma of the rows go into `keep`."""
    H = x.shape[-1]
    M = x.numel() // H
    y = torch.empty_like(x)
    rows, block, warps = tile_shape(x, LAYER_NORM)
    mean, rstd = keep if keep is not None else (y, y)
    _layer_norm[(triton.cdiv(M, rows),)](
        x, w, b, y, mean, rstd, M, *units_and_step(H), eps, rows, block, keep is not None, num_warps=warps
    )
    return y


def layer_norm_backward(dy: Any, x: Any, w: Any, mean: Any, rstd: Any) -> tuple[Any, Any, Any]:
    """Return the gradients for x, w and b, by `dy` from above and the statistics of the forward call."""
    H = x.shape[-1]
    M = x.numel() // H
    dx, dw, db = torch.empty_like(x), torch.empty_like(w), torch.empty_like(w)
    rows, block, warps = tile_shape(x, LAYER_NORM_BACK)
    count = program_count(M, rows, scratch_memory(x.device)[0], WALKERS_BACK, warps)
    partial = torch.empty((count, 2, H), dtype=torch.float32, device=x.device)
    ahead = block * x.element_size() <= WARP_LOAD  # longer rows take too many registers
    _layer_norm_backward[(count,)](
        dy, x, w, mean, rstd, dx, partial, M, *units_and_step(H), rows, block, ahead, num_warps=warps
    )
    # 8 columns are the 32 bytes that memory gives at a time: with more of them most of the device is idle.
    _column_sums[(triton.cdiv(2 * H, 8),)](partial, dw, db, count, H, 1024, 8, num_warps=8)
    return dx, dw, db


@triton.jit
def _logits(x, target, first, at, M, C, column, ROWS: tl.constexpr):
    """Load logits and targets of a tile, with minus infinity past the end."""
    inside = tl.arange(0, ROWS) < M - first
    there = inside[:, None] & (column < C)
    value = tl.load(x + first.to(tl.int64) * C + at, mask=there, other=float("-inf"))
    return value, tl.load(target + first + tl.arange(0, ROWS), mask=inside, other=0)


@triton.jit
def _cross_entropy(
    x,
    target,
    partial,
    done,
    out,
    M,
    UNITS,
    SCALE,
    STEP: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
    CHUNK: tl.constexpr,
):
    # Each program walks over tiles, and asks for the next before it works on this one.
    C = UNITS * STEP
    here = tl.arange(0, ROWS)
    column = tl.arange(0, BLOCK)[None, :]
    at = here[:, None] * C + column
    stride = tl.num_programs(0) * ROWS
    first = tl.program_id(0) * ROWS
    losses = tl.zeros((ROWS,), tl.float32)
    value_next, wanted_next = _logits(x, target, first, at, M, C, column, ROWS)
    for step in range(tl.cdiv(M - first, stride)):
        begin = first + step * stride
        value, wanted = value_next, wanted_next
        value_next, wanted_next = _logits(x, target, begin + stride, at, M, C, column, ROWS)
        inside = here < M - begin
        # The target's value is loaded once more: to look for it among all of the row's costs as much as their sum.
        known = inside & (wanted >= 0) & (wanted < C)
        chosen = tl.load(x + begin.to(tl.int64) * C + here * C + wanted, mask=known, other=float("nan")).to(
            tl.float32
        )
        value = value.to(tl.float32)
        # A row past the end has nothing but -inf in it: its maximum is made finite, and its loss is left out.
        top = tl.where(inside, tl.max(value, axis=1), 0.0)
        total = tl.where(inside, tl.sum(tl.exp2((value - top[:, None]) * 1.4426950408889634), axis=1), 1.0)
        losses += tl.where(inside, tl.log(total) + (top - chosen), 0.0)
    add_up_programs(tl.sum(losses, axis=0), partial, done, out, SCALE, CHUNK)


@triton.jit
def _cross_entropy_backward(
    x, target, dout, dx, M, UNITS, SCALE, STEP: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr
):
    C = UNITS * STEP
    first = tl.program_id(0) * ROWS
    here = tl.arange(0, ROWS)
    column = tl.arange(0, BLOCK)[None, :]
    at = here[:, None] * C + column
    value, wanted = _logits(x, target, first, at, M, C, column, ROWS)
    value = value.to(tl.float32)
    scale = tl.load(dout).to(tl.float32) * SCALE
    inside = tl.arange(0, ROWS) < M - first
    top = tl.where(inside, tl.max(value, axis=1), 0.0)
    raised = tl.exp2((value - top[:, None]) * 1.4426950408889634)
    share = scale / tl.where(inside, tl.sum(raised, axis=1), 1.0)
    place = tl.where((wanted >= 0) & (wanted < C), wanted, -1).to(tl.int32)
    result = raised * share[:, None] - tl.where(column == place[:, None], scale, 0.0)
    there = inside[:, None] & (column < C)
    tl.store(dx + first.to(tl.int64) * C + at, result.to(dx.dtype.element_ty), mask=there)


def cross_entropy(x: Any, target: Any) -> Any:
    """Return the mean loss over rows of logits, one number of x's dtype; the same at every call."""
    C = x.shape[-1]
    M = x.numel() // C
    rows, block, warps = tile_shape(x, CROSS_ENTROPY)
    max_programs, partial, done = scratch_memory(x.device)
    out = torch.empty((), dtype=x.dtype, device=x.device)
    size, step = units_and_step(C)
    walkers = WALKERS if rows * block * x.element_size() <= LIGHT * 32 * warps else WALKERS // 2
    _cross_entropy[(program_count(M, rows, max_programs, walkers, warps),)](
        x, target, partial, done, out, M, size, 1.0 / M, step, rows, block, CHUNK,
        num_warps=warps, **register_limit(walkers),
    )  # fmt: skip
    return out


def cross_entropy_backward(dout: Any, x: Any, target: Any) -> Any:
    """Return dx, the gradient for x; `dout` is one number on the device."""
    C = x.shape[-1]
    M = x.numel() // C
    dx = torch.empty_like(x)
    rows, block, warps = tile_shape(x, CROSS_ENTROPY)
    size, step = units_and_step(C)
    _cross_entropy_backward[(triton.cdiv(M, rows),)](
        x, target, dout, dx, M, size, 1.0 / M, step, rows, block, num_warps=warps
    )
    return dx
