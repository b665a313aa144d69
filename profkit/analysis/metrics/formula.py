"""Formulas over counters, and what must agree within one report: rates and shares of peaks, parts and sums.

A formula is read by a small tokenizer and never by eval:

sum   := [-] term (( + | - ) term)*         signs stand between blanks: names hold dashes themselves
term  := factor ( * factor )*               a factor is a number or the name of a counter; one term names one
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import prod
from pathlib import Path
from typing import Any, Literal

from profkit.core.tables import load_yaml

_FACTOR = r"(?:\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|[A-Za-z_][A-Za-z0-9_.:\-]*)"
_TERM = rf"{_FACTOR}(?:\*{_FACTOR})*"
_SUM = re.compile(rf"(?:- )?{_TERM}(?: [+-] {_TERM})*", re.ASCII)


@dataclass(frozen=True)
class Term:
    """A product: a coefficient times counters; without counters a number."""

    coefficient: float
    names: tuple[str, ...]

    def value(self, counts: Mapping[str, float]) -> float:
        """Return the value; `counts` must have every name."""
        product = self.coefficient
        for name in self.names:
            product *= counts[name]
        return product


@dataclass(frozen=True)
class Sum:
    """A sum of terms, with the text it was written as."""

    text: str
    terms: tuple[Term, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Return the counters it needs, each once, in the order they are written."""
        return tuple(dict.fromkeys(name for term in self.terms for name in term.names))

    def value(self, counts: Mapping[str, float]) -> float:
        """Return the value; `counts` must have every name."""
        return sum((term.value(counts) for term in self.terms), 0.0)


@dataclass(frozen=True)
class Formula:
    """One way to a metric: `scale * over / under`, or `scale * over` where `under` is None.

    With `most_of`, of which `over` is the first, the largest of those sums stands in its place. Where `unless_zero`
    (or `under`) is 0 it says nothing, for the reason `zero`; that and `note` are codes of facts. `quality` is what its
    readings are at best, where that is less than the tool's.
    """

    over: Sum
    under: Sum | None = None
    scale: float = 1.0
    note: str | None = None
    most_of: tuple[Sum, ...] = ()
    unless_zero: Sum | None = None
    zero: str | None = None
    quality: Literal["estimated"] | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Return all counters it needs, each once."""
        below = self.under.names if self.under is not None else ()
        condition = self.unless_zero.names if self.unless_zero is not None else ()
        above = (name for part in (self.over, *self.most_of) for name in part.names)
        return tuple(dict.fromkeys((*above, *below, *condition)))

    @property
    def text(self) -> str:
        """Return the formula as people write it."""
        factor = "" if self.scale == 1 else f"{self.scale:g} * "
        if self.most_of:
            over = f"most({', '.join(part.text for part in self.most_of)})"
        else:
            over = _bracket(self.over, always=bool(factor) or self.under is not None)
        return f"{factor}{over}" if self.under is None else f"{factor}{over} / {_divisor(self.under)}"

    def above(self, counts: Mapping[str, float]) -> float:
        """Return what stands above the line, without the scale; `counts` must hold every name."""
        return max(part.value(counts) for part in self.most_of or (self.over,))


def _bracket(part: Sum, always: bool = True) -> str:
    return f"({part.text})" if always and len(part.terms) > 1 else part.text


def _divisor(part: Sum) -> str:
    """Put a divisor of several factors in brackets: `a / b*c` is read as `(a / b) * c`."""
    return f"({part.text})" if len(part.terms) > 1 or "*" in part.text else part.text


def parse_sum(text: str) -> Sum:
    """Read one sum. Raises ValueError for what is none, or names no counter."""
    text = " ".join(text.split())
    if _SUM.fullmatch(text) is None:
        raise ValueError(f"{text!r} is not a sum of products")
    terms: list[Term] = []
    sign = 1.0
    for token in text.split():
        if token in ("+", "-"):
            sign = -1.0 if token == "-" else 1.0
        else:
            factors = token.split("*")
            numbers = [float(factor) for factor in factors if factor[0].isdigit()]
            names = (factor for factor in factors if not factor[0].isdigit())
            terms.append(Term(sign * prod(numbers), tuple(names)))
    if not any(term.names for term in terms):
        raise ValueError(f"{text!r} names no counter")
    return Sum(text, tuple(terms))


@dataclass(frozen=True)
class ConsistencyCheck:
    """Two sides that must agree (`==`) or keep their order (`<=`), and the metrics that are in doubt if they do not.

    `slack` is relative to the greater side (0..1), `least` absolute, in the unit of the sides.
    """

    says: str
    left: Sum
    right: Sum
    relation: Literal["==", "<="]
    slack: float
    least: float
    doubts: Sequence[str]

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Return the counters and metrics that it needs."""
        return tuple(dict.fromkeys((*self.left.names, *self.right.names)))

    def sides(self, values: Mapping[str, float]) -> tuple[float, float] | None:
        """Return the two sides where they contradict each other; None where they agree, or one is not known."""
        if any(name not in values for name in self.names):
            return None
        left, right = self.left.value(values), self.right.value(values)
        allowed = max(self.least, self.slack * max(abs(left), abs(right)))
        over = left - right
        apart = over > allowed or (self.relation == "==" and -over > allowed)
        return (left, right) if apart else None


@lru_cache(maxsize=4)
def consistency_checks(tool: str) -> tuple[ConsistencyCheck, ...]:
    """Return the checks of `tool`'s reports; none for a tool that has none."""
    rows: list[dict[str, Any]] = load_yaml(Path(__file__).with_name("consistency.yaml")).get(tool, [])
    return tuple(
        ConsistencyCheck(**{**row, "left": parse_sum(row["left"]), "right": parse_sum(row["right"])})
        for row in rows
    )


def checked_counters(tool: str) -> frozenset[str]:
    """Return the counters (not metrics) that the checks of `tool` need, so that its reader keeps them."""
    return frozenset(name for check in consistency_checks(tool) for name in check.names if "__" in name)
