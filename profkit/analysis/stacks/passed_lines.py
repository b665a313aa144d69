"""Lines that the interpreter runs through before it checks whether another thread wants its lock.

CPython looks at the end of each round of a loop, after each call, and where a function begins (3.11 and later; before,
between almost any two instructions). Samples of what runs in between are taken there: in

    for key in keys:
        if key not in known:      # a list of 9,000: all of the time
            known.append(key)
        count += 1                # all of the samples

Pure: a syntax tree and the variables that samples saw in, lines out.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence

from profkit.core.types import LineCode, LineSamples, Variable

LONG_SEARCH = 200  # elements: to look through fewer takes no more than a few other instructions
LONG_COPY = 2000  # elements, or characters, that are copied
_SEARCHED = ("list", "tuple", "collections.deque")
_COPIED = ("list", "tuple", "str", "bytes")
_AT_ONCE = frozenset({"append", "add"})  # methods that take no time worth telling
_LOOKS_UP = (
    ast.Call, ast.Await, ast.Yield, ast.YieldFrom, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp
)  # fmt: skip
_Block = Sequence[ast.stmt]


def passed_lines(tree: ast.Module, line: int) -> tuple[int, ...]:
    """Return the lines before `line` whose work ends in a look there, nearest first.

    >>> passed_lines(ast.parse("for k in s:\\n  if k in t:\\n    u.append(k)\\n  n += 1"), 4)
    (2,)
    """
    return tuple(dict.fromkeys(_before(tree.body, line, ())))


def _before(block: _Block, line: int, outer: tuple[tuple[_Block, int], ...]) -> Iterator[int]:
    for index, statement in enumerate(block):
        if not statement.lineno <= line <= (statement.end_lineno or statement.lineno):
            continue
        for inner in _blocks(statement):
            if inner and inner[0].lineno <= line:
                end = inner[-1].end_lineno or inner[-1].lineno
                if line <= end:
                    yield from _before(inner, line, (*outer, (block, index)))
                    return
        if isinstance(statement, ast.For | ast.While):  # the round ends in its head
            yield from _backwards(statement.body, len(statement.body), ())
        elif not isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield from _backwards(block, index, outer)
        return


def _blocks(statement: ast.stmt) -> Iterator[_Block]:
    for name in ("body", "orelse", "finalbody"):
        if inner := getattr(statement, name, None):
            yield inner
    for handler in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
        yield handler.body


def _backwards(block: _Block, index: int, outer: tuple[tuple[_Block, int], ...]) -> Iterator[int]:
    """Yield the statements before one, up to the last at which the interpreter looks."""
    for statement in reversed(block[:index]):
        head = statement.test if isinstance(statement, ast.If) else statement
        if isinstance(head, ast.stmt) and any(_blocks(head)):
            return
        if _looks_up(head):
            return
        yield statement.lineno
    if outer and isinstance(holder := outer[-1][0][outer[-1][1]], ast.If) and not _looks_up(holder.test):
        yield holder.lineno
        yield from _backwards(*outer[-1], outer[:-1])


def _looks_up(node: ast.AST) -> bool:
    return any(isinstance(inner, _LOOKS_UP) for inner in ast.walk(node))


def has_slow_call(tree: ast.Module, line: int) -> bool:
    """Return whether a statement in a line calls anything but a method that takes no time."""
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call) and node.lineno == line)
    return any(not (isinstance(call.func, ast.Attribute) and call.func.attr in _AT_ONCE) for call in calls)


def takes_long(code: LineCode | None, variables: Mapping[str, Variable]) -> bool:
    """Return whether a line looks through, or copies, something long, in an operation that nothing interrupts."""
    for construct in code.constructs if code is not None else ():
        held = variables.get(construct.name)
        length = (held.length or 0) if held is not None else 0
        kind = held.type if held is not None else ""
        if construct.kind == "contains" and kind in _SEARCHED and length >= LONG_SEARCH:
            return True
        if construct.kind in ("grow", "shift") and kind in _COPIED and length >= LONG_COPY:
            return True
    return False


def is_of_line(samples: LineSamples) -> bool:
    """Return whether the time of a line was spent in itself, and not in what it calls or waits for."""
    whole = samples.main_wall + samples.other_wall
    called = sum(callee.value for callee in samples.callees)
    waited = sum(samples.waits.values()) + sum(samples.other_waits.values())
    return whole > 0 and called + waited < 0.2 * whole
