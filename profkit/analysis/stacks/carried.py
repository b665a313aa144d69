"""Work of a loop that needs what the iteration before it has made: it can be neither done at once nor side by side."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from profkit.analysis.stacks.searches import LOOPS, dotted
from profkit.core.types import Construct

_ASSIGNS = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.NamedExpr)
_STORES = frozenset(
    {
        "append", "appendleft", "add", "extend", "push", "put", "put_nowait", "update", "insert", "setdefault",
        "heappush", "heappushpop", "heapreplace",
    }
)  # fmt: skip


def carried_at(
    around: Sequence[ast.AST], statement: Sequence[ast.AST], name_of: Callable[[ast.AST], str]
) -> Iterator[Construct]:
    """Yield what a line needs as the iteration before has left it; with "await", what the next await needs of this one.

    Sums, extremes, and elements that only their own iteration changes are not carried in this sense: an operation on
    the whole does the same.
    """
    loops = [node for node in around if isinstance(node, LOOPS)]
    if not loops or not statement:
        return
    wait = next((node for node in statement if isinstance(node, ast.Await)), None)
    if wait is not None and (name := _needed_of_answer(wait, statement, loops[-1], name_of)):
        yield Construct("carried", name, "await")
    here = min(getattr(node, "lineno", 0) for node in statement)
    reads = set().union(*(_names(part) for part in _reads(statement)), *map(_names, _tests(loops[-1], here)))
    # A walk, a queue or a heap decides in the outer loop which elements the inner one looks at.
    outer = _Loop(loops[0]).carried if len(loops) > 1 and isinstance(loops[0], ast.While) else set()
    places = _names(*(part.slice for part in statement if isinstance(part, ast.Subscript)))
    if found := sorted((reads & _Loop(loops[-1]).carried) | (places & outer)):
        yield Construct("carried", found[0])


@dataclass(frozen=True)
class _Loop:
    """A loop, and what its iterations hand on to each other."""

    node: ast.AST

    @property
    def carried(self) -> set[str]:
        """The names whose values in an iteration follow from what the one before has made of them."""
        found: set[str] = set()
        for node in ast.walk(self.node):
            if not isinstance(node, _ASSIGNS):
                continue
            results = self.follows(_bound(node))
            test = self.node.test if isinstance(self.node, ast.While) else None
            reads = [*_reads([node]), *_tests(self.node, node.lineno), *([test] if test is not None else [])]
            if any(self._is_of_before(part, node.lineno, results) for part in reads):
                found |= results
        return found

    def follows(self, made: set[str]) -> set[str]:
        """Return the names whose values depend on some, by assignments, tests and what is kept in a container."""
        results, before = set(made), -1
        while results and len(results) > before:
            before = len(results)
            for node in ast.walk(self.node):
                if isinstance(node, _ASSIGNS) and node.value is not None and _names(node.value) & results:
                    results |= _bound(node)
                elif isinstance(node, ast.For | ast.comprehension) and _names(node.iter) & results:
                    results |= _names(node.target)
                elif isinstance(node, ast.Call) and _names(*node.args) & results:
                    results |= _kept_in(node)
                elif isinstance(node, ast.If) and not _is_extreme(node) and _names(node.test) & results:
                    for part in (part for each in (*node.body, *node.orelse) for part in ast.walk(each)):
                        if isinstance(part, _ASSIGNS):
                            results |= _bound(part)
        return results

    def _is_of_before(self, value: ast.AST, line: int, results: set[str]) -> bool:
        """Return whether an expression on a line reads one of some names as the iteration before has left it."""
        written = self._written()
        within = set()
        for part in ast.walk(value):
            if isinstance(part, ast.Subscript):
                within.add(id(part.value))
                # What an iteration reads where it writes is its own; a neighbour is that of another one.
                base, own = dotted(part.value), ast.unparse(part) in written
                if base in results and not own and any(each.startswith(f"{base}[") for each in written):
                    return True
        scalars = {
            name
            for part in ast.walk(value)
            if isinstance(part, ast.Name | ast.Attribute)
            and id(part) not in within
            and (name := dotted(part))
        }
        return any(self._is_left_by_before(name, line) for name in scalars & results)

    def _written(self) -> set[str]:
        targets = (
            target for node in ast.walk(self.node) if isinstance(node, _ASSIGNS) for target in _targets(node)
        )
        return {ast.unparse(target) for target in targets if isinstance(target, ast.Subscript)}

    def _is_left_by_before(self, name: str, line: int) -> bool:
        """Return whether no earlier line of the iteration binds a name, and it is more than counted up."""
        binds = [node for node in ast.walk(self.node) if isinstance(node, _ASSIGNS) and name in _bound(node)]
        items = [node.target for node in ast.walk(self.node) if isinstance(node, ast.For | ast.AsyncFor)]
        counts = binds and all(
            isinstance(node, ast.AugAssign) and dotted(node.target) == name for node in binds
        )
        bound = any(node.lineno < line and not isinstance(node, ast.AugAssign) for node in binds)
        return name not in _names(*items) and not bound and not counts


def _names(*nodes: ast.AST | None) -> set[str]:
    """Return the names and attributes (`self.text`) in some nodes, without the functions that are called."""
    found: set[str] = set()
    for node in nodes:
        parts = list(ast.walk(node)) if node is not None else []
        functions = {
            id(part.func) for part in parts if isinstance(part, ast.Call) and isinstance(part.func, ast.Name)
        }
        found |= {
            name
            for part in parts
            if isinstance(part, ast.Name | ast.Attribute)
            and id(part) not in functions
            and (name := dotted(part))
        }
    return found - {"self"}


def _targets(node: ast.AST) -> list[ast.AST]:
    """Return what an assignment binds, each part of a tuple by itself."""
    given = node.targets if isinstance(node, ast.Assign) else [node.target]  # type: ignore[attr-defined]
    return [part for each in given for part in (each.elts if isinstance(each, ast.Tuple) else [each])]


def _bound(node: ast.AST) -> set[str]:
    """Return the names that an assignment binds, or binds an element of: `y` of `y[n] = x`."""
    bases = (part.value if isinstance(part, ast.Subscript) else part for part in _targets(node))
    return {name for base in bases if (name := dotted(base))}


def _kept_in(call: ast.Call) -> set[str]:
    """Return what a call keeps its arguments in: `heap` of `heappush(heap, x)` and of `heap.append(x)`."""
    name = dotted(call.func).rpartition(".")[2]
    if name not in _STORES:
        return set()
    is_heap = name.startswith("heap") and bool(call.args)
    owner = call.args[0] if is_heap else call.func.value if isinstance(call.func, ast.Attribute) else None
    return {dotted(owner)} - {""} if owner is not None else set()


def _tests(loop: ast.AST, line: int) -> Iterator[ast.AST]:
    """Yield the tests in a loop on which it depends whether a line in their blocks runs."""
    for node in ast.walk(loop):
        if (
            isinstance(node, ast.If)
            and not _is_extreme(node)
            and node.lineno < line <= (node.end_lineno or 0)
        ):
            yield node.test


def _is_extreme(node: ast.If) -> bool:
    """Return whether a test only keeps the larger or the smaller of two: `if x > best: best = x`."""
    test = node.test
    plain = all(isinstance(each, ast.Assign) and not isinstance(each.value, ast.Call) for each in node.body)
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or node.orelse or not plain:
        return False
    sides = {ast.unparse(test.left), ast.unparse(test.comparators[0])}
    kept = [each for each in node.body if isinstance(each, ast.Assign)]
    return any({ast.unparse(each.targets[0]), ast.unparse(each.value)} == sides for each in kept)


def _reads(statement: Sequence[ast.AST]) -> Iterator[ast.AST]:
    """Yield the expressions that a line reads, without what only adds to a sum or keeps an extreme."""
    assigned = [node for node in statement if isinstance(node, _ASSIGNS)]
    within = {id(node.func.value) for node in statement if isinstance(node, ast.Call) and _kept_in(node)
              if isinstance(node.func, ast.Attribute)}  # fmt: skip
    if not assigned:
        yield from (
            part
            for node in statement
            for part in (node.args if isinstance(node, ast.Call) and _kept_in(node) else [node])
            if id(part) not in within and not isinstance(part, ast.Attribute)
        )
    for node in assigned:
        value, own = node.value, {ast.unparse(target) for target in _targets(node)}
        yield from (target.slice for target in _targets(node) if isinstance(target, ast.Subscript))
        extreme = isinstance(value, ast.Call) and dotted(value.func).rpartition(".")[2] in ("min", "max")
        if extreme and isinstance(value, ast.Call):
            yield from (part for part in value.args if ast.unparse(part) not in own)
        elif (
            isinstance(node, ast.Assign)
            and isinstance(value, ast.BinOp)
            and isinstance(value.op, ast.Add | ast.Mult)
        ):
            yield from (part for part in (value.left, value.right) if not _is_the_sum(part, node.targets[0]))
        elif value is not None:
            yield value


def _is_the_sum(part: ast.AST, target: ast.AST) -> bool:
    """Return whether a part is the sum so far: `total` of `total = total + x`, `c[n - 1]` of `c[n] = c[n - 1] + x`."""
    if isinstance(part, ast.Subscript) and isinstance(target, ast.Subscript):
        part, target = part.value, target.value
    return ast.unparse(part) == ast.unparse(target)


def _needed_of_answer(
    wait: ast.Await, statement: Sequence[ast.AST], loop: ast.AST, name_of: Callable[[ast.AST], str]
) -> str:
    """Return what the next await of a loop needs of the answer to this one: an argument, or whether it is asked."""
    made = set().union(*(_bound(node) for node in statement if isinstance(node, _ASSIGNS)))
    results, call = _Loop(loop).follows(made), wait.value
    given = [*call.args, *(each.value for each in call.keywords)] if isinstance(call, ast.Call) else [call]
    if (
        isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and name_of(call.func).startswith(".")
    ):
        given.append(call.func.value)
    ends = (
        node.test
        for node in ast.walk(loop)
        if isinstance(node, ast.If)
        and any(isinstance(part, ast.Break | ast.Return) for each in node.body for part in ast.walk(each))
    )
    tests = [*ends, loop.test] if isinstance(loop, ast.While) else [*ends]
    return next(iter(sorted(_names(*given, *tests) & results)), "")
