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
    """Yield what the line calls with a batch of a single item of the loop, independent of other items.

    The batch may have a name, and be made of an object that changes with each item, where no result of the call reaches
    that object: then all batches can be made before the first call.
    """
    loops = [node for node in around if isinstance(node, (*LOOPS, *COMPREHENSIONS))]
    known = names_of_item(loops[-1], line)
    for node in statement if known else ():
        given = _argument_of_item(node, known)
        if given is None or not isinstance(node, ast.Call):
            continue
        made = _value_of(given, loops[-1])
        # What else a function of the program is given beside its item, say a model, is no batch.
        one_item = len(node.args) == 1 and makes_batch_of_one(made)
        if not one_item and not isinstance(given, (ast.Name, ast.Call, ast.Attribute, ast.Subscript)):
            continue
        loads = _names(given)
        # What a batch that the line does not make itself is made of is not known here.
        held = not one_item and "self" in loads
        bound = bound_names(loops[-1]) - known
        if held or not loads & known or _names(*node.args) & bound:
            continue
        changes = any(_reaches(node, loops[-1], owner) for owner in _owners(made, name_of) - known)
        if not changes and (name := name_of(node.func)):
            yield Construct("of-one" if one_item else "of-item", name)


def _argument_of_item(node: ast.AST, known: Collection[str]) -> ast.expr | None:
    """Return the only argument of a call, or the only one of several that has the item of the loop."""
    if (
        not isinstance(node, ast.Call)
        or node.keywords
        or any(isinstance(one, ast.Starred) for one in node.args)
    ):
        return None
    if len(node.args) == 1:
        return node.args[0]
    of_item = [argument for argument in node.args if _names(argument) & set(known)]
    return of_item[0] if len(of_item) == 1 else None


def _names(*nodes: ast.AST) -> set[str]:
    return {part.id for node in nodes for part in ast.walk(node) if isinstance(part, ast.Name)}


def _names_beside(node: ast.AST, call: ast.Call) -> set[str]:
    """Return the names in an expression that are not in a call within it."""
    if node is call:
        return set()
    own = {node.id} if isinstance(node, ast.Name) else set()
    return own.union(*(_names_beside(part, call) for part in ast.iter_child_nodes(node)))


def _owners(made: ast.AST, name_of: Callable[[ast.AST], str]) -> set[str]:
    """Return the names of objects in an expression, without the functions and modules that it calls."""
    called = {
        name
        for node in ast.walk(made)
        if isinstance(node, ast.Call) and not name_of(node.func).startswith(".")
        for name in _names(node.func)
    }
    return _names(made) - called


def _value_of(given: ast.AST, loop: ast.AST) -> ast.AST:
    """Return what a name is bound to by the only assignment to it in a loop; anything else as it is."""
    bound = [
        node.value
        for node in ast.walk(loop)
        if isinstance(node, ast.Assign)
        and isinstance(given, ast.Name)
        and any(given.id in _names(target) for target in node.targets)
    ]
    return bound[0] if len(bound) == 1 else given


def _reaches(call: ast.Call, loop: ast.AST, owner: str) -> bool:
    """Return whether what a call in a loop gives, or what is done because of it, may change an object.

    Names that are assigned from it count as well. An object is changed where its attributes are stored into, or where
    a method of it, or of what it holds, is called or given to.
    """
    results: set[str] = set()
    before = -1
    while len(results) > before:
        before = len(results)
        for node in ast.walk(loop):
            depends = isinstance(node, (ast.Assign, ast.AugAssign)) and _depends(node.value, call, results)
            if depends and isinstance(node, ast.Assign):
                results |= _names(*node.targets)
            elif depends and isinstance(node, ast.AugAssign):
                results |= _names(node.target)
    if owner in results:
        return True
    blocks = [node for node in ast.walk(loop) if isinstance(node, (ast.If, ast.While))]
    inside = [
        part for node in blocks if _depends(node.test, call, results) for part in node.body + node.orelse
    ]
    conditional = {part for statement in inside for part in ast.walk(statement)}
    for node in ast.walk(loop):
        if isinstance(node, ast.Call) and node is not call and owner in _names_beside(node, call):
            given = [*node.args, *(keyword.value for keyword in node.keywords)]
            if node in conditional or any(_depends(part, call, results) for part in given):
                return True
    return any(owner in _names(part) for part in conditional if isinstance(part, (ast.Assign, ast.AugAssign)))


def _depends(node: ast.AST, call: ast.Call, results: set[str]) -> bool:
    return any(part is call or (isinstance(part, ast.Name) and part.id in results) for part in ast.walk(node))


def single_arguments_at(
    function: ast.FunctionDef,
    statement: Sequence[ast.AST],
    name_of: Callable[[ast.AST], str],
    modules: Collection[str],
) -> Iterator[Construct]:
    """Yield what the line of a function calls with a batch, which may have a name, of one of its arguments."""
    given = {argument.arg for argument in function.args.args} - {"self"}
    for node in statement:
        if isinstance(node, ast.Call) and len(node.args) == 1 and not node.keywords:
            made = _value_of(node.args[0], function)
            loads = _made_of(made, modules)
            if makes_batch_of_one(made) and loads and loads <= given and (name := name_of(node.func)):
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
