"""Loops of Python source that wait by asking again and again: a busy wait takes a processor."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import TypeAlias

from profkit.analysis.stacks.expressions import continues_at_once, does_nothing, only_looks, spans_line
from profkit.core.types import Construct

NameOf: TypeAlias = "Callable[[ast.AST], str]"
# Methods that test whether something has happened, and those that wait for it or take it.
_ASKS = frozenset({"is_set", "is_alive", "done", "empty", "locked", "ready", "running", "finished"})
_QUICK_ANSWERS = frozenset(
    {"is_set", "done", "locked", "cancelled"}
)  # which read a field, without a system call
_TAKES = frozenset({"get_nowait", "popleft", "pop", "recv_nowait"})
_CLOCKS = frozenset({"time.time", "time.monotonic", "time.perf_counter", "time.time_ns", "time.monotonic_ns"})


def last_name(call: ast.Call, name_of: NameOf) -> str:
    """Return `append` of a call of `numpy.append` or of a method `append`."""
    return name_of(call.func).rpartition(".")[2]


def busy_waits_at(loop: ast.While, line: int, name_of: NameOf) -> Iterator[Construct]:
    """Yield how the innermost loop around a line waits without giving the processor away."""
    yield from _spins(loop, line, name_of)
    yield from _asks_for_more(loop, line, name_of)


def _spins(loop: ast.While, line: int, name_of: NameOf) -> Iterator[Construct]:
    """Yield a loop that tests until something has happened, and stores and calls nothing that counts meanwhile.

    Where all that it does each time is to ask and to compare, its lines outside of conditions say so.
    """
    calls = [call for call in ast.walk(loop.test) if isinstance(call, ast.Call)]
    names = [last_name(call, name_of) for call in calls]
    if calls and not any(name in _ASKS for name in names):
        return
    if not calls and (isinstance(loop.test, ast.Constant) or not does_nothing(loop.body)):
        return
    if all(only_looks(statement) for statement in loop.body):
        asked = next((name for name in names if name in _ASKS), "")
        yield Construct("spin", asked, ast.unparse(loop.test)[:60])
        each_time = [part.test if isinstance(part, ast.If) else part for part in loop.body]
        others = [node for part in each_time for node in ast.walk(part) if isinstance(node, ast.Call)]
        within = [part for part in loop.body if isinstance(part, ast.If) and part.test.lineno < line]
        quick = bool(calls) and all(name in _QUICK_ANSWERS for name in names)
        if quick and not others and not any(spans_line(part, line) for part in within):
            yield Construct("asks-only", asked)


def _asks_for_more(loop: ast.While, line: int, name_of: NameOf) -> Iterator[Construct]:
    """Yield a loop that takes what is there without waiting, and begins again at once where there is nothing."""
    for at, statement in enumerate(loop.body):
        again: list[ast.ExceptHandler | ast.If] = []  # what begins again
        probe: ast.AST | None = None
        if isinstance(statement, ast.Try):
            last = at == len(loop.body) - 1
            idle = (each for each in statement.handlers if does_nothing(each.body))
            again, probe = (
                [each for each in idle if last or continues_at_once(each.body)],
                statement.body[0],
            )
        elif isinstance(statement, ast.If) and continues_at_once(statement.body) and not statement.orelse:
            again, probe = [statement], statement.test
        elif isinstance(statement, ast.If) and at == len(loop.body) - 1 and not statement.orelse:
            probe = statement.test  # where it is not so, the loop begins again
        calls = (each for each in ast.walk(probe) if _asks_without_waiting(each)) if probe else ()
        method = next((last_name(each, name_of) for each in calls if isinstance(each, ast.Call)), "")
        if not again and method and line in (loop.lineno, statement.lineno):
            yield Construct("spin", method, ast.unparse(loop.test)[:60])
            yield Construct("idle", method)
        if again and method and probe is not None:
            heads = [each.lineno for each in again if isinstance(each, ast.ExceptHandler)]
            rests = line in heads or any(spans_line(part, line) for each in again for part in each.body)
            if rests or line in (loop.lineno, statement.lineno) or spans_line(probe, line):
                yield Construct("spin", method, ast.unparse(loop.test)[:60])
            if rests:
                yield Construct("idle", method)
        if any(isinstance(each, ast.Call) for each in ast.walk(statement)):
            return  # what comes next is done each time


def ends_at_a_time(loop: ast.While, name_of: NameOf) -> bool:
    """Return whether a loop goes on until a time on the clock, and nothing else ends it."""
    calls = [name_of(call.func) for call in ast.walk(loop.test) if isinstance(call, ast.Call)]
    ends = any(isinstance(part, (ast.Break, ast.Return)) for part in ast.walk(loop))
    return bool(calls) and not ends and all(name in _CLOCKS for name in calls)


def _asks_without_waiting(node: ast.AST) -> bool:
    """Return whether a call looks for something, and comes back at once where there is nothing."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    name, given = node.func.attr, [*node.args, *(keyword.value for keyword in node.keywords)]
    zero = any(isinstance(argument, ast.Constant) and argument.value in (False, 0) for argument in given)
    if name in ("get", "acquire", "select"):
        return zero
    return name in _TAKES or name in _ASKS or (name == "poll" and (zero or not given))
