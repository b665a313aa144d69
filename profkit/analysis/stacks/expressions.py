"""How expressions and statements of Python are written: batches of one item, masks, slices, constant powers.

Each function looks at nodes of a syntax tree alone, whatever the rest of the file says; `source` puts them together to
what a line does.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from profkit.analysis.stacks.searches import COMPREHENSIONS as _COMPREHENSIONS
from profkit.analysis.stacks.searches import FUNCTIONS as _FUNCTIONS
from profkit.analysis.stacks.searches import LOOPS as _LOOPS
from profkit.analysis.stacks.searches import dotted as _dotted
from profkit.analysis.stacks.searches import names_in as _names_in
from profkit.core.types import Construct

_MAX_LABELS = 3  # labels


def looped_items(loop: ast.AST) -> Iterator[Construct]:
    """Yield what a loop goes through by single items, and how they are called: `for x in values`, or enumerated."""
    generators = loop.generators if isinstance(loop, _COMPREHENSIONS) else [loop]
    for generator in generators:
        if not isinstance(generator, (ast.For, ast.comprehension)):
            continue
        values, item = generator.iter, generator.target
        if isinstance(values, ast.Call) and _dotted(values.func) == "enumerate" and values.args:
            values = values.args[0]
            item = item.elts[-1] if isinstance(item, ast.Tuple) else item
        if isinstance(item, ast.Name) and _dotted(values):
            yield Construct("item", item.id, _dotted(values))


# Methods and functions that give an array in parts: `for rows in order.split(256)`.
_PARTS = frozenset({"split", "chunk", "array_split", "hsplit", "vsplit", "tensor_split"})


def loops_over(root: ast.AST, call: ast.Call) -> bool:
    """Return whether a loop below `root` goes through what a call gives: it is made once, before the first item."""
    return any(node.iter is call for node in ast.walk(root) if isinstance(node, (ast.For, ast.comprehension)))


def are_parts(root: ast.AST, names: Sequence[str]) -> bool:
    """Return whether one of the names is an item of a loop below `root` that goes through parts of an array."""
    return any(
        isinstance(node.iter, ast.Call)
        and isinstance(node.target, ast.Name)
        and node.target.id in names
        and getattr(node.iter.func, "attr", "") in _PARTS
        for node in ast.walk(root)
        if isinstance(node, (ast.For, ast.comprehension))
    )


def is_array_arithmetic(value: ast.AST) -> bool:
    """Return whether a value is arithmetic on names and parts of them: what it holds is what an array of that
    name holds.
    """
    plain = (ast.Name, ast.BinOp, ast.UnaryOp, ast.Constant, ast.Subscript, ast.Slice, ast.Tuple)
    marks = (ast.operator, ast.unaryop, ast.expr_context)
    return all(
        isinstance(part, (*plain, *marks))
        or (
            isinstance(part, ast.Attribute)
            and (part.attr in ("T", "values") or _dotted(part.value) == "self")
        )
        for part in ast.walk(value)
    )


def unused_vectors(node: ast.Assign, scope: ast.AST) -> Iterator[Construct]:
    """Yield the singular vectors of a decomposition of which only the first columns or rows are used, or none."""
    target, call = node.targets[0], node.value
    if not isinstance(target, ast.Tuple) or not isinstance(call, ast.Call) or not call.args or call.keywords:
        return
    parts = [
        part.value for part in ast.walk(scope) if isinstance(part, ast.Subscript) and _has_an_end(part.slice)
    ]
    for axis, name in enumerate((target.elts[0], target.elts[-1])):
        loads = [
            name_node
            for name_node in ast.walk(scope)
            if isinstance(name_node, ast.Name)
            and isinstance(name_node.ctx, ast.Load)
            and name_node.id == _dotted(name)
        ]
        if all(any(name_node is part for part in parts) for name_node in loads):
            yield Construct("vectors", _dotted(name), f"{_dotted(call.args[0])} {axis}")


def _has_an_end(key: ast.AST) -> bool:
    slices = key.elts if isinstance(key, ast.Tuple) else [key]
    return any(isinstance(key_part, ast.Slice) and key_part.upper is not None for key_part in slices)


def loop_targets(loop: ast.For | ast.AsyncFor) -> Iterator[str]:
    """Yield the names that a loop sets to its items."""
    yield from (node.id for node in ast.walk(loop.target) if isinstance(node, ast.Name))


def compared_with(node: ast.Subscript) -> str:
    """Return what a table's own rows are compared with to choose some of them: `day` of `rows[rows["day"] == day]`.

    Also of several conditions that are joined, and of `rows.loc[rows["day"] == day, "price"]`.
    """
    by_label = isinstance(node.value, ast.Attribute) and node.value.attr == "loc"
    mask = node.slice.elts[0] if by_label and isinstance(node.slice, ast.Tuple) else node.slice
    if not filtered_table(node) or not isinstance(node.ctx, ast.Load):
        return ""
    return next((name for condition in _conditions(mask) if (name := _equal_to(condition))), "")


def filtered_table(node: ast.Subscript) -> str:
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
    if not isinstance(test, ast.Compare) or not all(isinstance(operator, ast.Eq) for operator in test.ops):
        return ""
    # numpy: `values[groups == group]` compares another array of the same length
    column = _dotted(test.left.value if isinstance(test.left, ast.Subscript) else test.left)
    return _dotted(test.comparators[0]) if column else ""


def base_name(node: ast.AST) -> str:
    """`table` of `table["id"]`, or the name itself."""
    return _dotted(node.value if isinstance(node, ast.Subscript) else node)


def cut_itself(statement: ast.stmt) -> str:
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


def cuts_in(body: Sequence[ast.stmt], *, calls_later: bool = False) -> Iterator[tuple[str, int, bool]]:
    """Yield what the statements of a loop's body replace by its rest, also in their branches: its name, and the line.

    Last whether a call follows in the same pass of the loop.
    """
    for at, statement in enumerate(body):
        behind = calls_later or any(
            isinstance(node, ast.Call) for each in body[at + 1 :] for node in ast.walk(each)
        )
        if name := cut_itself(statement):
            yield name, statement.lineno, behind
        elif isinstance(statement, ast.If):
            yield from cuts_in(statement.body, calls_later=behind)
            yield from cuts_in(statement.orelse, calls_later=behind)


def repeated_in(block: ast.AST) -> set[int]:
    """Return the identities of the nodes that loops and comprehensions of a block may evaluate more than once.

    What a loop goes through is evaluated once.
    """
    found: set[int] = set()
    for loop in ast.walk(block):
        if not isinstance(loop, (*_LOOPS, *_COMPREHENSIONS)):
            continue
        first = getattr(loop, "iter", None) or (
            loop.generators[0].iter if isinstance(loop, _COMPREHENSIONS) else None
        )
        once = {id(part) for part in ast.walk(first)} if first is not None else set()
        found |= {id(part) for part in ast.walk(loop)} - once
    return found


_NUMBERS = frozenset({"len", "int", "float", "sum", "abs", "round"})


def text_growths(function: ast.AST) -> Iterator[int]:
    """Yield the lines of a function without loops that add to an attribute what may be a text: `self.text += line`."""
    if any(
        isinstance(node, (ast.For, ast.AsyncFor, ast.While, ast.comprehension)) for node in ast.walk(function)
    ):
        return
    for node in ast.walk(function):
        if not isinstance(node, ast.AugAssign) or not isinstance(node.op, ast.Add):
            continue
        number = isinstance(node.value, ast.Constant) and not isinstance(node.value.value, (str, bytes))
        number |= isinstance(node.value, ast.Call) and _dotted(node.value.func) in _NUMBERS
        if isinstance(node.target, ast.Attribute) and not number:
            yield node.lineno


def is_true(value: ast.AST) -> bool:
    """Return whether `True` is written there."""
    return isinstance(value, ast.Constant) and value.value is True


def applies_by_rows(call: ast.Call) -> bool:
    """Return whether a call is `frame.apply(..., axis=1)`."""
    along = any(
        keyword.arg == "axis"
        and isinstance(keyword.value, ast.Constant)
        and keyword.value.value in (1, "columns")
        for keyword in call.keywords
    )
    return along and isinstance(call.func, ast.Attribute) and call.func.attr == "apply"


def names_of_item(loop: ast.AST, line: int) -> set[str]:
    """Names that before a line of a loop depend on nothing but its item; empty where the loop may end early.

    A name that is bound twice, or from one that the loop binds later, may come from the item before.
    """
    if isinstance(loop, _COMPREHENSIONS):
        return _names_in(*(generator.target for generator in loop.generators))
    if not isinstance(loop, ast.For) or any(
        isinstance(node, (ast.Break, ast.Return)) for node in ast.walk(loop)
    ):
        return set()
    known = _names_in(loop.target)
    bound = [name for statement in loop.body for name in _stores(statement)]
    for statement in loop.body:
        if statement.lineno >= line:
            break
        if isinstance(statement, ast.Assign) and all(
            isinstance(each, ast.Name) for each in statement.targets
        ):
            names = _names_in(*statement.targets)
            given = {each.id for each in ast.walk(statement.value) if isinstance(each, ast.Name)}
            if given <= known | (given - set(bound)) and all(bound.count(name) == 1 for name in names):
                known |= names
    return known - {name for name in known if bound.count(name) > 1}


def _stores(node: ast.AST) -> list[str]:
    return [
        name.id
        for name in ast.walk(node)
        if isinstance(name, ast.Name) and not isinstance(name.ctx, ast.Load)
    ]


_OF_LISTS = frozenset({"array", "asarray", "tensor", "as_tensor", "DataFrame"})


def makes_batch_of_one(argument: ast.AST) -> bool:
    """Whether an argument is a batch of one item: `[row]`, `row[None]`, `row.unsqueeze(0)`, `row.reshape(1, -1)`.

    Also what makes an array, a tensor or a table of such a list: `numpy.array([row])`.
    """
    if isinstance(argument, ast.List):
        return len(argument.elts) == 1 and not isinstance(argument.elts[0], ast.Starred)
    if isinstance(argument, ast.Subscript):
        key = argument.slice.elts[0] if isinstance(argument.slice, ast.Tuple) else argument.slice
        new = (isinstance(key, ast.Constant) and key.value is None) or _dotted(key).endswith(".newaxis")
        return new or _is_one_long(key)
    if not isinstance(argument, ast.Call) or not isinstance(argument.func, ast.Attribute):
        return False
    numbers = [number.value if isinstance(number, ast.Constant) else None for number in argument.args]
    method = argument.func.attr
    if method in _OF_LISTS and len(argument.args) == 1:
        return isinstance(argument.args[0], ast.List) and makes_batch_of_one(argument.args[0])
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


def product_factor(node: ast.expr) -> str:
    """Return the array of a product: `self.w` of `self.w.T`."""
    return _dotted(node.value if isinstance(node, ast.Attribute) and node.attr == "T" else node)


def constant_powers(base: ast.AST, exponent: ast.AST) -> Iterator[Construct]:
    """Yield an operand to the power of a number that is written there."""
    sign = "-" if isinstance(exponent, ast.UnaryOp) and isinstance(exponent.op, ast.USub) else ""
    number = exponent.operand if isinstance(exponent, ast.UnaryOp) else exponent
    value = number.value if isinstance(number, ast.Constant) else None
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        names = [name for part in ast.walk(base) if (name := _dotted(part))]
        yield from (Construct("power", name, f"{sign}{value}") for name in dict.fromkeys(names))


def label_lookup(node: ast.Subscript) -> str | None:
    """Return the name that `name.loc[...]` looks up, empty for labels that are written there; None of anything else."""
    base, key = node.value, node.slice
    if not (isinstance(base, ast.Attribute) and base.attr == "loc" and _dotted(base.value)):
        return None
    if isinstance(node.ctx, ast.Store):
        return None
    key = key.elts[0] if isinstance(key, ast.Tuple) and key.elts else key
    if isinstance(key, ast.List):
        few = len(key.elts) <= _MAX_LABELS and not any(isinstance(label, ast.Starred) for label in key.elts)
        return "" if few else None
    return "" if isinstance(key, ast.Constant) else _dotted(key) or None


def costs_to_make(argument: ast.AST) -> bool:
    """Return whether an argument of a message costs something to make: a call, a text put together."""
    return any(isinstance(part, (ast.Call, ast.FormattedValue, ast.BinOp)) for part in ast.walk(argument))


def names_looked_at(*nodes: ast.AST, deep: bool = True) -> set[str]:
    """Return the last names of what is called, and of attributes, which may be properties."""
    every = (node for root in nodes for node in (ast.walk(root) if deep else [root]))
    called = (node.func if isinstance(node, ast.Call) else node for node in every)
    return {
        node.attr if isinstance(node, ast.Attribute) else node.id
        for node in called
        if isinstance(node, (ast.Attribute, ast.Name))
    }


def calls_in(scope: ast.AST) -> Iterator[ast.Call]:
    """Yield the calls in a function's or a module's own code, not in functions that are defined in it."""
    for node in ast.iter_child_nodes(scope):
        if isinstance(node, ast.Call):
            yield node
        if not isinstance(node, (*_FUNCTIONS, ast.Lambda)):
            yield from calls_in(node)


def does_nothing(body: list[ast.stmt]) -> bool:
    """Return whether statements only go on, or look whether it is time to end."""
    return all(isinstance(statement, (ast.Pass, ast.Continue)) or _only_ends(statement) for statement in body)


def _only_ends(statement: ast.stmt) -> bool:
    ends = isinstance(statement, ast.If) and all(
        isinstance(each, (ast.Return, ast.Break)) for each in statement.body
    )
    return ends and isinstance(statement, ast.If) and not statement.orelse


def appended_row(target: ast.AST) -> str:
    """Return the frame that `frame.loc[len(frame)] = ...` makes longer; else an empty text."""
    of = target.value if isinstance(target, ast.Subscript) else None
    key = target.slice if isinstance(target, ast.Subscript) else None
    if not isinstance(of, ast.Attribute) or of.attr != "loc" or not isinstance(key, ast.Call) or not key.args:
        return ""
    name = _dotted(of.value)
    return name if _dotted(key.func) == "len" and _dotted(key.args[0]) == name else ""


def spans_line(node: ast.AST, line: int) -> bool:
    """Return whether the line is one of the node's."""
    return getattr(node, "lineno", 0) <= line <= (getattr(node, "end_lineno", 0) or 0)


def continues_at_once(body: list[ast.stmt]) -> bool:
    """Return whether statements do nothing but begin the loop again."""
    return isinstance(body[-1], ast.Continue) and does_nothing(body)


def only_looks(statement: ast.stmt) -> bool:
    """Whether a statement of a loop keeps nothing but local names, and does anything else only where a test says so."""
    if isinstance(statement, ast.Assign):
        return all(isinstance(target, ast.Name) for target in statement.targets)
    return isinstance(statement, (ast.Pass, ast.Continue, ast.If))


def bound_names(function: ast.AST) -> set[str]:
    """Return the names that a function binds: its arguments and what it assigns."""
    names = {
        node.id
        for node in ast.walk(function)
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)
    }
    return names | {node.arg for node in ast.walk(function) if isinstance(node, ast.arg)}


def has_constant_arguments(call: ast.Call, function: ast.AST | None) -> bool:
    """Return whether all arguments are literals, or names that the function does not bind."""
    given = [*call.args, *(keyword.value for keyword in call.keywords)]
    if not given or function is None:
        return False
    bound = bound_names(function)
    return all(
        isinstance(argument, ast.Constant)
        or (bool(name := _dotted(argument)) and name.partition(".")[0] not in bound)
        for argument in given
    )
