"""Is what a kernel gave, and what it did to its arguments, what the reference says? Decided in the judge's process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from profkit.core.types import Fault
from profkit.kernels.evaluation.candidate.arguments import DTYPES, Tensor
from profkit.kernels.evaluation.candidate.client import KernelProcess
from profkit.kernels.evaluation.judging.reference import (
    CallReference,
    Expected,
    argument_of,
    leaves_unwritten,
)
from profkit.kernels.operations.check import lean_limit
from profkit.kernels.operations.in_float64 import WIDER, flat_tensors

EPS = 1e-10  # of a relative error, as the field has it: |y - t| / (|t| + eps)
# Of what gives places, a tie may be broken in another way: the places are right where they hold the same values.
PLACES = {
    "argmax": 0, "argmin": 0, "max": 1, "min": 1, "topk": 1, "sort": 1, "kthvalue": 1, "median": 1, "nanmedian": 1,
    "mode": 1, "cummax": 1, "cummin": 1,
}  # fmt: skip


@dataclass(frozen=True)
class Errors:
    """Largest errors against float64: absolute, relative, and as a share of what is allowed (at most 1 is correct)."""

    absolute: float = 0.0
    relative: float = 0.0
    share: float = 0.0

    def with_other(self, other: Errors) -> Errors:
        """The larger ones of both."""
        return Errors(
            max(self.absolute, other.absolute),
            max(self.relative, other.relative),
            max(self.share, other.share),
        )


class Incorrect(Exception):
    """What the kernel gave is wrong; the text says where, and `errors` by how much where that is a number."""

    def __init__(self, fault: Fault, reason: str, errors: Errors | None = None) -> None:
        super().__init__(reason)
        self.fault = fault
        self.errors = errors


class CallCheck:
    """A call of the process's kernel on the arguments that lie in `slot`, held against the reference.

    `slot` are the bytes of each storage as they are after the call, and `arguments` the tensors on them.
    """

    def __init__(
        self,
        operation: Any,
        process: KernelProcess,
        reference: CallReference,
        slot: Sequence[Tensor],
        arguments: tuple[Sequence[Any], Mapping[str, Any]],
    ) -> None:
        self._operation, self._process, self._reference = operation, process, reference
        self._slot, self._arguments = slot, arguments
        self._bases = [process.address_of(storage) for storage in slot]

    def check(self, value: Any) -> Errors:
        """The errors of the call whose value is described by `value`. Raises Incorrect."""
        errors = Errors()
        for place, output in enumerate(self._read_outputs(value)):
            expected = self._reference.outputs[place]
            if not leaves_unwritten(self._operation):
                ties = _find_ties(self._operation, place, output, expected.native, self._arguments)
                errors = errors.with_other(compare(output, expected, ties))
        tensors = flat_tensors(self._arguments)
        for place, expected in self._reference.arguments:
            errors = errors.with_other(_check_changed(tensors[place], expected))
        _check_storages(self._slot, self._reference, tensors)
        return errors

    def _read_outputs(self, value: Any) -> list[Tensor]:
        """The outputs of a call. Raises Incorrect where it gives something else than so many plain tensors."""
        known = self._reference.value
        natives, described = flat_tensors(known), _flat_description(value)
        if not natives and not isinstance(known, (torch.Tensor, list, tuple)):
            _check_plain(known, value)
        if len(described) != len(natives):
            raise Incorrect("count", f"it gives {len(described)} tensors, and PyTorch gives {len(natives)}")
        outputs = [self._read_output(text, place) for place, text in enumerate(described)]
        own = [
            (described[place][0], place, output)
            for place, (output, native) in enumerate(zip(outputs, natives, strict=True))
            if native.untyped_storage().data_ptr() not in self._reference.native_storages and output.numel()
        ]
        self._check_mappings(own)
        return outputs

    def _check_mappings(self, outputs: Sequence[tuple[int, int, Tensor]]) -> None:
        """Whether an output, by its address, is the memory of an argument at another address: it changes with that."""
        for storage in self._slot:
            storage.bitwise_not_()
        try:
            for address, place, output in outputs:
                known = torch.empty(0, dtype=torch.uint8, device=output.device).set_(output.untyped_storage())
                now = self._process.read(address, known.numel())
                if now is None or not torch.equal(now, known):
                    raise Incorrect(
                        "aliasing", f"output {place} shares memory with an argument, and must not"
                    )
        finally:
            for storage in self._slot:
                storage.bitwise_not_()

    def _read_output(self, text: Sequence[Any], place: int) -> Tensor:
        """An output, read out of the process's memory. Raises Incorrect where it is not laid out as PyTorch's own."""
        address, dtype, shape, stride, room, device, lazy = text
        native = self._reference.outputs[place].native
        wanted = str(native.dtype).removeprefix("torch.")
        if dtype != wanted or dtype not in DTYPES:
            raise Incorrect("dtype", f"output {place} is {dtype} instead of {wanted}")
        if list(shape) != list(native.shape):
            raise Incorrect("shape", f"output {place} has shape {shape} instead of {list(native.shape)}")
        if str(torch.device(device).type) != native.device.type:
            raise Incorrect("device", f"output {place} is on {device} instead of {native.device}")
        if lazy:
            raise Incorrect("type", f"output {place} is conjugated or negated lazily")
        if _meaningful(shape, stride) != _meaningful(native.shape, native.stride()):
            own = list(native.stride())
            raise Incorrect("stride", f"output {place} has strides {stride}; PyTorch gives {own}")
        if not native.numel():
            return torch.empty(tuple(shape), dtype=native.dtype, device=native.device)
        extent = 1 + sum((size - 1) * step for size, step in zip(shape, stride, strict=True))
        count = extent * native.itemsize
        if room < count:
            raise Incorrect("stride", f"output {place} reaches beyond its memory")
        self._check_aliasing(native, address, count, place)
        data = self._process.read(address, count)
        if data is None:
            raise Incorrect("type", f"output {place} lies where its process has no memory")
        return data.view(native.dtype).as_strided(tuple(shape), tuple(stride))

    def _check_aliasing(self, native: Tensor, address: int, count: int, place: int) -> None:
        """Whether an output shares memory with an argument where the schema says so, and nowhere else."""
        storage = native.untyped_storage().data_ptr()
        own = self._reference.native_storages.get(storage)
        returns = self._operation._schema.returns
        info = returns[place].alias_info if place < len(returns) else None
        if own is not None:
            if address != self._bases[own][0] + native.data_ptr() - storage:
                raise Incorrect("aliasing", f"output {place} must be a view of an argument, and is not")
        elif info is None and any(address < end and begin < address + count for begin, end in self._bases):
            raise Incorrect("aliasing", f"output {place} shares memory with an argument, and must not")


def compare(output: Tensor, expected: Expected, ties: Tensor | None = None) -> Errors:
    """The errors of a tensor. Raises Incorrect where one is larger than allowed."""
    if expected.condition is None:
        return _compare(output, expected, ties)
    try:
        return _compare(output, expected, ties)
    except Incorrect:
        return _compare(output, expected.with_condition(), ties)


def _compare(output: Tensor, expected: Expected, ties: Tensor | None) -> Errors:
    native = expected.native
    if expected.undefined is not None:
        output = torch.where(expected.undefined, native, output)
    if expected.truth is None or expected.allowed is None:
        wrong = output != native
        if native.is_floating_point() or native.is_complex():
            wrong &= ~(output.isnan() & native.isnan())
        if ties is not None:
            wrong &= ~ties.reshape(wrong.shape)
        count = int(wrong.sum())
        if count:
            raise Incorrect("values", _where(expected.name, wrong, output, native, count))
        return Errors()
    wide = WIDER.get(output.dtype, output.dtype)
    value, truth = output.to(wide), expected.truth
    finite = value.isfinite() & truth.isfinite()
    same = (output == native) | (output.isnan() & native.isnan())
    rounded = truth.to(native.dtype)  # beyond the largest number: infinity
    same |= (output == rounded) | (output.isnan() & truth.isnan())
    strange = ~finite & ~same
    if bool(strange.any()):
        raise Incorrect("not-finite", _where(expected.name, strange, output, native, int(strange.sum())))
    difference = torch.where(finite, (value - truth).abs(), 0.0)
    wrong = (difference > expected.allowed) & ~(output == native)
    if not difference.numel():
        return Errors()
    share = torch.where((output == native) | (difference == 0), 0.0, difference / expected.allowed)
    size = truth.abs().nan_to_num(0.0, 0.0, 0.0)
    relative = difference / (size + EPS)
    errors = Errors(float(difference.max()), float(relative.max()), float(share.max()))
    if bool(wrong.any()):
        where = _where(expected.name, wrong, output, truth, int(wrong.sum()))
        raise Incorrect("values", where, errors)
    _check_lean(value, expected, finite)
    return errors


def _check_lean(value: Tensor, expected: Expected, finite: Tensor) -> None:
    """Rounding leans to no side; a result that is cut off does. See `profkit.kernels.operations.check`.

    Of all numbers y with the truth t, |sum((y - t) sign(t))| / sum(|t|) is at most an eighth of the unit roundoff u,
    and what chance explains, SAFETY u / sqrt(3 N), beyond how far PyTorch's own result leans. N: how many count.
    """
    truth, native = expected.truth, expected.native
    if truth is None or native.dtype not in (torch.float16, torch.bfloat16):
        return
    size = torch.where(finite, truth.abs(), 0.0)
    total = float(size.sum())
    if total == 0:
        return
    roundoff = torch.finfo(native.dtype).eps / 2
    scaled = size / size.max()  # squares of the largest numbers are no numbers
    effective = float(scaled.sum()) ** 2 / float((scaled**2).sum())
    sign = torch.where(finite, truth.sign(), 0.0)
    own = native.to(value.dtype).nan_to_num(0.0, 0.0, 0.0)
    plain = truth.nan_to_num(0.0, 0.0, 0.0)
    lean = abs(float(((value.nan_to_num(0.0, 0.0, 0.0) - plain) * sign).sum())) / total
    explained = abs(float(((own - plain) * sign).sum())) / total
    allowed = lean_limit(roundoff, roundoff, effective, explained)
    if lean > allowed:
        raise Incorrect(
            "values",
            f"{expected.name} leans to one side by {lean:.2g} of its size, {allowed:.2g} is explained: "
            "it is cut off instead of rounded, or off by a factor",
        )


def _where(name: str, wrong: Tensor, output: Tensor, wanted: Tensor, count: int) -> str:
    """`output 0 at [3, 5] is 1.5 instead of 1.25; 12 of 1,024 are wrong`."""
    place = [int(each) for each in wrong.nonzero()[0]]
    got, right = output[tuple(place)].item(), wanted[tuple(place)].item()
    at = f" at {place}" if place else ""
    many = f"{count:,} of {wrong.numel():,} numbers {'is' if count == 1 else 'are'} wrong"
    return f"{name}{at} is {got:.6g} instead of {right:.6g}; {many}"


def _flat_description(value: Any) -> list[list[Any]]:
    """The tensors of a described value. Raises Incorrect for what is no plain tensor."""
    if isinstance(value, dict):
        if "strange" in value:
            raise Incorrect("type", f"it gives {value['strange']} instead of a plain tensor")
        return [value["tensor"]] if "tensor" in value else []
    if isinstance(value, list):
        return [each for part in value for each in _flat_description(part)]
    return []


def _check_plain(native: Any, value: Any) -> None:
    """A number or a truth value, equal to PyTorch's own, or as near as float64 is."""
    if isinstance(value, dict):
        if "float" in value:
            value = float(value["float"])
        elif "complex" in value:
            value = complex(*map(float, value["complex"]))
        else:
            raise Incorrect("type", f"it gives a tensor, and PyTorch gives a {type(native).__name__}")
    if isinstance(native, float) and isinstance(value, (int, float)):
        same = (
            value == native
            or abs(value - native) <= 1e-6 * abs(native)
            or (value != value and native != native)
        )
    else:
        same = value == native
    if not same:
        raise Incorrect("values", f"it gives {str(value)[:80]} instead of {str(native)[:80]}")


def _meaningful(shape: Sequence[int], stride: Sequence[int]) -> list[int]:
    """The strides that matter: not those of dimensions of one element."""
    return [] if 0 in shape else [step for size, step in zip(shape, stride, strict=True) if size > 1]


def _check_changed(argument: Tensor, expected: Expected) -> Errors:
    """An argument that the operation changes."""
    if argument.shape != expected.native.shape:
        return Errors()  # resized by the operation: its value is an output, too
    try:
        return compare(argument.clone(), expected)
    except Incorrect as wrong:
        fault = "mutation" if wrong.fault == "values" else wrong.fault
        raise Incorrect(fault, str(wrong), wrong.errors) from None


def _check_storages(slot: Sequence[Tensor], reference: CallReference, tensors: Sequence[Tensor]) -> None:
    """All that the operation does not name is as it was: other arguments, and what lies between their elements."""
    changed = {
        tensors[place].untyped_storage().data_ptr(): tensors[place] for place, _ in reference.arguments
    }
    for now, after in zip(slot, reference.storages, strict=True):
        if not now.numel():
            continue
        view = changed.get(now.untyped_storage().data_ptr())
        if view is None:
            if not torch.equal(now, after):
                raise Incorrect("mutation", "it changes an argument that the operation does not change")
            continue
        rest, wanted = now.clone(), after.clone()
        for bytes_ in (rest, wanted):
            typed = torch.empty(0, dtype=view.dtype, device=view.device).set_(
                bytes_.untyped_storage(), view.storage_offset(), view.shape, view.stride()
            )
            typed.zero_()
        if not torch.equal(rest, wanted):
            raise Incorrect("mutation", "it writes beside the elements of an argument that it may change")


def _find_ties(
    operation: Any,
    place: int,
    output: Tensor,
    native: Tensor,
    arguments: tuple[Sequence[Any], Mapping[str, Any]],
) -> Tensor | None:
    """Where output `place` holds places: those at which there is the same value as at PyTorch's own place."""
    name = str(operation).split(".")[1]
    if PLACES.get(name) != place or output.dtype is not torch.int64:
        return None
    x = flat_tensors(arguments)[0]
    dim = argument_of(operation, arguments, "dim")
    if dim is None or not x.dim():
        x, dim = x.flatten(), 0
        output, native = output.reshape(-1), native.reshape(-1)
    if not bool(((output >= 0) & (output < x.shape[dim])).all()):
        return None
    if output.dim() == x.dim():
        return _same(x.gather(dim, output), x.gather(dim, native))
    found = _same(x.gather(dim, output.unsqueeze(dim)), x.gather(dim, native.unsqueeze(dim)))
    return found.squeeze(dim)


def _same(first: Tensor, second: Tensor) -> Tensor:
    return (first == second) | (first.isnan() & second.isnan())
