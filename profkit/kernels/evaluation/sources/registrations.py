"""Which functions a user's file registers as kernels, in the process that runs the file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from profkit.core.errors import UsageError
from profkit.kernels.evaluation.sources.names import name_meaning

_F = TypeVar("_F", bound=Callable[..., Any])
_registered: dict[str, Callable[..., Any]] = {}  # by the name that was given


def kernel(*operations: str) -> Callable[[_F], _F]:
    """Register a function as the kernel of operations, in a file that is given to `profkit evaluate FILE`.

        from profkit.evaluation import kernel

        @kernel("aten::add.Tensor")
        def add(input, other, *, alpha=1):
            ...

    It is called with exactly the arguments of the operation. `add.Tensor` is one overload; `add` is every overload
    whose required arguments the function takes. Raises UsageError for what is no operation, or has a kernel already.
    """
    if not operations or not all(isinstance(name, str) for name in operations):
        raise UsageError("kernel() wants the name of an operation", '@kernel("add.Tensor")')
    for name in operations:
        name_meaning(name)
        if name in _registered:
            raise UsageError(f"{name} has a kernel already", "register one function for it")

    def register(function: _F) -> _F:
        _registered.update(dict.fromkeys(operations, function))
        return function

    return register


def take_registrations() -> Mapping[str, Callable[..., Any]]:
    """What was registered since the last call, by the names that were given; they are free again."""
    taken = dict(_registered)
    _registered.clear()
    return taken
