"""How strong is a test? Wrong results of every common kind are held against it; one that passes shows that it is weak.

The kinds are what kernels have been seen to give instead of the right result: a constant, their own input, the result
of a call before, memory that nobody wrote, a result that was computed in half precision or cut off instead of rounded,
and nothing at all where an argument was to be changed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from profkit.core.types import TestStrength
from profkit.kernels.evaluation.candidate.arguments import Tensor
from profkit.kernels.evaluation.candidate.malloc import GARBAGE
from profkit.kernels.evaluation.judging.correctness import Incorrect, compare
from profkit.kernels.evaluation.judging.reference import CallReference, Expected
from profkit.kernels.operations.in_float64 import flat_tensors

WATERMARK = 42
LESS_PRECISE = {torch.float64: torch.float32, torch.float32: torch.float16, torch.float16: torch.bfloat16}
MANY = 1000  # numbers
# Operations that give the values of their input.
COPIES = re.compile(
    r"copy|clone|expand|view|reshape|slice|select|permute|transpose|detach|alias|squeeze|contiguous|lift"
)


def audit_test(
    test: str, operation: str, reference: CallReference, before: Sequence[Any], stale: CallReference
) -> TestStrength:
    """Which wrong results the test with the id `test` finds.

    `before` are the arguments as the operation finds them, and `stale` is the reference for other values of the same
    shapes. A test without numbers in its result is not weak: there is nothing to be wrong.
    """
    expected = [*reference.outputs, *(each for _, each in reference.arguments)]
    if not any(each.native.numel() for each in expected):
        return TestStrength(test, operation, (), ())
    caught: list[str] = []
    missed: list[str] = []
    old = [*stale.outputs, *(each for _, each in stale.arguments)]
    changed = [place for place, _ in reference.arguments]
    for name, outputs in _mutants(operation, expected, old, before, changed).items():
        (caught if _is_found(outputs, expected) else missed).append(name)
    return TestStrength(test, operation, tuple(caught), tuple(missed))


def _is_found(outputs: Sequence[Tensor], expected: Sequence[Expected]) -> bool:
    try:
        for output, each in zip(outputs, expected, strict=True):
            compare(output, each)
    except Incorrect:
        return True
    return False


def _mutants(
    operation: str,
    expected: Sequence[Expected],
    old: Sequence[Expected],
    before: Sequence[Any],
    changed: Sequence[int],
) -> Mapping[str, Sequence[Tensor]]:
    """Wrong results by what is wrong with them."""
    natives = [each.native for each in expected]
    tensors = flat_tensors(before)
    outputs = len(expected) - len(changed)
    mutants = {
        "zeros": [torch.zeros_like(native) for native in natives],
        "ones": [torch.ones_like(native) for native in natives],
        "a constant": [_constant(native) for native in natives],
        "unwritten memory": [_garbage(native) for native in natives],
    }
    if tensors and [each.native.shape for each in old] == [native.shape for native in natives]:
        mutants["the result of another call"] = [each.native for each in old]
    alike = next((x for x in tensors if _is_alike(x, natives[0])), None) if outputs else None
    if alike is not None and not COPIES.search(operation):
        mutants["its input"] = [alike.clone(), *natives[1:]]
    if changed:
        mutants["nothing done"] = [
            *[alike.clone() if alike is not None else native for native in natives[:outputs]],
            *[tensors[place].clone() for place in changed],
        ]
    for name, less in (("less precision", _less_precise), ("cut off instead of rounded", _cut_off)):
        changed_natives = [less(each) for each in expected]
        if any(value is not None for value in changed_natives):
            mutants[name] = [
                native if value is None else value
                for value, native in zip(changed_natives, natives, strict=True)
            ]
    return {name: values for name, values in mutants.items() if not _are_right(values, natives, name)}


def _are_right(values: Sequence[Tensor], natives: Sequence[Tensor], name: str) -> bool:
    """Whether rounding has changed nothing at all: small whole numbers are the same in any precision."""
    return name in ("less precision", "cut off instead of rounded") and all(
        torch.equal(value.nan_to_num(), native.nan_to_num())
        for value, native in zip(values, natives, strict=True)
    )


def _is_alike(x: Tensor, native: Tensor) -> bool:
    return bool(x.shape == native.shape and x.dtype == native.dtype)


def _constant(native: Tensor) -> Tensor:
    return torch.full_like(native, WATERMARK if native.dtype is not torch.bool else 1)


def _garbage(native: Tensor) -> Tensor:
    count = native.numel() * native.itemsize
    if native.dtype is torch.bool or not count:
        return torch.ones_like(native)
    garbage = torch.full((count,), GARBAGE, dtype=torch.uint8, device=native.device)
    return garbage.view(native.dtype).reshape(native.shape)


def _less_precise(expected: Expected) -> Tensor | None:
    less = LESS_PRECISE.get(expected.native.dtype)
    return None if less is None else expected.native.to(less).to(expected.native.dtype)


def _cut_off(expected: Expected) -> Tensor | None:
    """The truth, rounded towards 0 to a half-precision dtype: of a few numbers nothing tells that from rounding."""
    native, truth = expected.native, expected.truth
    if truth is None or native.dtype not in (torch.float16, torch.bfloat16) or native.numel() < MANY:
        return None
    rounded = truth.to(native.dtype)
    towards_zero = torch.nextafter(rounded, torch.zeros_like(rounded))
    return torch.where(rounded.to(torch.float64).abs() > truth.abs(), towards_zero, rounded)
