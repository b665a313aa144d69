"""Operations with a mistake in them, computed in float64 and rounded once: nothing but the mistake is wrong with them.

A mistake takes the problem, with its inputs in float64, and gives what the implementation that has it would give.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch.nn import functional

from profkit.kernels.operations.definitions import EPS, Problem
from profkit.kernels.operations.float64_check import reference_result

Results = tuple[Any, ...]
Mutant = Callable[[Problem], Results]


def exact(problem: Problem) -> Results:
    """What is right, rounded to the dtype once."""
    return rounded(problem, reference_result(problem))


def rounded(problem: Problem, results: Sequence[Any]) -> Results:
    dtype = getattr(torch, problem.point.dtype)
    return tuple(result.to(dtype) for result in results)


def _double(problem: Problem) -> tuple[list[Any], Any]:
    inputs = [t.detach().double() if t.is_floating_point() else t for t in problem.inputs]
    return inputs, problem.above.double() if problem.above is not None else None


def _by(forward: Callable[..., Any]) -> Mutant:
    """The mistake is in the forward formula; backward is its derivative."""

    def mutant(problem: Problem) -> Results:
        inputs, above = _double(problem)
        if not problem.backward:
            return rounded(problem, (forward(*inputs),))
        count = problem.operation.gradients
        leaves = [t.requires_grad_() for t in inputs[:count]]
        value = forward(*leaves, *inputs[count:])
        found = torch.autograd.grad(value, leaves, above.expand(value.shape), allow_unused=True)
        filled = [g if g is not None else torch.zeros_like(t) for g, t in zip(found, leaves, strict=True)]
        return rounded(problem, filled)

    return mutant


def _after(change: Callable[[Problem, Any], Any], only: int | None = None) -> Mutant:
    """The mistake is made with a right result, or with one of several."""

    def mutant(problem: Problem) -> Results:
        found = reference_result(problem)
        return rounded(
            problem,
            [change(problem, t.clone()) if only in (None, place) else t for place, t in enumerate(found)],
        )

    return mutant


# ---------------------------------------------------------------- any result


def _put(index: int, value: float) -> Callable[[Problem, Any], Any]:
    def change(problem: Problem, result: Any) -> Any:
        result.view(-1)[index] = value
        return result

    return change


def _neighbour(problem: Problem, result: Any) -> Any:
    flat = result.view(-1)
    flat[flat.numel() // 2] = flat[flat.numel() // 2 - 1]
    return result


def _last_row(problem: Problem, result: Any) -> Any:
    result.view(-1, result.shape[-1])[-1] = 0.0
    return result


def _last_column(problem: Problem, result: Any) -> Any:
    result[..., -1] = 0.0
    return result


def _turned(problem: Problem, result: Any) -> Any:
    return result.transpose(-1, -2).reshape(result.shape)


def _in(dtype: Any) -> Mutant:
    """Inputs and result of a narrower format than the one asked for."""

    def mutant(problem: Problem) -> Results:
        inputs = tuple(t.to(dtype) if t.is_floating_point() else t for t in problem.inputs)
        above = problem.above.to(dtype) if problem.above is not None else None
        return rounded(problem, reference_result(replace(problem, inputs=inputs, above=above)))

    return mutant


ANY: dict[str, Mutant] = {
    "zeros": _after(lambda problem, r: r * 0),
    "ones": _after(lambda problem, r: r * 0 + 1),
    "the mean everywhere": _after(lambda problem, r: r * 0 + r.mean() * 1.05),
    "negative": _after(lambda problem, r: -r),
    "2 % more": _after(lambda problem, r: r * 1.02),
    "a NaN": _after(_put(-1, float("nan"))),
    "an infinity": _after(_put(0, float("inf"))),
}
ARRAY: dict[str, Mutant] = {
    "1 % less": _after(lambda problem, r: r * 0.99),
    "first element not written": _after(_put(0, 0.0)),
    "last element not written": _after(_put(-1, 0.0)),
    "one element is its neighbour": _after(_neighbour),
    "last row not written": _after(_last_row),
    "last column not written": _after(_last_column),
    "one off": _after(lambda problem, r: r.view(-1).roll(1).view(r.shape)),
    "one row off": _after(lambda problem, r: r.roll(1, -2)),
    "transposed": _after(_turned),
    "batches in reverse": _after(lambda problem, r: r.flip(0)),
}
NARROW: dict[str, Mutant] = {"float16 inside": _in(torch.float16), "bfloat16 inside": _in(torch.bfloat16)}

# ---------------------------------------------------------------- each operation's own


def _norm(
    eps: float = EPS,
    *,
    outside: bool = False,
    correction: int = 0,
    centred: bool = True,
    weight: Callable[[Any], Any] = lambda w: w,
    bias: Callable[[Any], Any] = lambda b: b,
) -> Callable[..., Any]:
    def forward(x: Any, w: Any, b: Any) -> Any:
        mean = x.mean(-1, keepdim=True)
        var = (x - mean).square().sum(-1, keepdim=True) / (x.shape[-1] - correction)
        sigma = var.sqrt() + eps if outside else (var + eps).sqrt()
        return (x - mean if centred else x) / sigma * weight(w) + bias(b)

    return forward


def _norm_backward(*, without: str) -> Mutant:
    """dx without one of its parts."""

    def mutant(problem: Problem) -> Results:
        (x, w, _), above = _double(problem)
        _, dw, db = reference_result(problem)
        mean = x.mean(-1, keepdim=True)
        scale = (x.var(-1, correction=0, keepdim=True) + EPS).rsqrt()
        n, g = (x - mean) * scale, above * w
        first = 0.0 if without == "mean" else g.mean(-1, keepdim=True)
        second = 0.0 if without == "projection" else n * (g * n).mean(-1, keepdim=True)
        return rounded(problem, ((g - first - second) * scale, dw, db))

    return mutant


def _sums(keep: Callable[[Any], Any]) -> Mutant:
    """dw and db over some of the rows."""

    def mutant(problem: Problem) -> Results:
        (x, *_), above = _double(problem)
        dx, *_ = reference_result(problem)
        scale = (x.var(-1, correction=0, keepdim=True) + EPS).rsqrt()
        n = (x - x.mean(-1, keepdim=True)) * scale
        rows = keep(torch.stack([above * n, above]).flatten(1, 2))
        return rounded(problem, (dx, *rows.sum(1)))

    return mutant


def _tanh(x: Any) -> Any:
    return functional.gelu(x, approximate="tanh")


def _rows(x: Any, labels: Any) -> Any:
    picked = x.gather(-1, labels.unsqueeze(-1)).squeeze(-1)
    return x.logsumexp(-1) - picked


def _next(labels: Any, classes: int) -> Any:
    return (labels + 1) % classes


def _squares(x: Any, t: Any) -> Any:
    return (x - t).square().flatten()


def _without_above(problem: Problem) -> Results:
    return exact(replace(problem, above=torch.ones_like(problem.above)))


FORMULAS: dict[str, dict[str, Callable[..., Any]]] = {
    "LayerNorm": {
        "eps of 1e-6": _norm(1e-6),
        "eps of 1e-12": _norm(1e-12),
        "eps of 1e-3": _norm(1e-3),
        "eps beside sigma": _norm(outside=True),
        "Bessel's correction": _norm(correction=1),
        "no mean taken off": _norm(centred=False),
        "no weight": _norm(weight=torch.ones_like),
        "weight one off": _norm(weight=lambda w: w.roll(1)),
        "weight and one": _norm(weight=lambda w: 1 + w),
    },
    "GELU": {
        "by tanh": _tanh,
        "by a sigmoid": lambda x: x * torch.sigmoid(1.702 * x),
        "Swish": functional.silu,
        "ReLU": functional.relu,
        "identity": lambda x: x * 1.0,
    },
    "Swish": {
        "GELU": functional.gelu,
        "a hard one": functional.hardswish,
        "beta of 1.01": lambda x: x * torch.sigmoid(1.01 * x),
        "ReLU": functional.relu,
        "identity": lambda x: x * 1.0,
    },
    "MSE": {
        "the sum": lambda x, t: _squares(x, t).sum(),
        "absolute values": lambda x, t: (x - t).abs().mean(),
        "half of it": lambda x, t: _squares(x, t).mean() / 2,
        "its root": lambda x, t: _squares(x, t).mean().sqrt(),
        "Huber's": lambda x, t: functional.smooth_l1_loss(x, t),
        "mean over rows": lambda x, t: _squares(x, t).sum() / (x.shape[0] * x.shape[1]),
        "without the last element": lambda x, t: _squares(x, t)[:-1].sum() / x.numel(),
        "without the first element": lambda x, t: _squares(x, t)[1:].sum() / x.numel(),
        "without the last row": lambda x, t: _squares(x, t)[: -x.shape[-1]].sum() / x.numel(),
        "without the last batch": lambda x, t: _squares(x[:-1], t[:-1]).sum() / x.numel(),
        "without the last column": lambda x, t: _squares(x[..., :-1], t[..., :-1]).sum() / x.numel(),
        "target one off": lambda x, t: (x.flatten() - t.flatten().roll(1)).square().mean(),
    },
    "CrossEntropy": {
        "the sum": lambda x, y: _rows(x, y).sum(),
        "mean over batches": lambda x, y: _rows(x, y).sum() / x.shape[0],
        "the next label": lambda x, y: _rows(x, _next(y, x.shape[-1])).mean(),
        "labels smoothed": lambda x, y: functional.cross_entropy(
            x.flatten(0, 1), y.flatten(), label_smoothing=0.1
        ),
        "logarithm to base 2": lambda x, y: _rows(x, y).mean() / 0.6931471805599453,
        "without the last class": lambda x, y: (
            x[..., :-1].logsumexp(-1) - x.gather(-1, y.unsqueeze(-1)).squeeze(-1)
        ).mean(),
        "without the last row": lambda x, y: _rows(x, y).flatten()[:-1].sum() / y.numel(),
        "without the first row": lambda x, y: _rows(x, y).flatten()[1:].sum() / y.numel(),
        "without the last batch": lambda x, y: _rows(x[:-1], y[:-1]).sum() / y.numel(),
        "softmax over the sequence": lambda x, y: (
            x.logsumexp(1, keepdim=True) - x.gather(-1, y.unsqueeze(-1))
        ).mean(),
    },
}
FORWARD_ONLY: dict[str, dict[str, Callable[..., Any]]] = {
    "LayerNorm": {"no bias": _norm(bias=torch.zeros_like), "bias one off": _norm(bias=lambda b: b.roll(1))}
}
BACKWARD_ONLY: dict[str, dict[str, Mutant]] = {
    "LayerNorm": {
        "dx without a mean": _norm_backward(without="mean"),
        "dx without a projection": _norm_backward(without="projection"),
        "sums without the last row": _sums(lambda rows: rows[:, :-1]),
        "sums without the first row": _sums(lambda rows: rows[:, 1:]),
        "sums without half of the rows": _sums(lambda rows: rows[:, ::2]),
        "means for sums": _sums(lambda rows: rows / rows.shape[1]),
        "no dw": _after(lambda problem, r: r * 0, only=1),
        "no db": _after(lambda problem, r: r * 0, only=2),
        "dw one off": _after(lambda problem, r: r.roll(1), only=1),
    },
    "MSE": {"nothing from above": _without_above},
    "CrossEntropy": {"nothing from above": _without_above},
    "GELU": {"nothing from above": _without_above},
    "Swish": {"nothing from above": _without_above},
}


def mutants(problem: Problem) -> Iterator[tuple[str, Mutant]]:
    """Every mistake that can be made at this problem, and be seen in its dtype."""
    name, backward = problem.operation.name, problem.backward
    yield from ANY.items()
    if backward or not problem.operation.scalar:
        yield from ((words, one) for words, one in ARRAY.items() if _seen(words, problem))
    if problem.point.dtype == "float32" and (backward or not problem.operation.scalar):
        yield from NARROW.items()
    formulas = FORMULAS[name] if backward else {**FORMULAS[name], **FORWARD_ONLY.get(name, {})}
    yield from ((words, _by(one)) for words, one in formulas.items())
    if backward:
        yield from BACKWARD_ONLY.get(name, {}).items()


def _seen(words: str, problem: Problem) -> bool:
    return words not in ("one row off", "transposed") or not (
        problem.backward and problem.operation.gradients > 1
    )
