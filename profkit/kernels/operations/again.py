"""A second look, after the timing: does the call still compute, and from what its inputs are now?

A result that was computed beforehand, or is remembered by its input's address, is right in the first check, and so is
what adds to a buffer that nobody clears. So the call is made once more with other numbers in the same memory, and its
result compared with float64, on a part of the batch, which costs next to nothing beside the first check.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from profkit.kernels.operations.check import Wrong, compare, reference
from profkit.kernels.operations.operation import Call, Problem, Tensor

PART, PART_OF_MEAN = 64, 16  # of a mean so much that other numbers show in it, in bfloat16 too
LEAST = 1 << 16  # elements
FACTOR = -4.0  # exact in every format and both ways


class SecondLook:
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
        part = _part(problem, self._rows)
        before = reference(part)[0] if problem.operation.scalar else None
        with self._others(problem):
            self._value = reference(part)[0]
        if before is not None:  # the mean over all of the batch
            self._value = expected[0] + (self._value - before) * (self._rows / point.batch)

    def ask(self, problem: Problem, call: Call, wait: Callable[[], None]) -> None:
        """Call it once more. Raises Wrong where the result does not follow the numbers."""
        with self._others(problem):
            found = call()
            wait()
            try:
                self._compare(problem, tensors(found))
            except Wrong as wrong:
                changed = "the gradient from above" if problem.backward else "x"
                raise Wrong(f"once it was timed, with other numbers in {changed}: {wrong}") from None

    def _compare(self, problem: Problem, found: Sequence[Tensor]) -> None:
        rows, scalar, above = self._rows, problem.operation.scalar, problem.above
        shape = problem.inputs[0].shape
        if above is None and scalar:
            compare(problem, found, (self._value,))
        elif above is None:
            compare(_part(problem, rows), [one[:rows] for one in found], (self._value,))
        elif all(one.shape == shape for one in self._expected):
            own = above * (rows / problem.point.batch) if scalar else above[:rows]
            ought = [-one[:rows] for one in self._expected]
            compare(_part(problem, rows, own), [one[:rows] for one in found], ought)
        else:  # a gradient that belongs to all of the batch
            compare(problem, found, [-one for one in self._expected])

    @contextmanager
    def _others(self, problem: Problem) -> Iterator[None]:
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
