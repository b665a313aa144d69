"""A test made concrete: its arguments, the expected results, and the check of a kernel on them.

Here a worker is given arguments and what it returned goes to the check; what is right is decided in `judging`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any, TypeAlias

import torch

from profkit.core.types import EvaluationTest, Fact
from profkit.kernels.evaluation.devices import JudgedDevice
from profkit.kernels.evaluation.fresh_values import (
    FreshValues,
    choose_values,
    device_of,
    shares_of_checks,
)
from profkit.kernels.evaluation.judging.correctness import CallCheck
from profkit.kernels.evaluation.judging.judge import Cheat
from profkit.kernels.evaluation.judging.reference import (
    CallReference,
    FunctionOperation,
    borrow_limits,
    count_bytes,
    count_written,
    is_random,
    make_reference,
    run_natively,
)
from profkit.kernels.evaluation.sources.names import find_operator
from profkit.kernels.evaluation.suites.suite import Skip
from profkit.kernels.evaluation.worker.arguments import Encoder, KernelCall, Recipe, Tensor, decode
from profkit.kernels.evaluation.worker.worker import Worker, copy_storages
from profkit.kernels.operations.float64_check import Errors, Incorrect
from profkit.kernels.operations.in_float64 import flat_tensors

UNPOOLINGS = ("max_unpool2d", "max_unpool3d")  # of two values for one place PyTorch keeps either
LARGE = 1 << 20  # bytes of arguments: of less, threads would rather wait for each other than compute


# Verify one timed call: the bytes of its storages before, and after it, and the addresses of its outputs. False where
# the memory at these addresses was not the one that was open.
Verify: TypeAlias = Callable[[Sequence[Tensor], Sequence[Tensor], Sequence[int]], bool]


def use_threads(count: int) -> None:
    """Compute with `count` threads in this process."""
    if torch.get_num_threads() != count:
        torch.set_num_threads(count)


class Trial:
    """A test made concrete: its arguments and their expected results, which take all `threads` if they are large.

    `function` defines what is right, in place of PyTorch's own operation.
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
        self.operation: Any = function or find_operator(test.operation)
        if is_random(self.operation):
            raise Skip(Fact("random"))
        if test.operation.partition(".")[0] in UNPOOLINGS:
            raise Skip(Fact("either-value"))
        arguments = suite.make_arguments(test, seed)
        self.encoder = Encoder(device.device)
        self.recipe: Recipe = self.encoder.encode(arguments.args, arguments.kwargs)
        use_threads(threads if self.recipe.slot_bytes > LARGE else 1)
        self.reference = self._refer(self.encoder.contents)
        self._description: Any = None

    @property
    def arguments(self) -> tuple[Any, ...]:
        """Return the arguments as the operation gets them."""
        return decode(self.recipe.body, self.encoder.contents)

    @property
    def can_be_timed(self) -> bool:
        """Return whether every part of its value is a tensor: a timed batch reports addresses of outputs only."""
        value = self.reference.value
        parts = value if isinstance(value, (list, tuple)) else (value,)
        return bool(parts) and all(isinstance(part, torch.Tensor) for part in parts)

    @property
    def bytes(self) -> int:
        """Return the bytes that a call must move at least: each argument read once, each output written once."""
        outputs = [expected.native for expected in self.reference.outputs]
        return count_bytes([*flat_tensors(self.arguments), *outputs])

    @property
    def bytes_written(self) -> int:
        """Return the bytes of new memory that a call must fill."""
        return count_written(flat_tensors(self.reference.value), self.reference.native_storages)

    def first_call(self, worker: Worker) -> None:
        """Call the kernel once and check the result. Raises Incorrect."""
        (call,) = worker.call(self.recipe, [self.encoder.contents])
        self._check(worker, call, self.reference)

    def check(self, worker: Worker) -> Errors:
        """Call the kernel with garbage in its new memory, and check all that it did. Raises Incorrect.

        A second call, on other values, finds results that are kept from the first one; and the first result must
        last: it is read after both. They are one request: a kernel that sees both at once must still give both
        results.
        """
        contents, native = [self.encoder.contents], None
        if 2 * self.recipe.slot_bytes < worker.memory.size // 2:
            others = [torch.empty_like(content) for content in self.encoder.contents]
            shares = shares_of_checks(device_of(self.encoder.contents))
            FreshValues(self.encoder, self.recipe, shares=shares).write(others)
            with suppress(Exception):  # PyTorch's own, for values that it does not take
                native = run_natively(self.operation, lambda: self._make(others))
                contents.append(others)
        first, *rest = worker.call(self.recipe, contents, garbage=True)
        self._description = first.value
        errors = self._check(worker, first, self.reference)
        if native is not None:
            (second,) = rest
            if not self._is_right_by_far(worker, second, native):
                try:
                    self._check(worker, second, self._refer(contents[1]))
                except Incorrect as wrong:
                    second_call = Fact.of("wrong-in-second-call", wrong.reason)
                    raise Incorrect(wrong.fault, second_call, wrong.errors) from None
        return errors

    def choose_values(self) -> FreshValues | None:
        """Return new values for each timed call; None where the result does not depend on them."""

        def run(contents: Sequence[Tensor]) -> Sequence[Tensor]:
            native = run_natively(self.operation, lambda: self._make(contents))
            return [each.native for each in (*native.outputs, *(each for _, each in native.arguments))]

        chosen = choose_values(self.encoder, self.recipe, run)
        if chosen is None and self.reference.arguments:  # it must be written to the arguments each time
            return FreshValues(self.encoder, self.recipe)
        return chosen

    @property
    def call_bytes(self) -> int:
        """Return the bytes that a timed call needs until its batch is over."""
        results = flat_tensors(self.reference.value) if self._device.batch.with_results else []
        return self.recipe.slot_bytes + sum(int(tensor.untyped_storage().nbytes()) for tensor in results)

    def trace(self, worker: Worker, calls: int) -> list[tuple[str, float]]:
        """Return what that many calls launch on the device, with its seconds there. Raises KernelError."""
        for slot in worker.lay_out(self.recipe, calls):
            copy_storages(self.encoder.contents, slot)
        return worker.trace()

    def count_flops(self) -> float | None:
        """Count the floating-point operations of one call; None where torch has no formula for it."""
        from torch.utils.flop_counter import FlopCounterMode

        with suppress(Exception):
            args, kwargs, _ = self._make(self.encoder.contents)
            with FlopCounterMode(display=False) as counter:
                self.operation(*args, **kwargs)
            return float(counter.get_total_flops()) or None
        return None

    def verifier(self, worker: Worker) -> Verify:
        """Return a function that verifies a timed call: False where it could not be read.

        It raises Cheat, or Incorrect where the kernel is wrong when it is called again, too.
        """

        def verify(before: Sequence[Tensor], after: Sequence[Tensor], addresses: Sequence[int]) -> bool:
            timed = KernelCall(after, _with_addresses(self._description, iter(addresses)))
            native = run_natively(self.operation, lambda: self._make(before))
            if self._is_right_by_far(worker, timed, native):
                return True
            # A result in float64 takes a hundred times as long: only of what PyTorch's own result does not decide.
            reference = self._refer(before)
            try:
                self._check(worker, timed, reference)
            except Incorrect as wrong:
                why = wrong.reason
            else:
                return True
            if worker.refresh(addresses):
                return False
            # Called again where it can know that it is checked: if it is right now, it cheated before.
            (again,) = worker.call(self.recipe, [before])
            self._check(worker, again, reference)
            raise Cheat(Fact.of("wrong-in-timed-call", why))

        return verify

    def _check(self, worker: Worker, call: KernelCall, reference: CallReference) -> Errors:
        """Check a call of the process against a reference. Raises Incorrect."""
        arguments = decode(self.recipe.body, call.slot)
        return CallCheck(self.operation, worker.memory, reference, call.slot, arguments).check(call.value)

    def _is_right_by_far(self, worker: Worker, call: KernelCall, native: CallReference) -> bool:
        """Return whether a call is as near to PyTorch's own result as the first call may be to the truth."""
        try:
            self._check(worker, call, borrow_limits(native, self.reference))
        except Incorrect:
            return False
        return True

    def _refer(self, contents: Sequence[Tensor]) -> CallReference:
        """Make the reference for these contents."""
        return make_reference(self.operation, lambda: self._make(contents), self.seed)

    def _make(self, contents: Sequence[Tensor]) -> tuple[tuple[Any, ...], dict[str, Any], list[Tensor]]:
        """Make fresh arguments on copies of the contents."""
        storages = [content.clone() for content in contents]
        return (*decode(self.recipe.body, storages), storages)


def _with_addresses(description: Any, addresses: Iterator[int]) -> Any:
    """Return the description of a value with its tensors at other addresses."""
    if isinstance(description, list):
        return [_with_addresses(each, addresses) for each in description]
    if isinstance(description, dict) and "tensor" in description:
        return {"tensor": [next(addresses, 0), *description["tensor"][1:]]}
    return description
