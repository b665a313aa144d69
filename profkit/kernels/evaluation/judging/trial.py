"""A test made concrete: its arguments, the expected results, the check of a kernel, and its timing.

Accidents of a process's start (where its code and its stack lie) change the time of a short call by up to 14
%, for as long as the process lives: no number of pairs shows it. So a small difference counts only where new
processes show it, too. On a GPU each launch of one process may take 0.2 µs longer than the same launch of
another, 8 % of the shortest kernels. A small kernel of PyTorch's own, timed in both as a candidate is timed,
shows it before anybody's kernel has run; launches that only set memory have other times. The process that is
further from most others is replaced until both are alike: nothing is subtracted from a time, and no kernel
can influence it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import partial
from time import perf_counter
from typing import Any

import torch

from profkit.analysis.evaluation.scores import doubted
from profkit.core.statistics import median
from profkit.core.types import EvaluationTest, Fact, Speedup
from profkit.execution.child import WorkerEnded
from profkit.kernels.evaluation.candidate.arguments import (
    Encoder,
    KernelCall,
    KernelError,
    Recipe,
    Tensor,
    decode,
)
from profkit.kernels.evaluation.candidate.client import KernelProcess, copy_storages
from profkit.kernels.evaluation.candidate.devices import JudgedDevice
from profkit.kernels.evaluation.candidate.process import TINY_KERNEL
from profkit.kernels.evaluation.judging.correctness import CallCheck
from profkit.kernels.evaluation.judging.fresh_values import (
    FreshValues,
    choose_values,
    device_of,
    shares_of_checks,
)
from profkit.kernels.evaluation.judging.pairs import (
    FreshCall,
    PairedBatches,
    PairedTimes,
    ReferenceFailed,
    Unlaunched,
    blaming,
    calls_in_batch,
    fit_gate,
    time_pairs,
)
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
from profkit.kernels.evaluation.request import JudgeSettings
from profkit.kernels.evaluation.sources.names import find_operator
from profkit.kernels.evaluation.suites.suite import Skip
from profkit.kernels.operations.check import Errors, Incorrect
from profkit.kernels.operations.definitions import FactError
from profkit.kernels.operations.in_float64 import flat_tensors

UNPOOLINGS = ("max_unpool2d", "max_unpool3d")  # of two values for one place PyTorch keeps either
LARGE = 1 << 20  # bytes of arguments: of less, threads would rather wait for each other than compute

SEVERAL = 33  # calls at once, for an estimate


class Cheat(FactError):
    """The kernel was right where it could know that it was checked, and wrong in a timed call."""


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

    def first_call(self, process: KernelProcess) -> None:
        """Call the kernel once and check the result. Raises Incorrect."""
        (call,) = process.call(self.recipe, [self.encoder.contents])
        self._check(process, call, self.reference)

    def check(self, process: KernelProcess) -> Errors:
        """Call the kernel with garbage in its new memory, and check all that it did. Raises Incorrect.

        A second call, on other values, finds results that are kept from the first one; and the first result must
        last: it is read after both. They are one request: a kernel that sees both at once must still give both
        results.
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

    def estimate(self, process: KernelProcess) -> float:
        """Return the seconds of one call of the reference, roughly."""
        process.load(self.test.operation)
        single_call = self._estimate(process, 1)
        limits = self._device.batch
        if (
            not limits.with_results
            or single_call > limits.seconds
            or SEVERAL * self.call_bytes > limits.bytes
        ):
            return single_call
        # Of a short call on a device most is what waking the process and waiting for the device take.
        return max((self._estimate(process, SEVERAL) - single_call) / (SEVERAL - 1), single_call / 100)

    @property
    def call_bytes(self) -> int:
        """Return the bytes that a timed call needs until its batch is over."""
        results = flat_tensors(self.reference.value) if self._device.batch.with_results else []
        return self.recipe.slot_bytes + sum(int(tensor.untyped_storage().nbytes()) for tensor in results)

    def _estimate(self, process: KernelProcess, count: int) -> float:
        """Return the seconds of a batch of `count` calls, the best of three."""
        slots = process.place(self.recipe, count)
        seconds = []
        for _ in range(3):
            for slot in slots:
                copy_storages(self.encoder.contents, slot)
            seconds.append(process.run_slots(count * len(self.reference.outputs))[0])
        return min(seconds)

    def trace(self, process: KernelProcess, calls: int) -> list[tuple[str, float]]:
        """Return what that many calls launch on the device, with its seconds there. Raises KernelError."""
        for slot in process.place(self.recipe, calls):
            copy_storages(self.encoder.contents, slot)
        return process.trace()

    def count_flops(self) -> float | None:
        """Count the floating-point operations of one call; None where torch has no formula for it."""
        from torch.utils.flop_counter import FlopCounterMode

        with suppress(Exception):
            args, kwargs, _ = self._make(self.encoder.contents)
            with FlopCounterMode(display=False) as counter:
                self.operation(*args, **kwargs)
            return float(counter.get_total_flops()) or None
        return None

    def verifier(self, process: KernelProcess) -> Any:
        """Return a function that verifies a timed call: False where it could not be read.

        It raises Cheat, or Incorrect where the kernel is wrong when it is called again, too.
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
                why = wrong.reason
            else:
                return True
            if process.refresh(addresses):
                return False
            (again,) = process.call(self.recipe, [before])
            self._check(process, again, reference)
            raise Cheat(Fact.of("wrong-in-timed-call", why))

        return verify

    def _check(self, process: KernelProcess, call: KernelCall, reference: CallReference) -> Errors:
        """Check a call of the process against a reference. Raises Incorrect."""
        arguments = decode(self.recipe.body, call.slot)
        return CallCheck(self.operation, process, reference, call.slot, arguments).check(call.value)

    def _is_right_by_far(self, process: KernelProcess, call: KernelCall, native: CallReference) -> bool:
        """Return whether a call is as near to PyTorch's own result as the first call may be to the truth."""
        try:
            self._check(process, call, borrow_limits(native, self.reference))
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


# ---------------------------------------------------------------- time

ALIKE = 0.03e-6  # seconds a launch: 0.5 % of a kernel of 6 µs
LAUNCHES = 400  # at a time: a device takes some 1,000 ahead
ELEMENTS = 1 << 16  # of the array, 256 kB: a kernel of 3 µs
ROUNDS, PAIRS = 6, 5  # 60 pairs in a second: their median is known to 0.02 µs
MAX_SECONDS = 60.0  # after which a machine that is not steady gets what it has


def start_alike(candidate: KernelProcess, reference: KernelProcess) -> None:
    """Start both processes unless both run; where they can wait at a gate, until their launches take alike.

    A failure here is ignored: it returns where the test says whose fault it is.
    """
    if candidate.memory.gate is None or (candidate.running and reference.running):
        return
    begin = perf_counter()
    candidate.kill()  # what ran in it may change what a launch takes
    drawn: dict[int, float] = {}  # seconds of a launch, by the number of the process
    with suppress(KernelError, WorkerEnded, ReferenceFailed, Unlaunched):
        while True:
            difference, usual = _time_launches(candidate, reference)
            if abs(difference) <= ALIKE or perf_counter() - begin > MAX_SECONDS:
                return
            drawn[reference.pid], drawn[candidate.pid] = usual, usual + difference
            most = median(list(drawn.values()))
            (candidate if abs(usual + difference - most) > abs(usual - most) else reference).kill()


def _time_launches(candidate: KernelProcess, reference: KernelProcess) -> tuple[float, float]:
    """Return how many seconds longer the candidate's process takes for a launch, and the reference's seconds.

    Raises KernelError, WorkerEnded, ReferenceFailed and Unlaunched.
    """
    encoder = Encoder(torch.device("cuda"))
    recipe = encoder.encode((torch.ones(ELEMENTS),), {})
    for process in (candidate, reference):
        process.load(TINY_KERNEL)
        process.place(recipe, 1)
        process.run_slots(1)  # what is loaded at a first call would wait behind the gate
    launches = min(LAUNCHES, candidate.memory.size // recipe.slot_bytes)  # a part of a GPU may have 1 GB
    pairs = []
    with ExitStack() as cleanup:
        call = FreshCall(recipe, encoder.contents, FreshValues(encoder, recipe), 1)
        batches = PairedBatches(candidate, reference, call, launches, cleanup, gated=True)
        for number in range(ROUNDS):
            batches.renew(pinned=True)
            batches.run_pairs(number)
            pairs += [pair for _ in range(PAIRS) for pair in batches.run_pairs(number)]
    return median([pair.candidate - pair.reference for pair in pairs]), median(
        [pair.reference for pair in pairs]
    )


# That a process may gain or lose by what it has drawn, and more than was seen.
MAX_BY_CHANCE = 0.25
MAX_BY_CHANCE_ON_CUDA = 0.15


class TrialTimer:
    """Times the loaded kernel of `candidate` on a trial, whose timed calls get `fresh` values."""

    def __init__(
        self,
        trial: Trial,
        fresh: FreshValues,
        candidate: KernelProcess,
        device: JudgedDevice,
        settings: JudgeSettings,
    ) -> None:
        self._trial, self._fresh, self._candidate = trial, fresh, candidate
        self._device, self._settings = device, settings
        self._on_cuda = device.device.type == "cuda"
        self._estimate = 0.0

    def begin(self, reference: KernelProcess) -> None:
        """Estimate how long a call takes. Raises ReferenceFailed."""
        with blaming(reference):
            self._estimate = self._trial.estimate(reference)
        self._device.begin_timing()

    def time(self, against: KernelProcess) -> PairedTimes:
        """Time the candidate paired with another process; see `time_pairs` for what is raised."""
        trial = self._trial
        call = FreshCall(trial.recipe, trial.encoder.contents, self._fresh, len(trial.reference.outputs))
        time = partial(
            time_pairs,
            self._candidate,
            against,
            call,
            self._settings.timing,
            trial.verifier(self._candidate),
            pinned=self._settings.threads == 1 or self._on_cuda,
        )
        count = calls_in_batch(self._estimate, trial.call_bytes, self._device.batch)
        if self._on_cuda:
            with suppress(Unlaunched):
                if gated := fit_gate(self._candidate, against, call, count):
                    return time(count=gated, gated=True)
        return time(count=count)

    def confirm(self, times: PairedTimes, reference: KernelProcess) -> tuple[PairedTimes, tuple[Fact, ...]]:
        """Return the times with the word that new processes confirm, and a remark where they do not.

        The speed-up nearer to 1 is kept. Raises Incorrect where a new process computes something else.
        """
        if not may_be_chance(times.speedup, MAX_BY_CHANCE_ON_CUDA if self._on_cuda else MAX_BY_CHANCE):
            return times, ()
        for process in (self._candidate, reference):
            process.kill()
        start_alike(self._candidate, reference)
        with blaming(reference):
            self._warm_up(reference)
        self._warm_up(self._candidate)
        again = self.time(reference)
        nearer = min(times, again, key=lambda each: abs(each.speedup.median - 1))
        nearer = replace(nearer, verified=times.verified + again.verified)
        if again.speedup.word == times.speedup.word:
            return nearer, ()
        nearer = replace(nearer, speedup=doubted(nearer.speedup))
        return nearer, () if again.disturbed else (Fact("difference-of-processes"),)

    def _warm_up(self, process: KernelProcess) -> None:
        """Load the kernel and call it once, since it cannot compile or tune behind the gate."""
        process.load(self._trial.test.operation)
        if self._on_cuda:
            self._trial.first_call(process)


def may_be_chance(speedup: Speedup, most: float = MAX_BY_CHANCE) -> bool:
    """Return whether a new process alone, which changes a time by up to `most`, may explain a difference."""
    near = 1 / (1 + most) < speedup.median < 1 + most
    return near and speedup.word in ("FASTER", "SLOWER")
