"""The overloads of aten that a Python call of torch becomes, and their arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from profkit.kernels.evaluation.suites.notation import (
    SHORT_DTYPES,
    Call,
    NotationError,
    Symbol,
    TensorForm,
)


class _FirstCall(BaseException):
    """The awaited call happened.

    It is no Exception, so that torch's Python code does not handle it as an error of its own.
    """


class _Captured(TorchDispatchMode):  # type: ignore[misc]
    """A mode that records the first call of an overload, and counts all. `abort`: the first call is not executed."""

    def __init__(self, abort: bool) -> None:
        super().__init__()
        self._abort = abort
        self.count = 0
        self.overload: Any = None
        self.args: tuple[Any, ...] = ()
        self.kwargs: Mapping[str, Any] = {}
        self.description: Call | None = None

    def __torch_dispatch__(
        self,
        overload: Any,
        types: Any,
        args: Any = (),
        kwargs: Any = None,
    ) -> Any:
        kwargs = kwargs or {}
        self.count += 1
        if self.count == 1:
            self.overload, self.args, self.kwargs = overload, args, kwargs
            if self._abort:
                raise _FirstCall
            self.description = describe_call(args, kwargs)  # before an operation in place changes them
        return overload(*args, **kwargs)


def find_only_call(function: Callable[[], Any]) -> tuple[Any, Call] | None:
    """Return the overload that the function calls and its arguments' form; None where it calls none, or several.

    Raises what the function raises, and NotationError for arguments that the notation cannot express, and for
    sparse results.
    """
    with _Captured(abort=False) as captured:
        result = function()
    for value in result if isinstance(result, (list, tuple)) else (result,):
        if isinstance(value, torch.Tensor) and value.layout is not torch.strided:
            raise NotationError("a result that is not strided")
    if captured.count != 1 or captured.description is None:
        return None
    return captured.overload, captured.description


def capture_arguments(function: Callable[[], Any]) -> tuple[tuple[Any, ...], Mapping[str, Any]]:
    """Return the arguments of the first overload that the function calls, which is not executed.

    Raises NotationError where it calls none.
    """
    with _Captured(abort=True) as captured:
        try:
            function()
        except _FirstCall:
            return captured.args, captured.kwargs
    raise NotationError("it calls no operation")


def describe_call(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Call:
    """Return the call with forms in place of tensors. Raises NotationError for what the notation cannot express."""

    def describe(value: Any) -> Any:
        match value:
            case torch.Tensor():
                _check_strided(value)
                stride = None if value.is_contiguous() else tuple(value.stride())
                dtype = str(value.dtype).removeprefix("torch.")
                return TensorForm(tuple(value.shape), dtype, stride, value.storage_offset())
            case torch.dtype():
                return Symbol("dtype", str(value).removeprefix("torch."))
            case torch.device():
                return Symbol("device", str(value))
            case torch.layout():
                return Symbol("layout", str(value).removeprefix("torch."))
            case torch.memory_format():
                return Symbol("memory_format", str(value).removeprefix("torch."))
            case list():
                return [describe(each) for each in value]
            case tuple():
                return tuple(describe(each) for each in value)
            case None | bool() | int() | float() | complex() | str():
                return value
        raise NotationError(f"a {type(value).__name__} among the arguments")

    described = tuple(describe(value) for value in args)
    return Call(described, {name: describe(value) for name, value in kwargs.items()})


def _check_strided(tensor: torch.Tensor) -> None:
    """Raise NotationError for a tensor that does not consist of plain numbers at addresses."""
    dtype = str(tensor.dtype).removeprefix("torch.")
    if tensor.layout is not torch.strided or tensor.is_quantized or tensor.is_nested:
        raise NotationError("a tensor that is not strided")
    if tensor.is_conj() or tensor.is_neg() or dtype not in SHORT_DTYPES:
        raise NotationError(f"a tensor of {dtype} that the notation has no word for")
