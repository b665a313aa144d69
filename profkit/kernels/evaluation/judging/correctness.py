"""The check of one call: its outputs and changed arguments against the reference.

The results are read out of the memory of the process that made the call, as far as it says where they lie, and only
once their form is that of PyTorch's own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import torch

from profkit.core.types import Fact
from profkit.kernels.evaluation.judging.reference import CallReference, argument_of, leaves_unwritten
from profkit.kernels.evaluation.worker.arguments import DTYPES, Tensor
from profkit.kernels.operations.float64_check import Errors, Expected, Incorrect, compare, other_property
from profkit.kernels.operations.in_float64 import flat_tensors

# Of what gives places, a tie may be broken in another way: the places are right where they hold the same values.
PLACES = {
    "argmax": 0, "argmin": 0, "max": 1, "min": 1, "topk": 1, "sort": 1, "kthvalue": 1, "median": 1, "nanmedian": 1,
    "mode": 1, "cummax": 1, "cummin": 1,
}  # fmt: skip


class CallMemory(Protocol):
    """The memory of the process that made the call: the process is stopped, so nothing changes while it is read."""

    def address_of(self, storage: Tensor) -> tuple[int, int]:
        """Return where these bytes, which both processes share, begin and end in that process."""

    def read(self, address: int, count: int) -> Tensor | None:
        """Read bytes; None where there is nothing at that address."""


class CallCheck:
    """A check of one call, on the arguments that lie in `slot`, against the reference.

    `slot` are the bytes of each storage as they are after the call, and `arguments` the tensors on them.
    """

    def __init__(
        self,
        operation: Any,
        memory: CallMemory,
        reference: CallReference,
        slot: Sequence[Tensor],
        arguments: tuple[Sequence[Any], Mapping[str, Any]],
    ) -> None:
        self._operation, self._memory, self._reference = operation, memory, reference
        self._slot, self._arguments = slot, arguments
        self._bases = [memory.address_of(storage) for storage in slot]

    def check(self, value: Any) -> Errors:
        """Return the errors of the call whose value is described by `value`. Raises Incorrect."""
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
        """Read the outputs of a call. Raises Incorrect unless they are as many plain tensors as the reference's."""
        known = self._reference.value
        natives, described = flat_tensors(known), _flat_description(value)
        if not natives and not isinstance(known, (torch.Tensor, list, tuple)):
            _check_plain(known, value)
        if len(described) != len(natives):
            raise Incorrect("count", Fact.of("other-count", got=len(described), right=len(natives)))
        outputs = [self._read_output(text, place) for place, text in enumerate(described)]
        own = [
            (described[place][0], place, output)
            for place, (output, native) in enumerate(zip(outputs, natives, strict=True))
            if native.untyped_storage().data_ptr() not in self._reference.native_storages and output.numel()
        ]
        self._check_mappings(own)
        return outputs

    def _check_mappings(self, outputs: Sequence[tuple[int, int, Tensor]]) -> None:
        """Check that no output is the memory of an argument mapped at another address.

        Such an output changes when the arguments are inverted. Raises Incorrect.
        """
        for storage in self._slot:
            storage.bitwise_not_()
        try:
            for address, place, output in outputs:
                known = torch.empty(0, dtype=torch.uint8, device=output.device).set_(output.untyped_storage())
                now = self._memory.read(address, known.numel())
                if now is None or not torch.equal(now, known):
                    raise Incorrect("aliasing", Fact.of("shares-memory", place=place))
        finally:
            for storage in self._slot:
                storage.bitwise_not_()

    def _read_output(self, text: Sequence[Any], place: int) -> Tensor:
        """Read an output from the process's memory. Raises Incorrect where its layout differs from PyTorch's own."""
        address, dtype, shape, stride, room, device, lazy = text
        native = self._reference.outputs[place].native
        wanted, name = str(native.dtype).removeprefix("torch."), f"output {place}"
        if dtype != wanted or dtype not in DTYPES:
            raise other_property("dtype", name, dtype, wanted)
        if list(shape) != list(native.shape):
            raise other_property("shape", name, shape, list(native.shape))
        if str(torch.device(device).type) != native.device.type:
            raise other_property("device", name, device, native.device)
        if lazy:
            raise Incorrect("type", Fact.of("lazy-output", place=place))
        if _meaningful(shape, stride) != _meaningful(native.shape, native.stride()):
            raise other_property("stride", name, stride, list(native.stride()))
        if not native.numel():
            return torch.empty(tuple(shape), dtype=native.dtype, device=native.device)
        extent = 1 + sum((size - 1) * step for size, step in zip(shape, stride, strict=True))
        count = extent * native.itemsize
        if room < count:
            raise Incorrect("stride", Fact.of("beyond-memory", place=place))
        self._check_aliasing(native, address, count, place)
        data = self._memory.read(address, count)
        if data is None:
            raise Incorrect("type", Fact.of("no-memory", place=place))
        return data.view(native.dtype).as_strided(tuple(shape), tuple(stride))

    def _check_aliasing(self, native: Tensor, address: int, count: int, place: int) -> None:
        """Check that an output shares memory with an argument where the schema says so, and nowhere else.

        Raises Incorrect.
        """
        storage = native.untyped_storage().data_ptr()
        own = self._reference.native_storages.get(storage)
        returns = self._operation._schema.returns
        info = returns[place].alias_info if place < len(returns) else None
        if own is not None:
            if address != self._bases[own][0] + native.data_ptr() - storage:
                raise Incorrect("aliasing", Fact.of("no-view", place=place))
        elif info is None and any(address < end and begin < address + count for begin, end in self._bases):
            raise Incorrect("aliasing", Fact.of("shares-memory", place=place))


def _flat_description(value: Any) -> list[list[Any]]:
    """Return the tensors of a described value. Raises Incorrect for what is no plain tensor."""
    if isinstance(value, dict):
        if "strange" in value:
            raise Incorrect("type", Fact.of("no-tensor", type=value["strange"]))
        return [value["tensor"]] if "tensor" in value else []
    if isinstance(value, list):
        return [each for part in value for each in _flat_description(part)]
    return []


def _check_plain(native: Any, value: Any) -> None:
    """Check that a number or truth value equals PyTorch's own, floats within 1e-6. Raises Incorrect."""
    if isinstance(value, dict):
        if "float" in value:
            value = float(value["float"])
        elif "complex" in value:
            value = complex(*map(float, value["complex"]))
        else:
            raise Incorrect("type", Fact.of("tensor-given", right=type(native).__name__))
    if isinstance(native, float) and isinstance(value, (int, float)):
        same = (
            value == native
            or abs(value - native) <= 1e-6 * abs(native)
            or (value != value and native != native)
        )
    else:
        same = value == native
    if not same:
        raise Incorrect("values", Fact.of("other-value", got=str(value)[:80], right=str(native)[:80]))


def _meaningful(shape: Sequence[int], stride: Sequence[int]) -> list[int]:
    """Return the strides that matter: not those of dimensions of one element."""
    return [] if 0 in shape else [step for size, step in zip(shape, stride, strict=True) if size > 1]


def _check_changed(argument: Tensor, expected: Expected) -> Errors:
    """Compare an argument that the operation changes. Raises Incorrect."""
    if argument.shape != expected.native.shape:
        return Errors()  # resized by the operation: its value is an output, too
    try:
        return compare(argument.clone(), expected)
    except Incorrect as wrong:
        fault = "mutation" if wrong.fault == "values" else wrong.fault
        raise Incorrect(fault, wrong.reason, wrong.errors) from None


def _check_storages(slot: Sequence[Tensor], reference: CallReference, tensors: Sequence[Tensor]) -> None:
    """Check that all other memory is unchanged: other arguments, and the gaps between elements.

    Raises Incorrect.
    """
    changed = {
        tensors[place].untyped_storage().data_ptr(): tensors[place] for place, _ in reference.arguments
    }
    for now, after in zip(slot, reference.storages, strict=True):
        if not now.numel():
            continue
        view = changed.get(now.untyped_storage().data_ptr())
        if view is None:
            if not torch.equal(now, after):
                raise Incorrect("mutation", Fact("changes-argument"))
            continue
        rest, wanted = now.clone(), after.clone()
        for bytes_ in (rest, wanted):
            typed = torch.empty(0, dtype=view.dtype, device=view.device).set_(
                bytes_.untyped_storage(), view.storage_offset(), view.shape, view.stride()
            )
            typed.zero_()
        if not torch.equal(rest, wanted):
            raise Incorrect("mutation", Fact("writes-beside"))


def _find_ties(
    operation: Any,
    place: int,
    output: Tensor,
    native: Tensor,
    arguments: tuple[Sequence[Any], Mapping[str, Any]],
) -> Tensor | None:
    """Return, where output `place` holds indices, those that select the same value as PyTorch's own index."""
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
    ties = _same(x.gather(dim, output.unsqueeze(dim)), x.gather(dim, native.unsqueeze(dim)))
    return ties.squeeze(dim)


def _same(first: Tensor, second: Tensor) -> Tensor:
    """Return where both are equal, or both NaN."""
    return (first == second) | (first.isnan() & second.isnan())
