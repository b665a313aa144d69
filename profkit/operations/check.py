"""Is a result right? Against float64 on the same inputs, within what rounding alone can explain.

Tolerance of one number y, with r roundings to the dtype (unit roundoff u), sums of up to K terms accumulated in
float32 (unit roundoff v = 2^-24), and m the dtype's least number:

    |y - reference| <= SAFETY * (r * u + sqrt(K) * v) * c * (|reference| + rms(reference)) + m

c is by how much the operation enlarges an error there (1 + mean / sigma of a row that is normalized,
1 + |x| of GELU, else 1).
sqrt(K) * v is the bound of a sum of K terms by probability (Higham and Mary, "A new approach to probabilistic
rounding error analysis", 2019). The root mean square is the scale at which cancellation leaves an error.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import Any

from profkit.operations.operation import DTYPES, Problem, Tensor

SAFETY = 4.0
ACCUMULATOR = 2.0**-24
EXACT = 1e-13  # below it float64 itself is noise, where a result is 0 by cancelling
CHUNK = 1 << 24  # elements of x that are taken at once: 128 MiB in float64


class Wrong(Exception):
    """The result is not what float64 says; the sentence says where and by how much."""


def reference(problem: Problem) -> tuple[Tensor, ...]:
    """The value, or the gradients of the first inputs, in float64. The batch is taken in parts that fit the memory."""
    import torch

    operation, point = problem.operation, problem.point
    step = max(1, CHUNK // max(1, point.sequence * point.dimension))
    parts: list[tuple[Tensor, ...]] = []
    for start in range(0, point.batch, step):
        cut = slice(start, min(start + step, point.batch))
        share = (cut.stop - cut.start) / point.batch
        own = [
            _double(t[cut] if whole else t)
            for t, whole in zip(problem.inputs, operation.chunked, strict=True)
        ]
        if not problem.backward:
            value = operation.apply(*own)
            parts.append((value * share if operation.scalar else value,))
            continue
        leaves = [t.requires_grad_() for t in own[: operation.gradients]]
        value = operation.apply(*leaves, *own[operation.gradients :])
        assert problem.above is not None
        above = _double(problem.above) * share if operation.scalar else _double(problem.above[cut])
        parts.append(torch.autograd.grad(value, leaves, above))
    return tuple(_joined(problem, place, [part[place] for part in parts]) for place in range(len(parts[0])))


def _joined(problem: Problem, place: int, parts: Sequence[Tensor]) -> Tensor:
    """Parts of the batch one after the other; what belongs to all of it is added up."""
    import torch

    operation = problem.operation
    summed = operation.scalar if not problem.backward else not operation.chunked[place]
    return torch.stack(list(parts)).sum(0) if summed else torch.cat(list(parts))


def _double(tensor: Tensor) -> Tensor:
    return tensor.detach().double() if tensor.is_floating_point() else tensor


def compare(problem: Problem, found: Any, expected: Sequence[Tensor]) -> float:
    """The largest error as a share of the tolerance, at most 1.

    Raises Wrong where it is larger, or where a number is none.
    """
    results = found if isinstance(found, (tuple, list)) else (found,)
    if len(results) != len(expected):
        raise Wrong(f"it gave {len(results)} results, not {len(expected)}")
    condition = problem.operation.condition(
        *(t.detach().float() for t in problem.inputs if t.is_floating_point())
    )
    worst = 0.0
    for place, (result, wanted) in enumerate(zip(results, expected, strict=True)):
        own = condition if condition is not None and wanted.shape == problem.inputs[0].shape else None
        worst = max(worst, _worst(problem, place, result, wanted, own))
    return worst


def _worst(problem: Problem, place: int, result: Tensor, wanted: Tensor, condition: Tensor | None) -> float:
    import torch

    point, dtype = problem.point, DTYPES[problem.point.dtype]
    what = _name(problem, place)
    if tuple(result.shape) != tuple(wanted.shape):
        raise Wrong(f"{what} has the shape {tuple(result.shape)}, not {tuple(wanted.shape)}")
    if str(result.dtype).removeprefix("torch.") != point.dtype:
        raise Wrong(f"{what} is {str(result.dtype).removeprefix('torch.')}, not {point.dtype}")
    if result.device != wanted.device:
        raise Wrong(f"{what} is on {result.device}, not on {wanted.device}")
    relative = SAFETY * (
        problem.operation.roundings * dtype.roundoff + sqrt(problem.operation.terms(point)) * ACCUMULATOR
    )
    flat, true = result.detach().reshape(-1), wanted.reshape(-1)
    scale = float(torch.linalg.vector_norm(true)) / sqrt(max(1, true.numel()))
    larger = condition.expand(wanted.shape).reshape(-1) if condition is not None else None
    worst = 0.0
    for start in range(0, flat.numel(), CHUNK):
        part, ought = flat[start : start + CHUNK].double(), true[start : start + CHUNK]
        allowed = relative * (ought.abs() + scale)
        if larger is not None:
            allowed = allowed * larger[start : start + CHUNK]
        allowed = allowed + max(dtype.least, EXACT)
        share = (part - ought).abs() / allowed
        at = int(share.nan_to_num(nan=float("inf")).argmax())
        if not float(share[at]) <= 1.0:  # a NaN is not
            raise Wrong(
                f"{what}: element {start + at} is {float(part[at]):.6g}, float64 says {float(ought[at]):.6g}, "
                f"and rounding explains {float(allowed[at]):.2g}"
            )
        worst = max(worst, float(share[at]))
    return worst


def _name(problem: Problem, place: int) -> str:
    return f"the gradient of input {place}" if problem.backward else "the value"
