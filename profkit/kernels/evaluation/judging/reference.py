"""The expected result of an operation: PyTorch's own, the result in float64, and the allowed rounding error.

Allowed of one number, with the unit roundoff u of its dtype and v = 2^-24 of float32, in which kernels add
up:

    |y - t| <= SAFETY * (u |t| + e + sqrt(L) v (|t| + c)) + m

t is the value in float64 (complex128) on the same arguments. e is the error of PyTorch's own result n there:
|n - t|, or the largest error of (nearly) all numbers, absolute or relative to |t|, whichever is smaller for
this number; and where that is not enough, also the largest error of this number on arguments a few roundoffs
away, since n may be exact by chance. c is how much t moves when each floating-point argument moves by its own
size at random, measured with a tiny step: the condition of the operation, so that cancellation allows what it
must (Higham, 'Accuracy and Stability of Numerical Algorithms', 2002, section 1.6). L is how many numbers are
added up for one result, and sqrt(L) for L the probabilistic bound (Higham and Mary, 2019). m is the smallest
number of the dtype. A jump, as of floor(x) at an integer, allows nothing beyond e.

PyTorch's own kernel keeps within the bound by construction; so does one that rounds once more than PyTorch's,
and one that computes in half precision what PyTorch computes in float32 does not.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import cache
from math import prod, sqrt
from types import SimpleNamespace
from typing import Any, ClassVar

import torch

from profkit.core.types import Fact
from profkit.kernels.evaluation.sources.source import SourceRequest
from profkit.kernels.evaluation.worker.arguments import Tensor
from profkit.kernels.evaluation.worker.memory import fill_new_memory
from profkit.kernels.operations.float64_check import ACCUMULATOR, SAFETY, Expected
from profkit.kernels.operations.in_float64 import WIDER, Make, Truth, flat_tensors

# Arguments that normalizations change in training, whatever their schema says.
UNDECLARED = ("running_mean", "running_var")
RARE = 1e-3  # of many numbers may be so wrong in PyTorch itself that they say nothing about the others
MIN_FOR_RARE = 1000
CONTRACTION = re.compile(r"(^|_|add|b)(mm|mv)($|_)|dot|conv|linear|attention|matmul")  # names of operations


@dataclass(frozen=True)
class CallReference:
    """The expected results of a call, and its expected changes to its arguments.

    `value` is PyTorch's own value as it was returned. `storages` are the bytes of the arguments' storages after
    the call.
    """

    value: Any
    outputs: tuple[Expected, ...]
    # tensors that the operation changes: which of all, in their order
    arguments: tuple[tuple[int, Expected], ...]
    storages: tuple[Tensor, ...]
    native_storages: Mapping[int, int] = field(default_factory=dict)  # address of a storage -> its number
    remarks: tuple[Fact, ...] = ()


@dataclass(frozen=True, eq=False)
class FunctionOperation:
    """A user's function in place of an operation of torch's: nothing is known beforehand of what it does.

    `request` brings it to the process of the reference. It is taken to change no argument, and to add up as a
    product does.
    """

    function: Callable[..., Any]
    request: SourceRequest
    tags: ClassVar[tuple[Any, ...]] = ()
    _schema: ClassVar[Any] = SimpleNamespace(arguments=(), returns=())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function."""
        return self.function(*args, **kwargs)

    def __str__(self) -> str:
        """Return a name as torch's operations have."""
        return "python.dot_of_a_function.default"


def is_random(operation: Any) -> bool:
    """Return whether the operation's values are drawn at random."""
    return torch.Tag.nondeterministic_seeded in operation.tags


def leaves_unwritten(operation: Any) -> bool:
    """Return whether the values of its result are undefined, as those of `empty`."""
    return str(operation).split(".")[1].startswith(("empty", "new_empty", "_empty", "resize"))


def argument_of(operation: Any, arguments: tuple[Sequence[Any], Mapping[str, Any]], name: str) -> Any:
    """Return the argument of that name in the operation's schema, or its default; None where it has none."""
    args, kwargs = arguments
    for place, argument in enumerate(operation._schema.arguments):
        if argument.name == name:
            default = argument.default_value if argument.has_default_value() else None
            return kwargs.get(name, args[place] if place < len(args) else default)
    return None


def written_places(operation: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> set[int]:
    """Return which tensors of the arguments, counted in their order, the operation may change."""
    positional, named = _written_arguments(operation)
    if not named:
        return set()
    places: set[int] = set()
    count = 0
    values = [(place < len(positional) and positional[place], value) for place, value in enumerate(args)]
    values += [(name in named, value) for name, value in kwargs.items()]
    for is_written, value in values:
        tensors = len(flat_tensors(value))
        if is_written:
            places.update(range(count, count + tensors))
        count += tensors
    return places


@cache
def _written_arguments(operation: Any) -> tuple[Sequence[bool], Collection[str]]:
    """Return for each positional argument whether it may be changed, and the names of all that may be."""
    schema = operation._schema.arguments
    written = {
        argument.name
        for argument in schema
        if argument.name in UNDECLARED or (argument.alias_info is not None and argument.alias_info.is_write)
    }
    return [argument.name in written for argument in schema if not argument.kwarg_only], written


def run_natively(operation: Any, make: Make, *, garbage: bool = False) -> CallReference:
    """Run PyTorch's own operation, without a truth. `make` gives fresh arguments, and their storages' bytes.

    `garbage`: new memory holds garbage at first. Raises whatever PyTorch raises for these arguments.
    """
    args, kwargs, storages = make()
    numbers = {storage.untyped_storage().data_ptr(): place for place, storage in enumerate(storages)}
    # Not before: what making the arguments has freed is the memory that the operation is given next.
    with _fill_new_memory(args, kwargs) if garbage else nullcontext():
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
    """Make the reference of a call: PyTorch's own result, the truth in float64, and the allowed error.

    Raises whatever PyTorch raises for these arguments.
    """
    if leaves_unwritten(operation):
        return run_natively(operation, make)
    args, kwargs, _ = make()
    tensors = flat_tensors([args, kwargs])
    filled = run_natively(operation, make, garbage=True)
    truth = Truth(operation, make, len(filled.outputs), [place for place, _ in filled.arguments], seed)
    native = run_natively(operation, make)
    results, filled_results = _results(native), _results(filled)
    length = _summands(operation, tensors, [each.native for each in native.outputs])
    expected = [_expect(each, truth, place, length) for place, each in enumerate(results)]
    expected = [
        _mark_undefined(each, filled_result.native)
        for each, filled_result in zip(expected, filled_results, strict=True)
    ]
    remarks = (Fact.of("no-truth", truth.missing),) if truth.missing is not None else ()
    return replace(_with_results(native, expected), remarks=remarks)


def borrow_limits(native: CallReference, similar: CallReference) -> CallReference:
    """Take PyTorch's own result as the truth, with the limits of a similar call, of nearly as large numbers.

    This costs a hundredth of a reference in float64. A result that fails it may still be right.
    """

    def borrow(now: Expected, known: Expected) -> Expected:
        own = now.native
        if known.allowed is None or known.allowed.shape != own.shape:
            return now
        return replace(known, native=own, truth=own.to(WIDER.get(own.dtype, own.dtype)))

    return _with_results(native, list(map(borrow, _results(native), _results(similar))))


def _with_results(native: CallReference, expected: Sequence[Expected]) -> CallReference:
    """Return the reference with other outputs and changed arguments, given in that order."""
    count = len(native.outputs)
    changed = zip(native.arguments, expected[count:], strict=True)
    arguments = tuple((place, each) for (place, _), each in changed)
    return replace(native, outputs=tuple(expected[:count]), arguments=arguments)


def _fill_new_memory(args: Sequence[Any], kwargs: Mapping[str, Any]) -> AbstractContextManager[None]:
    """Make new memory of this process hold garbage at first, on the device of the arguments."""
    if any(tensor.device.type == "cuda" for tensor in flat_tensors([args, kwargs])):
        from profkit.kernels.evaluation.worker.cuda_memory import fill_new_device_memory

        return fill_new_device_memory()
    return fill_new_memory()


def _results(reference: CallReference) -> list[Expected]:
    """Return outputs and changed arguments in one list."""
    return [*reference.outputs, *(each for _, each in reference.arguments)]


def _summands(operation: Any, tensors: Sequence[Tensor], outputs: Sequence[Tensor]) -> float:
    """Return L: how many numbers are added up for one result, estimated from the sizes."""
    floats = [tensor for tensor in tensors if tensor.is_floating_point() or tensor.is_complex()]
    numbers = [tensor.numel() for tensor in floats]
    results = [max(1, tensor.numel()) for tensor in outputs] or [1]
    if not numbers:
        return 1.0
    length = max(numbers) / min(results)
    # Of cumsum, say: sums along a dimension, whose results are as many as its numbers.
    if torch.Tag.pointwise not in operation.tags:
        length = max(length, *(size for tensor in floats for size in (1, *tensor.shape)))
    name = str(operation).split(".")[1]
    if len(numbers) > 1 and CONTRACTION.search(name):
        first, second = sorted(numbers, reverse=True)[:2]
        length = max(length, sqrt(first * second / max(results)))
    return float(max(1.0, length))


def _expect(result: Expected, truths: Truth, place: int, length: float) -> Expected:
    """Return the expected result `place` with its truth and the allowed error of each number."""
    native, truth = result.native.detach(), truths.values[place]
    if not (native.is_floating_point() or native.is_complex()):
        return Expected(result.name, native)
    info = torch.finfo(native.dtype)
    roundoff, min_number = info.eps / 2, info.smallest_normal * info.eps
    wide = WIDER.get(native.dtype, native.dtype)
    own = native.to(wide)
    if truth is None or truth.shape != native.shape or not (truth.is_floating_point() or truth.is_complex()):
        truth, error = own, torch.zeros(native.shape, dtype=torch.float64, device=native.device)
    else:
        truth = truth.to(wide)
        error = _own_error(own, truth)
    size = truth.abs().nan_to_num_(0.0, 0.0, 0.0)
    accumulated = SAFETY * sqrt(length) * ACCUMULATOR
    allowed = (SAFETY * roundoff + accumulated) * size + SAFETY * error + min_number

    def allow_by_condition() -> Tensor | None:
        move, nearby = truths.moves[place], truths.errors_nearby[place]
        more = torch.zeros_like(size)
        if move is not None and move.shape == size.shape:
            more += accumulated * move
        if nearby is not None and nearby.shape == size.shape:
            more += SAFETY * nearby
        return more

    return Expected(result.name, native, truth, allowed, condition=allow_by_condition)


def _mark_undefined(expected: Expected, filled: Tensor) -> Expected:
    """Mark the places at which `other`, PyTorch's result with garbage in new memory, is not a right result."""
    native = expected.native
    if filled.shape != native.shape:
        return expected
    differs = ~((filled == native) | (filled.isnan() & native.isnan()))
    if not bool(differs.any()):
        return expected
    expected = expected.with_condition()
    if expected.truth is not None and expected.allowed is not None:
        error = (filled.to(expected.truth.dtype) - expected.truth).abs()
        differs &= ~(error <= expected.allowed)
    return replace(expected, undefined=differs) if bool(differs.any()) else expected


def _own_error(own: Tensor, truth: Tensor) -> Tensor:
    """Return e: the error of each of PyTorch's own numbers, or the common error where that is larger."""
    error = (own - truth).abs().nan_to_num(0.0, 0.0, 0.0)
    if not error.numel():
        return error
    size = truth.abs().nan_to_num(0.0, 0.0, 0.0)
    relative = torch.where(size > 0, error / size, 0.0).nan_to_num(0.0, 0.0, 0.0)
    common = torch.minimum(_largest(error), _largest(relative) * size)
    return torch.maximum(error, common)


def _largest(values: Tensor) -> Tensor:
    """Return the largest value, without the few outliers that say nothing about the others."""
    flat = values.flatten()
    if flat.numel() < MIN_FOR_RARE:
        return flat.max()
    return flat.kthvalue(int(flat.numel() * (1 - RARE))).values


def count_written(tensors: Iterable[Any], old: Collection[int]) -> int:
    """Count the bytes of new memory in the tensors that must be written.

    `old`: addresses of storages that were there before. A view writes nothing, and zeros need no writing: the
    system gives memory that holds nothing else.
    """
    new: dict[int, int] = {}
    for tensor in tensors:
        storage = tensor.untyped_storage()
        address, size = storage.data_ptr(), min(storage.nbytes(), tensor.numel() * tensor.itemsize)
        if address not in old and _is_not_zero(tensor):
            new[address] = max(size, new.get(address, 0))
    return sum(new.values())


def _is_not_zero(tensor: Any) -> bool:
    """Return whether a tensor holds anything but zeros."""
    with suppress(RuntimeError):  # torch cannot tell it of every dtype
        return bool(tensor.any())
    return False


def count_bytes(tensors: Sequence[Tensor]) -> int:
    """Count the bytes of the numbers in the tensors, each storage once."""
    known: dict[tuple[int, int], int] = {}
    for tensor in tensors:
        spread = [size for size, stride in zip(tensor.shape, tensor.stride(), strict=True) if stride]
        known[tensor.data_ptr(), tensor.itemsize] = max(
            known.get((tensor.data_ptr(), tensor.itemsize), 0), prod(spread) * tensor.itemsize
        )
    return sum(known.values())
