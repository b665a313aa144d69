"""What to change in a kernel, in the words of what it was written in: CUDA C++ stands in the rules themselves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

Language = Literal["cuda", "triton", "numba", "inductor", "xla"]

_TRITON = {
    "wasted-sectors": "Let tl.arange run along the innermost dimension of the tensor: neighbouring elements of "
    "a block are neighbouring addresses; where both orders are needed, load a two-dimensional block and turn it with "
    "tl.trans.",
    "register-spills": "The block is too large for its warps: more of them (num_warps=8, 16 or 32), a smaller BLOCK "
    "with a loop over the rest, fewer stages (num_stages); @triton.autotune tries them.",
    "bank-conflicts": "Triton lays out shared memory by itself: try other num_warps, num_stages and BLOCK sizes, or "
    "load the block in the order of its memory.",
    "no-reuse": "Larger tiles (BLOCK_M, BLOCK_N), and programs that use the same data next to each other (groups of "
    "program ids).",
    "serial-atomics": "Reduce inside of the block first (tl.sum, tl.max), and use one atomic operation for its result.",
    "divergent-warps": "Let a block hold elements that all do the same: a smaller BLOCK, rare cases in another "
    "kernel.",
    "small-grid": "A smaller BLOCK, or a reduction that is split over several programs, gives more of them.",
    "last-wave": "Another BLOCK size, or a persistent kernel: one program for each multiprocessor, each with a "
    "loop.",
    "slow-fp64": "Use tl.float32 where its digits are enough.",
}
_NUMBA = {
    "wasted-sectors": "The first index of cuda.grid is the fast one: let it be the last index of the array "
    "(x, y = cuda.grid(2); out[y, x] = ...), or go through a tile in cuda.shared.array.",
    "register-spills": "Fewer values alive at a time, small or no cuda.local.array, or @cuda.jit(max_registers=...).",
    "bank-conflicts": "One column more in the tile: cuda.shared.array((32, 33), ...).",
    "serial-atomics": "Reduce in cuda.shared.array or with cuda.shfl_down_sync first, and add once for each block.",
    "slow-fp64": "Use numpy.float32 for arrays and constants: a Python float is float64.",
}
_WORDS: Mapping[Language, Mapping[str, str]] = {"triton": _TRITON, "numba": _NUMBA, "inductor": {}, "xla": {}}
_OTHERWISE: Mapping[Language, str] = {
    "triton": "Try other num_warps, num_stages and BLOCK sizes (@triton.autotune), and keep in registers what is used "
    "again.",
    "numba": "Try other block sizes, give each thread several elements, and keep what is used again in "
    "cuda.shared.array or in local variables.",
    "inductor": "torch.compile wrote this kernel: contiguous inputs, sizes that are multiples of 64, its own tuning "
    '(mode="max-autotune").',
    "xla": "XLA wrote this kernel: fewer passes over large arrays in the function, smaller types, sizes that are "
    "multiples of 64.",
}


def change_in(language: Language, rule: str, change: str) -> str:
    """The change of a rule for a kernel that was written in `language`."""
    if language == "cuda":
        return change
    return _WORDS[language].get(rule, _OTHERWISE[language])
