"""Members of archives and stores in Python source that are read again: the same key of the same thing each time.

Pure: syntax trees in, facts out. Whether the thing is an archive is not known here, and neither how often a line ran.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from profkit.analysis.stacks.same_calls import FileFacts, repeats, stays
from profkit.analysis.stacks.searches import COMPREHENSIONS, FUNCTIONS, LOOPS, dotted
from profkit.core.types import Construct

LONGEST = 60
_READS = frozenset({"read", "open", "extractfile", "get", "select"})
# Methods of archives and stores that change what a key gives.
_WRITES = frozenset(
    {"put", "append", "write", "writestr", "create_dataset", "create_array", "require_dataset", "update", "pop",
     "remove", "clear", "sync", "resize", "setdefault", "addfile", "add", "write_direct"}
)  # fmt: skip


def same_members_at(
    around: Sequence[ast.AST], statement: Sequence[ast.AST], facts: FileFacts
) -> Iterator[Construct]:
    """Yield `data["t2m"]`, `dataset[:]` and `archive.read("names")` of a line's statement which stay the same.

    As `same-member`, with how it is read (`key`, `whole` or `call`), and the parameters that it depends on; of a
    loop `loop` instead. So it is of what a `with` around the line opens.
    """
    function = around[0] if around and isinstance(around[0], FUNCTIONS) else None
    loops = [node for node in around if isinstance(node, (*LOOPS, *COMPREHENSIONS))]
    if function is None and not loops:
        return
    opened = [
        item.context_expr
        for node in around
        if isinstance(node, (ast.With, ast.AsyncWith))
        for item in node.items
    ]
    for node in (*statement, *opened):
        read = _member_read(node)
        if read is None:
            continue
        base, key, how = read
        inner = [loop for loop in loops if repeats(loop, node)]
        if (function is None and not inner) or _is_written(base, facts):
            continue
        found = [stays(part, function, inner, facts, is_text=True) for part in (base, key)]
        places = [place for each in found if each is not None for place in each]
        if None not in found:
            yield Construct(
                "same-member",
                ast.unparse(node)[:LONGEST],
                " ".join((how, *(("loop",) if inner else dict.fromkeys(places)))),
            )


def _member_read(node: ast.AST) -> tuple[ast.AST, ast.AST, str] | None:
    """Return the object whose member is read, the key, and how it is read; None where no member is read."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        asks = node.func.attr in _READS and len(node.args) == 1 and dotted(node.func.value)
        return (node.func.value, node.args[0], "call") if asks else None
    if (
        not isinstance(node, ast.Subscript)
        or not isinstance(node.ctx, ast.Load)
        or not dotted(_root(node.value))
    ):
        return None
    index = node.slice
    if all(map(_is_fixed, index.elts if isinstance(index, ast.Tuple) else (index,))):
        return node.value, index, "whole"
    is_key = dotted(index) or (isinstance(index, ast.Constant) and isinstance(index.value, str))
    return (node.value, index, "key") if is_key else None


def _is_fixed(index: ast.AST) -> bool:
    """Return whether an index is `:`, a part between numbers, or `...`."""
    if isinstance(index, ast.Slice):
        return all(
            each is None or isinstance(each, ast.Constant) for each in (index.lower, index.upper, index.step)
        )
    return isinstance(index, ast.Constant) and index.value is ...


def _root(node: ast.AST) -> ast.AST:
    """Return `data` of `data.groups["a"]["b"]`."""
    while isinstance(node, ast.Subscript) or (isinstance(node, ast.Attribute) and not dotted(node)):
        node = node.value
    return node


def _is_written(base: ast.AST, facts: FileFacts) -> bool:
    """Return whether the file stores into the object whose member is read, or calls a method that may do so."""
    name = dotted(_root(base))
    for node in ast.walk(facts.tree):
        into: ast.AST | None = None
        if isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
            into = node
        elif (
            isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _WRITES
        ):
            into = node.func.value
        if into is not None and dotted(_root(into)) == name:
            return True
    return False
