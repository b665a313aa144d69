"""Functions of Python source that have no effect, as far as their text proves it, and what functions change."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

_PURE = frozenset(
    {
        "abs", "min", "max", "sum", "len", "range", "int", "float", "str", "bool", "tuple", "sorted", "divmod", "round",
        "zip", "enumerate", "reversed", "any", "all", "pow", "ord", "chr",
    }
)  # fmt: skip
_PURE_METHODS = frozenset(
    {
        "search", "match", "fullmatch", "findall", "sub", "group", "groups", "start", "end", "span", "startswith",
        "endswith", "lower", "upper", "casefold", "title", "capitalize", "strip", "lstrip", "rstrip", "split", "rsplit",
        "splitlines", "partition", "rpartition", "replace", "join", "format", "translate", "zfill", "ljust", "rjust",
        "encode", "decode", "count", "find", "rfind", "index", "get", "isdigit", "isalpha", "isalnum", "isspace",
        "isupper", "islower", "removeprefix", "removesuffix",
    }
)  # fmt: skip

_NON_MUTATING_METHODS = frozenset(
    (
        "items",
        "keys",
        "values",
        "copy",
        "most_common",
        "union",
        "intersection",
        "difference",
        "issubset",
        "issuperset",
    )
)
_CONSTRUCTORS = frozenset(("__init__", "__post_init__", "__new__", "__setstate__"))


class ChangedNames(NamedTuple):
    """What functions of a file change: first names, as `seen` of `seen.add(x)`, and attributes of whatever object."""

    names: frozenset[str]
    attributes: frozenset[str]


def is_harmless(name: str) -> bool:
    """Return whether a built-in function, or a method such as `.find`, changes none of its arguments."""
    return (name in _PURE and hasattr(builtins, name)) or (name.startswith(".") and name[1:] in _PURE_METHODS)


def recursion_line_if_pure(
    function: ast.FunctionDef | ast.AsyncFunctionDef,
    name_of: Callable[[ast.AST], str],
    changes: Callable[[], ChangedNames],
) -> int | None:
    """Return the line in which a function without effect calls itself, 0 where it does not.

    None if it assigns to anything but local names, calls something that is not known to be pure, or reads a name of the
    module (in a method also an attribute) that `changes` has. `changes` is called last, since it reads the whole file.
    """
    calls_itself = 0
    of_object = {argument.arg for argument in function.args.args[:1]} & {"self"}
    arguments = {argument.arg for argument in ast.walk(function.args) if isinstance(argument, ast.arg)}
    looked_at: set[str] = set()
    for node in ast.walk(function):
        if isinstance(node, (ast.Global, ast.Nonlocal, ast.Yield, ast.YieldFrom, ast.Await, ast.Delete)):
            return None
        stored = isinstance(node, (ast.Attribute, ast.Subscript, ast.Name)) and not isinstance(
            node.ctx, ast.Load
        )
        if stored and (not isinstance(node, ast.Name) or node.id in arguments):
            return None
        if isinstance(node, ast.Name):
            looked_at.add(node.id)
        if isinstance(node, ast.Call):
            name = name_of(node.func)
            if name == function.name or name == f".{function.name}":
                calls_itself = calls_itself or node.lineno
            elif not (is_harmless(name) or name.startswith("math.")):
                return None
    if not arguments or (looked_at - of_object) & changes().names:
        return None
    attributes = {node.attr for node in ast.walk(function) if isinstance(node, ast.Attribute)}
    return calls_itself if not of_object or not attributes & changes().attributes else None


def changes_in(functions: Sequence[ast.AST], name_of: Callable[[ast.AST], str]) -> ChangedNames:
    """Return what functions store into, and what they call a method of that may change it."""
    return ChangedNames(_changed_names(functions, name_of), _changed_attributes(functions, name_of))


def _changed_names(functions: Sequence[ast.AST], name_of: Callable[[ast.AST], str]) -> frozenset[str]:
    """Return the first names of what functions store into, and of what they call to change it."""
    changed: set[str] = set()
    for function in functions:
        own = {
            name.id
            for name in ast.walk(function)
            if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store)
        }
        for node in ast.walk(function):
            into: ast.AST | None = None
            if isinstance(node, (ast.Attribute, ast.Subscript)) and not isinstance(node.ctx, ast.Load):
                into = node.value
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                harmless = node.func.attr in _PURE_METHODS or name_of(node.func).startswith("math.")
                into = None if harmless else node.func.value
            elif isinstance(node, ast.Global):
                changed.update(node.names)
            while isinstance(into, (ast.Attribute, ast.Subscript)):
                into = into.value
            if isinstance(into, ast.Name) and into.id not in own:
                changed.add(into.id)
    return frozenset(changed)


def _changed_attributes(functions: Sequence[ast.AST], name_of: Callable[[ast.AST], str]) -> frozenset[str]:
    """Return the names of attributes that are stored into, or called to change something, also by a local name.

    What a constructor stores into its own object does not count: nothing can have looked at that before.
    """
    changed: set[str] = set()
    for function in functions:
        constructs = getattr(function, "name", "") in _CONSTRUCTORS
        nodes = list(ast.walk(function))
        held = {
            target.id: set(_attributes(node.value))
            for node in nodes
            if isinstance(node, ast.Assign)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        for node in nodes:
            into: ast.AST | None = None
            if isinstance(node, (ast.Attribute, ast.Subscript)) and not isinstance(node.ctx, ast.Load):
                into = node
            elif isinstance(node, ast.AugAssign):
                into = node.target
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                harmless = node.func.attr in _PURE_METHODS | _NON_MUTATING_METHODS or name_of(
                    node.func
                ).startswith("math.")
                into = None if harmless else node.func.value
            root = into
            while isinstance(root, (ast.Attribute, ast.Subscript)):
                root = root.value
            base = root.id if isinstance(root, ast.Name) else ""
            if into is not None and not (constructs and base == "self"):
                changed |= {*_attributes(into), *held.get(base, ())}
    return frozenset(changed)


def _attributes(node: ast.AST) -> Iterator[str]:
    """Yield the names of attributes on the way to a value: `c` and `b` of `a.b[k].c`."""
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        if isinstance(node, ast.Attribute):
            yield node.attr
        node = node.value
