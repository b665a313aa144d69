"""What the name of a range says: an operation and its shapes, a line of Python, a region.

PyTorch writes each operation as an NVTX range with its sizes; profkit's own ranges around calls of torch name the line.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple, TypeAlias

_OPERATION = re.compile(r"[a-z_]\w*::\w")
_SIZES = ", sizes = "
_SHAPE = re.compile(r"\[(\d{1,12}(?:, ?\d{1,12}){0,9})\]")  # any program may write a range
_PRODUCT = re.compile(r"::_?(?:scaled_)?(?:(add|badd)?b?(?:mm|mv)|matmul)(?:_out|_)?$|::(add)bmm_?$")
_BACKWARD = re.compile(r"\w+Backward\w*")  # `MmBackward0`, and what users call a class of theirs
# of ranges that name a line; `profkit/runtime/passes/host/operation_lines.py` writes them
LINE_PREFIX = "profkit-at "
_BELOW = "\t"
SourceLine: TypeAlias = tuple[str, int, "str | None"]  # file, line, function
MAX_SHAPES = 6  # of one operation that takes a list of tensors
OWN = "profkit"  # the NVTX domain of `profkit.region`
OWN_PREFIX = "profkit:"  # and how its ranges are named where a tool knows no domains


def operation_name(name: str) -> str:
    """Return the name of an operation without its sizes; the name of any other range as it is.

    `aten::mm, sizes = [[4096, 768], [768, 50257]]` of PyTorch is `aten::mm`.
    """
    return name.partition(_SIZES)[0]


def plain_operation(operation: str) -> str:
    """Return an operation's text without its shapes.

    `aten::mm [4096,768] x [768,50257]` is `aten::mm`, and `mul, tanh [4096,2048]` is `mul, tanh`.
    """
    return operation.partition(" " if "::" in operation else " [")[0]


def operation_text(name: str, domain: str | None) -> str | None:
    """Return the operation with its shapes that a range stands for; None where the range is no operation.

    The text is like `aten::mm [4096,768] x [768,50257]`. Scalars have no shape and are left out.
    """
    operation, marked, sizes = name.partition(_SIZES)
    if domain is not None or not (marked or _OPERATION.match(name)):
        return None
    shapes = [f"[{shape.replace(' ', '')}]" for shape in _SHAPE.findall(sizes)]
    if len(shapes) > MAX_SHAPES:
        shapes = [*shapes[:MAX_SHAPES], "..."]
    product = _PRODUCT.search(operation)
    if product is None or len(shapes) < 2:
        return " ".join((operation, ", ".join(shapes))).rstrip()
    if len(shapes) == 3 and (product[1] or product[2]):
        return f"{operation} {shapes[0]} + {shapes[1]} x {shapes[2]}"
    return f"{operation} {' x '.join(shapes[:2])}"


def source_line(name: str) -> SourceLine | None:
    """Return file, line and function from the name of a range that profkit wrote; None for any other range.

    `profkit-at train.py:12:step` is `train.py`, 12, `step`.
    """
    return (
        _placed(name.partition(_BELOW)[0].removeprefix(LINE_PREFIX)) if name.startswith(LINE_PREFIX) else None
    )


def _line_below(name: str) -> tuple[SourceLine | None, str]:
    """Return the library's line that the program's line leads to, None without one, and the call's arguments.

    The arguments are those of the call of torch that do not follow from shapes.
    """
    below, _, given = name.partition(_BELOW)[2].partition(_BELOW)
    return _placed(below), given


def _placed(text: str) -> SourceLine | None:
    place, _, function = text.rpartition(":")
    file, _, line = place.rpartition(":")
    return (file, int(line), function or None) if file and line.isdecimal() and len(line) < 10 else None


class RangeMeaning(NamedTuple):
    """What a range says about launches in it.

    `key` is its name (of an operation without shapes) and its domain.
    """

    key: tuple[str, str | None]
    operation: str | None = None  # with shapes
    backward: bool = False  # it is a node of a backward pass
    line: SourceLine | None = None
    below: SourceLine | None = None
    given: str = ""


@lru_cache(maxsize=1 << 14)
def range_meaning(name: str, domain: str | None) -> RangeMeaning:
    """Return what a range of this name and domain says about launches in it."""
    line = source_line(name) if domain is None else None
    if line is not None:
        below, given = _line_below(name)
        return RangeMeaning((name, None), line=line, below=below, given=given)
    operation = operation_text(name, domain)
    if operation is None:
        return RangeMeaning((name, domain))
    plain = operation_name(name)
    return RangeMeaning((plain, None), operation, _BACKWARD.fullmatch(plain) is not None)


def is_region(name: str, domain: str | None) -> bool:
    """Return whether a range is a region that was marked with profkit."""
    return domain == OWN or name.startswith(OWN_PREFIX)


def region_name(name: str, domain: str | None) -> tuple[str, str | None]:
    """Return the name and domain of a range, the same for a region whether or not its tool knows domains."""
    if domain is None and name.startswith(OWN_PREFIX) and name != OWN_PREFIX:
        return name.removeprefix(OWN_PREFIX), OWN
    return name, domain
