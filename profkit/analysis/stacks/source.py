"""Reads what a line of Python source does, as far as its text proves it: searches, copies, elements, waits, calls.

Pure: takes the text of a file, and returns facts about a line. What a name holds is not known here; samples tell it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, lru_cache

from profkit.analysis.stacks.busy_waits import busy_waits_at, ends_at_a_time, last_name
from profkit.analysis.stacks.carried import carried_at
from profkit.analysis.stacks.effects import ChangedNames, changes_in, is_harmless, recursion_line_if_pure
from profkit.analysis.stacks.expressions import (
    appended_row,
    applies_by_rows,
    are_parts,
    base_name,
    bound_names,
    calls_in,
    compared_with,
    constant_powers,
    costs_to_make,
    cuts_in,
    filtered_table,
    has_constant_arguments,
    is_array_arithmetic,
    is_true,
    label_lookup,
    loop_targets,
    looped_items,
    loops_over,
    names_looked_at,
    product_factor,
    repeated_in,
    text_growths,
    unused_vectors,
)
from profkit.analysis.stacks.line_counts import first_line, nodes_at, statement_at
from profkit.analysis.stacks.same_calls import FileFacts, same_calls_at
from profkit.analysis.stacks.same_members import same_members_at
from profkit.analysis.stacks.searches import COMPREHENSIONS as _COMPREHENSIONS
from profkit.analysis.stacks.searches import FUNCTIONS as _FUNCTIONS
from profkit.analysis.stacks.searches import LOOPS as _LOOPS
from profkit.analysis.stacks.searches import dotted as _dotted
from profkit.analysis.stacks.searches import (
    grown_searches,
    owned_nodes,
    replaced_in,
    searches_at,
    tested_before,
)
from profkit.analysis.stacks.searches import names_in as _names_in
from profkit.analysis.stacks.single_items import single_arguments_at, single_items_at
from profkit.analysis.stacks.work_again import work_again_at
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
_LOGS = frozenset({"debug", "info", "warning", "error"})
_OF_BUILTINS = frozenset({"sum", "max", "min", "any", "all", "sorted"})
_OF_ARRAYS = re.compile(
    r"numpy\.(\w+\.(at|reduce|accumulate|reduceat)|linalg\.\w+|dot|matmul|sort|argsort|unique|bincount|concatenate|stack"
    r"|cumsum|interp|convolve|fft\.\w+|searchsorted|histogram)"
)
_BLOCKS = (*_LOOPS, *_FUNCTIONS, ast.ClassDef, ast.If, ast.With, ast.AsyncWith, ast.Try)


_LINE_END = re.compile(r"\r\n|\r|\n")


def lines_of(text: str) -> list[str]:
    """Return the lines of a source as compilers count them: a form feed ends none, though it does for `splitlines`."""
    lines = _LINE_END.split(text)
    return lines[:-1] if lines[-1] == "" else lines


@lru_cache(maxsize=512)
def line_code(text: str, line: int, *, inner: bool = True) -> LineCode | None:
    """Return what the line does; with `inner` also what short functions do that it calls.

    None where the text is no Python of this version, or has no such line.
    """
    lines = lines_of(text)
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
    statement = statement_at(source.tree, line, source.modules_at(around)) if inner else None
    text, each = (statement.text, statement.each) if statement is not None else ("", True)
    return LineCode(shown, loop, constructs, into, text, each, _has_others(around))


@lru_cache(maxsize=16)
def parsed(text: str) -> ast.Module | None:
    """Return the syntax tree of a file, which must not be changed; None where the text is no Python of this version."""
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
    """Return what is known about a file as a whole, which is read once for all of its lines."""
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
        self.by_rows = [node for node in self.nodes if isinstance(node, ast.Call) and applies_by_rows(node)]
        self._at: dict[int, tuple[ast.AST, ...]] = {}
        self.modules: dict[str, str] = {}  # name in the file -> dotted name of what was imported
        self.patterns: dict[str, str] = {}  # name of a compiled pattern -> its text
        for node in self.nodes:
            if isinstance(node, ast.Import):
                for alias in node.names:
                    self.modules[alias.asname or alias.name.partition(".")[0]] = (
                        alias.name if alias.asname else alias.name.partition(".")[0]
                    )
            elif isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    self.modules[alias.asname or alias.name] = f"{node.module or ''}.{alias.name}"
        for node in self.nodes:
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
                pattern = _first_text(node.value)
                if pattern is not None and self.name_of(node.value.func) == "re.compile":
                    self.patterns |= {name: pattern for target in node.targets if (name := _dotted(target))}

    @cached_property
    def changes(self) -> ChangedNames:
        """Return what functions of the file change."""
        return changes_in(self.functions, self.name_of)

    @cached_property
    def facts(self) -> FileFacts:
        """Return the facts about the file that decide whether a call has the same arguments again."""
        return FileFacts(self.tree, self.name_of, self._is_pure, is_harmless, self.replaced)

    def _is_pure(self, name: str) -> bool:
        """Return whether the file has one function of that name, and it has no effect."""
        named = [node for node in self.functions if node.name == name]
        return (
            len(named) == 1
            and recursion_line_if_pure(named[0], self.name_of, lambda: self.changes) is not None
        )

    def at(self, line: int) -> tuple[ast.AST, ...]:
        """Return the nodes of the statements that a line is in."""
        if line not in self._at:
            self._at[line] = tuple(nodes_at(self.tree, line))
        return self._at[line]

    def name_of(self, node: ast.AST) -> str:
        """Return `numpy.append` of `np.append`; `.execute` of a method of anything but a module."""
        name = _dotted(node)
        if not name:
            return f".{node.attr}" if isinstance(node, ast.Attribute) else ""
        first, _, rest = name.partition(".")
        if first in self.modules:
            return f"{self.modules[first]}.{rest}" if rest else self.modules[first]
        return name if not rest else f".{name.rpartition('.')[2]}"

    def modules_at(self, around: Sequence[ast.AST]) -> Mapping[str, str]:
        """Return the imported names, without those that the surrounding function binds anew."""
        function = around[0] if around and isinstance(around[0], _FUNCTIONS) else None
        bound = bound_names(function) if function is not None else set()
        return {name: module for name, module in self.modules.items() if name not in bound}

    def around(self, line: int) -> list[ast.AST]:
        """Return the blocks and comprehensions with the line in their body, from the innermost function inwards."""
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
        """Yield everything that the line does."""
        function = around[0] if around and isinstance(around[0], _FUNCTIONS) else None
        in_loop = any(isinstance(node, (*_LOOPS, *_COMPREHENSIONS)) for node in around)
        for node in self._statement(line):
            yield from self._of_node(node, function, in_loop)
        names = {node.name for node in self.functions}
        for search in searches_at(line, around, list(self._statement(line)), self.replaced):
            if search.kind != "asks" or search.name in names:
                yield search
        loops = [node for node in around if isinstance(node, (*_LOOPS, *_COMPREHENSIONS))]
        yield from tested_before(line, function, loops, list(self._statement(line)))
        yield from (search for search, at in grown_searches(function) if at == line)
        yield from work_again_at(around, list(self._statement(line)), self.name_of)
        yield from carried_at(around, list(self._statement(line)), self.name_of)
        yield from same_calls_at(around, list(self._statement(line)), self.facts)
        yield from same_members_at(around, list(self._statement(line)), self.facts)
        yield from self._called_elsewhere(line, function)
        for node in around:
            if isinstance(node, (ast.With, ast.AsyncWith)) and node.lineno != line:
                name = _dotted(node.items[0].context_expr) or self.name_of(node.items[0].context_expr)
                yield Construct("within", name, str(node.lineno))
        for node in around:
            if isinstance(node, ast.For) and node.lineno == line and (name := _dotted(node.iter)):
                yield Construct("iterates", name)
        for node in around:
            yield from looped_items(node)
        yield from self._paged(line, around)
        if isinstance(function, ast.AsyncFunctionDef):
            yield Construct("coroutine", function.name)
        if isinstance(function, ast.FunctionDef):
            yield from self._yields_of_itself(function)
        if function is not None:
            yield from (Construct("applied", name) for name in self._applied(function.name))
        if in_loop:
            yield from single_items_at(line, around, list(self._statement(line)), self.name_of)
        elif isinstance(function, ast.FunctionDef):
            yield from single_arguments_at(function, list(self._statement(line)), self.name_of, self.modules)
        if (
            function is not None
            and (again := recursion_line_if_pure(function, self.name_of, lambda: self.changes)) is not None
        ):
            yield Construct(
                "pure-recursion" if again else "pure", function.name, str(again or function.lineno)
            )
        for node in around:
            # A sampler in the process sees the end of a loop's body at the line where the loop begins again.
            if isinstance(node, _LOOPS):
                yield from self._rests(node, line)
        if loops and isinstance(loops[-1], ast.While):
            yield Construct("while", "", "clock" if ends_at_a_time(loops[-1], self.name_of) else "")
            yield from busy_waits_at(loops[-1], line, self.name_of)
        depth = [node for node in around if isinstance(node, _LOOPS)]
        if len(depth) > 1:
            yield Construct("nested-loop", "", str(depth[0].lineno))

    def _paged(self, line: int, around: list[ast.AST]) -> Iterator[Construct]:
        """Yield what the line reads in pages: `for row in page` in a loop over pages, or a slice of a result."""
        loops = [node for node in around if isinstance(node, (ast.For, ast.AsyncFor))]
        pages = {name for node in loops if node.lineno != line for name in loop_targets(node)}
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
        """Yield that a generator yields from a call of itself, with the line of that call."""
        for node in ast.walk(function):
            given = node.value if isinstance(node, ast.YieldFrom) else None
            if isinstance(given, ast.Call) and self._last_name(given) == function.name:
                yield Construct("yields-of-itself", function.name, str(given.lineno))
                return

    def _rests(self, loop: ast.For | ast.AsyncFor | ast.While, line: int) -> Iterator[Construct]:
        """Yield a value that loses its front: on the line or, for a loop's head, after the last call of its body."""
        # The sampler sees a thread after a call and where a loop begins again, and nowhere between.
        begins = (loop.lineno, loop.body[0].lineno)
        for name, at, calls_later in cuts_in(loop.body):
            if at == line or (line in begins and not calls_later):
                yield Construct("shift", name, f"rest {at}")

    def called_from(self, line: int) -> Iterator[InnerCode]:
        """Yield functions of this file that a line calls, with their only line if they have a single statement.

        Or with the line that goes through a list, or copies a text that grows, if it is the only one that does.
        """
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
                slow = {single.lineno} if single is not None else {at for _, at in grown_searches(node)}
                slow = slow or set(text_growths(node))
                at = min(slow) if len(slow) == 1 else _first_statement(node)
                code = line_code(self.text, at, inner=False) if len(slow) == 1 else None
                yield InnerCode(node.name, at, code)

    def _called_elsewhere(self, line: int, function: ast.AST | None) -> Iterator[Construct]:
        """Yield last names of calls on the line that another line of the same function or of the top level makes,
        too; with the number of those calls, if none of them is in a loop.
        """
        here = [node for node in self._statement(line) if isinstance(node, ast.Call)]
        owner = function or self.tree
        others = [node for node in calls_in(owner) if node not in here]
        looped = repeated_in(owner)
        for name in dict.fromkeys(self._last_name(call) for call in here):
            same = [node for node in others if self._last_name(node) == name]
            if name and same:
                once = not any(id(node) in looped for node in same)
                yield Construct("called-elsewhere", name, str(len(same)) if once else "")

    def _last_name(self, call: ast.Call) -> str:
        return last_name(call, self.name_of)

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
                    yield Construct("contains", base_name(right.value), "array")
                if name := _dotted(right):
                    yield Construct("contains", name)
                elif isinstance(right, ast.Call) and isinstance(right.func, ast.Attribute):
                    if right.func.attr == "values" and (name := _dotted(right.func.value)):
                        yield Construct("contains", name, "values")
                    elif right.func.attr in ("to_numpy", "tolist", "unique", "to_list"):
                        yield Construct("contains", base_name(right.func.value), "array")
                elif isinstance(right, ast.Call) and (kind := _dotted(right.func)) in _CONTAINERS:
                    yield Construct("contains-made", kind, ast.unparse(right)[:60])
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            yield from self._import(node)
        elif isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add):
            yield Construct("grow", _dotted(node.target), "+=")
        elif isinstance(node, ast.Assign):
            yield from self._growth(node)
            if isinstance(node.value, ast.Call) and self.name_of(node.value.func) == "numpy.linalg.svd":
                yield from unused_vectors(node, function or self.tree)
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
            yield from constant_powers(node.left, node.right)
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
            yield Construct("product", product_factor(node.left), product_factor(node.right))
        elif isinstance(node, ast.Subscript) and (compared := compared_with(node)):
            yield Construct("mask", filtered_table(node), compared)
        elif isinstance(node, ast.Subscript) and label_lookup(node) is not None:
            yield Construct("lookup", _dotted(node.value.value), label_lookup(node) or "")  # type: ignore[attr-defined]
            if in_loop:
                yield Construct("element", _dotted(node.value.value), "loc")  # type: ignore[attr-defined]
        elif isinstance(node, ast.Subscript) and in_loop and not isinstance(node.slice, ast.Slice):
            base = node.value
            names = [name for part in ast.walk(node.slice) if (name := _dotted(part))]
            key = "['']" if isinstance(node.slice, ast.Constant) else f"[{','.join(dict.fromkeys(names))}]"
            if any(isinstance(part, ast.Slice) for part in ast.walk(node.slice)):
                return  # a row or a column of an array
            if isinstance(node.ctx, ast.Store) and self._keeps_result(node):
                return  # the call takes the time, not the store of its result
            if self._is_given_as_array(node) or are_parts(function or self.tree, names):
                return  # a row of a matrix, or many elements at once
            if isinstance(base, ast.Attribute) and base.attr in _INDEXERS:
                yield Construct("element", _dotted(base.value), base.attr)
            elif name := _dotted(base):
                yield Construct("element", name, key)
            elif isinstance(base, ast.Subscript) and isinstance(base.slice, ast.Constant):
                yield Construct("element", _dotted(base.value), f"cell{key}")  # frame["name"][row]
        elif isinstance(node, ast.Call):
            yield from self._call(node, function)

    def _keeps_result(self, target: ast.Subscript) -> bool:
        """Return whether an element is set to the result of a call: `found[i] = search(text)`."""
        return any(
            isinstance(node, ast.Assign) and target in node.targets and isinstance(node.value, ast.Call)
            for node in self._statement(target.lineno)
        )

    def _is_given_as_array(self, part: ast.Subscript) -> bool:
        """Return whether it is passed to a function of NumPy that takes only arrays: `numpy.add.at(table[n], ...)`."""
        return any(
            isinstance(call, ast.Call) and part in call.args and _OF_ARRAYS.fullmatch(self.name_of(call.func))
            for call in self._statement(part.lineno)
        )

    def _applied(self, function: str) -> Iterator[str]:
        """Yield the names of frames to whose rows a function is applied: `frame.apply(function, axis=1)`."""
        for node in self.by_rows:
            if node.args and _dotted(node.args[0]) == function:
                yield _dotted(node.func.value)  # type: ignore[attr-defined]

    def _import(self, node: ast.Import | ast.ImportFrom) -> Iterator[Construct]:
        names = [alias.asname or alias.name.partition(".")[0] for alias in node.names]
        module = node.module or "" if isinstance(node, ast.ImportFrom) else node.names[0].name
        used = [entry for entry in self.owned if isinstance(entry[0], ast.Name) and entry[0].id in names]
        if "*" in names or not used:
            yield Construct("import", module, "" if used or "*" in names else "unused")
            return
        alone = all(owners for _, owners in used)
        within = sorted({owners[-1] for _, owners in used}) if alone else []
        yield Construct("import", module, f"in {' '.join(within)}" if within else "")

    def _growth(self, node: ast.Assign) -> Iterator[Construct]:
        target, value = _dotted(node.targets[0]), node.value
        if not target:
            if longer := appended_row(node.targets[0]):
                yield Construct("grow", longer, "loc")
            return
        if isinstance(value, ast.BinOp):
            left: ast.AST = value
            while isinstance(left, ast.BinOp) and isinstance(left.op, ast.Add):
                left = left.left
            if left is not value and _dotted(left) == target:
                texts = any(
                    isinstance(part, ast.JoinedStr)
                    or (isinstance(part, ast.Constant) and isinstance(part.value, str))
                    for part in ast.walk(value)
                )
                several = _dotted(value.left) != target
                yield Construct("grow", target, ("texts" if several else "text") if texts else "+")
        elif isinstance(value, ast.Call) and self.name_of(value.func) in _GROWS:
            given = {_dotted(part) for argument in value.args for part in ast.walk(argument)}
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
        once = method == "tolist" and loops_over(function or self.tree, node)
        if method in _ELEMENTS and isinstance(node.func, ast.Attribute) and not once:
            yield Construct("element", base, method)
        if applies_by_rows(node):
            yield Construct("element", base, "apply")
        if name in _OF_BUILTINS and first is not None and is_array_arithmetic(first):
            for each in dict.fromkeys(_names_in(first)):
                yield Construct("builtin", each, name)
        if name == "sum" and len(node.args) == 2 and isinstance(node.args[1], (ast.List, ast.Tuple)):
            yield Construct("grow", _dotted(node.args[0]), "sum")
        if name == "numpy.power" and len(node.args) == 2:
            yield from constant_powers(*node.args)
        if name in ("numpy.dot", "numpy.matmul", "numpy.inner") and len(node.args) == 2:
            yield Construct("product", *map(product_factor, node.args))
        elif method == "dot" and len(node.args) == 1 and isinstance(node.func, ast.Attribute):
            yield Construct("product", product_factor(node.func.value), product_factor(node.args[0]))
        if method in _LOGS and base and any(costs_to_make(argument) for argument in node.args):
            within = {id(part) for argument in node.args for part in ast.walk(argument)}
            others = (part for part in self._statement(node.lineno) if id(part) not in within)
            names = names_looked_at(*node.args) - names_looked_at(
                *(part for part in others if isinstance(part, ast.Call)), deep=False
            )
            yield Construct("log", method, " ".join(sorted(names)))
        if any(keyword.arg == "flush" and is_true(keyword.value) for keyword in node.keywords):
            yield Construct("flushes", name)
        if name in ("time.sleep", "asyncio.sleep"):
            yield Construct("sleep", name, ast.unparse(first) if isinstance(first, ast.Constant) else "")
        if method in _MATCHES and (base in self.patterns or name.startswith("re.")):
            yield Construct("pattern", self.patterns.get(base) or _first_text(node) or "", method)
        if name:
            yield Construct("call", name, "constant" if has_constant_arguments(node, function) else "")


def _first_text(call: ast.Call) -> str | None:
    value = call.args[0].value if call.args and isinstance(call.args[0], ast.Constant) else None
    return value[:LONGEST_TEXT] if isinstance(value, str) else None
