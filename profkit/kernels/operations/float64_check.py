"""The check of a result against float64 on the same inputs, within what rounding alone can explain.

What is allowed of one number y, with the unit roundoffs u of the dtype and v = 2^-24 of float32:

    |y - reference| <= SAFETY * (u * |reference| + (k * u + sqrt(n) * v) * s) + m

It is rounded to the dtype once, at the end. Before that it is computed in float32, by n successive roundings
of numbers as large as s: what is added up there in absolute values, of which cancellation leaves the errors
(running error analysis: Higham, 'Accuracy and Stability of Numerical Algorithms', 2002, section 3.3); sqrt(n)
for n is the probabilistic bound (Higham and Mary, 'A new approach to probabilistic rounding error analysis',
2019). k is 1 where torch keeps an intermediate result in the dtype from the forward call, else 0, and m the
dtype's least number. Each operation gives n, s and k. For comparison: 4 u is 0.0156 in bfloat16 and 0.002 in
float16; FlagGems allows 0.016 and 0.001.

Rounding is unbiased, mistakes are not. So of a whole array in half precision, with |r| the sum of
|reference|,

    |sum((y - reference) * sign(reference))| / |r| <= u / 8 + SAFETY * (u / sqrt(3 N) + e + sqrt(n) * v * |s| / |r|)

with N = |r|^2 / sum(reference^2), the effective number of elements: the error of a rounded number is uniform,
at most u, with a deviation of u / sqrt(3), and so is that of what was kept, k u |s| / |r| more; e is the bias
of the right result itself, rounded. This shows a factor that no single number shows: Bessel's correction of
512 numbers is a thousandth, a quarter of what bfloat16 resolves.

A second check follows the timing: does the call still compute, and from its present inputs? A result that was
computed beforehand, or is remembered by its input's address, passes the first check, and so does a kernel
that adds to a buffer that nobody clears. So the call is made once more with other numbers in the same memory,
and its result compared with float64.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import inf, sqrt
from typing import Any, NamedTuple

import torch

from profkit.core.types import Fact, Fault
from profkit.kernels.operations.definitions import DTYPES, Call, FactError, Problem, Tensor

SAFETY = 4.0
ACCUMULATOR = 2.0**-24
LEAN = 1 / 8  # of the unit roundoff: a result that is cut off and not rounded leans by 2 / 3 of it
EXACT = 1e-13  # below it float64 itself is noise, where a result is 0 by cancelling
RELATIVE_EPS = 1e-10  # of a relative error, as the field has it: |y - t| / (|t| + eps)
CHUNK = 1 << 24  # elements of x that are taken at once: 128 MiB in float64


@dataclass(frozen=True)
class Errors:
    """Largest errors against float64: absolute, relative, and as a share of what is allowed (up to 1: correct)."""

    absolute: float = 0.0
    relative: float = 0.0
    share: float = 0.0

    def with_other(self, other: Errors) -> Errors:
        """Return the larger errors of both."""
        return Errors(
            max(self.absolute, other.absolute),
            max(self.relative, other.relative),
            max(self.share, other.share),
        )


class Incorrect(FactError):
    """The kernel's result is wrong; the reason says where, and `errors` by how much where that is a number."""

    def __init__(self, fault: Fault, reason: Fact, errors: Errors | None = None) -> None:
        super().__init__(reason)
        self.fault, self.errors = fault, errors


@dataclass(frozen=True)
class Expected:
    """An expected tensor: PyTorch's own result, the truth in float64, and the allowed error of each number.

    `truth` and `allowed` are None where the numbers must equal PyTorch's own: integers and truth values. What the
    condition of the operation allows is added to `allowed` by `with_condition` alone: measuring it takes as long
    as all the rest.
    """

    name: str  # "output 0", "argument out"
    native: Tensor
    truth: Tensor | None = None
    allowed: Tensor | None = None
    undefined: Tensor | None = None  # places that PyTorch itself leaves unwritten: anything may stand there
    condition: Callable[[], Tensor | None] | None = None  # what it allows beyond `allowed`
    leans: float = 0.0  # by what share of its size it may lean beyond how far `native` does

    def with_condition(self) -> Expected:
        """Add what the condition allows; returns itself where that is added already, or nothing."""
        if self.condition is None or self.allowed is None:
            return self
        more = self.condition()
        allowed = self.allowed if more is None else self.allowed + more
        return replace(self, allowed=allowed, condition=None)


def compare(output: Tensor, expected: Expected, ties: Tensor | None = None) -> Errors:
    """Return the errors of a tensor. Raises Incorrect where one is larger than allowed."""
    if expected.condition is None:
        return _compare(output, expected, ties)
    try:
        return _compare(output, expected, ties)
    except Incorrect:
        return _compare(output, expected.with_condition(), ties)


def _compare(output: Tensor, expected: Expected, ties: Tensor | None) -> Errors:
    """Return the errors of a tensor by `allowed` alone. Raises Incorrect."""
    from profkit.kernels.operations.in_float64 import WIDER  # with torch, which a stand-in is not

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
    relative = difference / (size + RELATIVE_EPS)
    errors = Errors(float(difference.max()), float(relative.max()), float(share.max()))
    if bool(wrong.any()):
        where = _where(expected.name, wrong, output, truth, int(wrong.sum()))
        raise Incorrect("values", where, errors)
    _check_lean(value, expected, finite)
    return errors


def _check_lean(value: Tensor, expected: Expected, finite: Tensor) -> None:
    """Raise Incorrect for a biased result: rounding is unbiased, truncation or a wrong factor is not."""
    truth, native = expected.truth, expected.native
    if truth is None or expected.leans == inf or native.dtype not in (torch.float16, torch.bfloat16):
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
    explained = expected.leans + abs(float(((own - plain) * sign).sum())) / total
    allowed = LEAN * roundoff + SAFETY * (roundoff / sqrt(3 * effective) + explained)
    if lean > allowed:
        raise Incorrect(
            "values",
            Fact.of("leans", name=expected.name, lean=lean, allowed=allowed),
        )


def _where(name: str, wrong: Tensor, output: Tensor, wanted: Tensor, count: int) -> Fact:
    """Return a fact like: output 0 at [3, 5] is 1.5 instead of 1.25; 12 of 1,024 are wrong."""
    place = [int(each) for each in wrong.nonzero()[0]]
    got, right = (f"{values[tuple(place)].item():.6g}" for values in (output, wanted))  # infinity, too
    at = str(place) if place else ""
    return Fact.of("wrong-numbers", name=name, at=at, got=got, right=right, wrong=count, all=wrong.numel())


class _Part(NamedTuple):
    """A part of the batches: which, their inputs, and their gradient from above."""

    cut: Any  # a slice; ... of what belongs to all of them
    inputs: list[Tensor]
    above: Tensor | None


def _batch_parts(problem: Problem, double: bool) -> Iterator[_Part]:
    """Yield the batch in parts that fit the memory, in float64 or float32."""
    operation, point = problem.operation, problem.point
    step = max(1, CHUNK // max(1, point.sequence * point.dimension))
    for start in range(0, point.batch, step):
        cut = slice(start, min(start + step, point.batch))
        own = [
            _widen(t[cut] if whole else t, double)
            for t, whole in zip(problem.inputs, operation.chunked, strict=True)
        ]
        above = problem.above
        if above is not None and operation.scalar:
            above = _widen(above, double) * ((cut.stop - cut.start) / point.batch)
        elif above is not None:
            above = _widen(above[cut], double)
        yield _Part(cut, own, above)


def _widen(tensor: Tensor, double: bool) -> Tensor:
    """Convert a floating-point tensor to float64 or float32; others stay as they are."""
    if not tensor.is_floating_point():
        return tensor
    return tensor.detach().double() if double else tensor.detach().float()


def reference_result(problem: Problem) -> tuple[Tensor, ...]:
    """Compute the value, or the gradients of the first inputs, in float64.

    The batch is computed in parts that fit the memory.
    """
    operation, point = problem.operation, problem.point
    parts: list[tuple[Tensor, ...]] = []
    for cut, own, above in _batch_parts(problem, double=True):
        if not problem.backward:
            value = operation.apply(*own)
            share = (cut.stop - cut.start) / point.batch
            parts.append((value * share if operation.scalar else value,))
            continue
        leaves = [t.requires_grad_() for t in own[: operation.gradients]]
        value = operation.apply(*leaves, *own[operation.gradients :])
        parts.append(torch.autograd.grad(value, leaves, above))
    # Parts of the batch one after the other; what belongs to all of it is added up.
    return tuple(
        torch.cat(same) if _has_batches(problem, place) else torch.stack(same).sum(0)
        for place, same in enumerate(map(list, zip(*parts, strict=True)))
    )


def _has_batches(problem: Problem, place: int) -> bool:
    """Return whether result `place` has the batch as its first dimension."""
    operation = problem.operation
    return operation.chunked[place] if problem.backward else not operation.scalar


def check_result(problem: Problem, answer: Any, expected: Sequence[Tensor]) -> float:
    """Return the largest error as a share of the tolerance, at most 1.

    Raises Incorrect where it is larger, or where a result is not finite.
    """
    results = answer if isinstance(answer, (tuple, list)) else (answer,)
    if len(results) != len(expected):
        raise Incorrect("count", Fact.of("other-count", got=len(results), right=len(expected)))
    pairs = enumerate(zip(results, expected, strict=True))
    return max(_largest_share(problem, place, *pair) for place, pair in pairs)


def _largest_share(problem: Problem, place: int, result: Tensor, wanted: Tensor) -> float:
    """Return the largest share of one result. Raises Incorrect, also for another shape, dtype or device."""
    what = f"the gradient of input {place}" if problem.backward else "the value"
    dtype, device = str(result.dtype).removeprefix("torch."), problem.inputs[0].device
    if tuple(result.shape) != tuple(wanted.shape):
        raise other_property("shape", what, list(result.shape), list(wanted.shape))
    if dtype != problem.point.dtype:
        raise other_property("dtype", what, dtype, problem.point.dtype)
    if result.device != device:
        raise other_property("device", what, result.device, device)
    whole = (_Part(..., [], problem.above),)
    parts = _batch_parts(problem, double=False) if _has_batches(problem, place) else whole
    return max(
        compare(result.detach()[part.cut], _expect(problem, place, what, wanted[part.cut], part)).share
        for part in parts
    )


def other_property(fault: Fault, name: str, got: object, right: object) -> Incorrect:
    """Return the error for a result of another dtype, shape, device or stride."""
    return Incorrect(fault, Fact.of(f"other-{fault}", name=name, got=str(got), right=str(right)))


def _expect(problem: Problem, place: int, what: str, true: Tensor, part: _Part) -> Expected:
    """Return the allowed error of each number of a part, and the allowed bias of all."""
    operation, point, dtype = problem.operation, problem.point, DTYPES[problem.point.dtype]
    kept = operation.kept_results(point) * dtype.roundoff
    inner = sqrt(operation.chain(point, place)) * ACCUMULATOR
    size, near = operation.size(place, true, part.inputs, part.above), true.abs()
    allowed = (
        near * (SAFETY * dtype.roundoff) + size * (SAFETY * (kept + inner)) + max(dtype.min_number, EXACT)
    )
    leans, whole = inf, float(near.sum())
    if _has_batches(problem, place) and whole > 0:
        # Of rows whose statistics were kept in the dtype all numbers have an error in common.
        rows = point.dimension if kept and not operation.scalar else 1
        count = max(1.0, whole * whole / float(true.square().sum()) / rows)
        sizes = float(size.double().sum()) / whole
        leans = inner * sizes + kept * sizes / sqrt(3 * count)
    return Expected(what, true.to(getattr(torch, point.dtype)), true, allowed, leans=leans)


class RepeatedCheck:
    """A check with other numbers in x, or backward in the gradient from above.

    The right result is computed before any implementation runs, since one may replace what computes it. The
    numbers are put back each time.
    """

    def __init__(self, problem: Problem, expected: Sequence[Tensor]) -> None:
        self._expected: Sequence[Tensor] = [-tensor for tensor in expected]
        if not problem.backward:
            with _other_numbers(problem):
                self._expected = reference_result(problem)

    def ask(self, problem: Problem, call: Call, wait: Callable[[], None]) -> None:
        """Call the kernel once more. Raises Incorrect where the result does not follow the numbers."""
        with _other_numbers(problem):
            results = call()
            wait()
            try:
                check_result(problem, result_tensors(results), self._expected)
            except Incorrect as wrong:
                changed = "the gradient from above" if problem.backward else "x"
                again = Fact.of("wrong-when-timed", wrong.reason, what=changed)
                raise Incorrect(wrong.fault, again) from None


@contextmanager
def _other_numbers(problem: Problem) -> Iterator[None]:
    """Negate x, or the gradient from above, inside the block: that is exact both ways.

    Gradients are linear in the gradient from above.
    """
    changed = problem.inputs[0] if problem.above is None else problem.above
    changed.neg_()
    try:
        yield
    finally:
        changed.neg_()


def result_tensors(value: object) -> tuple[Tensor, ...]:
    """Return the results of a call as a tuple of plain tensors.

    Raises Incorrect for others: a subclass may compute when it is looked at.
    """
    results = tuple(value) if isinstance(value, (tuple, list)) else (value,)
    for tensor in results:
        if type(tensor) not in (torch.Tensor, torch.nn.Parameter):
            raise Incorrect("type", Fact.of("no-tensor", type=type(tensor).__name__))
        if tensor.layout is not torch.strided:
            raise Incorrect("type", Fact.of("other-layout", got=str(tensor.layout).removeprefix("torch.")))
    return results


def own_tensors(problem: Problem) -> Problem:
    """Return the same numbers in new tensors, so that gradients or resizing of them stay with their user."""
    above = problem.above.detach() if problem.above is not None else None
    return replace(problem, inputs=tuple(tensor.detach() for tensor in problem.inputs), above=above)


def fingerprint(problem: Problem) -> tuple[int, ...]:
    """Return sums over the bits of each input, which differ where numbers were changed. It reads each input once."""
    sums = []
    for tensor in (*problem.inputs, *([problem.above] if problem.above is not None else [])):
        bits = tensor.detach().reshape(-1).view(torch.uint8)
        whole = bits.numel() // 8 * 8
        rest = bits[whole:].sum(dtype=torch.int64)
        sums.append(bits[:whole].view(torch.int64).sum() + rest)
    return tuple(torch.stack(sums).tolist())
