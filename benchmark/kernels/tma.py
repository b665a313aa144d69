"""Load tiles of products with the tensor memory accelerator, which Hopper and later need to keep tensor cores busy.

One instruction of one thread loads a tile, without registers or address arithmetic, and the hardware fills edges with
zeros. On an H200 the gated MLP is slower than PyTorch with plain loads, and faster with TMA (docs/measurements.md, The
account of a step).
"""

# a kernel's parameters have Triton's types
# mypy: disable-error-code="no-untyped-def,untyped-decorator"

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import triton
import triton.language as tl

from benchmark.kernels.launch import INTERPRETED

ALIGNMENT = 16  # bytes, of the arrays' addresses and of their rows
HOPPER = (9, 0)


def usable(*arrays: Any) -> bool:
    """Return whether TMA can move these matrices: 16-bit elements, aligned rows, a device that has the unit."""
    if any(a.element_size() != 2 or a.data_ptr() % ALIGNMENT or a.shape[-1] * 2 % ALIGNMENT for a in arrays):
        return False
    return INTERPRETED or torch.cuda.get_device_capability(arrays[0].device) >= HOPPER


def matrix(array: Any) -> Any:
    """Return a descriptor of a contiguous array as a matrix of rows; the tuner sets the shape of its tiles."""
    from triton.tools.tensor_descriptor import TensorDescriptor

    return TensorDescriptor.from_tensor(array.view(-1, array.shape[-1]), [1, ALIGNMENT // 2])


def config(m: int, n: int, k: int, group: int, warps: int, stages: int) -> Any:
    """Return a configuration for the tuner: tiles of m x n of the result, k at a time."""
    blocks = {"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": k, "GROUP_M": group}
    return triton.Config(blocks, num_warps=warps, num_stages=stages)


def tiled(tiles: Callable[[dict[str, Any]], bool]) -> Any:
    """Return a decorator that lets `tiles` write the tile shapes into the descriptors before each launch.

    A hook of each configuration could do that, too. But Triton does not cache a choice among configurations with hooks
    on disk (TRITON_CACHE_AUTOTUNING), so every process would tune anew and might choose another one. The kernel gets
    the result as its parameter TILED, which it does not read.
    """
    return triton.heuristics({"TILED": tiles})


def programs(device: Any) -> int:
    """Return the number of programs: one for each multiprocessor, which loops over tiles without waiting for a wave."""
    return 4 if INTERPRETED else int(torch.cuda.get_device_properties(device).multi_processor_count)


@triton.jit
def tile_of(number, blocks_m, blocks_n, GROUP_M: tl.constexpr):
    """Return row and column of a tile: down GROUP_M rows, then the next column, so that the weights stay in L2."""
    band = GROUP_M * blocks_n
    first = number // band * GROUP_M
    rows = min(blocks_m - first, GROUP_M)
    return first + number % band % rows, number % band // rows
