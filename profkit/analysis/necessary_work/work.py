"""What a formula says of a call, and what formulas have in common: sizes in memory, types of results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import TypeAlias

from profkit.analysis.necessary_work.calls import WIDTHS, OperationCall, Tensor
from profkit.core.types import WorkUnit


@dataclass(frozen=True)
class NecessaryWork:
    """The least that one call needs. `bytes` is None where a type is not known; `type` is that of the operands."""

    flop: float
    bytes: float | None
    unit: WorkUnit
    type: str | None = None


Rule: TypeAlias = Callable[[OperationCall], "NecessaryWork | None"]


@dataclass(frozen=True)
class WorkFormula:
    """One row of the table: for which operations (plain names), what is counted, and where that is from.

    `places`: by name where in the schema the arguments are that are no tensors, and that decide.
    """

    title: str
    names: tuple[str, ...]
    flop: str
    bytes: str
    source: str
    rule: Rule
    places: Mapping[str, int] = field(default_factory=dict)


def moved_bytes(*tensors: Tensor | None) -> float | None:
    """Return the bytes of all of these; None where one has no known type."""
    sizes = [tensor.bytes for tensor in tensors if tensor is not None]
    return sum(size for size in sizes if size is not None) if None not in sizes else None


def added_bytes(*parts: float | None) -> float | None:
    """Return the sum; None where a part is not known."""
    return sum(part for part in parts if part is not None) if None not in parts else None


def index_bytes(tensor: Tensor | None) -> float:
    """Return the bytes of indices; of an unknown type those of 32 bits."""
    if tensor is None:
        return 0.0
    known = tensor.type if tensor.type in ("int32", "int64", "uint8", "bool") else "int32"
    return Tensor(tensor.shape, known, tensor.stored).bytes or 0.0


def tensor_like(tensor: Tensor, shape: Sequence[int] | None = None, type_: str | None = None) -> Tensor:
    """Return a new tensor, in memory as large as its shape."""
    return Tensor(tensor.shape if shape is None else tuple(shape), type_ or tensor.type)


def broadcast_shape(tensors: Sequence[Tensor]) -> tuple[int, ...] | None:
    """Return the shape that all of these are broadcast to; None where they do not fit."""
    shape = [1] * max((len(tensor.shape) for tensor in tensors), default=0)
    for tensor in tensors:
        for place, size in enumerate(reversed(tensor.shape), 1):
            if size != 1:
                if shape[-place] not in (1, size):
                    return None
                shape[-place] = size
    return tuple(shape)


_RANKS = ("uint8", "int8", "int16", "int32", "int64")
_FLOATS = ("fp8", "fp16", "bf16", "fp32", "fp64")


def kind_of(type_: str) -> int:
    """Return which of the kinds it is, of which the higher wins: truth values, whole numbers, floats, complex ones."""
    return 0 if type_ == "bool" else 1 if type_ in _RANKS else 2 if type_ in _FLOATS else 3


def _joined(first: str, second: str) -> str:
    """Return the type that holds both, of one kind (https://pytorch.org/docs/stable/tensor_attributes.html)."""
    if first == second:
        return first
    if kind_of(first) != kind_of(second):
        return max(first, second, key=kind_of)
    pair = {first, second}
    if pair == {"fp16", "bf16"}:
        return "fp32"
    if pair == {"uint8", "int8"}:
        return "int16"
    return max(first, second, key=lambda type_: (WIDTHS[type_], type_))


def promoted_type(tensors: Sequence[Tensor]) -> str | None:
    """Return the type of a result; None where one is not known that decides.

    A tensor without dimensions counts only where its kind is a higher one.
    """
    ordinary = _all_joined([tensor.type for tensor in tensors if tensor.shape])
    numbers = _all_joined([tensor.type for tensor in tensors if not tensor.shape])
    if ordinary is None or numbers is None:
        return ordinary if any(tensor.shape for tensor in tensors) else numbers
    if kind_of(numbers) <= kind_of(ordinary):
        return ordinary
    return "fp32" if numbers == "fp64" else numbers  # one of Python's is written as a double


def _all_joined(types: Sequence[str | None]) -> str | None:
    known = [type_ for type_ in types if type_ is not None]
    return reduce(_joined, known) if known and len(known) == len(types) else None


def unit_of(type_: str | None) -> WorkUnit:
    """Return what a convolution of such numbers runs on at best."""
    return "fma" if type_ in ("fp64", "complex64", "complex128") else "tensor"


def words(text: str) -> tuple[str, ...]:
    """Return the words of a text."""
    return tuple(text.split())


def with_in_place(names: Iterable[str]) -> tuple[str, ...]:
    """Return the names, with the forms that write into their first argument."""
    return tuple(form for name in names for form in (name, f"{name}_"))


DEFINITION = "the definition"
PALM = "2 a multiply-add: PaLM (Chowdhery et al. 2022), appendix B"
FLASH = "FlashAttention-2 (Dao 2023), section 4.1: half of it where causal"
DIRECT = "the definition of the direct form (cuDNN, Chetlur et al. 2014, section 2); Winograd's needs fewer"
TRAFFIC = "compulsory traffic: Roofline (Williams et al. 2009)"
ONCE_EACH = "inputs + result"
