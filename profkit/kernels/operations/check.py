"""Is a result right? Against float64 on the same inputs, within what rounding alone can explain.

What is allowed of one number y, with the unit roundoffs u of the dtype and v = 2^-24 of float32:

    |y - reference| <= SAFETY * (u * |reference| + (k * u + sqrt(n) * v) * s) + m

It is rounded to the dtype once, at the end. Before that it is computed in float32, by n roundings one after the other
of numbers as large as s: what is added up there in absolute values, of which cancellation leaves the errors (running
error analysis: Higham, "Accuracy and Stability of Numerical Algorithms", 2002, section 3.3); sqrt(n) for n is the bound
by probability (Higham and Mary, "A new approach to probabilistic rounding error analysis", 2019). k is 1 where torch
keeps an intermediate result in the dtype from the forward call, else 0, and m the dtype's least number. Each operation
says n, s and k. For comparison: 4 u is 0.0156 in bfloat16 and 0.002 in float16; FlagGems allows 0.016 and 0.001.

Rounding leans to no side, mistakes do. So of a whole array, with |r| the sum of |reference| over all of its numbers,

    |sum((y - round(reference)) * sign(reference))| / |r| <= u / 8 + SAFETY * (u / sqrt(3 N) + sqrt(n) * v * |s| / |r|)

with N = |r|^2 / sum(reference^2), as many numbers as count: the error of a rounded one is uniform, at most u, with a
deviation of u / sqrt(3), and so is that of what was kept, k u |s| / |r| more. It shows a factor that no single number
shows: Bessel's correction of 512 numbers is a thousandth, a quarter of what bfloat16 can tell of one. A result that is
cut off and not rounded leans, too, and is taken for right: Triton's interpreter cuts off bfloat16. It is held against
the reference cut off then.

A second look, after the timing: does the call still compute, and from what its inputs are now?

A result that was computed beforehand, or is remembered by its input's address, is right in the first check, and so is
what adds to a buffer that nobody clears. So the call is made once more with other numbers in the same memory, and its
result compared with float64, on a part of the batch, which costs next to nothing beside the first check.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from math import sqrt
from typing import Any, NamedTuple

from profkit.kernels.operations.definitions import DTYPES, Call, Problem, Tensor

SAFETY = 4.0
ACCUMULATOR = 2.0**-24
LEAN = 1 / 8  # of the unit roundoff: a result that is cut off and not rounded leans by 2 / 3 of it
EXACT = 1e-13  # below it float64 itself is noise, where a result is 0 by cancelling
SMALL = 1 << 20  # elements: of fewer a GPU is done before it was told what to do
CHUNK = 1 << 24  # elements of x that are taken at once: 128 MiB in float64


class WrongResult(Exception):
    """The result is not what float64 says; the sentence says where and by how much."""


class _Part(NamedTuple):
    """Some of the batches: which, their share of all, their inputs, and the gradient from above that is theirs."""

    cut: Any  # a slice; ... of what belongs to all of them
    inputs: list[Tensor]
    above: Tensor | None


class _Limits(NamedTuple):
    """What is allowed of each number of a part, the signs of what it ought to be, and four sums over the part.

    They are of the rounding of the reference outwards, of its absolute values and its squares, and of s.
    """

    cut: Any
    allowed: Tensor
    sign: Tensor
    sums: Tensor


class Reference(tuple[Tensor, ...]):
    """The results in float64. Of small ones what is allowed is known, too: every implementation is held against it."""

    def __init__(self, results: Sequence[Tensor]) -> None:
        del results
        self.limits: list[tuple[_Limits, ...]] = []


def _batch_parts(problem: Problem, double: bool) -> Iterator[_Part]:
    """The batch in parts that fit the memory, in float64 or float32."""
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
    if not tensor.is_floating_point():
        return tensor
    return tensor.detach().double() if double else tensor.detach().float()


def reference_result(problem: Problem) -> Reference:
    """The value, or the gradients of the first inputs, in float64. The batch is taken in parts that fit the memory."""
    import torch

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
    result = Reference(
        [_join_parts(problem, place, [part[place] for part in parts]) for place in range(len(parts[0]))]
    )
    if problem.inputs[0].numel() <= SMALL:
        result.limits = [tuple(_error_limits(problem, place, wanted)) for place, wanted in enumerate(result)]
    return result


def _join_parts(problem: Problem, place: int, parts: Sequence[Tensor]) -> Tensor:
    """Parts of the batch one after the other; what belongs to all of it is added up."""
    import torch

    return torch.cat(list(parts)) if _has_batches(problem, place) else torch.stack(list(parts)).sum(0)


def _has_batches(problem: Problem, place: int) -> bool:
    operation = problem.operation
    return operation.chunked[place] if problem.backward else not operation.scalar


def check_result(problem: Problem, answer: Any, expected: Sequence[Tensor]) -> float:
    """The largest error as a share of the tolerance, at most 1.

    Raises WrongResult where it is larger, or where a number is none.
    """
    results = answer if isinstance(answer, (tuple, list)) else (answer,)
    if len(results) != len(expected):
        raise WrongResult(f"it gave {len(results)} results, not {len(expected)}")
    limits = expected.limits if isinstance(expected, Reference) else ()
    return max(
        _largest_error(problem, place, result, wanted, limits[place] if limits else ())
        for place, (result, wanted) in enumerate(zip(results, expected, strict=True))
    )


def _largest_error(
    problem: Problem, place: int, result: Tensor, wanted: Tensor, known: Sequence[_Limits]
) -> float:
    import torch

    point, what = problem.point, _result_name(problem, place)
    if tuple(result.shape) != tuple(wanted.shape):
        raise WrongResult(f"{what} has the shape {tuple(result.shape)}, not {tuple(wanted.shape)}")
    if str(result.dtype).removeprefix("torch.") != point.dtype:
        raise WrongResult(f"{what} is {str(result.dtype).removeprefix('torch.')}, not {point.dtype}")
    if result.device != (ought := problem.inputs[0].device):
        raise WrongResult(f"{what} is on {result.device}, not on {ought}")
    result = result.detach()
    worst, before, outwards = 0.0, 0, 0.0
    sums = torch.zeros(4, dtype=torch.float64, device=wanted.device)
    for limits in known or _error_limits(problem, place, wanted):
        got, true = result[limits.cut], wanted[limits.cut]
        away = got.double() - true
        share = away.abs() / limits.allowed
        largest, outward = torch.stack([share.max(), (away * limits.sign).sum()]).tolist()
        if not largest <= 1.0:  # a NaN is not
            at = int(share.reshape(-1).nan_to_num(nan=float("inf")).argmax())
            raise WrongResult(
                f"{what}: element {before + at} is {float(got.reshape(-1)[at]):.6g}, float64 says "
                f"{float(true.reshape(-1)[at]):.6g}, and rounding explains "
                f"{float(limits.allowed.reshape(-1)[at]):.2g}"
            )
        worst, before, outwards = max(worst, largest), before + got.numel(), outwards + outward
        sums += limits.sums
    if _has_batches(problem, place):
        rounded, *errors = sums.tolist()
        share_outwards = (outwards - rounded) / errors[0] if errors[0] > 0 else 0.0
        most = _bias_limit(problem, place, *errors)
        if abs(share_outwards) > most and abs(_outward_cut_off(result, wanted)) > most * errors[0]:
            raise WrongResult(
                f"{what} is on the whole {100 * abs(share_outwards):.2g} % too "
                f"{'large' if share_outwards > 0 else 'small'}, and rounding explains {100 * most:.2g} %"
            )
    return worst


def _error_limits(problem: Problem, place: int, wanted: Tensor) -> Iterator[_Limits]:
    """Part by part what is allowed of each number."""
    import torch

    operation, dtype = problem.operation, DTYPES[problem.point.dtype]
    inside = operation.kept_results(problem.point) * dtype.roundoff + _inner_rounding(problem, place)
    whole = _Part(..., [], problem.above)
    for cut, inputs, above in (
        _batch_parts(problem, double=False) if _has_batches(problem, place) else (whole,)
    ):
        true = wanted[cut]
        size, near, sign = operation.size(place, true, inputs, above), true.abs(), true.sign()
        allowed = near * (SAFETY * dtype.roundoff) + size * (SAFETY * inside) + max(dtype.least, EXACT)
        rounded = ((true.to(getattr(torch, problem.point.dtype)) - true) * sign).sum()
        yield _Limits(
            cut,
            allowed,
            sign,
            torch.stack([rounded, near.sum(), true.square().sum(), size.double().sum()]),
        )


def _inner_rounding(problem: Problem, place: int) -> float:
    """sqrt(n) * v."""
    return sqrt(problem.operation.chain(problem.point, place)) * ACCUMULATOR


def _bias_limit(problem: Problem, place: int, whole: float, square: float, sizes: float) -> float:
    """By how much an array may lean, as a share of the sum of its absolute values."""
    if whole <= 0:
        return 0.0
    point, operation, roundoff = problem.point, problem.operation, DTYPES[problem.point.dtype].roundoff
    kept_count = operation.kept_results(point)
    # Of rows whose statistics were kept in the dtype all numbers have an error in common.
    count = max(1.0, whole * whole / square / (point.dimension if kept_count and not operation.scalar else 1))
    error = roundoff * (1 + kept_count * sizes / whole)
    return lean_limit(roundoff, error, count, _inner_rounding(problem, place) * sizes / whole)


def lean_limit(roundoff: float, error: float, count: float, explained: float) -> float:
    """By how much `count` numbers with an error of at most `error` each may lean, as a share of their size."""
    return LEAN * roundoff + SAFETY * (error / sqrt(3 * count) + explained)


def _outward_cut_off(result: Tensor, wanted: Tensor) -> float:
    """sum((result - reference) * sign), the reference cut off to the result's dtype and not rounded."""
    import torch

    total, flat, true = 0.0, result.reshape(-1), wanted.reshape(-1)
    bits = torch.int32 if flat.element_size() == 4 else torch.int16
    for start in range(0, flat.numel(), CHUNK):
        ought = true[start : start + CHUNK]
        near = ought.to(flat.dtype)
        beyond = (near.double().abs() > ought.abs()).to(bits)
        near = (near.view(bits) - beyond).view(flat.dtype)  # one step nearer to 0, whatever the sign
        total += float(((flat[start : start + CHUNK].double() - near.double()) * ought.sign()).sum())
    return total


def _result_name(problem: Problem, place: int) -> str:
    return f"the gradient of input {place}" if problem.backward else "the value"


PART, PART_OF_MEAN = 64, 16  # of a mean so much that other numbers show in it, in bfloat16 too
LEAST = 1 << 16  # elements
FACTOR = -4.0  # exact in every format and both ways


class RepeatedCheck:
    """What is right with other numbers in x, or backward in the gradient from above: of a part of the batch, or of all.

    Known before any implementation runs: one may replace what computes it. The numbers are put back each time.
    """

    def __init__(self, problem: Problem, expected: Sequence[Tensor]) -> None:
        point, self._expected = problem.point, expected
        least = -(-LEAST // (point.sequence * point.dimension))
        share = PART_OF_MEAN if problem.operation.scalar else PART
        self._rows = min(point.batch, max(-(-point.batch // share), least))
        self._value: Tensor = None
        if problem.backward:
            return
        part = _first_rows(problem, self._rows)
        before = reference_result(part)[0] if problem.operation.scalar else None
        with self._with_other_numbers(problem):
            self._value = reference_result(part)[0]
        if before is not None:  # the mean over all of the batch
            self._value = expected[0] + (self._value - before) * (self._rows / point.batch)

    def ask(self, problem: Problem, call: Call, wait: Callable[[], None]) -> None:
        """Call it once more. Raises WrongResult where the result does not follow the numbers."""
        with self._with_other_numbers(problem):
            results = call()
            wait()
            try:
                self._compare(problem, result_tensors(results))
            except WrongResult as wrong:
                changed = "the gradient from above" if problem.backward else "x"
                raise WrongResult(f"once it was timed, with other numbers in {changed}: {wrong}") from None

    def _compare(self, problem: Problem, results: Sequence[Tensor]) -> None:
        rows, scalar, above = self._rows, problem.operation.scalar, problem.above
        shape = problem.inputs[0].shape
        if above is None and scalar:
            check_result(problem, results, (self._value,))
        elif above is None:
            check_result(_first_rows(problem, rows), [tensor[:rows] for tensor in results], (self._value,))
        elif all(tensor.shape == shape for tensor in self._expected):
            own = above * (rows / problem.point.batch) if scalar else above[:rows]
            negated = [-tensor[:rows] for tensor in self._expected]
            check_result(_first_rows(problem, rows, own), [tensor[:rows] for tensor in results], negated)
        else:  # a gradient that belongs to all of the batch
            check_result(problem, results, [-tensor for tensor in self._expected])

    @contextmanager
    def _with_other_numbers(self, problem: Problem) -> Iterator[None]:
        """As long as the block lasts. Gradients are linear in the one from above."""
        if problem.above is not None:
            changed, by = problem.above, -1.0
        else:
            changed, by = problem.inputs[0][: self._rows], FACTOR
        changed.mul_(by)
        try:
            yield
        finally:
            changed.mul_(1 / by)


def _first_rows(problem: Problem, rows: int, above: Tensor | None = None) -> Problem:
    """The first of the batch, in the same memory."""
    cut = zip(problem.inputs, problem.operation.chunked, strict=True)
    inputs = tuple(t[:rows] if chunked else t for t, chunked in cut)
    return Problem(replace(problem.point, batch=rows), problem.operation, inputs, above)


def result_tensors(found: object) -> tuple[Tensor, ...]:
    """What a call gave, each a tensor. Raises WrongResult for others: a subclass may compute when it is looked at."""
    import torch

    results = tuple(found) if isinstance(found, (tuple, list)) else (found,)
    for one in results:
        if type(one) not in (torch.Tensor, torch.nn.Parameter):
            raise WrongResult(f"it gave what is of type {type(one).__name__}, and not a tensor")
        if one.layout is not torch.strided:
            raise WrongResult(
                f"it gave a tensor of layout {str(one.layout).removeprefix('torch.')}, not strided"
            )
    return results


def own_tensors(problem: Problem) -> Problem:
    """The same numbers in tensors of its own: who asks for gradients of one, or resizes it, does it for itself."""
    above = problem.above.detach() if problem.above is not None else None
    return replace(problem, inputs=tuple(tensor.detach() for tensor in problem.inputs), above=above)


def fingerprint(problem: Problem) -> tuple[int, ...]:
    """A sum over the bits of each input: another one where somebody changed numbers. It reads each once."""
    import torch

    sums = []
    for tensor in (*problem.inputs, *([problem.above] if problem.above is not None else [])):
        bits = tensor.detach().reshape(-1).view(torch.uint8)
        whole = bits.numel() // 8 * 8
        rest = bits[whole:].sum(dtype=torch.int64)
        sums.append(bits[:whole].view(torch.int64).sum() + rest)
    return tuple(torch.stack(sums).tolist())
