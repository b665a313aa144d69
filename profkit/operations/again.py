"""A second look, after the timing: does the call still compute, and from what its inputs are now?

A result that was computed beforehand, or is remembered by its input's address, is right in the first check, and so is
what adds to a buffer that nobody clears. So the call is made once more with other numbers in the same memory, and its
result compared with float64, on a part of the batch, which costs next to nothing beside the first check.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from profkit.operations.check import Wrong, compare, reference
from profkit.operations.operation import Call, Problem, Tensor

PART, PART_OF_MEAN = 64, 16  # of a mean so much that other numbers show in it, in bfloat16 too
LEAST = 1 << 16  # elements
FACTOR = -4.0  # exact in every format and both ways


def look_again(problem: Problem, call: Call, expected: Sequence[Tensor], wait: Callable[[], None]) -> None:
    """Call it with other numbers in its inputs: x, or backward the gradient from above. They are put back.

    Raises Wrong where the result does not follow them.
    """
    changed = "the gradient from above" if problem.backward else "x"
    with _others(problem, expected) as (part, ought):
        found = call()
        wait()
        try:
            if part is None:
                compare(problem, found, ought)
            else:
                rows = part.point.batch
                compare(part, tuple(one[:rows] for one in tensors(found)), ought)
        except Wrong as wrong:
            raise Wrong(f"once it was timed, with other numbers in {changed}: {wrong}") from None


@contextmanager
def _others(
    problem: Problem, expected: Sequence[Tensor]
) -> Iterator[tuple[Problem | None, tuple[Tensor, ...]]]:
    """Other numbers as long as the block lasts, and what is right then: in a part of the batch, or (None) in all."""
    x, above, point, scalar = problem.inputs[0], problem.above, problem.point, problem.operation.scalar
    batch, least = point.batch, -(-LEAST // (point.sequence * point.dimension))
    rows = min(batch, max(-(-batch // (PART_OF_MEAN if scalar else PART)), least))
    if above is not None:  # gradients are linear in it
        above.neg_()
        try:
            if all(one.shape == x.shape for one in expected):
                own = above * (rows / batch) if scalar else above[:rows]
                yield _part(problem, rows, own), tuple(-one[:rows] for one in expected)
            else:
                yield None, tuple(-one for one in expected)
        finally:
            above.neg_()
        return
    part = _part(problem, rows)
    before = reference(part) if scalar else None
    x[:rows].mul_(FACTOR)
    try:
        value = reference(part)
        if before is None:
            yield part, value
        else:  # the mean over all of the batch
            yield None, (expected[0] + (value[0] - before[0]) * (rows / batch),)
    finally:
        x[:rows].mul_(1 / FACTOR)


def _part(problem: Problem, rows: int, above: Tensor | None = None) -> Problem:
    """The first of the batch, in the same memory."""
    cut = zip(problem.inputs, problem.operation.chunked, strict=True)
    inputs = tuple(t[:rows] if chunked else t for t, chunked in cut)
    return Problem(replace(problem.point, batch=rows), problem.operation, inputs, above)


def tensors(found: object) -> tuple[Tensor, ...]:
    """What a call gave, each a tensor. Raises Wrong for others: a subclass may compute when it is looked at."""
    import torch

    results = tuple(found) if isinstance(found, (tuple, list)) else (found,)
    for one in results:
        if type(one) not in (torch.Tensor, torch.nn.Parameter):
            raise Wrong(f"it gave what is of type {type(one).__name__}, and not a tensor")
        if one.layout is not torch.strided:
            raise Wrong(f"it gave a tensor of layout {str(one.layout).removeprefix('torch.')}, not strided")
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
