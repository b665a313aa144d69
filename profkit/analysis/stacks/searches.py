"""Searches in Python source: a collection that stays is gone through for each item. Pure: syntax trees in, facts out.

What a name holds is not known here; it comes from samples.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from profkit.core.types import Construct

LOOPS = (ast.For, ast.AsyncFor, ast.While)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
LONGEST = 60
# Methods that go through a tree, a text or a table, and those that give the elements of what they are called on.
_SEARCHES = frozenset(
    {"find", "findall", "iterfind", "findtext", "xpath", "find_all", "select", "select_one"}
)
_ELEMENTS = frozenset({"values", "items", "iter", "findall", "iterfind", "xpath", "find_all"})
_AGGREGATES = frozenset({"sum", "min", "max"})
_CONSTRUCTORS = ("__init__", "__post_init__", "__new__")
_WRAPPERS = frozenset({"enumerate", "reversed", "iter"})


def dotted(node: ast.AST) -> str:
    """Return `self.text` of names and attributes; empty for anything else."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and (base := dotted(node.value)):
        return f"{base}.{node.attr}"
    return ""


def names_in(*nodes: ast.AST) -> set[str]:
    """Return all names in some expressions."""
    return {part.id for node in nodes for part in ast.walk(node) if isinstance(part, ast.Name)}


def stores_in(*nodes: ast.AST) -> set[str]:
    """Return the names and attributes that some nodes bind."""
    return {
        name
        for node in nodes
        for part in ast.walk(node)
        if isinstance(part, (ast.Name, ast.Attribute)) and not isinstance(part.ctx, ast.Load)
        if (name := dotted(part))
    }


def owned_nodes(tree: ast.AST) -> list[tuple[ast.AST, tuple[str, ...]]]:
    """Return each node of a file, in the order of `ast.walk`, and the functions whose bodies it is in, outermost first.

    Without the marks of what is loaded and stored, which are a third of all.
    """
    found: list[tuple[ast.AST, tuple[str, ...]]] = [(tree, ())]
    for node, owners in found:  # which grows meanwhile
        within = (*owners, node.name) if isinstance(node, FUNCTIONS) else owners
        for name in node._fields:
            value = getattr(node, name, None) if name != "ctx" else None
            owner = within if name == "body" else owners
            if isinstance(value, list):
                found += [(child, owner) for child in value if isinstance(child, ast.AST)]
            elif isinstance(value, ast.AST):
                found.append((value, owner))
    return found


def replaced_in(owned: Iterable[tuple[ast.AST, tuple[str, ...]]]) -> frozenset[str]:
    """Return the attributes bound by functions that are not constructors, and the module's names that they bind."""
    nodes = [node for node, owners in owned if any(name not in _CONSTRUCTORS for name in owners)]
    bound = {name for node in nodes if isinstance(node, ast.Global) for name in node.names}
    stored = {
        dotted(node)
        for node in nodes
        if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load)
    }
    return frozenset({*stored, *bound} - {""})


def parameters_of(function: ast.AST | None) -> list[str]:
    """Return the names of a function's positional parameters, without `self` and `cls`."""
    if not isinstance(function, FUNCTIONS):
        return []
    given = [argument.arg for argument in (*function.args.posonlyargs, *function.args.args)]
    return given[1:] if given[:1] in (["self"], ["cls"]) else given


@dataclass
class Surroundings:
    """What stays and what changes at a place: by the loops around it, else by the calls of its function.

    `replaced` are attributes that the file binds anew outside of constructors.
    """

    function: ast.AST | None
    loops: Sequence[ast.AST]
    replaced: frozenset[str] = frozenset()
    changes: set[str] = field(init=False)

    def __post_init__(self) -> None:
        stored = (
            stores_in(*self.loops) if self.loops else stores_in(self.function) if self.function else set()
        )
        given = set() if self.loops else set(parameters_of(self.function))
        self.changes = stored | given

    def stays(self, name: str) -> bool:
        """Return whether a name is bound outside; a parameter is, as far as the function knows."""
        parts = name.split(".")
        known = {".".join(parts[: n + 1]) for n in range(len(parts))}
        moved = self.changes if self.loops else self.changes - set(parameters_of(self.function))
        return bool(name) and (bool(self.loops) or self.function is not None) and not known & moved

    def differs(self, *nodes: ast.AST) -> bool:
        """Return whether an expression depends on the item, or on the call."""
        return bool(names_in(*nodes) & self.changes)

    def parameter(self, name: str) -> Iterator[Construct]:
        """Yield that a name is the function's own parameter: only its caller knows whether that stays the same.

        Where a loop of the function itself goes through it again and again, it stays the same in each call.
        """
        given = parameters_of(self.function)
        if name in given:
            yield Construct("looped-parameter" if self.loops else "parameter", name, str(given.index(name)))


def searches_at(
    line: int, around: Sequence[ast.AST], statement: Sequence[ast.AST], replaced: frozenset[str]
) -> Iterator[Construct]:
    """Yield the searches at a line: in the loops and comprehensions around it, and by what it calls."""
    function = around[0] if around and isinstance(around[0], FUNCTIONS) else None
    loops = [node for node in around if isinstance(node, (*LOOPS, *COMPREHENSIONS))]
    for at, loop in enumerate(loops):
        outer = [other for other in loops[:at] if _holds(other, loop)]
        if isinstance(loop, ast.For):
            yield from _loop(loop, line, Surroundings(function, outer))
        elif isinstance(loop, COMPREHENSIONS):
            yield from _comprehension(loop, function, outer)
    for node in statement:
        if isinstance(node, ast.Attribute):
            yield from _attribute_reads(
                node,
                Surroundings(function, [loop for loop in loops if _holds(loop, node)]),
            )
        if isinstance(node, (ast.Call, ast.Subscript)):
            surroundings = Surroundings(function, [loop for loop in loops if _holds(loop, node)], replaced)
            yield from (
                _call(node, surroundings) if isinstance(node, ast.Call) else _varies("[]", node, surroundings)
            )


# Methods that take a tenth of a microsecond, however much there is.
_BRIEF = frozenset({"append", "appendleft", "add"})


def tested_before(
    line: int, function: ast.AST | None, loops: Sequence[ast.AST], statement: Sequence[ast.AST]
) -> Iterator[Construct]:
    """Yield what a function looked for a value in, in a test of its body before a line that only adds to something.

    CPython before 3.12 gives its lock away at calls: a sample that comes during the test is taken at a call behind it.
    """
    calls = [node for node in statement if isinstance(node, ast.Call)]
    brief = [call for call in calls if isinstance(call.func, ast.Attribute) and call.func.attr in _BRIEF]
    if not isinstance(function, FUNCTIONS) or loops or not calls or len(brief) != len(calls):
        return
    for part in function.body:
        if part.lineno >= line or not isinstance(part, ast.If):
            continue
        for node in ast.walk(part.test):
            asked = node.comparators[0] if isinstance(node, ast.Compare) else None
            if asked is not None and isinstance(node.ops[0], (ast.In, ast.NotIn)) and dotted(asked):  # type: ignore[attr-defined]
                yield Construct("tested-before", dotted(asked), str(part.lineno))


def grown_searches(function: ast.AST | None) -> Iterator[tuple[Construct, int]]:
    """Yield what a function looks for a value in, outside of loops, and appends to: what has that method is a list.

    With the line of the test; `how` of the construct is the line that appends.
    """
    if not isinstance(function, FUNCTIONS):
        return
    appended = {
        dotted(node.func.value): node.lineno
        for node in ast.walk(function)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "append"
    }
    for part in function.body:
        if isinstance(part, (*LOOPS, ast.With, ast.AsyncWith, ast.Try)):
            continue
        for node in ast.walk(part.test if isinstance(part, ast.If) else part):
            asked = node.comparators[0] if isinstance(node, ast.Compare) else None
            is_search = isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.In, ast.NotIn))
            if is_search and asked is not None and (name := dotted(asked)) in appended and name:
                yield Construct("grown-search", name, str(appended[name])), part.lineno


def _call(node: ast.Call, around: Surroundings) -> Iterator[Construct]:
    """Yield a method that goes through what stays the same; what a function in a loop is given that stays the same."""
    if isinstance(node.func, ast.Attribute) and node.func.attr in _SEARCHES:
        base = dotted(node.func.value)
        given = [*node.args[:1], *(keyword.value for keyword in node.keywords)]
        begins = node.func.attr == "find" and len(node.args) > 1  # a text is searched from there on
        if around.stays(base) and around.differs(*given) and not begins:
            yield Construct("search", base, f".{node.func.attr}")
            yield from around.parameter(base)
    name = node.func.attr if isinstance(node.func, ast.Attribute) else dotted(node.func)
    kept = dotted(node.func.value) if name == "sort" and isinstance(node.func, ast.Attribute) else ""
    kept = dotted(node.args[0]) if name in ("sorted", "heapify") and node.args else kept
    if around.stays(kept) and kept not in around.replaced:
        yield Construct("sorts", kept, name)
        yield from around.parameter(kept)
    yield from _aggregates(node, name, around)
    same = [str(n) for n, argument in enumerate(node.args) if around.loops and around.stays(dotted(argument))]
    if name and same:
        yield Construct("gives", name, " ".join(same))
    # A method gives the same for as long as its object is the same one, where nothing binds the attribute anew.
    own = [
        str(n)
        for n, argument in enumerate(node.args)
        if not around.loops
        and (held := dotted(argument)).startswith("self.")
        and held.removeprefix("self.") not in {name.rpartition(".")[2] for name in around.replaced}
        and around.stays(held)
    ]
    if name and own:
        yield Construct("gives-own", name, " ".join(own))
    if name:
        yield from _varies(name, node, around)


def _aggregates(node: ast.Call, name: str, around: Surroundings) -> Iterator[Construct]:
    """Yield a sum or an extreme of all elements of what stays, which does not depend on the item: `max(values)`."""
    if name not in _AGGREGATES or not isinstance(node.func, ast.Name) or len(node.args) != 1:
        return
    (given,) = node.args
    own: set[str] = set()
    values: ast.AST = given
    if isinstance(given, COMPREHENSIONS) and len(given.generators) == 1:
        values, own = given.generators[0].iter, names_in(given.generators[0].target)
    inner = {
        part.arg for each in node.keywords for part in ast.walk(each) if isinstance(part, ast.arg)
    }  # of a key
    kept = _iterated(values)
    depends = names_in(node) & around.changes - own - inner
    if around.stays(kept) and kept not in around.replaced and (around.loops or "." in kept) and not depends:
        yield Construct("aggregates", kept, name)


def _attribute_reads(node: ast.AST, around: Surroundings) -> Iterator[Construct]:
    """Yield what a loop reads from an object that stays the same: `cart.total` and `cart.total()`."""
    if isinstance(node, ast.Attribute) and around.loops and around.stays(dotted(node.value)):
        yield Construct("asks", node.attr, dotted(node.value))


def _varies(name: str, node: ast.Call | ast.Subscript, around: Surroundings) -> Iterator[Construct]:
    """Yield that a called or looked-up thing depends on the item of a loop, or on the function's arguments."""
    if around.differs(node):
        yield Construct("varies", name, "item" if around.loops else "given")
        for parameter in parameters_of(around.function) if not around.loops else ():
            if parameter in names_in(node):
                yield from around.parameter(parameter)


def _holds(loop: ast.AST, node: ast.AST) -> bool:
    """Return whether a loop evaluates an expression for each of its items."""
    first = loop.iter if isinstance(loop, (ast.For, ast.AsyncFor)) else None
    first = loop.generators[0].iter if isinstance(loop, COMPREHENSIONS) else first
    once = first is not None and any(part is node for part in ast.walk(first))
    return not once and any(part is node for part in ast.walk(loop))


def _loop(loop: ast.For, line: int, around: Surroundings) -> Iterator[Construct]:
    """Yield `for x in name: if x.key == wanted: ...` does nothing but compare, at the lines that do so."""
    first = loop.body[0]
    if not isinstance(first, ast.If) or first.orelse:
        return
    leaves = all(isinstance(statement, ast.Continue) for statement in first.body)
    if not leaves and len(loop.body) > 1:
        return
    last = first.body[-1].end_lineno if leaves else first.test.end_lineno
    if line != loop.lineno and not first.lineno <= line <= (last or 0):
        return
    test = _wanted(first.test, names_in(loop.target), ast.NotEq if leaves else ast.Eq)
    name = _iterated(loop.iter)
    if test is not None and around.stays(name) and around.differs(test):
        yield Construct("search", name, ast.unparse(first.test)[:LONGEST])
        yield from around.parameter(name)


def _comprehension(node: ast.AST, function: ast.AST | None, outer: Sequence[ast.AST]) -> Iterator[Construct]:
    """Yield `x for x in name if x.key == wanted`, and `x.key == wanted for x in name`."""
    generators: list[ast.comprehension] = node.generators  # type: ignore[attr-defined]
    last, before = generators[-1], generators[:-1]
    tests = [*last.ifs, *([node.elt] if not last.ifs and isinstance(node, ast.GeneratorExp) else ())]
    around = Surroundings(function, [*outer, *before])
    name = _iterated(last.iter)
    for test in tests:
        wanted = _wanted(test, names_in(last.target), ast.Eq)
        if wanted is not None and around.stays(name) and around.differs(wanted):
            yield Construct("search", name, ast.unparse(test)[:LONGEST])
            yield from around.parameter(name)
            return


def _wanted(test: ast.AST, item: set[str], operator: type[ast.cmpop]) -> ast.AST | None:
    """Return what an item, or a part of it, is compared with; None where a test is no such comparison."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And if operator is ast.Eq else ast.Or):
        return next(
            (found for each in test.values if (found := _wanted(each, item, operator)) is not None), None
        )
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(test.ops[0], operator):
        return None
    sides = test.left, test.comparators[0]
    depends = [bool(names_in(side) & item) for side in sides]
    if depends[0] == depends[1]:
        return None
    return sides[1] if depends[0] else sides[0]


def _iterated(node: ast.AST) -> str:
    """Return the name of what is gone through: of `enumerate(name)`, of `name.values()`, of `range(len(name))`."""
    if isinstance(node, ast.Call):
        called = dotted(node.func)
        if called in _WRAPPERS and node.args:
            return _iterated(node.args[0])
        if called == "range" and len(node.args) == 1 and isinstance(node.args[0], ast.Call):
            inner = node.args[0]
            return dotted(inner.args[0]) if dotted(inner.func) == "len" and inner.args else ""
        if isinstance(node.func, ast.Attribute) and node.func.attr in _ELEMENTS:
            return dotted(node.func.value)
        return ""
    return dotted(node)
