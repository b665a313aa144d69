"""Insights on sequences that a library turns into one array or tensor number by number.

The samples tell what the elements of a list are, and the source which list a call gets. How many times as long each
conversion takes as the one of whole arrays is in docs/insights.md.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from profkit.analysis.judge.rules.counted import last_name
from profkit.analysis.judge.rules.spots import Find, calls_text, count_text, say, takes_the_time
from profkit.analysis.judge.words import words
from profkit.analysis.stacks.searches import dotted
from profkit.core.formatting import percent_text
from profkit.core.types import CodeSpot, Insight, RunDocument, Variable

ELEMENTS = " [elements]"  # the suffix of the name in sampled variables
MANY = 2  # numbers of an element: for one number each the call itself may be what costs
_TORCH = (
    "torch.tensor",
    "torch.as_tensor",
    "torch.asarray",
    "torch.FloatTensor",
    "torch.Tensor",
    "torch.LongTensor",
)
_JAX = ("jax.numpy.array", "jax.numpy.asarray")
_NUMPY = ("numpy.array", "numpy.asarray")


@dataclass(frozen=True)
class _Conversion:
    """What makes an array of a sequence number by number: of which elements, and what part of its time that costs."""

    makes: tuple[str, ...]
    elements: str
    key: str
    part: float


# The parts are the smallest that were measured for 128 rows of 192 numbers, with torch 2.13, JAX 0.10 and NumPy 2.4.
_CONVERSIONS = (
    _Conversion(_TORCH, "numpy.ndarray", "torch", 0.95),
    _Conversion(_TORCH, "numpy.number", "numbers", 0.85),
    _Conversion(_TORCH, "list", "lists", 0.8),
    _Conversion(_JAX, "numpy.ndarray", "jax", 0.8),
    _Conversion(_JAX, "jax.Array", "jax.arrays", 0.85),
    _Conversion(_JAX, "list", "jax.lists", 0.95),
    _Conversion(_NUMPY, "torch.Tensor", "tensors", 0.85),
)
_ARRAYS = ("numpy.ndarray", "jax.Array", "torch.Tensor")
_NAMES = {"numpy.ndarray": "arrays of NumPy", "numpy.number": "numbers of NumPy", "list": "lists",
          "jax.Array": "arrays of JAX", "torch.Tensor": "tensors"}  # fmt: skip


def converted_one_by_one(document: RunDocument, spot: CodeSpot) -> Insight | None:
    """Find a list of arrays, or of lists, that becomes one tensor number by number."""
    found = _converted(spot)
    if found is None:
        return None
    conversion, make, name, held = found
    same = [
        other
        for other in document.hot_spots
        if (other.where.file, other.where.function) == (spot.where.file, spot.where.function)
        and (also := _converted(other)) is not None
        and also[0].key == conversion.key
    ]
    if not same or same[0] is not spot:
        return None  # it is reported once, at the line with most time
    lines = [f"line {other.where.line} ({percent_text(100 * other.share)})" for other in same[1:]]
    also_in = f"; the same in {', '.join(lines)}" if lines else ""
    each = f" of {count_text(held.length or 0)} numbers" if (held.length or 0) >= MANY else ""
    return say(
        spot,
        "converted-one-by-one",
        f"{make} goes through {_NAMES[conversion.elements]} number by number: make one array of them first",
        f"{name} holds {_NAMES[conversion.elements]}{each}, and {make} looks at each number as an object of Python; "
        f"{calls_text(spot)}{also_in}",
        sum(other.share for other in same) * conversion.part,
        change=words(f"converted-one-by-one.{conversion.key}", "host").format(name=name),
    )


def goes_through_arrays(spot: CodeSpot, name: str) -> bool:
    """Return whether what a line converts is no list of numbers, but of arrays, or has a finding of its own here."""
    held = spot.variables.get(name + ELEMENTS)
    return (held is not None and held.type in _ARRAYS) or _converted(spot) is not None


def _converted(spot: CodeSpot) -> tuple[_Conversion, str, str, Variable] | None:
    """Return the slow conversion of a line: what it is, what makes it, and the sequence with its elements."""
    if spot.code is None or not spot.code.statement or spot.kind not in ("python", "library"):
        return None
    for node in ast.walk(ast.parse(spot.code.statement)):
        if not isinstance(node, ast.Call) or not node.args:
            continue
        make = dotted(node.func)
        for name in _sequences(node.args[0]):
            held = spot.variables.get(name + ELEMENTS)
            if held is None or not takes_the_time(spot, last_name(make)):
                continue
            for conversion in _CONVERSIONS:
                many = conversion.key == "numbers" or (held.length or 0) >= MANY
                if make in conversion.makes and held.type == conversion.elements and many:
                    return conversion, make, ast.unparse(node.args[0]), held
    return None


def _sequences(given: ast.AST) -> Iterator[str]:
    """Yield the names under which an argument that is a sequence may have been sampled."""
    if isinstance(given, ast.Call) and dotted(given.func) in ("list", "tuple") and len(given.args) == 1:
        yield from _sequences(given.args[0])
        return
    yield ast.unparse(given)
    if not isinstance(given, ast.ListComp | ast.GeneratorExp) or len(given.generators) != 1:
        return
    source, target = ast.unparse(given.generators[0].iter), given.generators[0].target
    if isinstance(target, ast.Tuple) and isinstance(given.elt, ast.Name):
        for at, part in enumerate(target.elts):
            if isinstance(part, ast.Name) and part.id == given.elt.id:
                yield f"{source}[][{at}]"
    elif isinstance(target, ast.Name):
        element = given.elt
        if isinstance(element, ast.Attribute | ast.Subscript) and dotted(element.value) == target.id:
            yield f"{source}[]{ast.unparse(element).removeprefix(target.id)}"
        elif dotted(element) == target.id:
            yield source


PATTERNS: tuple[Find, ...] = (converted_one_by_one,)
