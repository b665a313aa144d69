"""What a line calls, in the words of the program's text and of a library's documentation.

Between a line and the function that it calls stand decorators, delegating classes and compiled code. What is sampled
there is private to a library (`Properties._delegate_method` of `dates.dt.strftime()`, `_mean` of `values.mean()`), or
was generated (`argmap_pagerank_30` of `networkx.pagerank()`, the `__init__` of a dataclass).
"""

from __future__ import annotations

import ast
import builtins
import re

from profkit.analysis.function_names import brief_name, is_internal, library_name
from profkit.analysis.stacks.python_code import LOCAL, module_name
from profkit.core.types import CodeLine, LineCode, LineSamples

WITH = "contextlib"  # what enters a generator: a row of `with lock():` says more by its code
SURE = 0.3  # of the time below a line: what is called by a name of the line has at least so much of it
# Text that a library compiled: of a decorator, a template, attrs. Python's own frozen modules are files.
_COMPILED = re.compile(r"<(?!frozen ).*")
_NAMEDTUPLE = re.compile(r"namedtuple_(\w+)")
_ATTRS = re.compile(r"<attrs generated .*?(\w+)(?:-\d+)?>")
_MAKES = ("__init__", "__new__")
# NumPy's functions in Python below methods in C, where the name is not the method's with an underscore.
_OF_NUMPY = {"_amax": "max", "_amin": "min"}
_ITEM = {"__getitem__": "[]", "__setitem__": "[]=", "__delitem__": "del []"}


def written_calls(code: LineCode | None) -> set[str]:
    """Return the last names of the functions that a line calls in its text."""
    return {call.name.rpartition(".")[2] for call in code.find("call")} if code is not None else set()


# Types that are made of all items that they are given. cProfile sees no call of a type.
_MAKERS = frozenset({"list", "tuple", "set", "frozenset", "dict", "bytes", "bytearray", "str"})
_OTHER_WORK = (
    *(ast.BinOp, ast.BoolOp, ast.Compare, ast.UnaryOp, ast.Lambda, ast.JoinedStr, ast.ListComp, ast.SetComp),
    *(ast.DictComp, ast.GeneratorExp, ast.Await, ast.Yield, ast.YieldFrom),
)


def made_in(statement: str) -> str | None:
    """Return the only type that a statement makes of other items, where it does nothing but call built-in functions.

    >>> made_in("return sorted(list(range(n)))"), made_in("x = len(set(rows))"), made_in("x = f(list(rows))")
    ('list', 'set', None)
    """
    try:
        nodes = list(ast.walk(ast.parse(statement)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    calls = [node for node in nodes if isinstance(node, ast.Call)]
    names = [node.func.id if isinstance(node.func, ast.Name) else "" for node in calls]
    makers = [name for name, node in zip(names, calls, strict=True) if name in _MAKERS and node.args]
    alone = len(makers) == 1 and all(hasattr(builtins, name) for name in names)
    return makers[0] if alone and not any(isinstance(node, _OTHER_WORK) for node in nodes) else None


def is_generated(file: str | None) -> bool:
    """Return whether the code was compiled from text that no file has."""
    return file is not None and bool(_COMPILED.fullmatch(file) or _NAMEDTUPLE.fullmatch(file))


def public_call(line: LineSamples, called: CodeLine) -> str | None:
    """Return the public name of what a line calls, given the first function below it; None if its own name is public.

    That is the function of the line's text that runs below, else the class or module of the private function.
    """
    name, file = _last(called.function), called.file
    generated = is_generated(file)
    if file is None or not (generated or (file.endswith(".py") and name.startswith(("_", "<")))):
        return None
    written = written_calls(line.code)
    below = [inner for inner in line.below if inner.value >= SURE * called.value and _is_public(inner)]
    meant = max((inner for inner in below if _last(inner.function) in written), key=_value, default=None)
    if meant is not None:
        return _last(meant.function)
    if (bare := _OF_NUMPY.get(name, name.strip("_"))) in written:
        return bare
    own = {inner.function for inner in line.code.into} if line.code is not None else set()
    only = next(iter(written - own)) if len(written - own) == 1 else ""
    if generated:
        return _generated_name(name, file, written, only) or only or _largest(below) or "generated code"
    shown = library_name(called.function, module_name(file))
    made = [call for call in written if call[:1].isupper()]
    if name in _MAKES and shown not in written and len(made) == 1:
        return made[0]  # a class of the program, whose base is the library's
    if is_internal(file) and name not in ("__get__", *_ITEM):
        return only or _largest(below) or module_name(file).partition(".")[0]
    if shown == WITH or (shown and shown in called.function):
        return f"{shown}{_ITEM.get(name, '')}"
    # A module says little: the only call of the text, or the first function below that is known, has the time as well.
    return only or _largest(below) or shown


def _generated_name(name: str, file: str, written: set[str], only: str) -> str:
    """Return the class of a method that dataclasses, namedtuple or attrs made, or what calls it; empty for other code.

    `written`: the calls of the line, `only`: the one that is not of the program, if there is no other.
    """
    if (tuple_ := _NAMEDTUPLE.fullmatch(file)) is not None:
        return tuple_[1]
    if (attrs := _ATTRS.fullmatch(file)) is not None:
        return attrs[1] if name in _MAKES else f"{attrs[1]}.{name}"
    if not re.fullmatch(r"__\w+__", name):
        return ""
    made = [call for call in written if call[:1].isupper()]
    if name in _MAKES:
        return made[0] if len(made) == 1 else f"generated {name}"
    return f"{only} (generated {name})" if only else f"generated {name}"  # `sort` compares dataclasses


def _largest(below: list[CodeLine]) -> str:
    first = max(below, key=_value, default=None)
    return _last(first.function) if first is not None else ""


def _value(line: CodeLine) -> float:
    return line.value


def _is_public(inner: CodeLine) -> bool:
    if is_internal(inner.file):
        return False
    private = inner.function.startswith("_") or "._" in inner.function or LOCAL in inner.function
    return not private and not is_generated(inner.file)


def _last(function: str) -> str:
    return brief_name(function).rpartition(".")[2]
