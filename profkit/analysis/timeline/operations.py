"""Operations of a framework, and lines of a program, out of the names of NVTX ranges."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from profkit.core.types import GpuTrace, KernelTime

_OPERATION = re.compile(r"[a-z_]\w*::\w")
_SIZES = ", sizes = "
_SHAPE = re.compile(r"\[(\d[\d, ]*)\]")
_PRODUCT = re.compile(r"::_?(?:scaled_)?(?:(add|badd)?b?(?:mm|mv)|matmul)(?:_out|_)?$|::(add)bmm_?$")
_BACKWARD = re.compile(r"\w+Backward\w*")  # `MmBackward0`, and what users call a class of theirs
# of ranges that name a line; `profkit/runtime/passes/host/operation_lines.py` writes them
LINE_PREFIX = "profkit-at "
SourceLine: TypeAlias = tuple[str, int, "str | None"]  # file, line, function
MOST_SHAPES = 6  # of one operation that takes a list of tensors


def operation_name(name: str) -> str:
    """`aten::mm` of PyTorch's `aten::mm, sizes = [[4096, 768], [768, 50257]]`; of any other range its name."""
    return name.partition(_SIZES)[0]


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


def source_line(name: str) -> SourceLine | None:
    """`train.py`, 12, `step` of `profkit-at train.py:12:step`; None of any other range."""
    if not name.startswith(LINE_PREFIX):
        return None
    place, _, function = name.removeprefix(LINE_PREFIX).rpartition(":")
    file, _, line = place.rpartition(":")
    return (file, int(line), function or None) if file and line.isdecimal() else None


class RangeMeaning(NamedTuple):
    """What a range says of launches in it. `key`: its name, of an operation without shapes, and its domain."""

    key: tuple[str, str | None]
    operation: str | None = None  # with shapes
    backward: bool = False  # it is a node of a backward pass
    line: SourceLine | None = None


@lru_cache(maxsize=1 << 14)
def range_meaning(name: str, domain: str | None) -> RangeMeaning:
    """What a range of this name is."""
    line = source_line(name) if domain is None else None
    if line is not None:
        return RangeMeaning((name, None), line=line)
    operation = operation_text(name, domain)
    if operation is None:
        return RangeMeaning((name, domain))
    plain = operation_name(name)
    return RangeMeaning((plain, None), operation, _BACKWARD.fullmatch(plain) is not None)


def with_operations(trace: GpuTrace | None, launched: Sequence[KernelTime]) -> GpuTrace | None:
    """The trace with what `launched` says of the same configurations: operation, forward operation and line.

    `launched` is of another run of the same program: of its launches only shares count.
    """
    known = {
        time.kernel.scope: time for time in reversed(launched) if (time.operation or time.file) is not None
    }
    if trace is None or not known:
        return trace
    return replace(
        trace,
        kernels=tuple(_with_operation(time, known.get(time.kernel.scope)) for time in trace.kernels),
    )


def _with_operation(time: KernelTime, launched: KernelTime | None) -> KernelTime:
    if launched is None or time.operation is not None:
        return time
    share = launched.operation_launches / launched.launches if launched.launches else 0.0
    return replace(
        time,
        operation=launched.operation,
        operation_launches=round(share * time.launches),
        operations=launched.operations,
        backward_of=launched.backward_of,
        file=launched.file,
        line=launched.line,
        function=launched.function,
        flops=launched.flops,
    )
