"""What an operation must give: PyTorch's own result, the result in float64, and how far rounding may lie from that.

Allowed of one number, with the unit roundoff u of its dtype and v = 2^-24 of float32, in which kernels add up:

    |y - t| <= SAFETY * (u |t| + e + sqrt(L) v (|t| + c)) + m

t is the value in float64 (complex128) on the same arguments. e is the error of PyTorch's own result n there: |n - t|,
or the largest error of (nearly) all numbers, absolute or relative to |t|, whichever is smaller for this one. c is how
much t moves when each floating-point argument moves by its own size at random, measured with a tiny step: the condition
of the operation, so that cancellation allows what it must (Higham, "Accuracy and Stability of Numerical Algorithms",
2002, section 1.6). L is how many numbers are added up behind one, and sqrt(L) for L the bound by probability (Higham
and Mary, 2019). m is the smallest number of the dtype. A jump, as of floor(x) at an integer, allows nothing beyond e.

PyTorch's own kernel keeps within it by construction; one that rounds once more than PyTorch's does keeps within it,
too, and one that computes in half precision what PyTorch computes in float32 does not.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from math import prod, sqrt
from typing import Any

import torch

from profkit.kernels.evaluation.candidate.arguments import Tensor
from profkit.kernels.evaluation.candidate.memory import fill_new_memory

SAFETY = 4.0
ACCUMULATOR = 2.0**-24
STEP = 2.0**-36  # of an argument, relative, by which the condition is measured in float64
PROBES = 2
JUMP = 2.0**-16  # of the largest number: what moves more for such a step is a jump, not a slope
RARE = 1e-3  # of many numbers may be so wrong in PyTorch itself that they say nothing about the others
MANY = 1000
CONTRACTION = re.compile(r"(^|_|add|b)(mm|mv)($|_)|dot|conv|linear|attention|matmul")  # names of operations
WIDER = {
    torch.float16: torch.float64,
    torch.bfloat16: torch.float64,
    torch.float32: torch.float64,
    torch.complex32: torch.complex128,
    torch.complex64: torch.complex128,
}


@dataclass(frozen=True)
class Expected:
    """One tensor of the result: PyTorch's own, the truth in float64, and the error that is allowed for each number.

    `truth` and `allowed` are None where the numbers must be equal to PyTorch's own: integers and truth values.
    """

    name: str  # "output 0", "argument out"
    native: Tensor
    truth: Tensor | None = None
    allowed: Tensor | None = None
    undefined: Tensor | None = None  # places that PyTorch itself leaves unwritten: anything may stand there


@dataclass(frozen=True)
class CallReference:
    """What a call must give, and what it must do to its arguments.

    `value` is PyTorch's own value as it was returned. `storages` are the bytes of the arguments' storages after the
    call. `exact`: there is no float64 truth; then numbers are held against PyTorch's own by its dtype's roundoff.
    """

    value: Any
    outputs: tuple[Expected, ...]
    arguments: tuple[
        tuple[int, Expected], ...
    ]  # tensors that the operation changes: which of all, in their order
    storages: tuple[Tensor, ...]
    native_storages: Mapping[int, int] = field(default_factory=dict)  # address of a storage -> its number
    remarks: tuple[str, ...] = ()


def flat_tensors(value: Any) -> list[Any]:
    """The tensors in a value, or in the arguments of a call, in their order."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, Mapping):
        return [tensor for each in value.values() for tensor in flat_tensors(each)]
    if isinstance(value, (list, tuple)):
        return [tensor for each in value for tensor in flat_tensors(each)]
    return []


def find_operation(name: str) -> Any:
    """torch's own overload by its name: `add.Tensor`. Raises LookupError where torch has none."""
    packet, _, overload = name.partition(".")
    try:
        return getattr(getattr(torch.ops.aten, packet), overload or "default")
    except AttributeError as error:
        raise LookupError(f"torch has no operation aten.{name}") from error


def is_random(operation: Any) -> bool:
    """Whether its values are drawn at random."""
    return torch.Tag.nondeterministic_seeded in operation.tags


def leaves_unwritten(operation: Any) -> bool:
    """Whether the values of what it gives are undefined: empty and its kind."""
    return str(operation).split(".")[1].startswith(("empty", "new_empty", "_empty", "resize"))


def argument_of(operation: Any, arguments: tuple[Sequence[Any], Mapping[str, Any]], name: str) -> Any:
    """The argument of that name in the operation's schema, or its default; None where it has none."""
    args, kwargs = arguments
    for place, argument in enumerate(operation._schema.arguments):
        if argument.name == name:
            default = argument.default_value if argument.has_default_value() else None
            return kwargs.get(name, args[place] if place < len(args) else default)
    return None


def writes_one_place_twice(operation: Any, arguments: tuple[Sequence[Any], Mapping[str, Any]]) -> bool:
    """Whether an unpooling has two values for one place of a plane: PyTorch itself keeps either, by its threads."""
    name = str(operation).split(".")[1]
    if name not in ("max_unpool2d", "max_unpool3d"):
        return False
    places = argument_of(operation, arguments, "indices").flatten(-int(name[-2])).sort(-1).values
    return bool((places.diff(dim=-1) == 0).any())


def written_places(operation: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> set[int]:
    """Which tensors of the arguments, counted in their order, the schema allows to be changed."""
    places: set[int] = set()
    count = 0
    schema = operation._schema.arguments
    positional = [argument for argument in schema if not argument.kwarg_only]
    named = {argument.name: argument for argument in schema}
    values = [
        (positional[place] if place < len(positional) else None, value) for place, value in enumerate(args)
    ]
    values += [(named.get(name), value) for name, value in kwargs.items()]
    for argument, value in values:
        tensors = len(flat_tensors(value))
        if argument is not None and argument.alias_info is not None and argument.alias_info.is_write:
            places.update(range(count, count + tensors))
        count += tensors
    return places


Make = Callable[[], tuple[tuple[Any, ...], dict[str, Any], list[Tensor]]]


def run_natively(operation: Any, make: Make) -> CallReference:
    """What PyTorch itself gives and does, without a truth. `make` gives fresh arguments, and their storages' bytes.

    Raises whatever PyTorch raises for these arguments.
    """
    args, kwargs, storages = make()
    numbers = {storage.untyped_storage().data_ptr(): place for place, storage in enumerate(storages)}
    value = operation(*args, **kwargs)
    tensors = flat_tensors([args, kwargs])
    changed = sorted(written_places(operation, args, kwargs))
    return CallReference(
        value,
        tuple(Expected(f"output {place}", native) for place, native in enumerate(flat_tensors(value))),
        tuple((place, Expected(f"argument {place}", tensors[place])) for place in changed),
        tuple(storages),
        numbers,
    )


def make_reference(operation: Any, make: Make, seed: int) -> CallReference:
    """The reference of a call: what PyTorch itself gives, with the truth in float64 and what is allowed.

    Raises whatever PyTorch raises for these arguments.
    """
    native = run_natively(operation, make)
    if leaves_unwritten(operation):
        return native
    outputs = len(native.outputs)
    places = [place for place, _ in native.arguments]
    args, kwargs, _ = make()
    tensors = flat_tensors([args, kwargs, native.value])
    device = tensors[0].device if tensors else torch.device("cpu")
    generator = torch.Generator(device).manual_seed(seed)
    truths, moves, why = _truth(operation, make, outputs, places, generator)
    known = [*native.outputs, *(each for _, each in native.arguments)]
    length = _summands(operation, flat_tensors([args, kwargs]), [each.native for each in native.outputs])
    with fill_new_memory(device):
        again = run_natively(operation, make)
    others = [*again.outputs, *(each for _, each in again.arguments)]
    expected = [
        _mark_undefined(_expect(each.name, each.native, truth, move, length), other.native)
        for each, truth, move, other in zip(known, truths, moves, others, strict=True)
    ]
    return replace(
        native,
        outputs=tuple(expected[:outputs]),
        arguments=tuple(zip(places, expected[outputs:], strict=True)),
        remarks=(f"held against PyTorch's own result: {why}",) if why else (),
    )


def _truth(
    operation: Any, make: Make, outputs: int, changed: Sequence[int], generator: torch.Generator
) -> tuple[list[Tensor | None], list[Tensor | None], str]:
    """For each tensor of the result its value in float64, and how far it moves; and why there is none."""
    count = outputs + len(changed)

    def run(step: float) -> list[Tensor]:
        args, kwargs, _ = make()
        args, kwargs = _widen([args, kwargs], step, generator)
        value = flat_tensors(operation(*args, **kwargs))
        tensors = flat_tensors([args, kwargs])
        return [*value, *(tensors[place] for place in changed)]

    try:
        truths = [tensor.detach().clone() for tensor in run(0.0)]
        if len(truths) != count:
            return [None] * count, [None] * count, "in float64 it gives another number of outputs"
    except Exception as error:
        line = str(error).strip().splitlines()[0][:120] if str(error).strip() else type(error).__name__
        return [None] * count, [None] * count, f"in float64 it fails ({line})"
    moves: list[Tensor | None] = [None] * count
    is_pointwise = torch.Tag.pointwise in operation.tags
    for _ in range(PROBES if is_pointwise else 2 * PROBES):  # a sum may hardly move by chance
        try:
            probes = run(STEP)
        except Exception:
            break
        for place, (probe, truth) in enumerate(zip(probes, truths, strict=False)):
            if truth.is_floating_point() or truth.is_complex():
                if probe.shape != truth.shape:
                    continue
                move = (probe - truth).abs().nan_to_num(0.0, 0.0, 0.0)
                largest = truth.abs().nan_to_num(0.0, 0.0, 0.0)
                limit = JUMP * float(largest.max()) if largest.numel() else 0.0
                move = torch.where(move > limit, 0.0, move / STEP)
                known = moves[place]
                moves[place] = move if known is None else torch.maximum(known, move)
    return list(truths), moves, ""


def _widen(value: Any, step: float, generator: torch.Generator) -> Any:
    """Arguments in float64: tensors, moved by `step` at random, and dtypes that are asked for."""
    if isinstance(value, torch.Tensor):
        wide = WIDER.get(value.dtype)
        if wide is None and value.dtype not in (torch.float64, torch.complex128):
            return value
        result = _clone_as(value, wide or value.dtype)
        if step:
            noise = (
                torch.rand(result.shape, dtype=torch.float64, generator=generator, device=result.device)
                .mul_(2 * step)
                .add_(1 - step)
            )
            if not _overlaps_itself(result):
                result.mul_(noise)
        return result
    if isinstance(value, torch.dtype):
        return WIDER.get(value, value)
    if isinstance(value, Mapping):
        return {name: _widen(each, step, generator) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_widen(each, step, generator) for each in value)
    return value


def _clone_as(tensor: Tensor, dtype: torch.dtype) -> Tensor:
    """A copy in the dtype, with the strides of the original."""
    if _overlaps_itself(tensor) or not tensor.numel():
        extent = 1 + sum(
            (size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True)
        )
        flat = tensor.as_strided((max(0, extent) if tensor.numel() else 0,), (1,))
        if not tensor.numel():
            return torch.empty_strided(tensor.shape, tensor.stride(), dtype=dtype, device=tensor.device)
        return flat.to(dtype).as_strided(tensor.shape, tensor.stride(), 0)
    copy = torch.empty_strided(tensor.shape, tensor.stride(), dtype=dtype, device=tensor.device)
    return copy.copy_(tensor)


def _overlaps_itself(tensor: Tensor) -> bool:
    return any(stride == 0 and size > 1 for size, stride in zip(tensor.shape, tensor.stride(), strict=True))


def _summands(operation: Any, tensors: Sequence[Tensor], outputs: Sequence[Tensor]) -> float:
    """L: how many numbers are added up behind one, estimated from the sizes."""
    floats = [tensor for tensor in tensors if tensor.is_floating_point() or tensor.is_complex()]
    numbers = [tensor.numel() for tensor in floats]
    results = [max(1, tensor.numel()) for tensor in outputs] or [1]
    if not numbers:
        return 1.0
    length = max(numbers) / min(results)
    if (
        torch.Tag.pointwise not in operation.tags
    ):  # sums along a dimension, whose results are as many as its numbers
        length = max(length, *(size for tensor in floats for size in (1, *tensor.shape)))
    name = str(operation).split(".")[1]
    if len(numbers) > 1 and CONTRACTION.search(name):
        first, second = sorted(numbers, reverse=True)[:2]
        length = max(length, sqrt(first * second / max(results)))
    return float(max(1.0, length))


def _expect(name: str, native: Tensor, truth: Tensor | None, move: Tensor | None, length: float) -> Expected:
    native = native.detach()
    if not (native.is_floating_point() or native.is_complex()):
        return Expected(name, native)
    info = torch.finfo(native.dtype)
    roundoff, least = info.eps / 2, info.smallest_normal * info.eps
    wide = WIDER.get(native.dtype, native.dtype)
    own = native.to(wide)
    if truth is None or truth.shape != native.shape or not (truth.is_floating_point() or truth.is_complex()):
        truth, error = own, torch.zeros(native.shape, dtype=torch.float64, device=native.device)
    else:
        truth = truth.to(wide)
        error = _own_error(own, truth)
    size = truth.abs().nan_to_num(0.0, 0.0, 0.0)
    scale = size if move is None or move.shape != size.shape else size + move.to(torch.float64)
    allowed = SAFETY * (roundoff * size + error + sqrt(length) * ACCUMULATOR * scale) + least
    return Expected(name, native, truth, allowed)


def _mark_undefined(expected: Expected, other: Tensor) -> Expected:
    """With the places at which `other`, PyTorch's result with garbage in new memory, is no right result."""
    native = expected.native
    if other.shape != native.shape:
        return expected
    differs = ~((other == native) | (other.isnan() & native.isnan()))
    if not bool(differs.any()):
        return expected
    if expected.truth is not None and expected.allowed is not None:
        error = (other.to(expected.truth.dtype) - expected.truth).abs()
        differs &= ~(error <= expected.allowed)
    return replace(expected, undefined=differs) if bool(differs.any()) else expected


def _own_error(own: Tensor, truth: Tensor) -> Tensor:
    """e: the error of PyTorch's own numbers, and for each what the others say."""
    error = (own - truth).abs().nan_to_num(0.0, 0.0, 0.0)
    if not error.numel():
        return error
    size = truth.abs().nan_to_num(0.0, 0.0, 0.0)
    relative = torch.where(size > 0, error / size, 0.0).nan_to_num(0.0, 0.0, 0.0)
    common = torch.minimum(_largest(error), _largest(relative) * size)
    return torch.maximum(error, common)


def _largest(values: Tensor) -> Tensor:
    """The largest value, without the few that say nothing about the others."""
    flat = values.flatten()
    if flat.numel() < MANY:
        return flat.max()
    return flat.kthvalue(int(flat.numel() * (1 - RARE))).values


def count_written(tensors: Iterable[Any], old: Collection[int]) -> int:
    """Bytes of new memory in the tensors that must be written. `old`: addresses of storages that were there before.

    A view writes nothing, and zeros are there without writing: the system gives memory that holds nothing else.
    """
    new: dict[int, int] = {}
    for tensor in tensors:
        storage = tensor.untyped_storage()
        address, size = storage.data_ptr(), min(storage.nbytes(), tensor.numel() * tensor.itemsize)
        if address not in old and _is_not_zero(tensor):
            new[address] = max(size, new.get(address, 0))
    return sum(new.values())


def _is_not_zero(tensor: Any) -> bool:
    with suppress(RuntimeError):  # torch cannot tell it of every dtype
        return bool(tensor.any())
    return False


def count_bytes(tensors: Sequence[Tensor]) -> int:
    """Bytes of the numbers in the tensors, each storage counted once."""
    known: dict[tuple[int, int], int] = {}
    for tensor in tensors:
        spread = [size for size, stride in zip(tensor.shape, tensor.stride(), strict=True) if stride]
        known[tensor.data_ptr(), tensor.itemsize] = max(
            known.get((tensor.data_ptr(), tensor.itemsize), 0), prod(spread) * tensor.itemsize
        )
    return sum(known.values())
