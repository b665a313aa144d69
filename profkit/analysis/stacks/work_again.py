"""Work that source does more of than it needs: sorts for a few, sets made again, a text gone through for each word.

Pure: syntax trees in, facts out. What names hold, and how often a line ran, is not known here.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence

from profkit.analysis.stacks.searches import COMPREHENSIONS, FUNCTIONS, LOOPS, Surroundings, dotted, names_in
from profkit.core.types import Construct

_SORTS = frozenset({"sorted", "numpy.sort", "numpy.argsort"})
_SETS = frozenset({"set", "frozenset"})
_OF_SETS = (ast.BitAnd, ast.BitOr, ast.Sub, ast.BitXor)
_SET_METHODS = frozenset({"intersection", "union", "difference", "isdisjoint", "issubset", "issuperset"})
_DIAGONALS = frozenset({"numpy.diag", "numpy.diagflat"})
_TESTS_ALL = frozenset(
    {
        "numpy.where", "numpy.nonzero", "numpy.flatnonzero", "numpy.argwhere", "numpy.any", "numpy.sum", "numpy.argmax",
        "numpy.count_nonzero", "numpy.argmin",
    }
)  # fmt: skip
_TEST_METHODS = frozenset({"any", "sum", "argmax", "nonzero", "argmin"})
_ABSOLUTE = frozenset({"numpy.abs", "numpy.absolute", "numpy.fabs", "abs"})
_REDUCES = frozenset({"mean", "sum", "std", "var", "min", "max", "median"})
_JOINS = frozenset({"torch.cat", "torch.concat", "torch.concatenate", "torch.hstack"})
_CHANCE = (
    "rand",
    "noise",
    "augment",
    "jitter",
    "shuffle",
    "choice",
    "dropout",
    "mixup",
    "time",
    "next",
)  # in names
NESTED = 3  # loops of a product of matrices


def work_again_at(
    around: Sequence[ast.AST], statement: Sequence[ast.AST], name_of: Callable[[ast.AST], str]
) -> Iterator[Construct]:
    """Yield what the statement of a line does; `around` are the blocks around it, from the function inwards."""
    function = around[0] if around and isinstance(around[0], FUNCTIONS) else None
    loops = [node for node in around if isinstance(node, (*LOOPS, *COMPREHENSIONS))]
    yield from _kept_masks(statement, function, loops)
    yield from _items_made(function)
    if loops and isinstance(loops[-1], LOOPS):
        yield from _given_grown(statement, loops[-1], name_of)
    for node in statement:
        if isinstance(node, ast.Subscript) and (kept := _few_of_sorted(node, name_of)):
            yield Construct("few-of-sorted", kept[0], kept[1])
        elif isinstance(node, ast.BinOp | ast.Call):
            yield from _sets_made(node, function, loops)
            yield from _diagonals(node, name_of)
            if isinstance(node, ast.Call):
                inner = [loop for loop in loops if any(part is node for part in ast.walk(loop))]
                yield from _compares_all(node, Surroundings(function, inner), name_of)
                yield from _windows(node, Surroundings(function, inner), name_of)
        elif isinstance(node, ast.Assign) and loops:
            yield from _replaced(node, loops[-1])
        elif isinstance(node, ast.AugAssign) and len(loops) >= NESTED:
            yield from _summed_products(node, loops)
        elif isinstance(node, ast.Await):
            yield from _asks_and_sleeps(node, loops, name_of)


def _items_made(function: ast.AST | None) -> Iterator[Construct]:
    """Yield the list of which `__getitem__` makes each item anew: by the item's number alone, and without any chance.

    It stores nothing, and no name in it speaks of chance, which may give another item for the same number.
    """
    if not isinstance(function, FUNCTIONS) or function.name != "__getitem__" or len(function.args.args) != 2:
        return
    own, number = (argument.arg for argument in function.args.args)
    stores = any(
        isinstance(node, (ast.Attribute, ast.Subscript)) and isinstance(node.ctx, ast.Store)
        for node in ast.walk(function)
    )
    if stores or any(word in name.lower() for name in _all_names(function) for word in _CHANCE):
        return
    lists = {
        dotted(node.value): None
        for node in ast.walk(function)
        if isinstance(node, ast.Subscript) and dotted(node.slice) == number
    }
    yield from (Construct("item-of", name, number) for name in lists if name.startswith(f"{own}."))


def _all_names(function: ast.AST) -> Iterator[str]:
    for node in ast.walk(function):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr


def _kept_masks(
    statement: Sequence[ast.AST], function: ast.AST | None, loops: Sequence[ast.AST]
) -> Iterator[Construct]:
    """Yield an array that a loop compares as a whole with its item into a name, or that this name is an index of.

    `mask = labels == label` in the only loop of its function, and `image[mask]`.
    """
    if len(loops) != 1 or not isinstance(loops[0], ast.For):
        return
    around = Surroundings(function, loops)
    written = {
        dotted(node.value)
        for node in ast.walk(loops[0])
        if isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load)
    }
    for made in ast.walk(loops[0]):
        test = made.value if isinstance(made, ast.Assign) and len(made.targets) == 1 else None
        equal = isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq)
        if not equal or not isinstance(test, ast.Compare) or not isinstance(made, ast.Assign):
            continue
        for array, item in ((test.left, test.comparators[0]), (test.comparators[0], test.left)):
            kept, mask, key = dotted(array), dotted(made.targets[0]), dotted(item)
            if not mask or not key or kept in written or not around.stays(kept) or not around.differs(item):
                continue
            how = f"{made.lineno} {key}"
            if test in statement:
                yield Construct("kept-mask", kept, how)
            for node in statement:
                chosen = isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load)
                if chosen and isinstance(node, ast.Subscript) and dotted(node.slice) == mask:
                    yield Construct("kept-mask", dotted(node.value), how)


def _given_grown(
    statement: Sequence[ast.AST], loop: ast.AST, name_of: Callable[[ast.AST], str]
) -> Iterator[Construct]:
    """Yield a call that is given all of what its loop joins more to each time: `tokens = torch.cat([tokens, new])`."""
    grown = {
        dotted(node.targets[0])
        for node in ast.walk(loop)
        if isinstance(node, ast.Assign)
        and len(node.targets) == 1
        and isinstance(node.value, ast.Call)
        and name_of(node.value.func) in _JOINS
        and node.value.args
        and isinstance(parts := node.value.args[0], (ast.List, ast.Tuple))
        and dotted(node.targets[0]) in {dotted(part) for part in parts.elts}
    }
    for node in statement:
        joins = isinstance(node, ast.Call) and name_of(node.func) in _JOINS
        for given in node.args if isinstance(node, ast.Call) and not joins else ():
            name = dotted(given)
            if name and name in grown and isinstance(node, ast.Call):
                yield Construct("given-grown", name_of(node.func).rpartition(".")[2], name)


def _few_of_sorted(node: ast.Subscript, name_of: Callable[[ast.AST], str]) -> tuple[str, str] | None:
    """Return what is sorted, and by what, where the first or last few of it alone are kept: `sorted(rows)[:10]`."""
    part, call = node.slice, node.value
    ends = [part.lower, part.upper] if isinstance(part, ast.Slice) and part.step is None else []
    single = not isinstance(part, ast.Slice) and _is_end(part)
    if not isinstance(call, ast.Call) or not (single or sum(end is not None for end in ends) == 1):
        return None
    if ends and not _is_few(ends[1] if ends[1] is not None else ends[0], of_end=ends[0] is not None):
        return None
    name = name_of(call.func)
    if name in _SORTS and call.args:
        return ast.unparse(call.args[0])[:60], name
    if (
        isinstance(call.func, ast.Attribute)
        and call.func.attr == "argsort"
        and (base := dotted(call.func.value))
    ):
        return base, ".argsort"
    return None


def _is_end(node: ast.AST) -> bool:
    return ast.unparse(node) in ("0", "-1")


def _is_few(node: ast.AST | None, *, of_end: bool) -> bool:
    """Return whether a bound of a slice is a small number, from the end if `of_end`."""
    if of_end:
        return (
            isinstance(node, ast.UnaryOp)
            and isinstance(node.op, ast.USub)
            and _is_few(node.operand, of_end=False)
        )
    return isinstance(node, ast.Name) or (
        isinstance(node, ast.Constant) and type(node.value) is int and 0 < node.value <= 100
    )


def _compares_all(
    node: ast.Call, around: Surroundings, name_of: Callable[[ast.AST], str]
) -> Iterator[Construct]:
    """Yield an array that stays and is compared with the item as a whole: `numpy.where(ids == key)`, or `.any()` of it.

    Or of which the element nearest to it is found: `numpy.abs(values - x).argmin()`.
    """
    name = name_of(node.func)
    if (
        isinstance(node.func, ast.Attribute)
        and node.func.attr == "filter"
        and (kept := dotted(node.func.value))
    ):
        for test in node.args:
            if not isinstance(test, ast.Compare) or not isinstance(test.ops[0], ast.Eq):
                continue
            of_polars = isinstance(test.left, ast.Call) and name_of(test.left.func) == "polars.col"
            if of_polars and around.stays(kept) and around.differs(*test.comparators):
                yield Construct("compares-all", kept, "polars")
                yield from around.parameter(kept)
        return
    given: ast.AST | None = node.args[0] if name in _TESTS_ALL and len(node.args) == 1 else None
    if given is None and isinstance(node.func, ast.Attribute) and node.func.attr in _TEST_METHODS:
        given = node.func.value
    method = (
        name.rpartition(".")[2]
        if given is not None and name in _TESTS_ALL
        else getattr(node.func, "attr", "")
    )
    if isinstance(given, ast.Call) and name_of(given.func) in _ABSOLUTE and len(given.args) == 1:
        given = given.args[0] if method == "argmin" else None
        sides = (
            [given.left, given.right]
            if isinstance(given, ast.BinOp) and isinstance(given.op, ast.Sub)
            else []
        )
        kind = "nearest"
    else:
        equal = isinstance(given, ast.Compare) and len(given.ops) == 1 and isinstance(given.ops[0], ast.Eq)
        sides = [given.left, given.comparators[0]] if equal and isinstance(given, ast.Compare) else []
        kind = "equal"
    for array, item in (sides, sides[::-1]) if sides else ():
        kept = dotted(array)
        if kept and around.stays(kept) and around.differs(item) and not around.differs(array):
            yield Construct("compares-all", kept, kind)
            yield from around.parameter(kept)
        elif kept and around.stays(kept) and around.differs(item) and not around.loops:
            yield Construct("compares-all", kept, kind)
            yield from around.parameter(kept)
            return


def _windows(node: ast.Call, around: Surroundings, name_of: Callable[[ast.AST], str]) -> Iterator[Construct]:
    """Yield a sum or mean of a slice that moves with the item of a loop: `values[n - 10 : n].mean()`."""
    name, given = name_of(node.func), node.args[0] if node.args else None
    if isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Subscript):
        given = node.func.value
    elif not name.startswith("numpy."):
        return
    method = name.rpartition(".")[2]
    if (
        method not in _REDUCES
        or not isinstance(given, ast.Subscript)
        or not isinstance(given.slice, ast.Slice)
    ):
        return
    kept, part = dotted(given.value), given.slice
    if part.lower is None or part.upper is None or part.step is not None:
        return
    if around.loops and around.stays(kept) and around.differs(part.lower) and around.differs(part.upper):
        yield Construct("window", kept, method)


def _sets_made(
    node: ast.BinOp | ast.Call, function: ast.AST | None, loops: Sequence[ast.AST]
) -> Iterator[Construct]:
    """Yield a set that an inner loop makes of what an outer one gives, only to compare it with another one."""
    if isinstance(node, ast.BinOp):
        parts = [node.left, node.right] if isinstance(node.op, _OF_SETS) else []
    else:
        named = isinstance(node.func, ast.Attribute) and node.func.attr in _SET_METHODS
        parts = [node.func.value, *node.args] if named and isinstance(node.func, ast.Attribute) else []
    inner = Surroundings(function, loops[-1:])
    for part in parts:
        if not isinstance(part, ast.Call) or dotted(part.func) not in _SETS or len(part.args) != 1:
            continue
        name = dotted(part.args[0])
        if name and loops and inner.stays(name):
            yield Construct("set-again", name, dotted(part.func))


def _diagonals(node: ast.BinOp | ast.Call, name_of: Callable[[ast.AST], str]) -> Iterator[Construct]:
    """Yield a product with a matrix that has a diagonal alone: `a @ numpy.diag(v)`."""
    sides: dict[str, ast.AST] = {}
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
        sides = {"left": node.left, "right": node.right}
    elif (
        isinstance(node, ast.Call)
        and name_of(node.func) in ("numpy.dot", "numpy.matmul")
        and len(node.args) == 2
    ):
        sides = {"left": node.args[0], "right": node.args[1]}
    for side, part in sides.items():
        if isinstance(part, ast.Call) and name_of(part.func) in _DIAGONALS and len(part.args) == 1:
            yield Construct("diagonal", ast.unparse(part.args[0])[:60], side)


def _replaced(node: ast.Assign, loop: ast.AST) -> Iterator[Construct]:
    """Yield a text that a loop goes through once for each of what it looks for: `text = text.replace(old, new)`."""
    call = node.value
    if (
        not isinstance(loop, ast.For)
        or not isinstance(call, ast.Call)
        or not isinstance(call.func, ast.Attribute)
    ):
        return
    name = dotted(node.targets[0]) if len(node.targets) == 1 else ""
    given = names_in(*call.args) & names_in(loop.target)
    if call.func.attr == "replace" and name and dotted(call.func.value) == name and given:
        over = (
            loop.iter.func.value
            if isinstance(loop.iter, ast.Call) and isinstance(loop.iter.func, ast.Attribute)
            else loop.iter
        )
        yield Construct("replaces", name, dotted(over))


def _summed_products(node: ast.AugAssign, loops: Sequence[ast.AST]) -> Iterator[Construct]:
    """Yield the product of two matrices that are lists of lists: `total += a[i][k] * b[k][j]` in three loops."""
    value = node.value
    if (
        not isinstance(node.op, ast.Add)
        or not isinstance(value, ast.BinOp)
        or not isinstance(value.op, ast.Mult)
    ):
        return
    counts = [dotted(loop.target) for loop in loops if isinstance(loop, ast.For)]
    pairs = [_element(value.left), _element(value.right)]
    if not all(pairs) or not counts:
        return
    used = [{pair[1], pair[2]} for pair in pairs if pair is not None]
    inner = counts[-1]
    if all(inner in pair and pair <= set(counts) for pair in used) and len(used[0] | used[1]) == NESTED:
        yield Construct("list-product", pairs[0][0], pairs[1][0])  # type: ignore[index]


def _element(node: ast.AST) -> tuple[str, str, str] | None:
    """Return the names in `a[i][k]`."""
    if not isinstance(node, ast.Subscript) or not isinstance(node.value, ast.Subscript):
        return None
    names = dotted(node.value.value), dotted(node.value.slice), dotted(node.slice)
    return names if all(names) else None


def _asks_and_sleeps(
    node: ast.Await, loops: Sequence[ast.AST], name_of: Callable[[ast.AST], str]
) -> Iterator[Construct]:
    """Yield a coroutine that sleeps and looks again: `while not items: await asyncio.sleep(0.01)`."""
    loop = loops[-1] if loops else None
    if not isinstance(loop, ast.While) or len(loop.body) != 1 or isinstance(loop.test, ast.Constant):
        return
    call = node.value
    if isinstance(call, ast.Call) and name_of(call.func) == "asyncio.sleep" and call.args:
        yield Construct("asks-and-sleeps", ast.unparse(loop.test)[:60], ast.unparse(call.args[0])[:20])
