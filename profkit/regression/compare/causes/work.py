"""The program does more, or less: it executes another number of instructions."""

from __future__ import annotations

from collections.abc import Iterator

from profkit.core.formatting import quantity
from profkit.core.types import Cause, Change, FunctionChange
from profkit.regression.compare.causes.words import became, by, kernel
from profkit.regression.compare.view import View

_NAMED = 3


def find(view: View) -> Iterator[Cause]:
    """Of the run with the functions that grew, and of each kernel that takes another time."""
    for change in view.different("instructions"):
        if change.scope.kind != "kernel":
            yield _of_run(view, change)
        elif view.retimed(change.scope):
            yield Cause(
                "work",
                f"{kernel(change.scope.name or '')} executes {_by(change)} instructions.",
                change.scope,
                (became("instructions", change.baseline.value, change.candidate.value),),
            )


def _of_run(view: View, change: Change) -> Cause:
    more = change.candidate.value > change.baseline.value
    grown = [f for f in view.functions if f.unit == "instructions" and (_more(f) > 0) == more]
    named = sorted(grown, key=lambda f: -abs(_more(f)))[:_NAMED]
    evidence = [f"{f.name} {'+' if _more(f) > 0 else '-'}{quantity(abs(_more(f)))}" for f in named]
    where = f", most of that in {named[0].name}" if named and _most(named[0], change) else ""
    return Cause(
        "work",
        f"It executes {_by(change)} instructions{where}.",
        change.scope,
        (became("instructions", change.baseline.value, change.candidate.value), *evidence),
    )


def _by(change: Change) -> str:
    """`12 % more`, `8 % fewer`, `2.4 times as many`."""
    return (
        by(change.baseline.value, change.candidate.value)
        .replace("as much", "as many")
        .replace(" less", " fewer")
    )


def _most(function: FunctionChange, change: Change) -> bool:
    return abs(_more(function)) > abs(change.candidate.value - change.baseline.value) / 2


def _more(function: FunctionChange) -> float:
    return (function.candidate or 0.0) - (function.baseline or 0.0)
