"""Layer norm and cross entropy in Triton: a program takes a tile of whole rows, so that short rows fill it, too."""

# a kernel's parameters have Triton's types
# mypy: disable-error-code="no-untyped-def,untyped-decorator,no-untyped-call"
# sizes are in capitals, as Triton's own tutorials write them

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

from profkit.operations.triton.flat import PROGRAMS, finish, scratch
from profkit.operations.triton.tuning import size_class, tuned

TILE = 4096  # elements of a program's tile: 16 of each of its 256 threads
# Programs that walk over tiles, EACH of them per multiprocessor: as many as it runs at a time. STAGES: how many tiles
# are loaded ahead.
WALKS = [
    ({"TILE": 4096, "STAGES": 1, "EACH": 4}, 8),
    ({"TILE": 4096, "STAGES": 1, "EACH": 8}, 4),
    ({"TILE": 2048, "STAGES": 3, "EACH": 8}, 4),
]
BACK_WALKS = [
    ({"TILE": 2048, "STAGES": 1, "EACH": 4}, 4),
    ({"TILE": 2048, "STAGES": 3, "EACH": 4}, 4),
    ({"TILE": 2048, "STAGES": 3, "EACH": 3}, 8),
]


def tile(rows: int, width: int, elements: int = TILE) -> tuple[int, int, int]:
    """Rows and columns of a tile that holds whole rows, and its warps."""
    block = triton.next_power_of_2(width)
    height = max(1, min(elements // block, triton.next_power_of_2(rows)))
    warps = min(max(height * block // (16 * 32), 1), 16)
    return height, block, warps


def walking(chosen: Any, rows: int, block: int, most: int) -> tuple[int]:
    """How many programs walk: one for each tile, at most EACH per multiprocessor. `most` is for PROGRAMS of them."""
    return (
        min(triton.cdiv(rows, max(1, chosen["TILE"] // block)), max(1, most * chosen["EACH"] // PROGRAMS)),
    )


@triton.jit
def _layer_norm(
    x,
    w,
    b,
    y,
    mean_out,
    rstd_out,
    M,
    H,
    EPS: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
    KEEP: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, BLOCK)
    there = (row < M)[:, None] & (column < H)[None, :]
    at = row[:, None] * H + column[None, :]
    value = tl.load(x + at, mask=there, other=0.0).to(tl.float32)
    weight = tl.load(w + column, mask=column < H, other=0.0).to(tl.float32)
    bias = tl.load(b + column, mask=column < H, other=0.0).to(tl.float32)
    mean = tl.sum(value, axis=1) / H
    centred = tl.where(there, value - mean[:, None], 0.0)
    rstd = tl.rsqrt(tl.sum(centred * centred, axis=1) / H + EPS)
    if KEEP:
        tl.store(mean_out + row, mean, mask=row < M)
        tl.store(rstd_out + row, rstd, mask=row < M)
    result = centred * rstd[:, None] * weight[None, :] + bias[None, :]
    tl.store(y + at, result.to(y.dtype.element_ty), mask=there)


@tuned(BACK_WALKS, ["SIZE", "BLOCK"])
@triton.jit(do_not_specialize=["SIZE"])
def _layer_norm_backward(
    dy,
    x,
    w,
    mean_in,
    rstd_in,
    dx,
    partial,
    M,
    H,
    SIZE,
    BLOCK: tl.constexpr,
    TILE: tl.constexpr,
    STAGES: tl.constexpr,
    EACH: tl.constexpr,
):
    # Each program walks over tiles and keeps the sums for weight and bias in registers.
    ROWS: tl.constexpr = TILE // BLOCK if TILE > BLOCK else 1
    steps = tl.cdiv(M, ROWS * tl.num_programs(0))
    column = tl.arange(0, BLOCK)
    weight = tl.load(w + column, mask=column < H, other=0.0).to(tl.float32)
    dw = tl.zeros((ROWS, BLOCK), tl.float32)
    db = tl.zeros((ROWS, BLOCK), tl.float32)
    first = tl.program_id(0).to(tl.int64) * steps * ROWS
    for step in tl.range(steps, num_stages=STAGES):
        row = first + step * ROWS + tl.arange(0, ROWS)
        there = (row < M)[:, None] & (column < H)[None, :]
        at = row[:, None] * H + column[None, :]
        value = tl.load(x + at, mask=there, other=0.0).to(tl.float32)
        grad = tl.load(dy + at, mask=there, other=0.0).to(tl.float32)
        mean = tl.load(mean_in + row, mask=row < M, other=0.0)
        rstd = tl.load(rstd_in + row, mask=row < M, other=0.0)
        # Where there is no row or no column the gradient is 0, and adds nothing anywhere.
        normal = (value - mean[:, None]) * rstd[:, None]
        dw += grad * normal
        db += grad
        scaled = grad * weight[None, :]
        along = tl.sum(scaled * normal, axis=1) / H
        level = tl.sum(scaled, axis=1) / H
        result = (scaled - level[:, None] - normal * along[:, None]) * rstd[:, None]
        tl.store(dx + at, result.to(dx.dtype.element_ty), mask=there)
    there_column = column < H
    place = partial + tl.program_id(0).to(tl.int64) * 2 * H
    tl.store(place + column, tl.sum(dw, axis=0), mask=there_column)
    tl.store(place + H + column, tl.sum(db, axis=0), mask=there_column)


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
    """Each row of x normalized, times w, plus b; mean and 1/sigma of the rows into `keep`."""
    H = x.shape[-1]
    M = x.numel() // H
    y = torch.empty_like(x)
    rows, block, warps = tile(M, H)
    mean, rstd = keep if keep is not None else (y, y)
    _layer_norm[(triton.cdiv(M, rows),)](
        x, w, b, y, mean, rstd, M, H, eps, rows, block, keep is not None, num_warps=warps
    )
    return y


def layer_norm_backward(dy: Any, x: Any, w: Any, mean: Any, rstd: Any) -> tuple[Any, Any, Any]:
    """The gradients for x, w and b, of `dy` from above and what the forward call left."""
    H = x.shape[-1]
    M = x.numel() // H
    dx, dw, db = torch.empty_like(x), torch.empty_like(w), torch.empty_like(w)
    block, most = triton.next_power_of_2(H), scratch(x.device)[0]
    partial = torch.empty(
        (max(1, most // 2), 2, H), dtype=torch.float32, device=x.device
    )  # EACH is 4 at most
    used: list[int] = []

    def grid(chosen: Any) -> tuple[int]:
        used[:] = walking(chosen, M, block, most)
        return (used[0],)

    _layer_norm_backward[grid](dy, x, w, mean, rstd, dx, partial, M, H, size_class(M), block)
    column_sums(partial, dw, db, used[0], H)
    return dx, dw, db


def column_sums(partial: Any, dw: Any, db: Any, count: int, width: int) -> None:
    """What `count` programs left as their sums for weight and bias, added up."""
    _column_sums[(triton.cdiv(2 * width, 32),)](partial, dw, db, count, width, 64, 32, num_warps=4)


@tuned(WALKS, ["SIZE", "BLOCK"])
@triton.jit(do_not_specialize=["SIZE"])
def _cross_entropy(
    x,
    target,
    partial,
    done,
    out,
    M,
    C,
    SCALE,
    SIZE,
    BLOCK: tl.constexpr,
    WIDE: tl.constexpr,
    TILE: tl.constexpr,
    STAGES: tl.constexpr,
    EACH: tl.constexpr,
):
    ROWS: tl.constexpr = TILE // BLOCK if TILE > BLOCK else 1
    steps = tl.cdiv(M, ROWS * tl.num_programs(0))
    column = tl.arange(0, BLOCK)
    losses = tl.zeros((ROWS,), tl.float32)
    first = tl.program_id(0).to(tl.int64) * steps * ROWS
    for step in tl.range(steps, num_stages=STAGES):
        row = first + step * ROWS + tl.arange(0, ROWS)
        inside = row < M
        there = inside[:, None] & (column < C)[None, :]
        value = tl.load(x + row[:, None] * C + column[None, :], mask=there, other=float("-inf")).to(
            tl.float32
        )
        wanted = tl.load(target + row, mask=inside, other=0)
        # The target's value is loaded once more: to look for it among all of the row's costs as much as their sum.
        known = inside & (wanted >= 0) & (wanted < C)
        chosen = tl.load(x + row * C + wanted, mask=known, other=float("nan")).to(tl.float32)
        # A row past the end has nothing but -inf in it: its maximum is made finite, and its loss is left out.
        top = tl.where(inside, tl.max(value, axis=1), 0.0)
        total = tl.where(inside, tl.sum(tl.exp2((value - top[:, None]) * 1.4426950408889634), axis=1), 1.0)
        losses += tl.where(inside, tl.log(total) + (top - chosen), 0.0)
    finish(tl.sum(losses, axis=0), partial, done, out, SCALE, WIDE)


@triton.jit
def _cross_entropy_backward(x, target, dout, dx, M, C, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, BLOCK)
    there = (row < M)[:, None] & (column < C)[None, :]
    at = row[:, None] * C + column[None, :]
    value = tl.load(x + at, mask=there, other=float("-inf")).to(tl.float32)
    wanted = tl.load(target + row, mask=row < M, other=0)
    scale = tl.load(dout).to(tl.float32) / M
    top = tl.where(row < M, tl.max(value, axis=1), 0.0)
    raised = tl.exp(value - top[:, None])
    share = raised / tl.where(row < M, tl.sum(raised, axis=1), 1.0)[:, None]
    result = (share - tl.where(column[None, :] == wanted[:, None], 1.0, 0.0)) * scale
    tl.store(dx + at, result.to(dx.dtype.element_ty), mask=there)


def cross_entropy(x: Any, target: Any) -> Any:
    """The mean loss over rows of logits, one number of x's dtype; the same at every call."""
    C = x.shape[-1]
    M = x.numel() // C
    block = triton.next_power_of_2(C)
    most, partial, done = scratch(x.device)
    out = torch.empty((), dtype=x.dtype, device=x.device)

    def grid(chosen: Any) -> tuple[int, ...]:
        return walking(chosen, M, block, most)

    _cross_entropy[grid](x, target, partial, done, out, M, C, 1.0 / M, size_class(M), block, partial.numel())
    return out


def cross_entropy_backward(dout: Any, x: Any, target: Any) -> Any:
    """dx; `dout` is one number on the device."""
    C = x.shape[-1]
    M = x.numel() // C
    dx = torch.empty_like(x)
    rows, block, warps = tile(M, C)
    _cross_entropy_backward[(triton.cdiv(M, rows),)](x, target, dout, dx, M, C, rows, block, num_warps=warps)
    return dx
