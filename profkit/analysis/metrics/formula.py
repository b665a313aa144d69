"""Formulas over counters, and what must agree within one report: rates and shares of peaks, parts and sums.

A formula is read by a small tokenizer and never by eval:

sum   := [-] term (( + | - ) term)*         signs stand between blanks: names hold dashes themselves
term  := factor ( * factor )*               a factor is a number or the name of a counter; one term names one
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Literal

from profkit.core.tables import load_yaml

_NUMBER = re.compile(r"\d+(\.\d+)?([eE][+-]?\d+)?\Z")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.:\-]*\Z")


@dataclass(frozen=True)
class Term:
    """A product: a coefficient times counters; without counters a number."""

    coefficient: float
    names: tuple[str, ...]

    def value(self, counts: Mapping[str, float]) -> float:
        """Its value; `counts` must hold every name."""
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
        """The counters it needs, each once, in the order they are written."""
        return tuple(dict.fromkeys(name for term in self.terms for name in term.names))

    def value(self, counts: Mapping[str, float]) -> float:
        """Its value; `counts` must hold every name."""
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
        """All counters it needs, each once."""
        below = self.under.names if self.under is not None else ()
        condition = self.unless_zero.names if self.unless_zero is not None else ()
        above = (name for part in (self.over, *self.most_of) for name in part.names)
        return tuple(dict.fromkeys((*above, *below, *condition)))

    @property
    def text(self) -> str:
        """The formula as people write it."""
        factor = "" if self.scale == 1 else f"{self.scale:g} * "
        if self.most_of:
            over = f"most({', '.join(part.text for part in self.most_of)})"
        else:
            over = _bracket(self.over, always=bool(factor) or self.under is not None)
        return f"{factor}{over}" if self.under is None else f"{factor}{over} / {_divisor(self.under)}"

    def above(self, counts: Mapping[str, float]) -> float:
        """What stands above the line, without the scale; `counts` must hold every name."""
        return max(part.value(counts) for part in self.most_of or (self.over,))


def _bracket(part: Sum, always: bool = True) -> str:
    return f"({part.text})" if always and len(part.terms) > 1 else part.text


def _divisor(part: Sum) -> str:
    """In brackets where it is more than one factor: `a / b*c` is read as `(a / b) * c`."""
    return f"({part.text})" if len(part.terms) > 1 or "*" in part.text else part.text


def parse_sum(text: str) -> Sum:
    """Read one sum. Raises ValueError naming what could not be read."""
    tokens = text.split()
    if not tokens:
        raise ValueError("an empty formula")
    terms: list[Term] = []
    sign = 1.0
    wants_term = True
    for place, token in enumerate(tokens):
        if token in ("+", "-"):
            if wants_term and not (place == 0 and token == "-"):
                raise ValueError(f"{text!r}: a term is missing before {token!r}")
            sign = -1.0 if token == "-" else 1.0
            wants_term = True
            continue
        if not wants_term:
            raise ValueError(f"{text!r}: a sign is missing before {token!r}")
        terms.append(_parse_term(token, sign, text))
        wants_term = False
    if wants_term:
        raise ValueError(f"{text!r}: ends in a sign")
    if not any(term.names for term in terms):
        raise ValueError(f"{text!r} names no counter")
    return Sum(" ".join(tokens), tuple(terms))


def _parse_term(token: str, sign: float, text: str) -> Term:
    coefficient = sign
    names: list[str] = []
    for factor in token.split("*"):
        if _NUMBER.match(factor):
            coefficient *= float(factor)
        elif _NAME.match(factor):
            names.append(factor)
        else:
            raise ValueError(f"{text!r}: {factor!r} is neither a number nor a counter's name")
    if not names and "*" in token:
        raise ValueError(f"{text!r}: {token!r} names no counter")
    return Term(coefficient, tuple(names))


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
    doubts: tuple[str, ...]

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The counters and metrics that it needs."""
        return tuple(dict.fromkeys((*self.left.names, *self.right.names)))

    def sides(self, values: Mapping[str, float]) -> tuple[float, float] | None:
        """The two sides where they contradict each other; None where they agree, or cannot be told."""
        if any(name not in values for name in self.names):
            return None
        left, right = self.left.value(values), self.right.value(values)
        allowed = max(self.least, self.slack * max(abs(left), abs(right)))
        over = left - right
        apart = over > allowed or (self.relation == "==" and -over > allowed)
        return (left, right) if apart else None


@lru_cache(maxsize=4)
def consistency_checks(tool: str) -> tuple[ConsistencyCheck, ...]:
    """The checks of `tool`'s reports; none for a tool that has none."""
    rows: list[dict[str, Any]] = load_yaml(Path(__file__).with_name("checks.yaml")).get(tool, [])
    return tuple(
        ConsistencyCheck(
            row["says"],
            parse_sum(row["left"]),
            parse_sum(row["right"]),
            row["relation"],
            row["slack"],
            row["least"],
            tuple(row["doubts"]),
        )
        for row in rows
    )


def checked_counters(tool: str) -> frozenset[str]:
    """The counters (not metrics) that the checks of `tool` need, so that its reader keeps them."""
    return frozenset(name for check in consistency_checks(tool) for name in check.names if "__" in name)
