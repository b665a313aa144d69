"""Counts the calls of PyTorch's operations in this process, by operation and form of the arguments.

Calls that differ in floating-point numbers alone are one, and the first stands for all: an optimizer's numbers change
with each step. A dispatch mode sees the calls of the main thread, and of threads in which autograd carries out
what these ask for. As long as it is there, torch.compile leaves the program as it is. What the
replay of a CUDA graph does is not seen, nor what a subclass of Tensor hides. At the end there is a file for each
process, in the notation of operator traces (profkit/kernels/evaluation/suites/notation.py reads it).
"""

from __future__ import annotations

import atexit
import os
from collections import Counter
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from .everywhere import call_after_import
from .session import write_atomically

VARIABLE = "PROFKIT_OPERATION_CALLS"  # the folder of the files
MAX_FORMS = 200_000  # of calls; more are not counted
# Types that the notation has words for.
_DTYPES = {
    "bfloat16", "float64", "float32", "float16", "complex32", "complex64", "complex128",
    "int8", "int16", "int32", "int64", "bool", "uint8",
}  # fmt: skip


class OperationCounter:
    """The counts of this process."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._counts = Counter[Any]()
        self._numbers: dict[Any, list[float]] = {}  # of the first call of each form
        self._mode: Any = None

    def start(self) -> None:
        """Count once the program has imported torch, which is not hurried."""
        call_after_import("torch", self._begin)
        atexit.register(self.finish)
        os.register_at_fork(after_in_child=self._counts.clear)  # the parent has them

    def finish(self) -> None:
        """Write what was called, if anything was."""
        if self._mode is not None:
            self._mode.__exit__(None, None, None)
        operations: dict[str, list[str]] = {}
        for key, count in self._counts.most_common():
            overload, args, kwargs = key
            if overload.namespace == "profiler":  # marks of torch.profiler: an optimizer's step makes one
                continue
            if text := _format_call(args, kwargs, iter(self._numbers.get(key, ()))):
                operations.setdefault(str(overload), []).append(f"cnt: {count}, {text}")
        if not operations:
            return
        lines = (line for name, calls in sorted(operations.items()) for line in (f"Operator: {name}", *calls))
        write_atomically(os.path.join(self._folder, f"{os.getpid()}.txt"), ("\n".join(lines) + "\n").encode())

    # ------------------------------------------------------------ inside

    def _begin(self, torch: ModuleType) -> None:
        from importlib import import_module

        base: Any = import_module("torch.utils._python_dispatch").TorchDispatchMode
        plain = frozenset((torch.Tensor, torch.nn.Parameter))
        overload_type = import_module("torch._ops").OpOverload
        tensor_type, strided = torch.Tensor, torch.strided
        counts, first_numbers = self._counts, self._numbers

        def key_of(value: Any, numbers: list[float]) -> Any:
            if isinstance(value, tensor_type):
                if value.layout is not strided or type(value) not in plain:
                    raise TypeError
                stride = None if value.is_contiguous() else value.stride()
                return (_Tensor, value.shape, value.dtype, stride, value.storage_offset())
            if type(value) in (list, tuple):
                return (type(value), *[key_of(each, numbers) for each in value])
            if type(value) is float:
                numbers.append(value)
                return float
            return (type(value), value)  # the type, since 1 == True

        class Mode(base):  # type: ignore[misc]
            supports_higher_order_operators = True

            def __torch_dispatch__(
                self, overload: Any, types: Any, args: Any = (), kwargs: Any = None
            ) -> Any:
                kwargs = kwargs or {}
                if not types and type(overload) is overload_type:
                    numbers: list[float] = []
                    try:
                        key = (
                            overload,
                            tuple([key_of(value, numbers) for value in args]),
                            tuple([(name, key_of(value, numbers)) for name, value in kwargs.items()]),
                        )
                        if key in counts:
                            counts[key] += 1
                        elif len(counts) < MAX_FORMS:
                            counts[key], first_numbers[key] = 1, numbers
                    except (TypeError, RuntimeError):
                        pass  # an argument that no trace has a word for, or without storage
                return overload(*args, **kwargs)

        self._mode = Mode()
        self._mode.__enter__()


class _Tensor:
    """Marks a tensor in a key."""


def _format_call(args: tuple[Any, ...], kwargs: tuple[tuple[str, Any], ...], numbers: Iterator[float]) -> str:
    """Return a line's text, empty where an argument has no word in the notation."""
    offsets: list[int] = []  # of each tensor
    try:
        words = [_format(value, offsets, numbers) for value in args]
        keywords = ", ".join(f"{name!r}: {_format(value, offsets, numbers)}" for name, value in kwargs)
    except ValueError:
        return ""
    text = f"(({', '.join(words)}{',' if len(words) == 1 else ''}), {{{keywords}}})"
    return f"{text}  # offsets {offsets}" if any(offsets) else text


def _format(key: Any, offsets: list[int], numbers: Iterator[float]) -> str:
    if key is float:
        return repr(next(numbers))
    kind, *rest = key
    if kind is _Tensor:
        shape, dtype, stride, offset = rest
        if str(dtype).removeprefix("torch.") not in _DTYPES:
            raise ValueError
        offsets.append(offset)
        strides = "" if stride is None else f", stride={tuple(stride)}"
        return f"T({list(shape)}, {dtype}{strides})"
    if kind in (list, tuple):
        inner = ", ".join(_format(each, offsets, numbers) for each in rest)
        return f"[{inner}]" if kind is list else f"({inner}{',' if len(rest) == 1 else ''})"
    (value,) = rest
    if kind in (bool, int, complex, str, type(None)):
        return repr(value)
    if kind.__module__ == "torch" and kind.__name__ == "device":
        return f"torch.device({str(value)!r})"
    if kind.__module__ == "torch" and kind.__name__ in ("dtype", "layout", "memory_format"):
        return str(value)
    raise ValueError


def start(folder: str) -> None:
    """Count in this process."""
    OperationCounter(folder).start()
