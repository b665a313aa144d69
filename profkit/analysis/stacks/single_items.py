"""Calls of Python source that work on a batch, and are given a batch of a single item."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterator, Sequence

from profkit.analysis.stacks.expressions import bound_names, makes_batch_of_one, names_of_item
from profkit.analysis.stacks.searches import COMPREHENSIONS, LOOPS
from profkit.core.types import Construct


def single_items_at(
    line: int, around: Sequence[ast.AST], statement: Sequence[ast.AST], name_of: Callable[[ast.AST], str]
) -> Iterator[Construct]:
    """Yield what the line calls with a batch of a single item of the loop, independent of other items."""
    loops = [node for node in around if isinstance(node, (*LOOPS, *COMPREHENSIONS))]
    known = names_of_item(loops[-1], line)
    for node in statement if known else ():
        if not isinstance(node, ast.Call) or len(node.args) != 1 or node.keywords:
            continue
        given = node.args[0]
        one_item = makes_batch_of_one(given)
        if not one_item and not isinstance(given, ast.Name):
            continue
        loads = {part.id for part in ast.walk(given) if isinstance(part, ast.Name)}
        # what is an attribute may change with each item
        held = "self" in loads
        bound = bound_names(loops[-1]) - known
        if loads & known and not loads & bound and not held and (name := name_of(node.func)):
            yield Construct("of-one" if one_item else "of-item", name)


def single_arguments_at(
    function: ast.FunctionDef,
    statement: Sequence[ast.AST],
    name_of: Callable[[ast.AST], str],
    modules: Collection[str],
) -> Iterator[Construct]:
    """Yield what the line of a function calls with a batch that is made of one of its arguments."""
    given = {argument.arg for argument in function.args.args} - {"self"}
    for node in statement:
        if isinstance(node, ast.Call) and len(node.args) == 1 and not node.keywords:
            loads = _made_of(node.args[0], modules)
            if makes_batch_of_one(node.args[0]) and loads and loads <= given and (name := name_of(node.func)):
                yield Construct("of-one", name, function.name)


def _made_of(value: ast.AST, modules: Collection[str]) -> set[str]:
    """Return the names that a value is made of, without those of functions and modules that it calls."""
    functions = {
        part.func
        for part in ast.walk(value)
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Name)
    }
    names = (part for part in ast.walk(value) if isinstance(part, ast.Name) and part not in functions)
    return {part.id for part in names if part.id not in modules}
