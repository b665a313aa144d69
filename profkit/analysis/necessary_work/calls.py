"""The arguments of an operation as a profiler of PyTorch writes them, and what types of numbers take in memory."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod
from typing import Any, TypeAlias

# Bytes of one number, by the short name that reports use.
WIDTHS = {
    "bool": 1,
    "uint8": 1,
    "int8": 1,
    "int16": 2,
    "int32": 4,
    "int64": 8,
    "fp8": 1,
    "fp16": 2,
    "bf16": 2,
    "fp32": 4,
    "fp64": 8,
    "complex64": 8,
    "complex128": 16,
    # of kernels that copy, whatever it is
    "bits8": 1,
    "bits16": 2,
    "bits32": 4,
    "bits64": 8,
    "bits128": 16,
}
# As Kineto writes them in "Input type".
_WRITTEN = {
    "bool": "bool",
    "unsigned char": "uint8",
    "signed char": "int8",
    "char": "int8",
    "short": "int16",
    "short int": "int16",
    "int": "int32",
    "long": "int64",
    "long int": "int64",
    "long long int": "int64",
    "c10::Float8_e4m3fn": "fp8",
    "c10::Float8_e5m2": "fp8",
    "c10::Half": "fp16",
    "c10::BFloat16": "bf16",
    "float": "fp32",
    "double": "fp64",
    "c10::complex<float>": "complex64",
    "c10::complex<double>": "complex128",
}
# c10::ScalarType by number: how an argument `dtype` is written.
NUMBERED = {
    "0": "uint8",
    "1": "int8",
    "2": "int16",
    "3": "int32",
    "4": "int64",
    "5": "fp16",
    "6": "fp32",
    "7": "fp64",
    "9": "complex64",
    "10": "complex128",
    "11": "bool",
    "15": "bf16",
    "23": "fp8",
    "24": "fp8",
}
MAX_DIMENSIONS, MAX_TENSORS = 16, 4096  # a trace is a file of unknown origin
LARGEST = 1 << 45  # elements, and of one dimension


@dataclass(frozen=True)
class Tensor:
    """A tensor that goes into an operation.

    `stored`: how many elements it has in memory, where that is fewer than its shape says: an expanded one repeats them.
    """

    shape: tuple[int, ...]
    type: str | None = None  # a key of WIDTHS; None: not recorded
    stored: int | None = None

    @property
    def elements(self) -> int:
        """Return how many numbers the shape has."""
        return prod(self.shape)

    @property
    def bytes(self) -> float | None:
        """Return what it takes in memory; None where its type is not known."""
        count = self.elements if self.stored is None else min(self.stored, self.elements)
        return float(count * WIDTHS[self.type]) if self.type is not None else None


# A tensor, a list of tensors, the text of another value ("" if it is not known), or nothing.
Argument: TypeAlias = "Tensor | tuple[Tensor, ...] | str | None"


@dataclass(frozen=True)
class OperationCall:
    """One call: the operation's name without its namespace, and the arguments in the order of its schema.

    `has_values`: the values of arguments that are no tensors are known, not the shapes of tensors alone.
    """

    name: str
    arguments: tuple[Argument, ...]
    has_values: bool = True

    def tensor(self, place: int) -> Tensor | None:
        """Return the tensor at a place of the schema; None where another thing or nothing is there."""
        argument = self.arguments[place] if place < len(self.arguments) else None
        return argument if isinstance(argument, Tensor) else None

    @property
    def typed(self) -> bool:
        """Return whether the types of its tensors were recorded."""
        lists = (argument if isinstance(argument, tuple) else (argument,) for argument in self.arguments)
        types = [element.type for several in lists for element in several if isinstance(element, Tensor)]
        return bool(types) and None not in types

    def tensors(self, *places: int) -> list[Tensor]:
        """Return those of the places that are tensors."""
        return [tensor for place in places if (tensor := self.tensor(place)) is not None]

    def list(self, place: int) -> tuple[Tensor, ...]:
        """Return the list of tensors at a place; an empty one if there is none, or its shapes are not known."""
        argument = self.arguments[place] if place < len(self.arguments) else None
        return argument if isinstance(argument, tuple) else ()

    def value(self, place: int) -> str:
        """Return the text of a value; an empty one if it is not known."""
        argument = self.arguments[place] if place < len(self.arguments) else None
        return argument if isinstance(argument, str) else ""

    def numbers(self, place: int) -> tuple[int, ...] | None:
        """Return `[2, 2]`, or `2`, as whole numbers; None where it is neither."""
        text = self.value(place)
        if not re.fullmatch(r"-?\d{1,13}|\[(?:-?\d{1,13}(?:, ?-?\d{1,13}){0,15})?\]", text):
            return None
        return tuple(int(number) for number in re.findall(r"-?\d+", text))

    def flag(self, place: int) -> bool | None:
        """Return a truth value; None if it is not known."""
        return {"True": True, "1": True, "False": False, "0": False}.get(self.value(place))

    def flags(self, place: int) -> tuple[bool, ...]:
        """Return `[True, False]` as truth values."""
        return tuple(word == "True" for word in re.findall(r"True|False", self.value(place)))

    def type_number(self, place: int) -> str | None:
        """Return the type that an argument `dtype` names; None if none is given."""
        return NUMBERED.get(self.value(place))

    def with_type(self, type_: str | None) -> OperationCall:
        """Return the call with a type for the tensors whose own is not known."""
        if type_ is None:
            return self

        def typed(argument: Argument) -> Argument:
            if isinstance(argument, Tensor):
                return argument if argument.type is not None else replace(argument, type=type_)
            return tuple(map(typed, argument)) if isinstance(argument, tuple) else argument  # type: ignore[arg-type]

        return replace(self, arguments=tuple(map(typed, self.arguments)))


def plain_name(operation: str) -> str:
    """Return `add_` of `aten::add_.Tensor`: without its namespace and its overload."""
    return operation.rpartition("::")[2].partition(".")[0]


_MAX_KEPT, _LONGEST_KEPT = 1 << 14, 4096
_kept: dict[
    str, OperationCall | None
] = {}  # a program's calls are alike, and to read one takes longer than to find it


def recorded_call(name: str, args: Mapping[str, Any]) -> OperationCall | None:
    """Return a call of a Chrome trace by its `args` ("Input Dims", "Input type", "Concrete Inputs", "Input Strides").

    None where no shapes were recorded, or they are no shapes.
    """
    values = [args.get(key) for key in ("Input Dims", "Input type", "Concrete Inputs", "Input Strides")]
    if not isinstance(values[0], list):
        return None
    key = f"{name} {values}"
    if key not in _kept:
        if len(_kept) >= _MAX_KEPT or len(key) > _LONGEST_KEPT:
            return _read_call(name, *values)
        _kept[key] = _read_call(name, *values)
    return _kept[key]


def _read_call(name: str, dims: Any, types: Any, values: Any, strides: Any) -> OperationCall | None:
    if not isinstance(types, list) or len(types) != len(dims):
        return None
    values = values if isinstance(values, list) and len(values) == len(dims) else [""] * len(dims)
    strides = strides if isinstance(strides, list) and len(strides) == len(dims) else [None] * len(dims)
    try:
        read = map(_argument, dims[:MAX_TENSORS], types, values, strides)
        return OperationCall(plain_name(name)[:200], tuple(read), has_values=any(values))
    except ValueError:
        return None


def _argument(dims: object, type_: object, value: object, strides: object) -> Argument:
    if isinstance(type_, str) and type_ in _WRITTEN:
        return _tensor(dims, _WRITTEN[type_], strides)
    if isinstance(dims, list) and dims and isinstance(dims[0], list):  # TensorList: its types are not known
        return tuple(_tensor(shape, None, None) for shape in dims[:MAX_TENSORS])
    if type_ == "TensorList":
        return ()
    return value[:200] if isinstance(value, str) and value else ("" if type_ else None)


def _tensor(dims: object, type_: str | None, strides: object) -> Tensor:
    shape = _sizes(dims)
    stored = None
    if isinstance(strides, list) and len(strides) == len(shape) and 0 in strides:
        stored = prod(size for size, stride in zip(shape, strides, strict=True) if stride != 0)
    return Tensor(shape, type_, stored)


def _sizes(dims: object) -> tuple[int, ...]:
    if not isinstance(dims, list) or len(dims) > MAX_DIMENSIONS:
        raise ValueError("no shape")
    for size in dims:
        if not isinstance(size, int) or isinstance(size, bool) or not 0 <= size <= LARGEST:
            raise ValueError("no shape")
    if prod(dims) > LARGEST:
        raise ValueError("no shape of a tensor that any memory holds")
    return tuple(dims)


_MARK = ", sizes = "
_SIZE = re.compile(r"[\[\]]|\d{1,13}|, ")


def written_call(text: str) -> OperationCall | None:
    """Return the call of a range of `emit_nvtx`: `aten::mm, sizes = [[4096, 768], [768, 50257]]`.

    It has no types, and of a value that is no tensor it writes `[]`, as of a tensor without dimensions.
    """
    name, _, sizes = text.partition(_MARK)
    if not sizes.startswith("[") or len(sizes) > 1 << 16:
        return None
    nested = _nested(sizes)
    if nested is None:
        return None
    try:
        return OperationCall(plain_name(name), tuple(map(_unknown, nested)), has_values=False)
    except ValueError:
        return None


def _unknown(dims: object) -> Argument:
    if not isinstance(dims, list):
        raise ValueError("no shape")
    if not dims:
        return None
    return (
        tuple(_tensor(shape, None, None) for shape in dims)
        if isinstance(dims[0], list)
        else _tensor(dims, None, None)
    )


def _nested(text: str) -> list[Any] | None:
    """Return the lists of numbers that a text is the beginning of, up to where the outermost ends."""
    outer: list[Any] = []
    stack: list[list[Any]] = []
    for sign in _SIZE.findall(text):
        if sign == "[":
            inner: list[Any] = []
            if len(stack) > 3:
                return None
            (stack[-1] if stack else outer).append(inner)
            stack.append(inner)
        elif sign == "]":
            stack.pop()
            if not stack:
                return list(outer[0])
        elif sign != ", ":
            stack[-1].append(int(sign))
    return None


_OPERANDS: tuple[tuple[str, str], ...] = (
    (r"e4m3|e5m2|fp8|Float8|nvjet_(?:sm\d+_)?q", "fp8"),
    (r"BFloat16|bfloat16|bf16|nvjet_(?:sm\d+_)?t[a-z]t_", "bf16"),
    (r"c10::Half|\b__half|_h(?:alf)?gemm|f16f16|h884|h1688|h16816|fp16|nvjet_(?:sm\d+_)?h[a-z]h_", "fp16"),
    (r"sdpa_\w*_f16_", "bits16"),  # cuDNN's attention: bfloat16, too
    (r"\bfloat\b|tf32|f32f32|sgemm|nvjet_(?:sm\d+_)?s(?!m\d)", "fp32"),
    (r"\bdouble\b|_dgemm|d884", "fp64"),
    *((rf"OpaqueType<(?:\(unsigned int\))?{size}u?>", f"bits{8 * size}") for size in (1, 2, 4, 8, 16)),
)


_CASTS = re.compile(r"WithCast")  # what it reads or writes has another type than its arithmetic


def type_of_kernel(name: str) -> str | None:
    """Return the type of the numbers a kernel works on, by its name; None where it has none.

    Of several it is the narrowest, and of a kernel that converts one that all can have: no work is made up.
    """
    type_ = next((type_ for pattern, type_ in _OPERANDS if re.search(pattern, name)), None)
    if type_ is not None and _CASTS.search(name):
        return "bits16" if WIDTHS[type_] > 2 else "bits8"
    return type_
