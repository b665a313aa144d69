"""The work moved: one kernel or function takes more, another as much less, and the whole is what it was."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from profkit.core.formatting import figures, quantity
from profkit.core.types import Cause, FunctionChange
from profkit.regression.compare.causes.words import kernel
from profkit.regression.compare.kernels import moved
from profkit.regression.compare.view import View

WHOLE = 0.02  # the total is the same within this
PART = 0.02  # of the total: what moved at least
_NAMED = 2


def find(view: View) -> Iterator[Cause]:
    """Of kernels by their seconds, of functions by simulated instructions."""
    kernels = [(kernel(k.name), moved(k)) for k in view.kernels if k.word not in ("same", "ambiguous")]
    totals = [sum(getattr(k, side) or 0.0 for k in view.kernels) for side in _SIDES]
    yield from _shifted(kernels, totals[0], totals[1], "s", "GPU time")
    functions = [f for f in view.functions if f.unit == "instructions"]
    work = next((p.total for p in view.baseline.profiles if p.unit == "instructions"), 0.0)
    after = next((p.total for p in view.candidate.profiles if p.unit == "instructions"), 0.0)
    yield from _shifted([(f.name, _more(f)) for f in functions], work, after, "", "instructions")


_SIDES = ("baseline_seconds", "candidate_seconds")


def _more(change: FunctionChange) -> float:
    return (change.candidate or 0.0) - (change.baseline or 0.0)


def _shifted(
    parts: Sequence[tuple[str, float]], before: float, after: float, unit: str, of: str
) -> Iterator[Cause]:
    if before <= 0 or abs(after / before - 1) > WHOLE:
        return
    up = sorted((part for part in parts if part[1] > 0), key=lambda part: -part[1])
    down = sorted((part for part in parts if part[1] < 0), key=lambda part: part[1])
    more, less = sum(size for _, size in up), -sum(size for _, size in down)
    if min(more, less) < PART * before:
        return
    evidence = [f"{name} +{quantity(size, unit)}" for name, size in up[:_NAMED]]
    evidence += [f"{name} -{quantity(-size, unit)}" for name, size in down[:_NAMED]]
    yield Cause(
        "moved",
        f"{of[0].upper()}{of[1:]} moved and did not grow: {figures(100 * min(more, less) / before, 2)} % of it went "
        f"from {_who(down)} to {_who(up)}.",
        evidence=tuple(evidence),
    )


def _who(parts: Sequence[tuple[str, float]]) -> str:
    """The first, and how many beside it had a part in it."""
    return _short(parts[0][0]) + (f" and {len(parts) - 1} more" if len(parts) > 1 else "")


def _short(name: str) -> str:
    return name if len(name) <= 40 else name[:39] + "…"
