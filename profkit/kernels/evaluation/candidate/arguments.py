"""Arguments of a call as plain data and as bytes in an arena, and back: torch tensors with their strides and offsets.

A recipe is JSON: every value that JSON has no word for is an object with one key that names its kind. A tensor says its
dtype, shape, stride, its offset in elements, and which storage it lies in; tensors that share a storage share it on the
other side, too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any, TypeAlias

import torch

from profkit.core.types import Json
from profkit.kernels.evaluation.candidate.arena import align

Tensor: TypeAlias = torch.Tensor
DTYPES = {
    str(value).removeprefix("torch."): value
    for value in vars(torch).values()
    if isinstance(value, torch.dtype)
}
FORMATS = {
    str(value).removeprefix("torch."): value
    for value in (torch.contiguous_format, torch.channels_last, torch.channels_last_3d, torch.preserve_format)
}


class NotPortable(Exception):
    """A value that cannot be given to another process; the text says which."""


@dataclass(frozen=True)
class Recipe:
    """How a call's arguments are made from an arena: `body` is for the other process; bytes of each storage."""

    body: Json
    storages: tuple[int, ...]  # offset of each in its slot
    sizes: tuple[int, ...]
    slot_bytes: int


class Encoder:
    """Turns the arguments of a call into a recipe, and collects the storages that their tensors lie in."""

    def __init__(self) -> None:
        self._places: dict[int, int] = {}  # address of a storage -> its number
        self.contents: list[Tensor] = []  # of each storage: its bytes
        self._offsets: list[int] = []
        self._size = 0

    def encode(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Recipe:
        """The recipe of the call. Raises NotPortable."""
        body: Json = {
            "args": [self._value(value) for value in args],
            "kwargs": {name: self._value(value) for name, value in kwargs.items()},
        }
        sizes = tuple(content.numel() for content in self.contents)
        return Recipe(body, tuple(self._offsets), sizes, align(max(1, self._size)))

    def _value(self, value: Any) -> Json:
        if value is None or isinstance(value, (bool, str)):
            return value
        if isinstance(value, torch.Tensor):
            return self._tensor(value)
        if isinstance(value, int):
            return int(value)
        if isinstance(value, float):
            return value if isfinite(value) else {"float": str(value)}
        if isinstance(value, complex):
            return {"complex": [str(value.real), str(value.imag)]}
        if isinstance(value, (list, tuple)):
            return [self._value(each) for each in value]
        for kind, type_ in (
            ("dtype", torch.dtype),
            ("layout", torch.layout),
            ("memory_format", torch.memory_format),
        ):
            if isinstance(value, type_):
                return {kind: str(value).removeprefix("torch.")}
        if isinstance(value, torch.device):
            return {"device": str(value)}
        raise NotPortable(f"an argument of type {type(value).__name__} cannot be given to another process")

    def _tensor(self, tensor: Tensor) -> Json:
        if type(tensor) is not torch.Tensor and type(tensor) is not torch.nn.Parameter:
            raise NotPortable(f"a tensor of type {type(tensor).__name__}")
        if tensor.layout is not torch.strided or tensor.is_quantized:
            raise NotPortable(f"a tensor of layout {tensor.layout} or a quantised one")
        if tensor.is_conj() or tensor.is_neg():
            raise NotPortable("a tensor that is conjugated or negated lazily")
        storage = tensor.untyped_storage()
        key = storage.data_ptr() if storage.nbytes() else -1 - len(self.contents)
        if key not in self._places:
            self._places[key] = len(self.contents)
            bytes_ = torch.empty(0, dtype=torch.uint8, device=tensor.device).set_(storage)
            self.contents.append(bytes_)
            self._offsets.append(self._size)
            self._size = align(self._size + bytes_.numel())
        return {
            "tensor": [
                self._places[key],
                str(tensor.dtype).removeprefix("torch."),
                list(tensor.shape),
                list(tensor.stride()),
                tensor.storage_offset(),
            ]
        }


def storage_views(recipe: Recipe, bytes_at: Callable[[int, int], Tensor], slot_offset: int) -> list[Tensor]:
    """The bytes of each storage of a slot. `bytes_at`: so many bytes at an offset, with a storage of their own."""
    return [
        bytes_at(slot_offset + offset, size)
        for offset, size in zip(recipe.storages, recipe.sizes, strict=True)
    ]


def decode(body: Any, storages: Sequence[Tensor]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Arguments and keyword arguments by a recipe's body, on the bytes of its storages."""
    args = tuple(_make(value, storages) for value in body["args"])
    return args, {name: _make(value, storages) for name, value in body["kwargs"].items()}


def _make(value: Any, storages: Sequence[Tensor]) -> Any:
    if isinstance(value, list):
        return [_make(each, storages) for each in value]
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    if kind == "tensor":
        place, dtype, shape, stride, offset = content
        storage = storages[place]
        empty = torch.empty(0, dtype=DTYPES[dtype], device=storage.device)
        return empty.set_(storage.untyped_storage(), offset, tuple(shape), tuple(stride))
    if kind == "float":
        return float(content)
    if kind == "complex":
        return complex(float(content[0]), float(content[1]))
    if kind == "dtype":
        return DTYPES[content]
    if kind == "layout":
        return getattr(torch, content)
    if kind == "memory_format":
        return FORMATS[content]
    if kind == "device":
        return torch.device(content)
    raise ValueError(f"a value of kind {kind!r}")
