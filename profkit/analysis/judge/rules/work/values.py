"""Insights on values that are slow to work with: a pattern of many words, numbers that slow a processor down.

The sampler read the values themselves; docs/insights.md tells how slow each kind is on a processor.
"""

from __future__ import annotations

import ast
import re

from profkit.analysis.judge.rules.counted import last_name, with_slashes
from profkit.analysis.judge.rules.spots import Find, called_names, calls_text, count_text, say, takes_the_time
from profkit.analysis.judge.words import words
from profkit.analysis.stacks.searches import dotted
from profkit.core.types import CodeSpot, Insight, RunDocument

ALTERNATIVES = 50  # words of a pattern: fewer are searched as fast as a set
DENORMAL = 100  # of a thousand numbers
MIN_NUMBERS = 1000
_BEHIND = " [denormal]"  # the suffix of the name in sampled variables
_GROUPS, _GROUPED_ROWS = " [groups]", " [grouped rows]"  # suffixes of the line
_GROUPING = "/pandas/core/groupby/"
MOSTLY = 0.5  # of a place's time
_SLOW = {"numpy.ndarray of float16": "half", "numpy.ndarray of longdouble": "long"}
_SEARCHES = frozenset({"match", "search", "fullmatch", "findall", "finditer", "sub", "subn", "split"})
# Calls that read no number, or make other numbers of them: the line works on their result.
_CONVERTS = re.compile(r"numpy\.(asarray|array|shape|ndim|size|empty_like|zeros_like|ones_like|save\w*)")
_METHODS = frozenset(
    {"sum", "mean", "std", "var", "prod", "dot", "cumsum", "min", "max", "clip", "round", "argmax", "argmin"}
)
_PRODUCTS = (ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow, ast.MatMult)
_OF_PRODUCTS = frozenset({"dot", "prod", "cumprod", "std", "var"})
_MULTIPLIES = re.compile(
    r"numpy\.(multiply|(true_)?divide|(float_)?power|sqrt|cbrt|square|exp\w*|log\w*|sin\w*|cos\w*|tan\w*|hypot|v?dot|inner|"
    r"outer|matmul|einsum|tensordot|convolve|correlate|linalg\.\w+|fft\.\w+|std|var|(cum)?prod)"
)


def many_words(document: RunDocument, spot: CodeSpot) -> Insight | None:  # noqa: ARG001
    """Return a pattern that tries many plain words one after the other at each place of a text."""
    for name in called_names(spot):
        method = last_name(name)
        if method not in _SEARCHES or not takes_the_time(spot, method):
            continue
        held = _pattern_of(spot, method)
        if held is None:
            continue
        pattern, number = held
        return say(
            spot,
            "many-alternatives",
            f"{pattern} tries {count_text(number)} words one after the other at each place of the text",
            f"its largest group has {count_text(number)} alternatives of plain text; {calls_text(spot)}".rstrip(
                "; "
            ),
            change=words("many-alternatives", "host"),
        )
    return None


def _pattern_of(spot: CodeSpot, method: str) -> tuple[str, int] | None:
    """Return the pattern that the line searches with, and its number of words, if it has many."""
    text = f"{spot.code.text}\n{spot.code.statement}" if spot.code is not None else ""
    for name, held in spot.variables.items():
        used = re.search(rf"(?<![\w.]){re.escape(name)}\.{method}\(", text) or re.search(
            rf"\b{method}\(\s*{re.escape(name)}\s*,", text
        )
        if held.type == "re.Pattern" and used and (held.length or 0) >= ALTERNATIVES:
            return name, held.length or 0
    return None


def denormal_numbers(document: RunDocument, spot: CodeSpot) -> Insight | None:  # noqa: ARG001
    """Return arithmetic on an array many of whose numbers are so small that a processor computes them step by step."""
    for name, held in spot.variables.items():
        array = name.removesuffix(_BEHIND)
        if array == name or (held.length or 0) < DENORMAL or not computes_with(spot, array, multiplies=True):
            continue
        share = (held.length or 0) / 10
        return say(
            spot,
            "denormal-numbers",
            f"Numbers near 0 in {array} are denormal, and arithmetic with them is many times slower",
            f"up to {share:.0f} % of {array} is denormal: smaller than the smallest number of full precision, and not 0"
            + (f"; {calls_text(spot)}" if calls_text(spot) else ""),
            change=words("denormal-numbers.array", "host").format(name=array),
        )
    return None


def slow_type(document: RunDocument, spot: CodeSpot) -> Insight | None:  # noqa: ARG001
    """Return arithmetic on numbers of a size that NumPy has no vector instructions for."""
    for name, held in spot.variables.items():
        kind = _SLOW.get(held.type)
        if kind is None or (held.length or 0) < MIN_NUMBERS or not computes_with(spot, name):
            continue
        return say(
            spot,
            "slow-number-type",
            f"Compute {name} in float32: NumPy converts each float16 number, and the result back"
            if kind == "half"
            else f"Compute {name} in float64: longdouble has no vector instructions",
            f"it holds up to {count_text(held.length or 0)} numbers"
            + (f"; {calls_text(spot)}" if calls_text(spot) else ""),
            change=words(f"slow-number-type.{kind}", "host").format(name=name),
        )
    return None


def empty_groups(document: RunDocument, spot: CodeSpot) -> Insight | None:  # noqa: ARG001
    """Return a grouping by categories that makes a group for each combination, most of which have no row."""
    held = spot.variables.get(f"{spot.where.line}{_GROUPS}")
    rows = spot.variables.get(f"{spot.where.line}{_GROUPED_ROWS}")
    below = max((frame.value for frame in spot.below if _GROUPING in with_slashes(frame.file)), default=0.0)
    if held is None or not held.length or rows is None or not rows.length or below < MOSTLY:
        return None
    return say(
        spot,
        "empty-groups",
        f"Group with observed=True: {count_text(rows.length)} rows are grouped into {count_text(held.length)} groups, "
        "nearly all of them empty",
        "the columns are categorical, and with observed=False each combination of their categories is a group"
        + (f"; {calls_text(spot)}" if calls_text(spot) else ""),
        spot.share * below * (1 - rows.length / held.length),
        change=words("empty-groups", "host"),
    )


def computes_with(spot: CodeSpot, name: str, *, multiplies: bool = False) -> bool:
    """Return whether a line computes with all, or a part, of the numbers that a name holds.

    With `multiplies`, only the factors of a product count: on x86-64 products, quotients, roots and exponentials of
    denormal numbers took 19 to 39 times as long as of others; sums, comparisons and choices took no longer.
    """
    if spot.code is None or not spot.code.statement or spot.kind not in ("python", "library"):
        return False
    if spot.under is not None and spot.under.library not in (None, "numpy", "built-in"):
        return False
    tree = ast.parse(spot.code.statement)
    parents = {child: parent for parent in ast.walk(tree) for child in ast.iter_child_nodes(parent)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Name | ast.Attribute) or dotted(node) != name:
            continue
        parent = parents.get(node)
        while isinstance(parent, ast.Subscript) and parent.value is node:
            node, parent = parent, parents.get(parent)
        if isinstance(parent, ast.BinOp | ast.AugAssign):
            if not multiplies or isinstance(parent.op, _PRODUCTS):
                return True
            continue
        if isinstance(parent, ast.UnaryOp) and not multiplies:
            return True
        if isinstance(parent, ast.Attribute) and parent.attr in (_OF_PRODUCTS if multiplies else _METHODS):
            return isinstance(parents.get(parent), ast.Call)
        if isinstance(parent, ast.Call) and node in parent.args:
            called = dotted(parent.func)
            computes = called.startswith("numpy.") and not _CONVERTS.fullmatch(called)
            if _MULTIPLIES.fullmatch(called) if multiplies else computes:
                return True
    return False


PATTERNS: tuple[Find, ...] = (many_words, denormal_numbers, slow_type, empty_groups)
