"""Arguments of a test as text, in the notation of operator traces, and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from profkit.kernels.evaluation.suites.capture import describe_call
from profkit.kernels.evaluation.suites.notation import (
    Symbol,
    TensorForm,
    format_call,
    parse_call,
    replace_tensors,
)

INTEGERS = (-9, 10)  # the range of made integers, as torch's make_tensor has it


def serialize_args(args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    """The arguments of a call as `((T([8, 16], f16), 1.0), {'alpha': 2})`: of tensors shape, dtype and strides.

    Lists and tuples keep what is in them. Raises ValueError for what the notation has no word for.
    """
    return format_call(describe_call(tuple(args), kwargs))


def deserialize_args(text: str, device: str = "cuda") -> tuple[tuple[Any, ...], dict[str, Any]]:
    """(args, kwargs) of such a text, with new values: floats between 0 and 1, integers from -9 to 9.

    Nothing of the text is executed. Raises ValueError for what is no such text. The CPU is used where there is no GPU.
    Tensors that shared memory have memory of their own.
    """
    call = parse_call(text)

    def make(form: TensorForm) -> torch.Tensor:
        return _make_tensor(form, device)

    args = replace_tensors(call.args, make)
    kwargs = {name: replace_tensors(value, make) for name, value in call.kwargs.items()}
    where = torch.device(_device(device))
    return tuple(_plain(value, where) for value in args), {
        name: _plain(value, where) for name, value in kwargs.items()
    }


def deserialize_tensor(
    size: str | Sequence[int],
    dtype: torch.dtype | None = None,
    stride: Sequence[int] | None = None,
    device: str = "cuda",
) -> torch.Tensor:
    """A tensor of its notation, `T([2, 3], f32)` or `T([2, 3], f16, stride=(1, 2))`; or of size, dtype and stride.

    Values and device are those of `deserialize_args`. Raises ValueError for what is no such text.
    """
    if isinstance(size, str):
        ((tensor, *_), _) = deserialize_args(f"(({size},), {{}})", device)
        if not isinstance(tensor, torch.Tensor):
            raise ValueError(f"not a tensor: {size:.80}")
        return tensor
    name = str(dtype or torch.float32).removeprefix("torch.")
    form = TensorForm(tuple(size), name, None if stride is None else tuple(stride))
    return _make_tensor(form, device)


def _make_tensor(form: TensorForm, device: str) -> torch.Tensor:
    dtype = getattr(torch, form.dtype)
    count = form.offset + form.extent
    if dtype == torch.bool:
        storage = torch.rand(count) < 0.5
    elif dtype.is_floating_point or dtype.is_complex:
        wide = torch.complex64 if dtype.is_complex else torch.float32
        storage = torch.rand(count, dtype=wide).to(dtype)
    else:
        low, high = INTEGERS
        storage = torch.randint(max(low, torch.iinfo(dtype).min), high, (count,)).to(dtype)
    stride = form.stride or torch.empty(form.shape, device="meta").stride()
    return storage.to(_device(device)).as_strided(form.shape, stride, form.offset)


def _device(device: str) -> str:
    return "cpu" if device.startswith("cuda") and not torch.cuda.is_available() else device


def _plain(value: Any, device: torch.device) -> Any:
    if isinstance(value, Symbol):
        return device if value.kind == "device" else getattr(torch, value.name)
    if isinstance(value, (list, tuple)):
        return type(value)(_plain(each, device) for each in value)
    return value
