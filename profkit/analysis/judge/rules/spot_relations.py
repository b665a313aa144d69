"""The relations of an object in a database that a line queries, as sampled variables show them: Django's managers."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from profkit.analysis.judge.rules.counted import last_name
from profkit.analysis.judge.rules.spots import count_text, say
from profkit.analysis.judge.words import words
from profkit.analysis.stacks.searches import dotted
from profkit.core.formatting import percent_text
from profkit.core.types import CodeSpot, Insight

_RELATION, _PREFETCHED = " [relation]", " [prefetched]"  # as the look at variables calls them
_MANY_MANAGERS = ("create_reverse_many_to_one_manager.", "create_forward_many_to_many_manager.")


@dataclass(frozen=True)
class Relation:
    """A relation of an object of Django, as `order.items`, and the methods that a line calls on it."""

    name: str
    methods: tuple[str, ...]
    kind: str
    prefetched: bool

    @property
    def is_of_many(self) -> bool:
        """Whether it leads to several objects, which select_related cannot load."""
        return self.kind in ("ReverseManyToOneDescriptor", "ManyToManyDescriptor")


def relation_asked(spot: CodeSpot) -> Relation | None:
    """Return the relation that a line looks at, where the look at variables knows what it is."""
    statement = spot.code.statement if spot.code is not None else ""
    tree = ast.parse(statement or "0")
    for name, held in spot.variables.items():
        relation = name.removesuffix(_RELATION)
        if relation == name or relation not in map(dotted, ast.walk(tree)):
            continue
        methods = tuple(
            node.func.attr
            for node in ast.walk(tree)
            if isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and _chain_root(node) == relation
        )
        return Relation(relation, methods[::-1], held.type, f"{relation}{_PREFETCHED}" in spot.variables)
    return None


def _chain_root(node: ast.AST) -> str:
    """Return `order.items` of `order.items.filter(...).first()`."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        node = node.func.value
    return dotted(node)


def has_related_manager(spot: CodeSpot) -> bool:
    """Return whether a manager of many related objects is seen below a place."""
    return any(frame.function.startswith(_MANY_MANAGERS) for frame in spot.below)


def prefetched_in_vain(
    spot: CodeSpot, asked: Relation, below: float, statements: int, lookups: int
) -> Insight:
    """Return that what was prefetched is not used: each method but `all` asks the database again."""
    called = ".".join(f"{method}(...)" for method in asked.methods if method != "all")
    return say(
        spot,
        "calls-in-loop",
        f"{asked.name} was prefetched, and .{called or 'all()'} asks the database again: "
        f"{'at least ' if spot.partial else ''}{count_text(lookups)} queries",
        f"{percent_text(100 * below)} of this is in execute_sql below it, which ran "
        f"{'at least ' if spot.partial else ''}{count_text(statements, 'time')}; "
        "the objects that prefetch_related has loaded are not used",
        spot.share * below * (1 - 1 / lookups),
        change=words("calls-in-loop.django.prefetched", "host").format(
            name=asked.name, relation=last_name(asked.name)
        ),
    )


def deferred_field(spot: CodeSpot, below: float, lookups: int) -> Insight:
    """Return that a field of an object of Django was left out of its query, so that each look at it sends one."""
    return say(
        spot,
        "calls-in-loop",
        "A field that its query left out is loaded by a query for each object: "
        f"{'at least ' if spot.partial else ''}{count_text(lookups)} queries",
        f"{percent_text(100 * below)} of this is in refresh_from_db below it, which loads a deferred field",
        spot.share * below * (1 - 1 / lookups),
        change=words("calls-in-loop.django.deferred", "host"),
    )
