"""What a line of Python source does, as far as its text proves it: searches, copies, elements, waits, calls.

Pure: the text of a file in, facts of one line out. What a name holds is not known here; samples say that.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, lru_cache

from profkit.analysis.stacks.line_counts import first_line, nodes_at, statement_at
from profkit.analysis.stacks.searches import COMPREHENSIONS as _COMPREHENSIONS
from profkit.analysis.stacks.searches import FUNCTIONS as _FUNCTIONS
from profkit.analysis.stacks.searches import LOOPS as _LOOPS
from profkit.analysis.stacks.searches import dotted as _dotted
from profkit.analysis.stacks.searches import names_in as _names_in
from profkit.analysis.stacks.searches import owned_nodes, replaced_in, searches_at
from profkit.core.types import Construct, InnerCode, LineCode

LONGEST_TEXT = 80
MAX_BYTES = 2_000_000  # of a file that is parsed
_COMMENT = re.compile(r"\s+#[^'\"]*$")
_SHIFTS = {
    "remove": 1,
    "index": 1,
    "count": 1,
}  # methods of lists that look through them, and least arguments
_GROWS = frozenset(
    {
        "numpy.append", "numpy.concatenate", "numpy.hstack", "numpy.vstack", "numpy.insert", "numpy.r_",
        "torch.cat", "torch.concat", "torch.hstack", "torch.vstack", "pandas.concat", "polars.concat",
    }
)  # fmt: skip
_ELEMENTS = frozenset({"item", "iterrows", "itertuples", "tolist"})
_CONTAINERS = ("list", "tuple", "sorted", "set", "frozenset", "dict")
_INDEXERS = frozenset({"at", "iat", "loc", "iloc"})
_MATCHES = frozenset({"match", "search", "fullmatch", "findall", "finditer", "sub", "subn", "split"})
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
# What asks whether something has happened, and what waits for it or takes it.
_ASKS = frozenset({"is_set", "is_alive", "done", "empty", "locked", "ready", "running", "finished"})
_TAKES = frozenset({"get_nowait", "popleft", "pop", "recv_nowait"})
_CLOCKS = frozenset({"time.time", "time.monotonic", "time.perf_counter", "time.time_ns", "time.monotonic_ns"})
_LOGS = frozenset({"debug", "info", "warning", "error"})
_OF_BUILTINS = frozenset({"sum", "max", "min", "any", "all", "sorted"})
_MAX_LABELS = 3  # labels
_OF_ARRAYS = re.compile(
    r"numpy\.(\w+\.(at|reduce|accumulate|reduceat)|linalg\.\w+|dot|matmul|sort|argsort|unique|bincount|concatenate|stack"
    r"|cumsum|interp|convolve|fft\.\w+|searchsorted|histogram)"
)
_BLOCKS = (*_LOOPS, *_FUNCTIONS, ast.ClassDef, ast.If, ast.With, ast.AsyncWith, ast.Try)


@lru_cache(maxsize=512)
def line_code(text: str, line: int, *, inner: bool = True) -> LineCode | None:
    """Return what the line does; with `inner` also what short functions do that it calls.

    None where the text is no Python of this version, or has no such line.
    """
    lines = text.splitlines()
    if not 0 < line <= len(lines) or len(text) > MAX_BYTES:
        return None
    shown = _COMMENT.sub("", lines[line - 1].strip())[:LONGEST_TEXT]
    source = _source_of(text)
    if source is None:
        return LineCode(shown)
    around = source.around(line)
    loops = [node for node in around if isinstance(node, (*_LOOPS, *_COMPREHENSIONS))]
    constructs = tuple(dict.fromkeys(source.constructs(line, around)))
    loop = getattr(loops[-1], "lineno", None) if loops else None
    into = tuple(source.called_from(line)) if inner else ()
    said = statement_at(source.tree, line, source.modules_at(around)) if inner else None
    text, each = (said.text, said.each) if said is not None else ("", True)
    return LineCode(shown, loop, constructs, into, text, each, _has_others(around))


@lru_cache(maxsize=16)
def parsed(text: str) -> ast.Module | None:
    """Return the syntax tree of a file, which nobody changes; None where the text is no Python of this version."""
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _has_others(around: Sequence[ast.AST]) -> bool:
    """Return whether more than one statement stands in the innermost loop, or in the function where no loop is."""
    inner = next((node for node in reversed(around) if isinstance(node, (*_LOOPS, *_FUNCTIONS))), None)
    inside = (node for node in ast.walk(inner) if isinstance(node, ast.stmt)) if inner is not None else ()
    return len({node.lineno for node in inside}) > 2  # its own first line, and one more


@lru_cache(maxsize=16)
def _source_of(text: str) -> _Source | None:
    """Return what is known of a file as a whole, which is found out once for all of its lines."""
    tree = parsed(text)
    return _Source(tree, text) if tree is not None else None


def body_line(text: str, line: int) -> int:
    """Return the first statement of the function whose head the line is in, after its documentation; any other
    line as it is.

    The cost of a call is seen where a function begins, at its `def` or at its first decorator.
    """
    tree = parsed(text)
    for node in nodes_at(tree, line) if tree is not None else ():
        if isinstance(node, _FUNCTIONS) and first_line(node) <= line < node.body[0].lineno:
            return _first_statement(node)
    return line


def _first_statement(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Return the line of the first statement after its documentation."""
    documented = len(function.body) > 1 and ast.get_docstring(function, clean=False) is not None
    return first_line(function.body[1 if documented else 0])


class _Source:
    """One parsed file."""

    def __init__(self, tree: ast.Module, text: str) -> None:
        self.tree, self.text = tree, text
        self.owned = owned_nodes(tree)
        self.nodes = [node for node, _ in self.owned]
        self.functions = [node for node in self.nodes if isinstance(node, _FUNCTIONS)]
        self.replaced = replaced_in(self.owned)
        self.by_rows = [one for one in self.nodes if isinstance(one, ast.Call) and _by_rows(one)]
        self._at: dict[int, tuple[ast.AST, ...]] = {}
        self.modules: dict[str, str] = {}  # name in the file -> dotted name of what was imported
        self.patterns: dict[str, str] = {}  # name of a compiled pattern -> its text
        for node in self.nodes:
            if isinstance(node, ast.Import):
                for one in node.names:
                    self.modules[one.asname or one.name.partition(".")[0]] = (
                        one.name if one.asname else one.name.partition(".")[0]
                    )
            elif isinstance(node, ast.ImportFrom):
                for one in node.names:
                    self.modules[one.asname or one.name] = f"{node.module or ''}.{one.name}"
        for node in self.nodes:
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
                pattern = _first_text(node.value)
                if pattern is not None and self.name_of(node.value.func) == "re.compile":
                    self.patterns |= {name: pattern for one in node.targets if (name := _dotted(one))}

    @cached_property
    def changed(self) -> frozenset[str]:
        """Return the first names of what functions of the file change."""
        return _changed_in(self.functions)

    def at(self, line: int) -> tuple[ast.AST, ...]:
        """Return the nodes of the statements that a line is in."""
        if line not in self._at:
            self._at[line] = tuple(nodes_at(self.tree, line))
        return self._at[line]

    def name_of(self, node: ast.AST) -> str:
        """`numpy.append` of `np.append`; `.execute` of a method of what is no module."""
        name = _dotted(node)
        if not name:
            return f".{node.attr}" if isinstance(node, ast.Attribute) else ""
        first, _, rest = name.partition(".")
        if first in self.modules:
            return f"{self.modules[first]}.{rest}" if rest else self.modules[first]
        return name if not rest else f".{name.rpartition('.')[2]}"

    def modules_at(self, around: Sequence[ast.AST]) -> Mapping[str, str]:
        """Return what was imported, without names that the function around binds anew."""
        function = around[0] if around and isinstance(around[0], _FUNCTIONS) else None
        bound = _bound_names(function) if function is not None else set()
        return {name: module for name, module in self.modules.items() if name not in bound}

    def around(self, line: int) -> list[ast.AST]:
        """The blocks and comprehensions that hold the line in their body, from the innermost function inwards."""
        found: list[ast.AST] = []
        for node in self.at(line):
            if isinstance(node, (*_BLOCKS, *_COMPREHENSIONS)) and first_line(node) <= line <= (
                node.end_lineno or 0
            ):
                found.append(node)
        found.sort(key=lambda node: (first_line(node), -(getattr(node, "end_lineno", 0) or 0)))
        inner = max((n for n, node in enumerate(found) if isinstance(node, _FUNCTIONS)), default=-1)
        return found[max(0, inner) :]

    def constructs(self, line: int, around: list[ast.AST]) -> Iterator[Construct]:
        """Yield all that the line does."""
        function = around[0] if around and isinstance(around[0], _FUNCTIONS) else None
        in_loop = any(isinstance(node, (*_LOOPS, *_COMPREHENSIONS)) for node in around)
        for node in self._statement(line):
            yield from self._of_node(node, function, in_loop)
        names = {node.name for node in self.functions}
        for one in searches_at(line, around, list(self._statement(line)), self.replaced):
            if one.kind != "asks" or one.name in names:
                yield one
        for name in self._called_elsewhere(line, function):
            yield Construct("called-elsewhere", name)
        for node in around:
            if isinstance(node, (ast.With, ast.AsyncWith)) and node.lineno != line:
                name = _dotted(node.items[0].context_expr) or self.name_of(node.items[0].context_expr)
                yield Construct("within", name, str(node.lineno))
        for node in around:
            if isinstance(node, ast.For) and node.lineno == line and (name := _dotted(node.iter)):
                yield Construct("iterates", name)
        for node in around:
            yield from _items(node)
        yield from self._paged(line, around)
        if isinstance(function, ast.AsyncFunctionDef):
            yield Construct("coroutine", function.name)
        if isinstance(function, ast.FunctionDef):
            yield from self._yields_of_itself(function)
        if function is not None:
            yield from (Construct("applied", name) for name in self._applied(function.name))
        if in_loop:
            yield from self._of_one(line, around)
        elif isinstance(function, ast.FunctionDef):
            yield from self._of_one_given(line, function)
        if function is not None and (again := _pure_calls(function, self)) is not None:
            yield Construct(
                "pure-recursion" if again else "pure", function.name, str(again or function.lineno)
            )
        loops = [node for node in around if isinstance(node, (*_LOOPS, *_COMPREHENSIONS))]
        for node in around:
            # A sampler inside of the process sees what the end of a body did where the loop begins again.
            if isinstance(node, _LOOPS):
                yield from self._rests(node, line)
        if loops and isinstance(loops[-1], ast.While):
            yield Construct("while", "", "clock" if self._until_a_time(loops[-1]) else "")
            yield from self._spin(loops[-1])
            yield from self._asks_for_more(loops[-1], line)
        depth = [node for node in around if isinstance(node, _LOOPS)]
        if len(depth) > 1:
            yield Construct("nested-loop", "", str(depth[0].lineno))

    def _paged(self, line: int, around: list[ast.AST]) -> Iterator[Construct]:
        """What the line takes in pages: `for row in page` in a loop over pages, and a slice of what a call gives."""
        loops = [node for node in around if isinstance(node, (ast.For, ast.AsyncFor))]
        pages = {name for node in loops if node.lineno != line for name in _targets(node)}
        for node in loops:
            if node.lineno == line and isinstance(node.iter, ast.Name) and node.iter.id in pages:
                yield Construct("paged", node.iter.id)
        for part in self._statement(line):
            if (
                isinstance(part, ast.Subscript)
                and isinstance(part.slice, ast.Slice)
                and isinstance(part.value, ast.Call)
            ):
                yield Construct("paged", self._last_name(part.value))

    def _yields_of_itself(self, function: ast.FunctionDef) -> Iterator[Construct]:
        """That a generator gives what it gives itself for a part, with the line in which it does."""
        for node in ast.walk(function):
            given = node.value if isinstance(node, ast.YieldFrom) else None
            if isinstance(given, ast.Call) and self._last_name(given) == function.name:
                yield Construct("yields-of-itself", function.name, str(given.lineno))
                return

    def _rests(self, loop: ast.For | ast.AsyncFor | ast.While, line: int) -> Iterator[Construct]:
        """What is cut off at its front: on the line, or, for the head of the loop, behind the last call of its body."""
        for at, one in enumerate(loop.body):
            # It looks after each call and where a loop begins again, and nowhere between.
            calls_later = any(
                isinstance(node, ast.Call) for each in loop.body[at + 1 :] for node in ast.walk(each)
            )
            if (name := _rest_of_itself(one)) and (
                one.lineno == line or (loop.lineno == line and not calls_later)
            ):
                yield Construct("shift", name, f"rest {one.lineno}")

    def called_from(self, line: int) -> Iterator[InnerCode]:
        """Functions of this file that a line calls, and their only line where they have one statement."""
        names = {
            self.name_of(node.func).rpartition(".")[2]
            for node in self._statement(line)
            if isinstance(node, ast.Call)
        }
        for node in self.functions:
            if node.name in names:
                single = (
                    node.body[0] if len(node.body) == 1 and not isinstance(node.body[0], _BLOCKS) else None
                )
                at = single.lineno if single is not None else _first_statement(node)
                code = line_code(self.text, at, inner=False) if single is not None else None
                yield InnerCode(node.name, at, code)

    def _called_elsewhere(self, line: int, function: ast.AST | None) -> Iterator[str]:
        """Last names of what the line calls, and another line of the same function, or of the top level, does too."""
        here = [node for node in self._statement(line) if isinstance(node, ast.Call)]
        others = {self._last_name(node) for node in _calls_in(function or self.tree) if node not in here}
        yield from dict.fromkeys(name for one in here if (name := self._last_name(one)) in others and name)

    def _last_name(self, call: ast.Call) -> str:
        return self.name_of(call.func).rpartition(".")[2]

    def _statement(self, line: int) -> Iterator[ast.AST]:
        """Yield all nodes of expressions on the line, and the simple statement that it belongs to."""
        for node in self.at(line):
            first, last = getattr(node, "lineno", 0), getattr(node, "end_lineno", 0) or 0
            kind = isinstance(node, (ast.Import, ast.ImportFrom, ast.Assign, ast.AugAssign, ast.expr))
            if kind and first <= line <= last and (first == line or not isinstance(node, _COMPREHENSIONS)):
                yield node

    def _of_node(self, node: ast.AST, function: ast.AST | None, in_loop: bool) -> Iterator[Construct]:
        if isinstance(node, ast.Compare):
            for operator, right in zip(node.ops, node.comparators, strict=True):
                if not isinstance(operator, (ast.In, ast.NotIn)):
                    continue
                if isinstance(right, ast.Attribute) and right.attr == "values":
                    yield Construct("contains", _base_of(right.value), "array")
                if name := _dotted(right):
                    yield Construct("contains", name)
                elif isinstance(right, ast.Call) and isinstance(right.func, ast.Attribute):
                    if right.func.attr == "values" and (name := _dotted(right.func.value)):
                        yield Construct("contains", name, "values")
                    elif right.func.attr in ("to_numpy", "tolist", "unique", "to_list"):
                        yield Construct("contains", _base_of(right.func.value), "array")
                elif isinstance(right, ast.Call) and (kind := _dotted(right.func)) in _CONTAINERS:
                    yield Construct("contains-made", kind, ast.unparse(right)[:60])
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            yield from self._import(node)
        elif isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add):
            yield Construct("grow", _dotted(node.target), "+=")
        elif isinstance(node, ast.Assign):
            yield from self._growth(node)
            if isinstance(node.value, ast.Call) and self.name_of(node.value.func) == "numpy.linalg.svd":
                yield from _unused_vectors(node, function or self.tree)
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
            yield from _power(node.left, node.right)
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
            yield Construct("product", _factor(node.left), _factor(node.right))
        elif isinstance(node, ast.Subscript) and (compared := _compared(node)):
            yield Construct("mask", _table_of(node), compared)
        elif isinstance(node, ast.Subscript) and _labels(node) is not None:
            yield Construct("lookup", _dotted(node.value.value), _labels(node) or "")  # type: ignore[attr-defined]
            if in_loop:
                yield Construct("element", _dotted(node.value.value), "loc")  # type: ignore[attr-defined]
        elif isinstance(node, ast.Subscript) and in_loop and not isinstance(node.slice, ast.Slice):
            base = node.value
            names = [name for one in ast.walk(node.slice) if (name := _dotted(one))]
            key = "['']" if isinstance(node.slice, ast.Constant) else f"[{','.join(dict.fromkeys(names))}]"
            if any(isinstance(one, ast.Slice) for one in ast.walk(node.slice)):
                return  # a row or a column of an array
            if isinstance(node.ctx, ast.Store) and self._keeps_result(node):
                return  # what is called takes the time, and not that its result is kept
            if self._is_given_as_array(node):
                return  # a row of a matrix
            if isinstance(base, ast.Attribute) and base.attr in _INDEXERS:
                yield Construct("element", _dotted(base.value), base.attr)
            elif name := _dotted(base):
                yield Construct("element", name, key)
        elif isinstance(node, ast.Call):
            yield from self._call(node, function)

    def _keeps_result(self, target: ast.Subscript) -> bool:
        """Return whether what is assigned to an element is what a call gives: `found[i] = search(text)`."""
        return any(
            isinstance(one, ast.Assign) and target in one.targets and isinstance(one.value, ast.Call)
            for one in self._statement(target.lineno)
        )

    def _is_given_as_array(self, part: ast.Subscript) -> bool:
        """Return whether it goes to a function of NumPy that takes arrays alone: `numpy.add.at(table[n], ...)`."""
        return any(
            isinstance(one, ast.Call) and part in one.args and _OF_ARRAYS.fullmatch(self.name_of(one.func))
            for one in self._statement(part.lineno)
        )

    def _applied(self, function: str) -> Iterator[str]:
        """Yield the names of frames to whose rows a function is applied: `frame.apply(function, axis=1)`."""
        for node in self.by_rows:
            if node.args and _dotted(node.args[0]) == function:
                yield _dotted(node.func.value)  # type: ignore[attr-defined]

    def _of_one(self, line: int, around: list[ast.AST]) -> Iterator[Construct]:
        """What the line calls with a batch of a single item of the loop, which needs no result of another item."""
        loops = [node for node in around if isinstance(node, (*_LOOPS, *_COMPREHENSIONS))]
        known = _of_this_item(loops[-1], line)
        for node in self._statement(line) if known else ():
            if not isinstance(node, ast.Call) or len(node.args) != 1 or node.keywords:
                continue
            given = node.args[0]
            one_item = _makes_one(given)
            if not one_item and not isinstance(given, ast.Name):
                continue
            loads = {one.id for one in ast.walk(given) if isinstance(one, ast.Name)}
            # what is an attribute may change with each item
            held = "self" in loads
            bound = _bound_names(loops[-1]) - known
            if loads & known and not loads & bound and not held and (name := self.name_of(node.func)):
                yield Construct("of-one" if one_item else "of-item", name)

    def _of_one_given(self, line: int, function: ast.FunctionDef) -> Iterator[Construct]:
        """Yield what the line of a function calls with a batch that is made of one of its arguments."""
        given = {one.arg for one in function.args.args} - {"self"}
        for node in self._statement(line):
            if isinstance(node, ast.Call) and len(node.args) == 1 and not node.keywords:
                loads = self._made_of(node.args[0])
                if (
                    _makes_one(node.args[0])
                    and loads
                    and loads <= given
                    and (name := self.name_of(node.func))
                ):
                    yield Construct("of-one", name, function.name)

    def _made_of(self, value: ast.AST) -> set[str]:
        """Return the names that a value is made of, without those of functions and modules that it calls."""
        functions = {
            one.func
            for one in ast.walk(value)
            if isinstance(one, ast.Call) and isinstance(one.func, ast.Name)
        }
        names = (one for one in ast.walk(value) if isinstance(one, ast.Name) and one not in functions)
        return {one.id for one in names if one.id not in self.modules}

    def _spin(self, loop: ast.While) -> Iterator[Construct]:
        """Yield a loop that asks until something has happened, and stores and calls nothing that counts meanwhile."""
        asked = [one for one in ast.walk(loop.test) if isinstance(one, ast.Call)]
        names = [self._last_name(one) for one in asked]
        if asked and not any(name in _ASKS for name in names):
            return
        if not asked and (isinstance(loop.test, ast.Constant) or not _does_nothing(loop.body)):
            return
        if all(_only_looks(one) for one in loop.body):
            yield Construct(
                "spin", next((name for name in names if name in _ASKS), ""), ast.unparse(loop.test)[:60]
            )

    def _asks_for_more(self, loop: ast.While, line: int) -> Iterator[Construct]:
        """Yield a loop that takes what is there without waiting, and begins again at once where there is nothing."""
        for at, one in enumerate(loop.body):
            again: list[ast.ExceptHandler | ast.If] = []  # what begins again
            asked: ast.AST | None = None
            if isinstance(one, ast.Try):
                last = at == len(loop.body) - 1
                idle = (each for each in one.handlers if _does_nothing(each.body))
                again, asked = [each for each in idle if last or _continues(each.body)], one.body[0]
            elif isinstance(one, ast.If) and _continues(one.body) and not one.orelse:
                again, asked = [one], one.test
            elif isinstance(one, ast.If) and at == len(loop.body) - 1 and not one.orelse:
                asked = one.test  # where it is not so, the loop begins again
            calls = (each for each in ast.walk(asked) if self._asks_without_waiting(each)) if asked else ()
            method = next((self._last_name(each) for each in calls if isinstance(each, ast.Call)), "")
            if not again and method and line in (loop.lineno, one.lineno):
                yield Construct("spin", method, ast.unparse(loop.test)[:60])
                yield Construct("idle", method)
            if again and method and asked is not None:
                heads = [each.lineno for each in again if isinstance(each, ast.ExceptHandler)]
                rests = line in heads or any(_is_in(part, line) for each in again for part in each.body)
                if rests or line in (loop.lineno, one.lineno) or _is_in(asked, line):
                    yield Construct("spin", method, ast.unparse(loop.test)[:60])
                if rests:
                    yield Construct("idle", method)
            if any(isinstance(each, ast.Call) for each in ast.walk(one)):
                return  # what comes next is done each time

    def _until_a_time(self, loop: ast.While) -> bool:
        """Return whether a loop goes on until the clock says so, and nothing else ends it."""
        calls = [self.name_of(one.func) for one in ast.walk(loop.test) if isinstance(one, ast.Call)]
        ends = any(isinstance(one, (ast.Break, ast.Return)) for one in ast.walk(loop))
        return bool(calls) and not ends and all(name in _CLOCKS for name in calls)

    def _asks_without_waiting(self, node: ast.AST) -> bool:
        """Return whether a call looks for something, and comes back at once where there is nothing."""
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            return False
        name, given = node.func.attr, [*node.args, *(one.value for one in node.keywords)]
        zero = any(isinstance(one, ast.Constant) and one.value in (False, 0) for one in given)
        if name in ("get", "acquire", "select"):
            return zero
        return name in _TAKES or name in _ASKS or (name == "poll" and (zero or not given))

    def _import(self, node: ast.Import | ast.ImportFrom) -> Iterator[Construct]:
        names = [one.asname or one.name.partition(".")[0] for one in node.names]
        module = node.module or "" if isinstance(node, ast.ImportFrom) else node.names[0].name
        used = [one for one in self.owned if isinstance(one[0], ast.Name) and one[0].id in names]
        if "*" in names or not used:
            yield Construct("import", module, "" if used or "*" in names else "unused")
            return
        alone = all(owners for _, owners in used)
        within = sorted({owners[-1] for _, owners in used}) if alone else []
        yield Construct("import", module, f"in {' '.join(within)}" if within else "")

    def _growth(self, node: ast.Assign) -> Iterator[Construct]:
        target, value = _dotted(node.targets[0]), node.value
        if not target:
            if longer := _row_behind_the_last(node.targets[0]):
                yield Construct("grow", longer, "loc")
            return
        if isinstance(value, ast.BinOp):
            left: ast.AST = value
            while isinstance(left, ast.BinOp) and isinstance(left.op, ast.Add):
                left = left.left
            if left is not value and _dotted(left) == target:
                texts = any(
                    isinstance(one, ast.JoinedStr)
                    or (isinstance(one, ast.Constant) and isinstance(one.value, str))
                    for one in ast.walk(value)
                )
                several = _dotted(value.left) != target
                yield Construct("grow", target, ("texts" if several else "text") if texts else "+")
        elif isinstance(value, ast.Call) and self.name_of(value.func) in _GROWS:
            given = {_dotted(one) for argument in value.args for one in ast.walk(argument)}
            if target in given:
                yield Construct("grow", target, self.name_of(value.func))

    def _call(self, node: ast.Call, function: ast.AST | None) -> Iterator[Construct]:
        name = self.name_of(node.func)
        method = name.rpartition(".")[2]
        base = _dotted(node.func.value) if isinstance(node.func, ast.Attribute) else ""
        first = node.args[0] if node.args else None
        zero = isinstance(first, ast.Constant) and first.value == 0
        if base and ((method in ("pop", "insert") and zero) or len(node.args) >= _SHIFTS.get(method, 99)):
            yield Construct("shift", base, method)
        if method in _ELEMENTS and isinstance(node.func, ast.Attribute):
            yield Construct("element", base, method)
        if _by_rows(node):
            yield Construct("element", base, "apply")
        if name in _OF_BUILTINS and first is not None and _is_of_arrays(first):
            for each in dict.fromkeys(_names_in(first)):
                yield Construct("builtin", each, name)
        if name == "sum" and len(node.args) == 2 and isinstance(node.args[1], (ast.List, ast.Tuple)):
            yield Construct("grow", _dotted(node.args[0]), "sum")
        if name == "numpy.power" and len(node.args) == 2:
            yield from _power(*node.args)
        if name in ("numpy.dot", "numpy.matmul", "numpy.inner") and len(node.args) == 2:
            yield Construct("product", *map(_factor, node.args))
        elif method == "dot" and len(node.args) == 1 and isinstance(node.func, ast.Attribute):
            yield Construct("product", _factor(node.func.value), _factor(node.args[0]))
        if method in _LOGS and base and any(_is_made(one) for one in node.args):
            within = {id(one) for argument in node.args for one in ast.walk(argument)}
            others = (one for one in self._statement(node.lineno) if id(one) not in within)
            names = _looked_at(*node.args) - _looked_at(
                *(one for one in others if isinstance(one, ast.Call)), deep=False
            )
            yield Construct("log", method, " ".join(sorted(names)))
        if any(one.arg == "flush" and _is_true(one.value) for one in node.keywords):
            yield Construct("flushes", name)
        if name in ("time.sleep", "asyncio.sleep"):
            yield Construct("sleep", name, ast.unparse(first) if isinstance(first, ast.Constant) else "")
        if method in _MATCHES and (base in self.patterns or name.startswith("re.")):
            yield Construct("pattern", self.patterns.get(base) or _first_text(node) or "", method)
        if name:
            yield Construct("call", name, "constant" if _is_constant(node, function) else "")


def _items(loop: ast.AST) -> Iterator[Construct]:
    """Yield what a loop goes through by single items, and how they are called: `for x in values`, or enumerated."""
    generators = loop.generators if isinstance(loop, _COMPREHENSIONS) else [loop]
    for one in generators:
        if not isinstance(one, (ast.For, ast.comprehension)):
            continue
        values, item = one.iter, one.target
        if isinstance(values, ast.Call) and _dotted(values.func) == "enumerate" and values.args:
            values = values.args[0]
            item = item.elts[-1] if isinstance(item, ast.Tuple) else item
        if isinstance(item, ast.Name) and _dotted(values):
            yield Construct("item", item.id, _dotted(values))


def _is_of_arrays(value: ast.AST) -> bool:
    """Return whether a value is arithmetic on names and parts of them: what it holds is what an array of that
    name holds.
    """
    plain = (ast.Name, ast.BinOp, ast.UnaryOp, ast.Constant, ast.Subscript, ast.Slice, ast.Tuple)
    marks = (ast.operator, ast.unaryop, ast.expr_context)
    return all(
        isinstance(one, (*plain, *marks))
        or (isinstance(one, ast.Attribute) and (one.attr in ("T", "values") or _dotted(one.value) == "self"))
        for one in ast.walk(value)
    )


def _unused_vectors(node: ast.Assign, scope: ast.AST) -> Iterator[Construct]:
    """Yield the singular vectors of a decomposition of which only the first columns or rows are used, or none."""
    target, call = node.targets[0], node.value
    if not isinstance(target, ast.Tuple) or not isinstance(call, ast.Call) or not call.args or call.keywords:
        return
    parts = [
        one.value for one in ast.walk(scope) if isinstance(one, ast.Subscript) and _has_an_end(one.slice)
    ]
    for axis, name in enumerate((target.elts[0], target.elts[-1])):
        loads = [
            one
            for one in ast.walk(scope)
            if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load) and one.id == _dotted(name)
        ]
        if all(any(one is part for part in parts) for one in loads):
            yield Construct("vectors", _dotted(name), f"{_dotted(call.args[0])} {axis}")


def _has_an_end(key: ast.AST) -> bool:
    slices = key.elts if isinstance(key, ast.Tuple) else [key]
    return any(isinstance(one, ast.Slice) and one.upper is not None for one in slices)


def _targets(loop: ast.For | ast.AsyncFor) -> Iterator[str]:
    """Yield the names that a loop sets to its items."""
    yield from (node.id for node in ast.walk(loop.target) if isinstance(node, ast.Name))


def _compared(node: ast.Subscript) -> str:
    """Return what a table's own rows are compared with to choose some of them: `day` of `rows[rows["day"] == day]`.

    Also of several conditions that are joined, and of `rows.loc[rows["day"] == day, "price"]`.
    """
    by_label = isinstance(node.value, ast.Attribute) and node.value.attr == "loc"
    mask = node.slice.elts[0] if by_label and isinstance(node.slice, ast.Tuple) else node.slice
    if not _table_of(node) or not isinstance(node.ctx, ast.Load):
        return ""
    return next((name for one in _conditions(mask) if (name := _equal_to(one))), "")


def _table_of(node: ast.Subscript) -> str:
    """Return the table that an index chooses rows of, by itself or by `.loc`."""
    base = node.value
    return _dotted(base.value if isinstance(base, ast.Attribute) and base.attr == "loc" else base)


def _conditions(mask: ast.AST) -> Iterator[ast.AST]:
    """Yield the parts of a mask that all have to hold."""
    if isinstance(mask, ast.BinOp) and isinstance(mask.op, ast.BitAnd):
        yield from _conditions(mask.left)
        yield from _conditions(mask.right)
    else:
        yield mask


def _equal_to(test: ast.AST) -> str:
    """Return the name that a column is compared with; empty for any other test."""
    if not isinstance(test, ast.Compare) or not all(isinstance(one, ast.Eq) for one in test.ops):
        return ""
    # numpy: `values[groups == group]` compares another array of the same length
    column = _dotted(test.left.value if isinstance(test.left, ast.Subscript) else test.left)
    return _dotted(test.comparators[0]) if column else ""


def _base_of(node: ast.AST) -> str:
    """`table` of `table["id"]`, or the name itself."""
    return _dotted(node.value if isinstance(node, ast.Subscript) else node)


def _rest_of_itself(statement: ast.stmt) -> str:
    """Return the name that a statement makes to be its own rest: `text` of `text = text[end:]`; else an empty text."""
    if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.Subscript):
        return ""
    name, cut = _dotted(statement.targets[0]), statement.value.slice
    of_itself = _dotted(statement.value.value) == name
    return (
        name
        if of_itself and isinstance(cut, ast.Slice) and cut.lower is not None and cut.upper is None
        else ""
    )


def _is_true(value: ast.AST) -> bool:
    return isinstance(value, ast.Constant) and value.value is True


def _by_rows(call: ast.Call) -> bool:
    """Return whether a call is `frame.apply(..., axis=1)`."""
    along = any(
        one.arg == "axis" and isinstance(one.value, ast.Constant) and one.value.value in (1, "columns")
        for one in call.keywords
    )
    return along and isinstance(call.func, ast.Attribute) and call.func.attr == "apply"


def _of_this_item(loop: ast.AST, line: int) -> set[str]:
    """Names that before a line of a loop depend on nothing but its item; empty where the loop may end early.

    A name that is bound twice, or from one that the loop binds later, may come from the item before.
    """
    if isinstance(loop, _COMPREHENSIONS):
        return _names_in(*(one.target for one in loop.generators))
    if not isinstance(loop, ast.For) or any(
        isinstance(one, (ast.Break, ast.Return)) for one in ast.walk(loop)
    ):
        return set()
    known = _names_in(loop.target)
    bound = [name for one in loop.body for name in _stores(one)]
    for one in loop.body:
        if one.lineno >= line:
            break
        if isinstance(one, ast.Assign) and all(isinstance(each, ast.Name) for each in one.targets):
            names = _names_in(*one.targets)
            given = {each.id for each in ast.walk(one.value) if isinstance(each, ast.Name)}
            if given <= known | (given - set(bound)) and all(bound.count(name) == 1 for name in names):
                known |= names
    return known - {name for name in known if bound.count(name) > 1}


def _stores(node: ast.AST) -> list[str]:
    return [
        one.id for one in ast.walk(node) if isinstance(one, ast.Name) and not isinstance(one.ctx, ast.Load)
    ]


def _makes_one(argument: ast.AST) -> bool:
    """Whether an argument is a batch of one item: `[row]`, `row[None]`, `row.unsqueeze(0)`, `row.reshape(1, -1)`."""
    if isinstance(argument, ast.List):
        return len(argument.elts) == 1 and not isinstance(argument.elts[0], ast.Starred)
    if isinstance(argument, ast.Subscript):
        key = argument.slice.elts[0] if isinstance(argument.slice, ast.Tuple) else argument.slice
        new = (isinstance(key, ast.Constant) and key.value is None) or _dotted(key).endswith(".newaxis")
        return new or _is_one_long(key)
    if not isinstance(argument, ast.Call) or not isinstance(argument.func, ast.Attribute):
        return False
    numbers = [one.value if isinstance(one, ast.Constant) else None for one in argument.args]
    method = argument.func.attr
    return (method == "unsqueeze" and numbers == [0]) or (
        method in ("reshape", "view") and len(numbers) > 1 and numbers[0] == 1
    )


def _is_one_long(key: ast.AST) -> bool:
    """Return whether a slice is `n:n + 1`."""
    if not isinstance(key, ast.Slice) or key.lower is None or not isinstance(key.upper, ast.BinOp):
        return False
    last, step = key.upper, key.upper.right
    one_more = isinstance(last.op, ast.Add) and isinstance(step, ast.Constant) and step.value == 1
    return one_more and ast.dump(last.left) == ast.dump(key.lower)


def _factor(node: ast.expr) -> str:
    """Return the array of a product: `self.w` of `self.w.T`."""
    return _dotted(node.value if isinstance(node, ast.Attribute) and node.attr == "T" else node)


def _power(base: ast.AST, exponent: ast.AST) -> Iterator[Construct]:
    """Yield an operand to the power of a number that is written there."""
    sign = "-" if isinstance(exponent, ast.UnaryOp) and isinstance(exponent.op, ast.USub) else ""
    number = exponent.operand if isinstance(exponent, ast.UnaryOp) else exponent
    value = number.value if isinstance(number, ast.Constant) else None
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        names = [name for one in ast.walk(base) if (name := _dotted(one))]
        yield from (Construct("power", name, f"{sign}{value}") for name in dict.fromkeys(names))


def _labels(node: ast.Subscript) -> str | None:
    """Return the name that `name.loc[...]` looks up, empty for labels that are written there; None of anything else."""
    base, key = node.value, node.slice
    if not (isinstance(base, ast.Attribute) and base.attr == "loc" and _dotted(base.value)):
        return None
    if isinstance(node.ctx, ast.Store):
        return None
    key = key.elts[0] if isinstance(key, ast.Tuple) and key.elts else key
    if isinstance(key, ast.List):
        few = len(key.elts) <= _MAX_LABELS and not any(isinstance(one, ast.Starred) for one in key.elts)
        return "" if few else None
    return "" if isinstance(key, ast.Constant) else _dotted(key) or None


def _is_made(argument: ast.AST) -> bool:
    """Return whether an argument of a message costs something to make: a call, a text put together."""
    return any(isinstance(one, (ast.Call, ast.FormattedValue, ast.BinOp)) for one in ast.walk(argument))


def _looked_at(*nodes: ast.AST, deep: bool = True) -> set[str]:
    """Return the last names of what is called, and of attributes, which may be properties."""
    every = (one for node in nodes for one in (ast.walk(node) if deep else [node]))
    called = (one.func if isinstance(one, ast.Call) else one for one in every)
    return {
        one.attr if isinstance(one, ast.Attribute) else one.id
        for one in called
        if isinstance(one, (ast.Attribute, ast.Name))
    }


def _calls_in(scope: ast.AST) -> Iterator[ast.Call]:
    """Yield the calls in a function's or a module's own code, not in functions that are defined in it."""
    for node in ast.iter_child_nodes(scope):
        if isinstance(node, ast.Call):
            yield node
        if not isinstance(node, (*_FUNCTIONS, ast.Lambda)):
            yield from _calls_in(node)


def _does_nothing(body: list[ast.stmt]) -> bool:
    """Return whether statements only go on, or look whether it is time to end."""
    return all(isinstance(one, (ast.Pass, ast.Continue)) or _only_ends(one) for one in body)


def _only_ends(one: ast.stmt) -> bool:
    ends = isinstance(one, ast.If) and all(isinstance(each, (ast.Return, ast.Break)) for each in one.body)
    return ends and isinstance(one, ast.If) and not one.orelse


def _row_behind_the_last(target: ast.AST) -> str:
    """Return the frame that `frame.loc[len(frame)] = ...` makes longer; else an empty text."""
    of = target.value if isinstance(target, ast.Subscript) else None
    key = target.slice if isinstance(target, ast.Subscript) else None
    if not isinstance(of, ast.Attribute) or of.attr != "loc" or not isinstance(key, ast.Call) or not key.args:
        return ""
    name = _dotted(of.value)
    return name if _dotted(key.func) == "len" and _dotted(key.args[0]) == name else ""


def _is_in(node: ast.AST, line: int) -> bool:
    return getattr(node, "lineno", 0) <= line <= (getattr(node, "end_lineno", 0) or 0)


def _continues(body: list[ast.stmt]) -> bool:
    return isinstance(body[-1], ast.Continue) and _does_nothing(body)


def _only_looks(statement: ast.stmt) -> bool:
    """Whether a statement of a loop keeps nothing but local names, and does anything else only where a test says so."""
    if isinstance(statement, ast.Assign):
        return all(isinstance(one, ast.Name) for one in statement.targets)
    return isinstance(statement, (ast.Pass, ast.Continue, ast.If))


def _first_text(call: ast.Call) -> str | None:
    value = call.args[0].value if call.args and isinstance(call.args[0], ast.Constant) else None
    return value[:LONGEST_TEXT] if isinstance(value, str) else None


def _bound_names(function: ast.AST) -> set[str]:
    """Return the names that a function binds: its arguments and what it assigns."""
    names = {
        one.id
        for one in ast.walk(function)
        if isinstance(one, ast.Name) and not isinstance(one.ctx, ast.Load)
    }
    return names | {one.arg for one in ast.walk(function) if isinstance(one, ast.arg)}


def _is_constant(call: ast.Call, function: ast.AST | None) -> bool:
    """Return whether all arguments are literals, or names that the function does not bind."""
    given = [*call.args, *(keyword.value for keyword in call.keywords)]
    if not given or function is None:
        return False
    bound = _bound_names(function)
    return all(
        isinstance(one, ast.Constant) or (bool(name := _dotted(one)) and name.partition(".")[0] not in bound)
        for one in given
    )


def _pure_calls(function: ast.FunctionDef | ast.AsyncFunctionDef, source: _Source) -> int | None:
    """Return the line in which a function without effect calls itself, 0 where it does not.

    None where it stores anything but local names, calls what is not known to have no effect, or looks at what of the
    module functions change.
    """
    calls_itself = 0
    arguments = {one.arg for one in ast.walk(function.args) if isinstance(one, ast.arg)}
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
            name = source.name_of(node.func)
            if name == function.name or name == f".{function.name}":
                calls_itself = calls_itself or node.lineno
            elif not (
                (name in _PURE and hasattr(builtins, name))
                or name.startswith("math.")
                or (name.startswith(".") and name[1:] in _PURE_METHODS)
            ):
                return None
    return calls_itself if arguments and not looked_at & source.changed else None


def _changed_in(functions: Sequence[ast.AST]) -> frozenset[str]:
    """Return the first names of what functions store into, and of what they call to change it."""
    changed: set[str] = set()
    for function in functions:
        own = {
            one.id
            for one in ast.walk(function)
            if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)
        }
        for node in ast.walk(function):
            into: ast.AST | None = None
            if isinstance(node, (ast.Attribute, ast.Subscript)) and not isinstance(node.ctx, ast.Load):
                into = node.value
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                into = node.func.value if node.func.attr not in _PURE_METHODS else None
            elif isinstance(node, ast.Global):
                changed.update(node.names)
            while isinstance(into, (ast.Attribute, ast.Subscript)):
                into = into.value
            if isinstance(into, ast.Name) and into.id not in own:
                changed.add(into.id)
    return frozenset(changed)
