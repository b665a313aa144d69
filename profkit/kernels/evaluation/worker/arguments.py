"""Arguments of calls in memory that the judge and one kernel process share.

The arguments of a call are encoded as plain data plus bytes in an arena, and decoded back into torch tensors
with their strides and offsets.

A recipe is JSON: every value that JSON cannot express is an object with one key that names its kind. A tensor
gives its storage, dtype, shape, stride and offset in elements; tensors that share a storage share it in the
other process, too.

The answers of a kernel process are also checked here, since its kernel can write whatever it likes.
"""

from __future__ import annotations

import fcntl
import mmap
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import isfinite
from typing import Any, TypeAlias

import torch

from profkit.core.errors import MachineError
from profkit.core.types import Fact, Json
from profkit.kernels.operations.definitions import FactError

ALIGNMENT = 64  # bytes, as torch aligns what it allocates


class SharedBlock:
    """A block of `size` bytes of shared memory, of which only written pages take memory. `fd` is inherited.

    Raises MachineError where the system has no such memory.
    """

    def __init__(self, size: int) -> None:
        if not hasattr(os, "memfd_create"):
            raise MachineError(
                "kernels can be evaluated on Linux alone: nothing else reads another process's memory"
            )
        self.size = size
        self.fd = os.memfd_create("profkit-arguments", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(self.fd, size)
        _keep_size(self.fd)
        self.memory = mmap.mmap(self.fd, size)

    @classmethod
    def inherited(cls, fd: int, size: int) -> SharedBlock:
        """Map the same memory in the process that inherited it."""
        arena = cls.__new__(cls)
        arena.size, arena.fd = size, fd
        arena.memory = mmap.mmap(fd, size)
        return arena

    def clear(self) -> None:
        """Give the memory back to the system: it reads as 0 then, and gets new pages when it is written again."""
        with suppress(OSError, AttributeError, ValueError):
            self.memory.madvise(mmap.MADV_REMOVE)

    def close(self) -> None:
        """Close the arena in this process. The mapping stays while a tensor still uses it."""
        with suppress(OSError):
            os.close(self.fd)
        with suppress(BufferError):
            self.memory.close()


def align(offset: int, alignment: int = ALIGNMENT) -> int:
    """Return the next offset, in bytes, at which a tensor may begin."""
    return -(-offset // alignment) * alignment


def _keep_size(fd: int) -> None:
    """Seal the memory's size: whoever touches a page that was cut off dies by SIGBUS."""
    with suppress(OSError, AttributeError):
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)


Tensor: TypeAlias = torch.Tensor
CPU = torch.device("cpu")
ALIGNMENTS = {"cpu": ALIGNMENT, "cuda": 512}  # bytes, as torch aligns what it allocates
DTYPES = {
    str(value).removeprefix("torch."): value
    for value in vars(torch).values()
    if isinstance(value, torch.dtype)
}
FORMATS = {
    str(value).removeprefix("torch."): value
    for value in (torch.contiguous_format, torch.channels_last, torch.channels_last_3d, torch.preserve_format)
}


class NotPortable(FactError):
    """A value cannot be given to another process."""


@dataclass(frozen=True)
class Recipe:
    """How to make the arguments of a call from an arena: `body` is for the other process, `sizes` are in bytes."""

    body: Json
    storages: tuple[int, ...]  # offset of each in its slot
    sizes: tuple[int, ...]
    slot_bytes: int


class Encoder:
    """Turns the arguments of a call into a recipe, and collects the storages of their tensors on `device`."""

    def __init__(self, device: torch.device = CPU) -> None:
        self._device = device
        self._places: dict[int, int] = {}  # address of a storage -> its number
        self.contents: list[Tensor] = []  # of each storage: its bytes
        self._offsets: list[int] = []
        self._size = 0

    def encode(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Recipe:
        """Return the recipe of a call. Raises NotPortable for a value that cannot be encoded."""
        body: Json = {
            "args": [self._value(value) for value in args],
            "kwargs": {name: self._value(value) for name, value in kwargs.items()},
        }
        sizes = tuple(content.numel() for content in self.contents)
        slot_bytes = align(max(1, self._size), ALIGNMENTS[self._device.type])
        return Recipe(body, tuple(self._offsets), sizes, slot_bytes)

    def _value(self, value: Any) -> Json:
        """Return a value as JSON; raises NotPortable for what has no form there."""
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
            return {"device": str(value if self._device.type == "cpu" else self._device)}
        raise NotPortable(Fact.of("not-portable", type=type(value).__name__))

    def _tensor(self, tensor: Tensor) -> Json:
        """Return a tensor as JSON, and collect the bytes of its storage unless they are known."""
        if type(tensor) is not torch.Tensor and type(tensor) is not torch.nn.Parameter:
            raise NotPortable(Fact.of("not-portable", type=type(tensor).__name__))
        if tensor.layout is not torch.strided or tensor.is_quantized:
            raise NotPortable(Fact.of("not-strided", layout=str(tensor.layout)))
        if tensor.is_conj() or tensor.is_neg():
            raise NotPortable(Fact("lazy-argument"))
        storage = tensor.untyped_storage()
        key = storage.data_ptr() if storage.nbytes() else -1 - len(self.contents)
        if key not in self._places:
            self._places[key] = len(self.contents)
            bytes_ = torch.empty(0, dtype=torch.uint8, device=tensor.device).set_(storage)
            self.contents.append(bytes_.to(self._device))
            self._offsets.append(self._size)
            self._size = align(self._size + bytes_.numel(), ALIGNMENTS[self._device.type])
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
    """Return the bytes of each storage of a slot.

    `bytes_at(offset, size)` returns that many bytes at an offset of the memory, as a tensor with a storage of its
    own.
    """
    return [
        bytes_at(slot_offset + offset, size)
        for offset, size in zip(recipe.storages, recipe.sizes, strict=True)
    ]


def decode(body: Any, storages: Sequence[Tensor]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Make arguments and keyword arguments by a recipe's body, on the bytes of its storages."""
    args = tuple(_make(value, storages) for value in body["args"])
    return args, {name: _make(value, storages) for name, value in body["kwargs"].items()}


def _make(value: Any, storages: Sequence[Tensor]) -> Any:
    """Make a value from its JSON."""
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


MAX_OUTPUTS = 10_000
LARGEST = 1 << 48  # elements, bytes
TENSOR_PARTS = [int, str, list, list, int, str, bool]  # address, dtype, shape, stride, room, device, lazy


class KernelError(Exception):
    """The kernel, or its file, raised an exception: its type, its message and its traceback as text.

    `memory`: an allocation failed. `needs_gpu`: by the exception, Triton found no GPU. As text it is one line:
    `ValueError: ...`, with the last line of the message where the first line only leads to it (Triton: `at
    8:71:`).
    """

    def __init__(
        self, kind: str, message: str, traceback: str, *, memory: bool = False, needs_gpu: bool = False
    ) -> None:
        lines = [line.strip() for line in message.splitlines() if line.strip()]
        line = lines[0] if lines else ""
        if line.endswith(":") and len(lines) > 1:
            line = f"{line} {lines[-1]}"
        super().__init__(f"{kind}: {line[:300]}" if line else kind)
        self.kind, self.traceback, self.memory, self.needs_gpu = kind, traceback, memory, needs_gpu


@dataclass(frozen=True)
class KernelCall:
    """A call of a kernel: the bytes of its arguments' storages after the call, and its result."""

    slot: Sequence[Tensor]
    description: Any = None
    error: KernelError | None = None

    @property
    def value(self) -> Any:
        """Return the description of the call's value. Raises KernelError where the call failed."""
        if self.error is not None:
            raise self.error
        return self.description


def is_description(value: Any) -> bool:
    """Return whether a value has the form in which a kernel process describes results."""
    if isinstance(value, list):
        return len(value) <= MAX_OUTPUTS and all(map(is_description, value))
    if not isinstance(value, dict):
        return value is None or isinstance(value, (bool, int, str))
    if "tensor" not in value:
        return len(value) == 1 and all(isinstance(word, (str, list)) for word in value.values())
    parts = value["tensor"]
    if not isinstance(parts, list) or [type(part) for part in parts] != TENSOR_PARTS:
        return False
    sizes = [*parts[2], *parts[3]]
    fits = all(type(size) is int and 0 <= size < LARGEST for size in sizes) and len(parts[2]) == len(parts[3])
    return fits and 0 <= parts[0] < 1 << 64


def addresses_in(value: Any) -> Iterator[int]:
    """Yield the addresses of the tensors of a described value."""
    if isinstance(value, list):
        for each in value:
            yield from addresses_in(each)
    elif isinstance(value, dict) and "tensor" in value:
        yield value["tensor"][0]


def is_segment(value: Any) -> bool:
    """Return whether a value is the address, size in bytes and handle of an allocation."""
    return (
        isinstance(value, list)
        and [type(part) for part in value] == [int, int, str]
        and 0 <= value[0] < 1 << 64
        and 0 <= value[1] < LARGEST
    )
