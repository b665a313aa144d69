"""The type of what NumPy returns, by the types of what it is given.

The rules are NumPy's rules of promotion. NumPy 2 changed what scalars mean in them: of these, only what is the same in
both versions is known here.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from profkit.analysis.necessary_work.calls import WIDTHS, Tensor
from profkit.analysis.necessary_work.work import kind_of

# Codes of the array interface, and names in programs, with our names of the types.
BUFFER_TYPES = {
    "b1": "bool", "u1": "uint8", "i1": "int8", "i2": "int16", "i4": "int32", "i8": "int64",
    "f2": "fp16", "f4": "fp32", "f8": "fp64",
}  # fmt: skip
NAMED_TYPES = {
    "numpy.float16": "fp16", "numpy.float32": "fp32", "numpy.float64": "fp64", "numpy.int8": "int8",
    "numpy.int16": "int16", "numpy.int32": "int32", "numpy.int64": "int64", "numpy.uint8": "uint8",
    "numpy.bool_": "bool", "float": "fp64", "bool": "bool",
}  # fmt: skip


class NotKnown(Exception):
    """The statement does something that does not follow from its text and its shapes."""


@dataclass(frozen=True)
class Number:
    """A number of Python's own, or a text or a type that a call is given: it has no shape."""

    type: str
    node: ast.AST


Value: TypeAlias = "Tensor | Number"


def float_type(type_: str | None) -> str | None:
    """Return the type of a quotient or an exponential.

    Raises NotKnown for small integers, which NumPy makes fp16 or fp32.
    """
    if type_ is None or kind_of(type_) >= 2:
        return type_
    if WIDTHS[type_] < 4:
        raise NotKnown
    return "fp64"


def promoted_type(values: Sequence[Value]) -> str | None:
    """Return the type of a result of NumPy (https://numpy.org/doc/stable/reference/arrays.promotion.html).

    Raises NotKnown where versions of NumPy differ, and for pairs that are not known here.
    """
    arrays = [value.type for value in values if isinstance(value, Tensor) and value.shape]
    scalars = [value.type for value in values if isinstance(value, Tensor) and not value.shape]
    type_ = (arrays or scalars)[0] if arrays or scalars else None
    if type_ is None:
        raise NotKnown
    for other in arrays[1:]:
        if other is None:
            raise NotKnown
        type_ = _joined_type(type_, other)
    for other in scalars if arrays else scalars[1:]:
        if other is None or _joined_type(type_, other) != type_:
            raise NotKnown
    for value in values:
        if isinstance(value, Number):
            kind = {"bool": 0, "int": 1, "float": 2}.get(value.type)
            if kind is None:
                raise NotKnown
            if kind > kind_of(type_):
                type_ = "fp64" if kind == 2 and type_ not in ("bool",) else "int64" if kind == 1 else "fp64"
    return type_


def _joined_type(first: str, second: str) -> str:
    """Return the type of an operation on arrays of two types."""
    if first == second:
        return first
    kinds = kind_of(first), kind_of(second)
    if max(kinds) > 2:
        raise NotKnown
    if kinds[0] == kinds[1]:
        if "uint8" in (first, second):
            other = second if first == "uint8" else first
            return "int16" if other == "int8" else other
        return max(first, second, key=WIDTHS.__getitem__)
    low, high = sorted((first, second), key=kind_of)
    if low == "bool" or kind_of(high) < 2:
        return high
    if high == "fp64" or WIDTHS[low] >= 4:
        return "fp64"
    if WIDTHS[low] == 1:
        return high
    return "fp32"
