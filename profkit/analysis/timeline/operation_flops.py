"""Floating-point operations of matrix products and attention, from the shapes in the text of an operation."""

from __future__ import annotations

import re
from functools import lru_cache
from math import prod

_PRODUCT = re.compile(r"aten::_?(?:scaled_)?(?:add|badd)?b?(?:mm|addmm)(?:_out|_)? ")
_FACTORS = re.compile(r"\[([\d,]+)\] x \[([\d,]+)\]$")
_SHAPE = re.compile(r"\[([\d,]+)\]")
_ATTENTION = re.compile(
    r"aten::_(?:scaled_dot_product_)?(cudnn|flash|efficient)_attention(_forward|_backward)? "
)
# Products of queries, keys and channels, by two FLOP: two of them forward, five backward (FlashAttention-2).
_FORWARD, _BACKWARD = 2 * 2, 5 * 2


@lru_cache(maxsize=1 << 12)
def operation_flops(text: str) -> float | None:
    """FLOP of `aten::mm [4096,768] x [768,50257]`, a multiply-add as two; None of what is no product of known shapes.

    Attention counts whole, also where it is causal and half of it is left out. A convolution's output is not known.
    """
    if _PRODUCT.match(text):
        factors = _FACTORS.search(text)
        if factors is None:
            return None
        left, right = (_sizes(part) for part in factors.groups())
        return 2.0 * prod(left) * right[-1] if left[-1] == right[-2:][0] else None
    attention = _ATTENTION.match(text)
    if attention is None:
        return None
    shapes = [_sizes(part) for part in _SHAPE.findall(text)]
    backward = attention[2] == "_backward"
    query, key = (
        shapes[1:3] if backward and len(shapes) > 2 else (shapes[:2] if len(shapes) > 1 else ((), ()))
    )
    if len(query) != 4 or len(key) != 4:
        return None
    # batch, heads, length, channels; below the kernels of flash and efficient attention heads and length change places
    inner = "scaled_dot_product" not in attention[0] and attention[1] != "cudnn"
    length = key[1] if inner else key[2]
    return float((_BACKWARD if backward else _FORWARD) * prod(query) * length)


def _sizes(text: str) -> tuple[int, ...]:
    return tuple(int(size) for size in text.split(",") if size)
