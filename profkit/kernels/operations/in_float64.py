"""An operation in float64: its value, its sensitivity to the arguments, and PyTorch's own error near them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, TypeAlias

import torch

from profkit.core.types import Fact

Tensor: TypeAlias = "torch.Tensor"

STEP = 2.0**-36  # of an argument, relative, by which the condition is measured in float64
PROBES = 2
NEARBY = 8  # calls on arguments near by, and
NEARBY_ROUNDOFFS = 8.0  # how near
JUMP = 2.0**-16  # of the largest number: what moves more for such a step is a jump, not a slope
WIDER = {
    torch.float16: torch.float64,
    torch.bfloat16: torch.float64,
    torch.float32: torch.float64,
    torch.complex32: torch.complex128,
    torch.complex64: torch.complex128,
}

# Fresh arguments, and their storages' bytes
Make = Callable[[], tuple[tuple[Any, ...], dict[str, Any], list[Tensor]]]


def flat_tensors(value: Any) -> list[Any]:
    """Return the tensors in a value, or in the arguments of a call, in their order."""
    tensors: list[Any] = []
    _collect_tensors(value, tensors)
    return tensors


def _collect_tensors(value: Any, tensors: list[Any]) -> None:
    """Append the tensors in a value to the list."""
    if isinstance(value, torch.Tensor):
        tensors.append(value)
    elif isinstance(value, (list, tuple)):
        for each in value:
            _collect_tensors(each, tensors)
    elif isinstance(value, dict):
        for each in value.values():
            _collect_tensors(each, tensors)


class Truth:
    """The float64 value of each tensor of the results, and how far it moves with the arguments.

    `missing` says why there is none.
    """

    def __init__(self, operation: Any, make: Make, outputs: int, changed: Sequence[int], seed: int) -> None:
        self._operation, self._make = operation, make
        self._changed = changed
        self._seed = seed
        count = outputs + len(changed)
        self.values: list[Tensor | None] = [None] * count
        self.missing: Fact | None = None
        try:
            values = [tensor.detach().clone() for tensor in self._run(0.0, None)]
        except Exception as error:
            text = str(error).strip()
            line = text.splitlines()[0][:120] if text else type(error).__name__
            self.missing = Fact.of("fails-in-float64", said=line)
            return
        if len(values) == count:
            self.values = list(values)
        else:
            self.missing = Fact("other-count-in-float64")

    def _run(self, step: float, generator: torch.Generator | None) -> list[Tensor]:
        """Return the results on float64 arguments, moved by a relative `step` at random."""
        args, kwargs, _ = self._make()
        return self._results_of(_map_tensors([args, kwargs], lambda each: _widen(each, step, generator)))

    def _results_of(self, arguments: Any) -> list[Tensor]:
        """Return outputs and changed arguments."""
        args, kwargs = arguments
        value = flat_tensors(self._operation(*args, **kwargs))
        if not self._changed:
            return value
        tensors = flat_tensors(arguments)
        return [*value, *(tensors[place] for place in self._changed)]

    def _generator(self, number: int) -> torch.Generator:
        """Return a generator on the results' device, by the seed and a number."""
        device = next((truth.device for truth in self.values if truth is not None), None)
        return torch.Generator(device or torch.device("cpu")).manual_seed(self._seed + number)

    @cached_property
    def moves(self) -> list[Tensor | None]:
        """Return c of the formula for each tensor of the results."""
        moves: list[Tensor | None] = [None] * len(self.values)
        is_pointwise = torch.Tag.pointwise in self._operation.tags
        generator = self._generator(0)
        for _ in range(PROBES if is_pointwise else 2 * PROBES):  # a sum may hardly move by chance
            try:
                probes = self._run(STEP, generator)
            except Exception:
                break
            for place, (probe, truth) in enumerate(zip(probes, self.values, strict=False)):
                if truth is not None:
                    moves[place] = _larger(moves[place], _distance(probe, truth, STEP))
        return moves

    @cached_property
    def errors_nearby(self) -> list[Tensor | None]:
        """Return the largest error of PyTorch itself near these arguments, for each tensor of the results.

        A small error on just these arguments is chance: another right kernel rounds in another place.
        """
        errors: list[Tensor | None] = [None] * len(self.values)
        for number in range(1, NEARBY + 1):
            try:
                natives, truths = (self._run_nearby(number, wide=wide) for wide in (False, True))
            except Exception:
                break
            for place, (native, truth) in enumerate(zip(natives, truths, strict=False)):
                if place < len(errors):
                    errors[place] = _larger(errors[place], _distance(native.to(truth.dtype), truth, 1.0))
        return errors

    def _run_nearby(self, number: int, *, wide: bool) -> list[Tensor]:
        """Return the results on arguments a few roundoffs off, in their own dtypes or in wide ones."""
        args, kwargs, _ = self._make()
        generator = self._generator(number)
        nearby = _map_tensors([args, kwargs], lambda each: _nudge(each, generator))
        return self._results_of(
            _map_tensors(nearby, lambda each: _widen(each, 0.0, None)) if wide else nearby
        )


def _distance(value: Tensor, truth: Tensor, step: float) -> Tensor | None:
    """Return |value - truth| / step, 0 where that is a jump; None where they cannot be compared."""
    if value.shape != truth.shape or not (truth.is_floating_point() or truth.is_complex()):
        return None
    distance = (value - truth).abs().nan_to_num(0.0, 0.0, 0.0)
    largest = truth.abs().nan_to_num(0.0, 0.0, 0.0)
    limit = JUMP * float(largest.max()) if largest.numel() else 0.0
    return torch.where(distance > limit, 0.0, distance / step)


def _larger(known: Tensor | None, other: Tensor | None) -> Tensor | None:
    """Return the larger values of both; the other one where one is None."""
    if known is None or other is None:
        return other if known is None else known
    return torch.maximum(known, other) if known.shape == other.shape else known


def _map_tensors(value: Any, change: Callable[[Any], Any]) -> Any:
    """Return the same value with every tensor and dtype changed."""
    if isinstance(value, (torch.Tensor, torch.dtype)):
        return change(value)
    if isinstance(value, dict):
        return {name: _map_tensors(each, change) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)([_map_tensors(each, change) for each in value])
    return value


def _widen(value: Any, step: float, generator: torch.Generator | None) -> Any:
    """Return a tensor in float64, moved by a relative `step` at random; a dtype as its wide one."""
    if isinstance(value, torch.dtype):
        return WIDER.get(value, value)
    wide = WIDER.get(value.dtype)
    if wide is None and value.dtype not in (torch.float64, torch.complex128):
        return value
    result = _clone_as(value, wide or value.dtype)
    if step and not _overlaps_itself(result):
        noise = torch.empty(result.shape, dtype=torch.float64, device=result.device)
        result.mul_(noise.uniform_(1 - step, 1 + step, generator=generator))
    return result


def _nudge(value: Any, generator: torch.Generator) -> Any:
    """Return a tensor of the same dtype, with each number a few roundoffs off."""
    if isinstance(value, torch.dtype) or value.dtype not in WIDER:
        return value
    step = NEARBY_ROUNDOFFS * torch.finfo(value.dtype).eps / 2
    return _clone_as(_widen(value, step, generator), value.dtype)


def _clone_as(tensor: Tensor, dtype: torch.dtype) -> Tensor:
    """Copy a tensor in the dtype, with the strides of the original."""
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
    """Return whether several elements share an address."""
    return any(stride == 0 and size > 1 for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
