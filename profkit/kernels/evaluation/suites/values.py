"""Tensors from their forms: values by a seed, in the range that the operation needs, laid out as recorded.

A trace has shapes and no values. What an integer tensor means follows from the operation's name and the
argument's, and its range from the shapes of the other arguments: an index must lie in range, a variance is
positive.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import torch

from profkit.core.types import Fact
from profkit.hardware.machine import available_memory
from profkit.kernels.evaluation.sources.names import find_operator
from profkit.kernels.evaluation.suites.notation import (
    Call,
    NotationError,
    Symbol,
    TensorForm,
    parse_call,
    replace_tensors,
)
from profkit.kernels.evaluation.suites.suite import Arguments, Skip

# normal: of both signs. positive: 0.5 to 1.5. fraction: 0 to 1. signed-fraction: -1 to 1. any: small integers.
# index: 0 to `below`. distinct: the same, no two equal along `dim`, or in all with `dim` None. sorted: ascending, from
# 0 on. nonzero: integers without 0.
Kind = Literal[
    "normal", "positive", "fraction", "signed-fraction", "any", "nonzero", "index", "distinct", "sorted",
]  # fmt: skip


@dataclass(frozen=True)
class ArgumentValues:
    """The values of one argument. `below`: indices are less than it."""

    kind: Kind
    below: int = 0
    dim: int | None = None


NamedArguments = Mapping[str, Any]  # the arguments of a call by their names in the schema
_Rule = Callable[[NamedArguments], ArgumentValues]


def _size(of: str, dim: int) -> _Rule:
    """Return a rule for indices into dimension `dim` of the argument `of`."""
    return lambda named: ArgumentValues("index", named[of].shape[dim])


def _along_dim(kind: Kind = "index") -> _Rule:
    """Return a rule for indices into the dimension `dim` of the call."""

    def rule(named: NamedArguments) -> ArgumentValues:
        shape, dim = named["self"].shape, int(named["dim"])
        return ArgumentValues(kind, shape[dim] if shape else 1, dim)

    return rule


def _last_dimensions(of: str, count: int) -> _Rule:
    """Return a rule for flat indices into the last `count` dimensions of the argument `of`."""
    return lambda named: ArgumentValues("index", math.prod(named[of].shape[-count:]))


def _classes(named: NamedArguments) -> ArgumentValues:
    """Return the values of class numbers of `self`."""
    shape = named["self"].shape
    return ArgumentValues("index", shape[1] if len(shape) > 1 else shape[0])


# Argument, rule, and the operations (without overload and trailing underscore) that have it.
_TABLE: tuple[tuple[str, _Rule | ArgumentValues, str], ...] = (
    ("index", _along_dim(), "gather gather_backward scatter_add scatter_reduce index_select index_add"),
    ("index", _along_dim(), "index_reduce index_fill"),
    ("index", _along_dim("distinct"), "scatter index_copy"),  # of two values for one place either may win
    ("index", lambda named: ArgumentValues("index", named["self"].elements), "take"),
    ("index", lambda named: ArgumentValues("distinct", named["self"].elements), "put"),
    ("indices", _size("weight", 0), "embedding _embedding_bag"),
    ("offsets", lambda named: ArgumentValues("sorted", named["indices"].elements + 1), "_embedding_bag"),
    ("indices", _size("self", 0), "embedding_renorm"),
    ("indices", lambda named: ArgumentValues("index", int(named["num_weights"])), "embedding_dense_backward"),
    ("target", _classes, "nll_loss nll_loss_forward nll_loss_backward nll_loss2d_forward"),
    ("target", _classes, "nll_loss2d_backward multi_margin_loss multi_margin_loss_backward"),
    ("indices", _last_dimensions("self", 2), "max_pool2d_with_indices_backward adaptive_max_pool2d_backward"),
    ("indices", _last_dimensions("self", 3), "max_pool3d_with_indices_backward adaptive_max_pool3d_backward"),
    ("sorted_sequence", ArgumentValues("sorted"), "searchsorted"),
    ("boundaries", ArgumentValues("sorted"), "bucketize"),
    ("self", ArgumentValues("index", 64), "bincount"),
    ("grid", ArgumentValues("signed-fraction"), "grid_sampler_2d grid_sampler_2d_backward"),
    ("grid", ArgumentValues("signed-fraction"), "grid_sampler_3d grid_sampler_3d_backward"),
    ("self", ArgumentValues("fraction"), "binary_cross_entropy binary_cross_entropy_backward"),
    ("target", ArgumentValues("fraction"), "binary_cross_entropy binary_cross_entropy_backward"),
    (
        "self",
        lambda named: ArgumentValues("normal" if _is_whole(named.get("exponent")) else "positive"),
        "pow",
    ),
    ("tensor2", ArgumentValues("positive"), "addcdiv _foreach_addcdiv"),
)
_RULES = {(operation, name): rule for name, rule, operations in _TABLE for operation in operations.split()}
_POSITIVE_INPUT = {
    "log", "log2", "log10", "log1p", "sqrt", "rsqrt", "lgamma", "digamma", "mvlgamma", "polygamma", "xlogy",
    "_foreach_log", "_foreach_sqrt", "_foreach_rsqrt", "_foreach_reciprocal", "reciprocal", "acosh", "i0e",
}  # fmt: skip
_FRACTION_INPUT = {"asin", "acos", "atanh", "logit", "erfinv", "log_normal"}
_POSITIVE_NAMES = {"running_var", "var", "invstd", "save_invstd", "save_var", "rstd", "std", "total_weight"}
_POSITIVE_LISTS = {"exp_avg_sqs", "max_exp_avg_sqs", "exp_avg_sq"}
_DIVISIONS = {"div", "floor_divide", "remainder", "fmod", "true_divide", "divide"}
_SHIFTS = {"__lshift__", "__rshift__", "bitwise_left_shift", "bitwise_right_shift"}
# An integer tensor called like this is an index of something.
_INDEX_NAMES = ("index", "indices", "idx", "target", "offset", "lengths", "repeats", "batch_sizes", "labels")
_INTEGERS = {"int8", "int16", "int32", "int64", "uint8"}


def _is_whole(exponent: Any) -> bool:
    """Return whether an exponent is a whole number."""
    return isinstance(exponent, int) or (isinstance(exponent, float) and exponent.is_integer())


def operation_base(operation: str) -> str:
    """Return the base name of an operation: `add` of `add_.Tensor`."""
    base = operation.partition(".")[0]
    return base if base.endswith("__") else base.rstrip("_") or base


def find_values(operation: str, name: str, form: TensorForm, named: NamedArguments) -> ArgumentValues:
    """Return what the tensor `name` of a call may hold; `named` are all its arguments. Raises Skip."""
    base = operation_base(operation)
    rule = _RULES.get((base, name))
    if rule is not None:
        try:
            values = rule if isinstance(rule, ArgumentValues) else rule(named)
        except (KeyError, IndexError, AttributeError, TypeError, ValueError):
            raise Skip(Fact.of("unknown-range", name=name)) from None
        if values.kind in ("index", "distinct") and values.below < 1 and form.elements:
            raise Skip(Fact.of("nothing-to-point-at", name=name))
        return values
    if form.dtype in _INTEGERS:
        return _find_integers(base, name)
    if name in _POSITIVE_NAMES or name in _POSITIVE_LISTS:
        return ArgumentValues("positive")
    if name == "self":
        if base in _POSITIVE_INPUT:
            return ArgumentValues("positive")
        if base in _FRACTION_INPUT:
            return ArgumentValues("signed-fraction")
    return ArgumentValues("normal")


def _find_integers(base: str, name: str) -> ArgumentValues:
    """Return what an integer tensor may hold. Raises Skip for an index whose range is unknown."""
    if any(word in name for word in _INDEX_NAMES):
        raise Skip(Fact.of("unknown-range", name=name))
    if base in _DIVISIONS and name == "other":
        return ArgumentValues("nonzero")
    if base in _SHIFTS and name == "other":
        return ArgumentValues("index", 7)
    return ArgumentValues("any")


MEMORY_SHARE = 0.5  # of what is free, for one test
TRUTH_BYTES = 16  # of an element: its float64 copies, as an argument and in a result
COPIES = 3  # of the arguments: the judge's, the candidate's, the reference's
_NO_VALUES = {"empty", "empty_like", "new_empty", "new_empty_strided", "empty_strided", "empty_permuted"}
SPECIAL = (math.nan, math.inf, -math.inf, -0.0)


def check_decidable(overload: Any, device: str = "cpu") -> None:
    """Raise Skip where no result of the operation can be wrong, or it does not run on this device."""
    if torch.Tag.nondeterministic_seeded in overload.tags:
        raise Skip(Fact("random"))
    if operation_base(overload.__name__) in _NO_VALUES:
        raise Skip(Fact("no-values"))
    key = "CUDA" if torch.device(device).type == "cuda" else "CPU"
    name = overload.name()
    if not (
        torch._C._dispatch_has_kernel_for_dispatch_key(name, key)
        or torch._C._dispatch_has_kernel_for_dispatch_key(name, "CompositeImplicitAutograd")
        or torch._C._dispatch_has_kernel_for_dispatch_key(name, "CompositeExplicitAutograd")
        or torch._C._dispatch_has_kernel_for_dispatch_key(name, "CompositeExplicitAutogradNonFunctional")
    ):
        raise Skip(Fact.of("no-kernel-in-torch", version=torch.__version__, device=key))


def make_values(
    operation: str, text: str, seed: int, *, device: str = "cpu", special: bool = False
) -> Arguments:
    """Make the arguments that a text in the notation of traces stands for.

    `special`: with NaN, infinities and -0 among them. Raises Skip where they cannot be made, LookupError for an
    operation that this torch lacks.
    """
    overload = find_operator(operation)
    check_decidable(overload, device)
    try:
        call = parse_call(text)
    except NotationError as error:
        raise Skip(str(error)) from None
    _check_memory(call)
    names = [argument.name for argument in overload._schema.arguments]
    if len(call.args) > len(names):
        raise Skip(Fact.of("more-arguments", version=torch.__version__, got=len(call.args), most=len(names)))
    named = {**dict(zip(names, call.args, strict=False)), **call.kwargs}
    if named.get("device") is not None:
        named["device"] = Symbol("device", device)  # not the one that was traced
    if named.get("pin_memory"):
        named["pin_memory"] = False
    maker = _Maker(operation, named, seed, special)
    made = {name: maker.make(name, value) for name, value in named.items()}
    positional = tuple(made[name] for name in names[: len(call.args)])
    return Arguments(
        tuple(plain_value(value, device) for value in positional),
        {name: plain_value(made[name], device) for name in call.kwargs},
    )


def _check_memory(call: Call) -> None:
    """Raise Skip where the arguments and their copies do not fit into the memory."""
    needed = sum(
        form.extent * (COPIES * _torch_dtype(form.dtype).itemsize + TRUTH_BYTES) for form in call.tensors()
    )
    free = available_memory()
    if free is not None and needed > MEMORY_SHARE * free:
        raise Skip(Fact.of("no-room", needed=needed, free=free))


def plain_value(value: Any, device: str) -> Any:
    """Replace names of torch's own values by these values; a trace's device by the one of this evaluation."""
    match value:
        case Symbol(kind="device"):
            return torch.device(device)
        case Symbol(name=name):
            return getattr(torch, name)
        case list():
            return [plain_value(each, device) for each in value]
        case tuple():
            return tuple(plain_value(each, device) for each in value)
    return value


def _torch_dtype(name: str) -> torch.dtype:
    """Return the dtype of that name. Raises Skip where this torch lacks it."""
    dtype = getattr(torch, name, None)
    if not isinstance(dtype, torch.dtype):
        raise Skip(Fact.of("no-dtype-in-torch", version=torch.__version__, dtype=name))
    return dtype


class _Maker:
    """A maker of the tensors of one call: each from a stream of random numbers of its own."""

    def __init__(self, operation: str, named: Mapping[str, Any], seed: int, special: bool) -> None:
        self._operation, self._named, self._seed, self._special = operation, named, seed, special

    def make(self, name: str, value: Any) -> Any:
        """Make the argument `name`, with tensors in place of their forms."""
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

    def _tensor(self, stream: str, form: TensorForm, values: ArgumentValues) -> torch.Tensor:
        """Make one tensor, with special numbers spread over it where wanted."""
        made = self._contents(stream, form, values)
        if self._special and made.is_floating_point() and made.numel() >= len(SPECIAL):
            flat = made.view(-1)
            for at, number in enumerate(SPECIAL):
                flat[(at * flat.numel()) // len(SPECIAL)] = number
        if form.stride is None and not form.offset:
            return made
        return self._laid_out(stream, form, made)

    def _laid_out(self, stream: str, form: TensorForm, contents: torch.Tensor) -> torch.Tensor:
        """Lay the values out with the form's stride and offset, in a storage that holds other values besides."""
        stride = form.stride or _row_major(form.shape)
        size = form.offset + form.extent
        # Between the elements lies what a kernel must not read as theirs.
        storage = self._contents(f"{stream} around", TensorForm((size,), form.dtype), ArgumentValues("any"))
        tensor = storage.as_strided(form.shape, stride, form.offset)
        if 0 not in form.shape and 0 not in (
            step for step, length in zip(stride, form.shape, strict=True) if length > 1
        ):
            tensor.copy_(contents)
        elif form.elements:  # elements that are one in memory: the last one written stands for all
            first = tuple(slice(0, 1) if step == 0 else slice(None) for step in stride)
            tensor[first].copy_(contents[first])
        return tensor

    def _generator(self, stream: str) -> torch.Generator:
        """Return the generator of a stream, by the seed."""
        generator = torch.Generator()
        generator.manual_seed((self._seed * 0x9E3779B97F4A7C15 + zlib.crc32(stream.encode())) & (2**63 - 1))
        return generator

    def _contents(self, stream: str, form: TensorForm, values: ArgumentValues) -> torch.Tensor:
        """Draw a contiguous tensor of the values."""
        dtype, shape, generator = _torch_dtype(form.dtype), form.shape, self._generator(stream)
        if dtype == torch.bool:
            return torch.rand(shape, generator=generator) < 0.5
        if not (dtype.is_floating_point or dtype.is_complex):
            return self._integers(form, values, generator, dtype)
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
        self, form: TensorForm, values: ArgumentValues, generator: torch.Generator, dtype: torch.dtype
    ) -> torch.Tensor:
        """Draw a tensor of integers of the values."""
        shape = form.shape
        if values.kind == "distinct":
            return _distinct(shape, values, generator).to(dtype)
        if values.kind == "sorted":
            drawn = torch.randint(0, max(1, values.below), shape, generator=generator).sort().values
            if drawn.numel() and drawn.dim():
                drawn[..., 0] = 0
            return drawn.to(dtype)
        if values.kind == "index":
            return torch.randint(0, max(1, values.below), shape, generator=generator, dtype=dtype)
        if values.kind == "nonzero":
            drawn = torch.randint(1, 10, shape, generator=generator, dtype=dtype)
            if dtype == torch.uint8:
                return drawn
            return torch.where(torch.rand(shape, generator=generator) < 0.5, drawn, -drawn)
        minimum = 0 if dtype == torch.uint8 else -9
        return torch.randint(minimum, 10, shape, generator=generator, dtype=dtype)

    def _make_indices(self, forms: list[Any] | tuple[Any, ...]) -> list[Any]:
        """Make the indices of `index` and `index_put`: tensor i is of dimension i; where it writes, no place twice."""
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
            raise Skip(Fact.of("nothing-to-point-at", name="indices"))
        writes = "put" in self._operation and not self._named.get("accumulate", False)
        places: list[torch.Tensor] | None = None
        if writes and len({form.shape for _, form in whole}) == 1:
            places = _distinct_places(whole[0][1].shape, limits, self._generator("places"))
        made: list[Any] = [None] * len(forms)
        for at, form in enumerate(forms):
            if form is not None and form.dtype == "bool":
                made[at] = self._tensor(f"indices {at}", form, ArgumentValues("any"))
        for position, (at, form) in enumerate(whole):
            if places is not None:
                made[at] = places[position].to(_torch_dtype(form.dtype))
            else:
                made[at] = self._tensor(f"indices {at}", form, ArgumentValues("index", limits[position]))
        return made


def _row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the strides of a contiguous tensor."""
    strides: list[int] = []
    step = 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(1, size)
    return tuple(reversed(strides))


def _distinct(shape: tuple[int, ...], values: ArgumentValues, generator: torch.Generator) -> torch.Tensor:
    """Draw indices of which no two along `dim` are equal (None: no two at all), as long as there are enough."""
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
    """Draw an index tensor for each of `limits` that together have no place twice; None with too few places."""
    elements, room = math.prod(shape), math.prod(limits)
    if elements > room or room > 2**27:
        return None
    flat = torch.randperm(room, generator=generator)[:elements]
    places = []
    for limit in reversed(limits):
        places.append((flat % limit).view(shape))
        flat = flat // limit
    return list(reversed(places))
