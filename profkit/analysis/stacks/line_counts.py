"""Which lines of a program are worth counting, and what a count of them says: statements, their names, and loops.

Pure: the text of a file in, facts out.
"""

from __future__ import annotations

import ast
import copy
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from profkit.analysis.stacks.python_code import is_users_code
from profkit.core.types import CountedLine, LineCount, LineSamples, RunDocument, SampledLoop

MAX_COUNTED, A_LINE = 40, 0.01  # lines that are counted, and the share of the time that makes one of them
MAX_NAMES, LONGEST = 24, 400  # of a statement; characters of one
A_LOOP = 0.8  # of the time without imports: what lies under a loop that much is the program's work
MAX_LOOPS = 6
_SIMPLE = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr, ast.Return, ast.Assert, ast.Raise, ast.Delete)
_AGAIN = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.Yield, ast.YieldFrom, ast.Await)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True)
class Statement:
    """A simple statement, or the test of an `if`: its text, with modules by their own names.

    `each`: the interpreter comes to its first line once for each execution. Over several lines, with a comprehension
    or where a generator goes on it may come there again.
    """

    text: str
    each: bool


def statement_at(tree: ast.Module, line: int, modules: Mapping[str, str]) -> Statement | None:
    """Return the statement that begins at a line; None where the counts there do not give its executions.

    `modules` has what names of the file were imported as.
    """
    here = list(nodes_at(tree, line))
    found = [node for node in here if isinstance(node, ast.stmt) and node.lineno == line]
    if len(found) != 1:
        return None
    (node,) = found
    shown: ast.AST = node.test if isinstance(node, ast.If) else node
    if not isinstance(node, (*_SIMPLE, ast.If)):
        return None
    each = _comes_once(shown, line)
    if not each and _ends_a_try(node, here):
        return None  # what ends a `try` is there twice, for its good end and for its bad one
    text = ast.unparse(ast.fix_missing_locations(_Renamed(modules).visit(copy.deepcopy(shown))))
    return Statement(text if len(text) <= LONGEST else "", each)


def nodes_at(tree: ast.AST, line: int) -> Iterator[ast.AST]:
    """Yield the nodes of a file in the order of `ast.walk`, without those of statements that the line is not in.

    So a line of a long file costs no more than the blocks around it.
    """
    todo = deque([tree])
    while todo:
        node = todo.popleft()
        yield node
        todo.extend(
            child
            for child in ast.iter_child_nodes(node)
            if not isinstance(child, ast.stmt) or first_line(child) <= line <= (child.end_lineno or 0)
        )


def first_line(node: ast.AST) -> int:
    """Return the line that a node begins in, with its decorators."""
    decorators = getattr(node, "decorator_list", ())
    return min([int(getattr(node, "lineno", 0)), *(int(decorator.lineno) for decorator in decorators)])


def _comes_once(node: ast.AST, line: int) -> bool:
    return getattr(node, "end_lineno", None) == line and not any(
        isinstance(part, _AGAIN) for part in ast.walk(node)
    )


def _ends_a_try(node: ast.stmt, here: Iterable[ast.AST]) -> bool:
    """Return whether a statement stands in the `finally` of one of the nodes around it."""
    ends = (each for parent in here if isinstance(parent, ast.Try) for each in parent.finalbody)
    return any(part is node for each in ends for part in ast.walk(each))


class _Renamed(ast.NodeTransformer):
    """`numpy.exp` of `np.exp`, and of `exp` where that was imported from there."""

    def __init__(self, modules: Mapping[str, str]) -> None:
        self._modules = modules

    def visit_Name(self, node: ast.Name) -> ast.AST:
        name = self._modules.get(node.id)
        if name is None or not isinstance(node.ctx, ast.Load) or name.startswith("."):
            return node
        return ast.parse(name, mode="eval").body


def path_of(node: ast.AST) -> tuple[str, ...]:
    """Return `("self", ".weights", "[0]")` of `self.weights[0]`; empty of anything but names and fixed elements."""
    if isinstance(node, ast.Name):
        return (node.id,)
    if isinstance(node, ast.Attribute) and (base := path_of(node.value)):
        return (*base, f".{node.attr}")
    if (
        isinstance(node, ast.Subscript)
        and isinstance(node.slice, ast.Constant)
        and (base := path_of(node.value))
    ):
        key = node.slice.value
        if isinstance(key, str) and key.isidentifier():
            return (*base, f"['{key}']")
        if type(key) is int and key >= 0:
            return (*base, f"[{key}]")
    return ()


def names_in(statement: str) -> tuple[tuple[str, ...], ...]:
    """Return what a statement works on: its names, and attributes and fixed elements below them."""
    try:
        tree = ast.parse(statement)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
    called = {id(part.func) for part in ast.walk(tree) if isinstance(part, ast.Call)}
    found = [
        path
        for node in ast.walk(tree)
        if id(node) not in called
        and (path := path_of(node))
        and path[0] not in ("numpy", "torch")
        and (isinstance(getattr(node, "ctx", None), ast.Load) or _is_changed(node, tree))
    ]
    return tuple(dict.fromkeys(found))[:MAX_NAMES]


def _is_changed(node: ast.AST, tree: ast.AST) -> bool:
    return any(isinstance(other, ast.AugAssign) and other.target is node for other in ast.walk(tree))


def calls_in(statement: str) -> dict[str, int]:
    """Return how often each execution of a statement calls what; without what a condition may leave out.

    Keys are last names, as cProfile has them. What stands under a condition too is not known at all.
    """
    try:
        tree = ast.parse(statement)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    calls: dict[str, int] = {}
    unsure: set[str] = set()
    for node, sure in _evaluated(tree, sure=True):
        if not isinstance(node, ast.Call):
            continue
        name = path_of(node.func)[-1:] or (
            f".{node.func.attr}" if isinstance(node.func, ast.Attribute) else "",
        )
        last = name[0].lstrip(".")
        calls[last] = calls.get(last, 0) + 1
        unsure |= set() if sure else {last}
    return {name: count for name, count in calls.items() if name and name not in unsure}


def _evaluated(node: ast.AST, *, sure: bool) -> Iterator[tuple[ast.AST, bool]]:
    """Yield each node below, and whether it is evaluated exactly once."""
    yield node, sure
    for name, value in ast.iter_fields(node):
        for number, child in enumerate(value if isinstance(value, list) else [value]):
            if not isinstance(child, ast.AST):
                continue
            once = sure and not isinstance(node, (*_AGAIN[:4], ast.Lambda))
            if isinstance(node, ast.BoolOp) and name == "values":
                once = once and number == 0
            elif isinstance(node, ast.IfExp):
                once = once and name == "test"
            elif isinstance(node, ast.Compare) and name == "comparators":
                once = once and number == 0
            yield from _evaluated(child, sure=once)


# ------------------------------------------------------------ loops


def find_loops(
    lines: Sequence[LineSamples], seconds: float, tree_of: Callable[[str], ast.Module | None]
) -> tuple[SampledLoop, ...]:
    """Return the loops of the program under which most of its main thread's `seconds` lie, the outer ones first."""
    if seconds <= 0:
        return ()
    parts: dict[
        tuple[str, str], dict[int, list[tuple[int, float]]]
    ] = {}  # by file and function: line -> its samples
    for number, sample in enumerate(lines):
        for file, function, line, wall in {
            (sample.file, sample.function, sample.line, sample.main_wall),
            *((each.file, each.function, each.line, each.value) for each in sample.within),
        }:
            if file is not None and line is not None and is_users_code(file, function):
                here = parts.setdefault((file, function), {}).setdefault(line, [])
                here.append((number, wall))
    found = []
    for (file, function), by_line in parts.items():
        total = sum(wall for several in by_line.values() for _, wall in several)
        tree = tree_of(file) if total >= A_LOOP * seconds else None
        for loop, (first, each) in _loops(tree, function) if tree is not None else ():
            last = loop.end_lineno or loop.lineno
            share = (
                sum(wall for at in range(loop.lineno, last + 1) for _, wall in by_line.get(at, ())) / seconds
            )
            if share >= A_LOOP:
                share = min(1.0, share)
                found.append(
                    SampledLoop(file, loop.lineno, function, first, last, share, share * seconds, each)
                )
    ordered = sorted(found, key=lambda loop: sum(_is_around(other, loop, lines) for other in found))
    return tuple(ordered[:MAX_LOOPS])


def is_in_loop(loop: SampledLoop, function: str | None, file: str | None, line: int | None) -> bool:
    """Return whether a line stands in a loop's head or body."""
    return (file, function) == (loop.file, loop.function) and loop.line <= (line or 0) <= loop.last


def _is_around(outer: SampledLoop, inner: SampledLoop, lines: Sequence[LineSamples]) -> bool:
    """Return whether one loop calls what the other one is in, or holds it: by the first line that lies under both."""
    if (outer.file, outer.function) == (inner.file, inner.function):
        return outer.line < inner.line and inner.last <= outer.last
    for line in lines:  # around a line its callers stand outermost first, as far as they have equal time
        chain = [
            *((each.function, each.file, each.line) for each in line.within),
            (line.function, line.file, line.line),
        ]
        places = [
            next((n for n, place in enumerate(chain) if is_in_loop(loop, *place)), None)
            for loop in (outer, inner)
        ]
        if places[0] is not None and places[1] is not None:
            return places[0] < places[1]
    return False


def _loops(tree: ast.Module, function: str) -> Iterator[tuple[ast.For | ast.While, tuple[int, bool]]]:
    """Yield loops of the functions of this name whose iterations can be counted, with the line that shows them."""
    name = function.rpartition(".")[2]
    owners: list[ast.AST] = [
        node for node in ast.walk(tree) if isinstance(node, _FUNCTIONS) and node.name == name
    ]
    for owner in [tree] if name == "<module>" else owners:
        for node in _own_nodes(owner):
            if (
                isinstance(node, (ast.For, ast.While))
                and (first := _first_of(node.body[0], tree)) is not None
            ):
                yield node, first


def _own_nodes(owner: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a function that belong to no function within it."""
    for child in ast.iter_child_nodes(owner):
        if not isinstance(child, (*_FUNCTIONS, ast.ClassDef, ast.Lambda)):
            yield child
            yield from _own_nodes(child)


def _first_of(node: ast.stmt, tree: ast.Module) -> tuple[int, bool] | None:
    """Return the line of a loop's first statement, and whether each time that it is come to is an iteration."""
    if _ends_a_try(node, nodes_at(tree, node.lineno)):
        return None
    if isinstance(node, (*_SIMPLE, ast.If)):
        return node.lineno, _comes_once(node.test if isinstance(node, ast.If) else node, node.lineno)
    return (node.lineno, False) if isinstance(node, (ast.For, ast.With, ast.Import, ast.ImportFrom)) else None


# ------------------------------------------------------------ what is counted, and what was


def lines_to_count(document: RunDocument) -> tuple[CountedLine, ...]:
    """Return the lines of a Python program whose executions are worth counting, those of most time first."""
    sampled = next(
        (
            sampled_time
            for sampled_time in document.sampled
            if not sampled_time.native and sampled_time.wall > 0
        ),
        None,
    )
    if sampled is None:
        return ()
    found: dict[tuple[str, int], CountedLine] = {}
    for loop in sampled.loops:
        found[loop.file, loop.first] = CountedLine(loop.file, loop.first, loop.function, loop.each, loop=True)
    for sample in sampled.lines:
        if len(found) >= MAX_COUNTED or sample.main_wall < A_LINE * sampled.wall:
            break
        if sample.file is None or sample.line is None or sample.code is None or not sample.code.statement:
            continue
        key, code = (sample.file, sample.line), sample.code
        loops = key in found
        found[key] = CountedLine(
            sample.file, sample.line, sample.function, code.each, names_in(code.statement), loops
        )
    return tuple(found.values())


def count_of(document: RunDocument, file: str | None, line: int | None) -> LineCount | None:
    """Return the count of a line; None where it was not counted, or in several functions."""
    found = [count for count in document.line_counts if (count.file, count.line) == (file, line)]
    return found[0] if len(found) == 1 else None
