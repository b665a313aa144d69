"""Products whose tiles the tensor memory accelerator moves: what Hopper and later need to keep their tensor cores fed.

A tile is fetched by one instruction of one thread, so no registers and no address arithmetic go into it, and edges are
filled with zeros by the hardware. On an H200 the gated MLP is slower than PyTorch by plain loads, and faster by these
(docs/measurements.md).
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

ALIGNMENT = 16  # bytes: of the arrays' begin and of their rows
HOPPER = (9, 0)


def usable(*arrays: Any) -> bool:
    """Whether these matrices can be moved so: 16-bit elements, aligned rows, on a device that has the unit."""
    if any(a.element_size() != 2 or a.data_ptr() % ALIGNMENT or a.shape[-1] * 2 % ALIGNMENT for a in arrays):
        return False
    return INTERPRETED or torch.cuda.get_device_capability(arrays[0].device) >= HOPPER


def matrix(array: Any) -> Any:
    """Return a descriptor of a contiguous array as a matrix of rows; the tuner fills in the shape of its tiles."""
    from triton.tools.tensor_descriptor import TensorDescriptor

    return TensorDescriptor.from_tensor(array.view(-1, array.shape[-1]), [1, ALIGNMENT // 2])


def config(m: int, n: int, k: int, group: int, warps: int, stages: int) -> Any:
    """Tiles of m x n of the result, k at a time, for the tuner to try."""
    blocks = {"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": k, "GROUP_M": group}
    return triton.Config(blocks, num_warps=warps, num_stages=stages)


def tiled(tiles: Callable[[dict[str, Any]], bool]) -> Any:
    """Return a decorator that lets `tiles` write the tile shapes into the descriptors before each launch.

    A hook of each configuration could do that, too; but a choice among configurations with hooks is not kept on the
    disk (TRITON_CACHE_AUTOTUNING), and every process would tune anew and might choose another one. The kernel gets the
    answer as its parameter TILED, which it does not read.
    """
    return triton.heuristics({"TILED": tiles})


def programs(device: Any) -> int:
    """One program for each multiprocessor: each walks over tiles, so that none waits for a wave to end."""
    return 4 if INTERPRETED else int(torch.cuda.get_device_properties(device).multi_processor_count)


@triton.jit
def tile_of(number, blocks_m, blocks_n, GROUP_M: tl.constexpr):
    """Row and column of a tile: down GROUP_M rows, then on a column, so that the weights stay in L2."""
    band = GROUP_M * blocks_n
    first = number // band * GROUP_M
    rows = min(blocks_m - first, GROUP_M)
    return first + number % band % rows, number % band // rows
