"""Unpoolings write each value to a place that an index names. Of two values for one place PyTorch keeps either.

One test made concrete: its arguments, what they must give, and whether a kernel gives that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from math import prod
from time import perf_counter
from typing import Any

import torch

from profkit.core.types import EvaluationTest
from profkit.kernels.evaluation.candidate.arguments import Encoder, KernelCall, Recipe, Tensor, decode
from profkit.kernels.evaluation.candidate.client import KernelProcess, copy_storages
from profkit.kernels.evaluation.candidate.devices import JudgedDevice
from profkit.kernels.evaluation.judging.correctness import Errors, Incorrect, check_call, is_right_by_far
from profkit.kernels.evaluation.judging.fresh_values import (
    FreshValues,
    choose_values,
    device_of,
    shares_of_checks,
)
from profkit.kernels.evaluation.judging.reference import (
    CallReference,
    FunctionOperation,
    argument_of,
    count_bytes,
    count_written,
    find_operation,
    is_random,
    make_reference,
    run_natively,
)
from profkit.kernels.evaluation.suites.suite import Skip
from profkit.kernels.operations.in_float64 import flat_tensors

DIMENSIONS = {"max_unpool2d": 2, "max_unpool3d": 3}


def separate_places(operation: Any, arguments: tuple[Sequence[Any], Mapping[str, Any]]) -> bool:
    """Give each value of a plane a place of its own, where an unpooling has two for one; whether that is so now.

    The tensor of places is changed. A place that comes first stays; the others become free ones, from the lowest on.
    """
    dimensions = DIMENSIONS.get(str(operation).split(".")[1])
    if dimensions is None:
        return True
    places = argument_of(operation, arguments, "indices")
    if places.dim() < dimensions or not places.numel():
        return True
    size = prod(argument_of(operation, arguments, "output_size"))
    planes = places.flatten(-dimensions).contiguous()
    rows = planes.view(-1, planes.shape[-1])
    if rows.shape[-1] > size:
        return False
    for row in rows:
        _separate(row, size)
    places.copy_(planes.view(places.shape))
    return True


def _separate(row: Tensor, size: int) -> None:
    known = row.tolist()
    seen = set(known)
    if len(seen) == len(known):
        return
    free = (place for place in range(size) if place not in seen)
    taken: set[int] = set()
    for number, place in enumerate(known):
        if place in taken:
            row[number] = next(free)
        taken.add(place)


LARGE = 1 << 20  # bytes of arguments: of less, threads would rather wait for each other than compute

SEVERAL = 33  # calls at once, for an estimate
SECOND_CALL = "right in a first call, and wrong in a second one with other values in other memory"


class Cheat(Exception):
    """The kernel was right where it could know that it was looked at, and wrong in a timed call."""


def use_threads(count: int) -> None:
    """Compute on so many threads in this process."""
    if torch.get_num_threads() != count:
        torch.set_num_threads(count)


class Trial:
    """One test made concrete: its arguments, and what they must give, which large ones take all `threads` for.

    `function`: what is right, in place of PyTorch's own operation.
    """

    def __init__(
        self,
        suite: Any,
        test: EvaluationTest,
        seed: int,
        device: JudgedDevice,
        threads: int = 1,
        function: FunctionOperation | None = None,
    ) -> None:
        self.test, self.seed, self._device = test, seed, device
        self.operation: Any = function or find_operation(test.operation)
        if is_random(self.operation):
            raise Skip("its values are drawn at random")
        arguments = suite.make_arguments(test, seed)
        if not separate_places(self.operation, (arguments.args, arguments.kwargs)):
            raise Skip("it writes two values to one place, and either may stay")
        self.encoder = Encoder(device.device)
        self.recipe: Recipe = self.encoder.encode(arguments.args, arguments.kwargs)
        use_threads(threads if self.recipe.slot_bytes > LARGE else 1)
        self.reference = self._refer(self.encoder.contents)
        self._description: Any = None

    @property
    def arguments(self) -> tuple[Any, ...]:
        """The arguments as the operation finds them."""
        return decode(self.recipe.body, self.encoder.contents)

    @property
    def can_be_timed(self) -> bool:
        """Whether every part of its value is a tensor: addresses of outputs are what a timed batch tells."""
        value = self.reference.value
        parts = value if isinstance(value, (list, tuple)) else (value,)
        return bool(parts) and all(isinstance(part, torch.Tensor) for part in parts)

    @property
    def bytes(self) -> int:
        """That a call must move at least: every argument read once, every output written once."""
        outputs = [expected.native for expected in self.reference.outputs]
        return count_bytes([*flat_tensors(self.arguments), *outputs])

    @property
    def bytes_written(self) -> int:
        """Bytes of new memory that a call must fill."""
        return count_written(flat_tensors(self.reference.value), self.reference.native_storages)

    def first_call(self, process: KernelProcess) -> float:
        """Seconds of a first call, of which the result is checked. Raises Incorrect."""
        begin = perf_counter()
        (call,) = process.call(self.recipe, [self.encoder.contents])
        seconds = perf_counter() - begin
        self._check(process, call, self.reference)
        return seconds

    def check(self, process: KernelProcess) -> Errors:
        """Call the kernel with garbage in its new memory, and check all that it did. Raises Incorrect.

        A second call, on other values, finds what is kept from the first one; and what the first one gave stays: it is
        looked at after both. They are one request: a kernel that sees both at once must still give both results.
        """
        contents, native = [self.encoder.contents], None
        if 2 * self.recipe.slot_bytes < process.memory.size // 2:
            others = [torch.empty_like(content) for content in self.encoder.contents]
            shares = shares_of_checks(device_of(self.encoder.contents))
            FreshValues(self.encoder, self.recipe, shares=shares).write(others)
            with suppress(Exception):  # PyTorch's own, for values that it does not take
                native = run_natively(self.operation, lambda: self._make(others))
                contents.append(others)
        first, *rest = process.call(self.recipe, contents, garbage=True)
        self._description = first.value
        errors = self._check(process, first, self.reference)
        if native is not None:
            (second,) = rest
            if not self._is_right_by_far(process, second, native):
                try:
                    self._check(process, second, self._refer(contents[1]))
                except Incorrect as wrong:
                    raise Incorrect(wrong.fault, f"{SECOND_CALL}: {wrong}", wrong.errors) from None
        return errors

    def choose_values(self) -> FreshValues | None:
        """New values for each timed call; None where the result does not depend on them."""

        def run(contents: Sequence[Tensor]) -> Sequence[Tensor]:
            native = run_natively(self.operation, lambda: self._make(contents))
            return [each.native for each in (*native.outputs, *(each for _, each in native.arguments))]

        chosen = choose_values(self.encoder, self.recipe, run)
        if chosen is None and self.reference.arguments:  # it must be written to the arguments each time
            return FreshValues(self.encoder, self.recipe)
        return chosen

    def estimate(self, process: KernelProcess) -> float:
        """Seconds of one call of the reference, roughly."""
        process.load(self.test.operation)
        one = self._estimate(process, 1)
        limits = self._device.batch
        if not limits.with_results or one > limits.seconds or SEVERAL * self.call_bytes > limits.bytes:
            return one
        # Of a short call on a device most is what waking the process and waiting for the device take.
        return max((self._estimate(process, SEVERAL) - one) / (SEVERAL - 1), one / 100)

    @property
    def call_bytes(self) -> int:
        """That a timed call needs until its batch is over."""
        results = flat_tensors(self.reference.value) if self._device.batch.with_results else []
        return self.recipe.slot_bytes + sum(int(tensor.untyped_storage().nbytes()) for tensor in results)

    def _estimate(self, process: KernelProcess, count: int) -> float:
        slots = process.place(self.recipe, count)
        seconds = []
        for _ in range(3):
            for slot in slots:
                copy_storages(self.encoder.contents, slot)
            seconds.append(process.run_slots(count * len(self.reference.outputs))[0])
        return min(seconds)

    def trace(self, process: KernelProcess, calls: int) -> list[tuple[str, float]]:
        """What so many calls launch on the device, with its seconds there. Raises KernelError."""
        for slot in process.place(self.recipe, calls):
            copy_storages(self.encoder.contents, slot)
        return process.trace()

    def count_flops(self) -> float | None:
        """Floating-point operations of one call, where torch has a formula for it; None where it has none."""
        from torch.utils.flop_counter import FlopCounterMode

        with suppress(Exception):
            args, kwargs, _ = self._make(self.encoder.contents)
            with FlopCounterMode(display=False) as counter:
                self.operation(*args, **kwargs)
            return float(counter.get_total_flops()) or None
        return None

    def verifier(self, process: KernelProcess) -> Any:
        """Verify a timed call: False where it could not be read.

        It raises Cheat, or Incorrect where the kernel is wrong when asked again, too.
        """

        def verify(before: Sequence[Tensor], after: Sequence[Tensor], addresses: Sequence[int]) -> bool:
            timed = KernelCall(after, _with_addresses(self._description, iter(addresses)))
            native = run_natively(self.operation, lambda: self._make(before))
            if self._is_right_by_far(process, timed, native):
                return True
            reference = self._refer(before)
            try:
                self._check(process, timed, reference)
            except Incorrect as wrong:
                why = str(wrong)
            else:
                return True
            if process.refresh(addresses):
                return False
            (again,) = process.call(self.recipe, [before])
            self._check(process, again, reference)
            raise Cheat(f"a timed call was wrong, and the same call was right when it was asked again: {why}")

        return verify

    def _check(self, process: KernelProcess, call: KernelCall, reference: CallReference) -> Errors:
        arguments = decode(self.recipe.body, call.slot)
        return check_call(self.operation, process, call.value, reference, call.slot, arguments)

    def _is_right_by_far(self, process: KernelProcess, call: KernelCall, native: CallReference) -> bool:
        arguments = decode(self.recipe.body, call.slot)
        return is_right_by_far(
            self.operation, process, call.value, native, self.reference, call.slot, arguments
        )

    def _refer(self, contents: Sequence[Tensor]) -> CallReference:
        return make_reference(self.operation, lambda: self._make(contents), self.seed)

    def _make(self, contents: Sequence[Tensor]) -> tuple[tuple[Any, ...], dict[str, Any], list[Tensor]]:
        storages = [content.clone() for content in contents]
        return (*decode(self.recipe.body, storages), storages)


def _with_addresses(description: Any, addresses: Iterator[int]) -> Any:
    """The description of a value whose tensors lie elsewhere."""
    if isinstance(description, list):
        return [_with_addresses(each, addresses) for each in description]
    if isinstance(description, dict) and "tensor" in description:
        return {"tensor": [next(addresses, 0), *description["tensor"][1:]]}
    return description
