"""What a kernel process answers; its kernel can write whatever it likes, so whether that is an answer of ours."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from profkit.kernels.evaluation.candidate.arguments import Tensor

MOST_OUTPUTS = 10_000
LARGEST = 1 << 48  # elements, bytes
TENSOR_PARTS = [int, str, list, list, int, str, bool]  # address, dtype, shape, stride, room, device, lazy


class KernelError(Exception):
    """The kernel, or its file, raised an exception: its type, its message and its traceback as text.

    `memory`: memory was refused to it. `needs_gpu`: by its own word it is of Triton, which found no GPU. As text it is
    one line: `ValueError: ...`, with the last line of the message where the first one only leads to it (Triton: `at
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
    """One call: the bytes of its arguments' storages, as they are after it, and what became of it."""

    slot: Sequence[Tensor]
    description: Any = None
    error: KernelError | None = None

    @property
    def value(self) -> Any:
        """How its value is described. Raises KernelError."""
        if self.error is not None:
            raise self.error
        return self.description


def is_description(value: Any) -> bool:
    """Whether it is how our process describes a value."""
    if isinstance(value, list):
        return len(value) <= MOST_OUTPUTS and all(map(is_description, value))
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
    """Where the tensors of a described value lie."""
    if isinstance(value, list):
        for each in value:
            yield from addresses_in(each)
    elif isinstance(value, dict) and "tensor" in value:
        yield value["tensor"][0]


def is_segment(value: Any) -> bool:
    """Whether it is address, bytes and handle of an allocation."""
    return (
        isinstance(value, list)
        and [type(part) for part in value] == [int, int, str]
        and 0 <= value[0] < 1 << 64
        and 0 <= value[1] < LARGEST
    )
