"""Tensors from their forms: values by a seed, in the range that the operation needs, laid out as recorded."""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping
from typing import Any

import torch

from profkit.hardware.container import available_memory
from profkit.kernels.evaluation.suites.notation import (
    Call,
    NotationError,
    Symbol,
    TensorForm,
    parse_call,
    replace_tensors,
)
from profkit.kernels.evaluation.suites.ranges import UnknownRange, Values, find_values, operation_base
from profkit.kernels.evaluation.suites.suite import Arguments, Skip

MEMORY_SHARE = 0.5  # of what is free, for one test
TRUTH_BYTES = 16  # of an element: its float64 copies, as an argument and in a result
COPIES = 3  # of the arguments: the judge's, the candidate's, the reference's
_NO_VALUES = {"empty", "empty_like", "new_empty", "new_empty_strided", "empty_strided", "empty_permuted"}
SPECIAL = (math.nan, math.inf, -math.inf, -0.0)


def find_overload(operation: str) -> Any:
    """torch's overload that is called `add.Tensor`. Raises Skip where this torch has none."""
    name, _, overload = operation.partition(".")
    try:
        return getattr(getattr(torch.ops.aten, name), overload or "default")
    except AttributeError:
        raise Skip(f"torch {torch.__version__} has no aten::{operation}") from None


def check_decidable(overload: Any, device: str = "cpu") -> None:
    """Raises Skip where no result of the operation can be wrong, or it does not run on this device."""
    if torch.Tag.nondeterministic_seeded in overload.tags:
        raise Skip("its result is random")
    if operation_base(overload.__name__) in _NO_VALUES:
        raise Skip("its result has no values")
    key = {"cpu": "CPU", "cuda": "CUDA", "mps": "MPS"}.get(torch.device(device).type, "CPU")
    name = overload.name()
    if not (
        torch._C._dispatch_has_kernel_for_dispatch_key(name, key)
        or torch._C._dispatch_has_kernel_for_dispatch_key(name, "CompositeImplicitAutograd")
        or torch._C._dispatch_has_kernel_for_dispatch_key(name, "CompositeExplicitAutograd")
        or torch._C._dispatch_has_kernel_for_dispatch_key(name, "CompositeExplicitAutogradNonFunctional")
    ):
        raise Skip(f"torch {torch.__version__} has no {key} kernel of it")


def make_values(
    operation: str, text: str, seed: int, *, device: str = "cpu", special: bool = False
) -> Arguments:
    """The arguments that a text in the notation of traces stands for. `special`: with NaN, infinities and -0 in them.

    Raises Skip where they cannot be made.
    """
    overload = find_overload(operation)
    check_decidable(overload, device)
    try:
        call = parse_call(text)
    except NotationError as error:
        raise Skip(str(error)) from None
    _check_memory(call)
    names = [argument.name for argument in overload._schema.arguments]
    if len(call.args) > len(names):
        raise Skip(f"{len(call.args)} arguments, and torch {torch.__version__} takes {len(names)}")
    named = {**dict(zip(names, call.args, strict=False)), **call.kwargs}
    if named.get("device") is not None:
        named["device"] = Symbol("device", device)  # not the one that was traced
    if named.get("pin_memory"):
        named["pin_memory"] = False
    maker = _Maker(operation, named, call.tensors(), seed, special)
    try:
        made = {name: maker.make(name, value) for name, value in named.items()}
    except UnknownRange as error:
        raise Skip(str(error)) from None
    positional = tuple(made[name] for name in names[: len(call.args)])
    return Arguments(
        tuple(_plain(value, device) for value in positional),
        {name: _plain(made[name], device) for name in call.kwargs},
    )


def _check_memory(call: Call) -> None:
    needed = sum(
        form.extent * (COPIES * _torch_dtype(form.dtype).itemsize + TRUTH_BYTES) for form in call.tensors()
    )
    free = available_memory()
    if free is not None and needed > MEMORY_SHARE * free:
        raise Skip(
            f"its arguments need {needed / 1e9:.1f} GB with their copies, and {free / 1e9:.1f} GB are free"
        )


def _plain(value: Any, device: str) -> Any:
    """Names of torch's own values as these values; a trace's device is the one of this evaluation."""
    match value:
        case Symbol(kind="device"):
            return torch.device(device)
        case Symbol(name=name):
            return getattr(torch, name)
        case list():
            return [_plain(each, device) for each in value]
        case tuple():
            return tuple(_plain(each, device) for each in value)
    return value


def _torch_dtype(name: str) -> torch.dtype:
    dtype = getattr(torch, name, None)
    if not isinstance(dtype, torch.dtype):
        raise Skip(f"torch {torch.__version__} has no dtype {name}")
    return dtype


class _Maker:
    """Makes the tensors of one call: each from a stream of random numbers of its own."""

    def __init__(
        self,
        operation: str,
        named: Mapping[str, Any],
        tensors: tuple[TensorForm, ...],
        seed: int,
        special: bool,
    ) -> None:
        self._operation, self._named, self._seed, self._special = operation, named, seed, special
        self._extents: dict[int, int] = {}  # elements of each storage that several tensors lie in
        for form in tensors:
            if form.storage is not None:
                end = form.offset + form.extent
                self._extents[form.storage] = max(self._extents.get(form.storage, 0), end)
        self._storages: dict[int, torch.Tensor] = {}

    def make(self, name: str, value: Any) -> Any:
        """The argument `name` with tensors in place of their forms."""
        if name == "indices" and isinstance(value, (list, tuple)) and "self" in self._named:
            return self._make_indices(value)
        count = 0

        def tensor(form: TensorForm) -> torch.Tensor:
            nonlocal count
            count += 1
            return self._tensor(
                f"{name} {count}", form, find_values(self._operation, name, form, self._named)
            )

        return replace_tensors(value, tensor)

    def _tensor(self, stream: str, form: TensorForm, values: Values) -> torch.Tensor:
        if form.storage is not None and form.storage in self._storages:
            storage = self._storages[form.storage]
            if storage.dtype == _torch_dtype(form.dtype):
                return storage.as_strided(form.shape, form.stride or _row_major(form.shape), form.offset)
        made = self._contents(stream, form, values)
        if self._special and made.is_floating_point() and made.numel() >= len(SPECIAL):
            flat = made.view(-1)
            for at, number in enumerate(SPECIAL):
                flat[(at * flat.numel()) // len(SPECIAL)] = number
        if form.stride is None and not form.offset and form.storage is None:
            return made
        return self._laid_out(stream, form, made)

    def _laid_out(self, stream: str, form: TensorForm, contents: torch.Tensor) -> torch.Tensor:
        stride = form.stride or _row_major(form.shape)
        size = max(
            form.offset + form.extent, self._extents.get(form.storage, 0) if form.storage is not None else 0
        )
        # Between the elements lies what a kernel must not read as theirs.
        storage = self._contents(f"{stream} around", TensorForm((size,), form.dtype), Values("any"))
        tensor = storage.as_strided(form.shape, stride, form.offset)
        if 0 not in form.shape and 0 not in (
            step for step, length in zip(stride, form.shape, strict=True) if length > 1
        ):
            tensor.copy_(contents)
        elif form.elements:  # elements that are one in memory: the last one written stands for all
            first = tuple(slice(0, 1) if step == 0 else slice(None) for step in stride)
            tensor[first].copy_(contents[first])
        if form.storage is not None:
            self._storages[form.storage] = storage
        return tensor

    def _generator(self, stream: str) -> torch.Generator:
        generator = torch.Generator()
        generator.manual_seed((self._seed * 0x9E3779B97F4A7C15 + zlib.crc32(stream.encode())) & (2**63 - 1))
        return generator

    def _contents(self, stream: str, form: TensorForm, values: Values) -> torch.Tensor:
        dtype, shape, generator = _torch_dtype(form.dtype), form.shape, self._generator(stream)
        if dtype == torch.bool:
            return torch.rand(shape, generator=generator) < 0.5
        if not (dtype.is_floating_point or dtype.is_complex):
            return self._integers(form, values, generator, dtype)
        if values.kind == "definite":
            return _definite(shape, dtype, generator)
        if dtype.is_complex:
            return torch.randn(shape, generator=generator, dtype=torch.complex64).to(dtype)
        wide = torch.float64 if dtype == torch.float64 else torch.float32
        if values.kind in ("normal", "any"):
            return torch.randn(shape, generator=generator, dtype=wide).to(dtype)
        drawn = torch.rand(shape, generator=generator, dtype=wide)
        if values.kind == "positive":
            drawn += 0.5
        elif values.kind == "signed-fraction":
            drawn = drawn * 2 - 1
        elif values.kind == "sorted":
            drawn = drawn.sort().values if drawn.dim() else drawn
        return drawn.to(dtype)

    def _integers(
        self, form: TensorForm, values: Values, generator: torch.Generator, dtype: torch.dtype
    ) -> torch.Tensor:
        shape = form.shape
        if values.kind == "distinct":
            return _distinct(shape, values, generator).to(dtype)
        if values.kind == "sorted":
            drawn = torch.randint(0, max(1, values.below), shape, generator=generator).sort().values
            if drawn.numel() and drawn.dim():
                drawn[..., 0] = 0
            return drawn.to(dtype)
        if values.kind == "index":
            return torch.randint(values.least, max(1, values.below), shape, generator=generator, dtype=dtype)
        if values.kind == "nonzero":
            drawn = torch.randint(1, 10, shape, generator=generator, dtype=dtype)
            if dtype == torch.uint8:
                return drawn
            return torch.where(torch.rand(shape, generator=generator) < 0.5, drawn, -drawn)
        least = 0 if dtype == torch.uint8 else -9
        return torch.randint(least, 10, shape, generator=generator, dtype=dtype)

    def _make_indices(self, forms: list[Any] | tuple[Any, ...]) -> list[Any]:
        """Indices of `index` and `index_put`: tensor i points into dimension i; where it writes, no place twice."""
        sizes = self._named["self"].shape
        dimensions: list[tuple[int, ...]] = []  # of `self`, that each of them takes
        at = 0
        for form in forms:
            taken = len(form.shape) if form is not None and form.dtype in ("bool", "uint8") else 1
            dimensions.append(tuple(sizes[at : at + taken]))
            at += taken
        whole = [(at, form) for at, form in enumerate(forms) if form is not None and form.dtype != "bool"]
        limits = [math.prod(dimensions[at]) for at, _ in whole]
        if whole and (0 in limits and any(form.elements for _, form in whole)):
            raise UnknownRange("`indices` have nothing to point at")
        writes = "put" in self._operation and not self._named.get("accumulate", False)
        places: list[torch.Tensor] | None = None
        if writes and len({form.shape for _, form in whole}) == 1:
            places = _distinct_places(whole[0][1].shape, limits, self._generator("places"))
        made: list[Any] = [None] * len(forms)
        for at, form in enumerate(forms):
            if form is not None and form.dtype == "bool":
                made[at] = self._tensor(f"indices {at}", form, Values("any"))
        for position, (at, form) in enumerate(whole):
            if places is not None:
                made[at] = places[position].to(_torch_dtype(form.dtype))
            else:
                made[at] = self._tensor(f"indices {at}", form, Values("index", limits[position]))
        return made


def _row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    strides: list[int] = []
    step = 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(1, size)
    return tuple(reversed(strides))


def _definite(shape: tuple[int, ...], dtype: torch.dtype, generator: torch.Generator) -> torch.Tensor:
    wide = torch.complex128 if dtype.is_complex else torch.float64
    half = torch.randn(shape, generator=generator, dtype=wide)
    return (half @ half.mH / max(1, shape[-1]) + torch.eye(shape[-1], dtype=wide)).to(dtype)


def _distinct(shape: tuple[int, ...], values: Values, generator: torch.Generator) -> torch.Tensor:
    """Indices of which no two along `dim` are equal (with `dim` None: no two at all), as long as there are enough."""
    elements = math.prod(shape)
    if not shape or values.dim is None:
        if elements > values.below:
            return torch.randint(0, values.below, shape, generator=generator)
        return torch.randperm(values.below, generator=generator)[:elements].view(shape)
    dim = values.dim % len(shape)
    if shape[dim] > values.below:
        return torch.randint(0, values.below, shape, generator=generator)
    drawn = torch.rand((*shape[:dim], values.below, *shape[dim + 1 :]), generator=generator)
    return drawn.argsort(dim).narrow(dim, 0, shape[dim]).contiguous()


def _distinct_places(
    shape: tuple[int, ...], limits: list[int], generator: torch.Generator
) -> list[torch.Tensor] | None:
    """One index tensor for each of `limits`; together no place comes twice. None where there are too few places."""
    elements, room = math.prod(shape), math.prod(limits)
    if elements > room or room > 2**27:
        return None
    flat = torch.randperm(room, generator=generator)[:elements]
    places = []
    for limit in reversed(limits):
        places.append((flat % limit).view(shape))
        flat = flat // limit
    return list(reversed(places))
