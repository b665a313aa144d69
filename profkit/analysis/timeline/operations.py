"""Operations of a framework out of the names of NVTX ranges, as PyTorch writes them with the shapes of their inputs."""

from __future__ import annotations

import re
from functools import lru_cache

_OPERATION = re.compile(r"[a-z_]\w*::\w")
_SIZES = ", sizes = "
_SHAPE = re.compile(r"\[(\d[\d, ]*)\]")
_PRODUCT = re.compile(r"::_?(?:scaled_)?(?:(add|badd)?b?(?:mm|mv)|matmul)(?:_out|_)?$|::(add)bmm_?$")
MOST_SHAPES = 6  # of one operation that takes a list of tensors


def operation_name(name: str) -> str:
    """`aten::mm` of `aten::mm, sizes = [[4096, 768], [768, 50257]]`; of any other range its name."""
    return name.partition(_SIZES)[0]


@lru_cache(maxsize=1 << 14)
def operation_text(name: str, domain: str | None) -> str | None:
    """`aten::mm [4096,768] x [768,50257]`: the operation that a range of this name is; None where it is none.

    Scalars have no shape and are left out.
    """
    operation, marked, sizes = name.partition(_SIZES)
    if domain is not None or not (marked or _OPERATION.match(name)):
        return None
    shapes = [f"[{shape.replace(' ', '')}]" for shape in _SHAPE.findall(sizes)]
    if len(shapes) > MOST_SHAPES:
        shapes = [*shapes[:MOST_SHAPES], "..."]
    product = _PRODUCT.search(operation)
    if product is None or len(shapes) < 2:
        return " ".join((operation, ", ".join(shapes))).rstrip()
    if len(shapes) == 3 and (product[1] or product[2]):
        return f"{operation} {shapes[0]} + {shapes[1]} x {shapes[2]}"
    return f"{operation} {' x '.join(shapes[:2])}"
