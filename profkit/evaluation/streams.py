"""Does a kernel use CUDA streams of its own? Read in its text; nothing of it is run."""

from __future__ import annotations

import ast
import functools
import inspect
import textwrap
from collections.abc import Callable, Iterator, Mapping
from types import FunctionType, MethodType, ModuleType
from typing import Any

_NAMES = {"Stream", "ExternalStream", "make_stream", "create_stream", "CUDAGraph", "make_graphed_callables"}
_GROUPS = {"cuda"}  # torch.cuda.stream(s), torch.cuda.graph(g): only behind this name
_IN_GROUP = {"stream", "graph"}


def uses_cuda_stream(func: Callable[..., Any]) -> bool:
    """Whether a function, or one of its module that it calls, makes or enters a stream or a CUDA graph.

    It is a remark and no verdict: work on other streams is allowed, and an evaluation has to wait for it and to count
    it. Names are looked up, so that an alias, `getattr` and a stream that the module has made are found, and comments,
    texts and `current_stream()` are not. What has no source (built-in functions, operators of torch) has no streams of
    Python's.
    """
    return any(map(_mentions_stream, _reachable(func)))


def _reachable(start: Any) -> Iterator[FunctionType]:
    """The function and those of its module that it names, directly or by others."""
    first = _plain_function(start)
    if first is None:
        return
    pending, seen = [first], {first}
    while pending:
        function = pending.pop()
        yield function
        names = _names_of(function)
        for node in ast.walk(_tree_of(function)):
            value = _look_up(node, names) if isinstance(node, (ast.Name, ast.Attribute)) else None
            other = _plain_function(value) if value is not None else None
            if other is not None and other.__module__ == first.__module__ and other not in seen:
                seen.add(other)
                pending.append(other)


def _plain_function(value: Any) -> FunctionType | None:
    """The Python function behind a partial, a method, a wrapper, a Triton kernel or a callable object."""
    for _ in range(10):
        if isinstance(value, FunctionType):
            inner = getattr(value, "__wrapped__", None)
            if not isinstance(inner, FunctionType):
                return value
            value = inner
        elif isinstance(value, functools.partial):
            value = value.func
        elif isinstance(value, MethodType):
            value = value.__func__
        elif isinstance(value, (type, ModuleType)):
            return None
        elif isinstance(getattr(value, "fn", None), FunctionType):  # a Triton kernel
            value = value.fn
        else:
            value = getattr(type(value), "__call__", None)  # noqa: B004
            if not isinstance(value, FunctionType):
                return None
    return None


def _tree_of(function: FunctionType) -> ast.AST:
    try:
        return ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError, ValueError):
        return ast.Module([], [])


def _names_of(function: FunctionType) -> Mapping[str, Any]:
    """What its global and closed-over names are now."""
    names = dict(function.__globals__)
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=False)
    for name, cell in cells:
        try:
            names[name] = cell.cell_contents
        except ValueError:  # not bound yet
            continue
    return names


def _mentions_stream(function: FunctionType) -> bool:
    names = _names_of(function)
    tree = _tree_of(function)
    annotations = {
        id(inner)
        for node in ast.walk(tree)
        for part in (getattr(node, "annotation", None), getattr(node, "returns", None))
        if part is not None
        for inner in ast.walk(part)
    }
    return any(_is_stream(node, names) for node in ast.walk(tree) if id(node) not in annotations)


def _is_stream(node: ast.AST, names: Mapping[str, Any]) -> bool:
    if isinstance(node, ast.Call) and ast.unparse(node.func) == "getattr" and len(node.args) > 1:
        attribute = node.args[1]
        return isinstance(attribute, ast.Constant) and attribute.value in _NAMES
    if isinstance(node, ast.ImportFrom):
        return any(alias.name in _NAMES for alias in node.names)
    if isinstance(node, ast.Attribute):
        if node.attr in _NAMES:
            return True
        group = ast.unparse(node.value).rpartition(".")[2]
        return node.attr in _IN_GROUP and group in _GROUPS
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
        value = names.get(node.id)
        kind = value if isinstance(value, type) else type(value)
        return any(base.__name__ in _NAMES for base in kind.__mro__)
    return False


def _look_up(node: ast.expr, names: Mapping[str, Any]) -> Any:
    """What a name or a dotted name of modules stands for; None where nothing is there without running code."""
    if isinstance(node, ast.Name):
        return names.get(node.id)
    if isinstance(node, ast.Attribute):
        owner = _look_up(node.value, names)
        if isinstance(owner, ModuleType):
            return vars(owner).get(node.attr)
    return None
