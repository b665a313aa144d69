"""Calls in Python source that are given the same each time: files that stay, matrices that stay, arguments that stay.

Pure: syntax trees in, facts out. How often a line ran is not known here.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from profkit.analysis.stacks.searches import (
    COMPREHENSIONS,
    FUNCTIONS,
    LOOPS,
    dotted,
    names_in,
    owned_nodes,
    parameters_of,
    stores_in,
)
from profkit.core.types import Construct

LONGEST = 60
_OPENS = frozenset({"open", "io.open", "gzip.open", "bz2.open", "lzma.open", "codecs.open"})
_READS = re.compile(
    r"(pandas|polars)\.read_(csv|table|json|excel|parquet|feather|pickle|fwf|xml|html|ipc)"
    r"|numpy\.(load|loadtxt|genfromtxt|fromfile)|(torch|joblib)\.load|openpyxl\.load_workbook|PIL\.Image\.open"
)
_READS_OF_PATH = frozenset({"read_text", "read_bytes"})
_WRITES_OF_PATH = frozenset({"write_text", "write_bytes", "unlink", "touch", "rename", "replace"})
# What does not stay because others write it.
_OF_OTHERS = re.compile(r"['\"]/(proc|sys|dev|run)\b")
_OF_MATRIX = re.compile(
    r"(numpy|scipy)\.linalg\.(solve|inv|pinv|lstsq|cholesky|qr|eigh?|det|lu_factor|expm)"
    r"|scipy\.sparse\.linalg\.(spsolve|splu|factorized|inv)"
)
# They give the same for the same arrays, and take time for large ones.
_OF_ARRAYS = re.compile(
    r"numpy\.(sum|mean|std|var|median|percentile|quantile|unique|argsort|cumsum|histogram|bincount|linalg\.norm|a?min|a?max"
    r"|corrcoef|cov|fft\.\w+)"
)
_FITS = frozenset({"fit", "fit_transform"})
# Models that begin with random numbers: several fits may be wanted.
_BY_CHANCE = re.compile(
    r"Forest|Trees|Boost|KMeans|Mixture|MLP|SGD|TSNE|UMAP|NMF|Bagging|Dirichlet|Perceptron|SVD|FastICA|Embedding|Search"
)
# What they get stays as it is; what they are methods of may change.
_ONLY_READ = _FITS | {
    "transform",
    "predict",
    "predict_proba",
    "score",
    "append",
    "add",
    "print",
    "dumps",
    "write",
}
_LIBRARIES = ("numpy.", "scipy.", "math.", "statistics.")


@dataclass(frozen=True)
class FileFacts:
    """What is known of the whole file: names of calls, functions without effect, and what does not stay.

    `replaced`: attributes and names of the module that functions bind anew.
    """

    tree: ast.AST
    name_of: Callable[[ast.AST], str]
    is_pure: Callable[[str], bool]
    is_harmless: Callable[[str], bool]
    replaced: frozenset[str]


def same_calls_at(
    around: Sequence[ast.AST], statement: Sequence[ast.AST], facts: FileFacts
) -> Iterator[Construct]:
    """Yield calls of the statement of a line, or a file that a block around it has open, which stay the same.

    `reads-again`: a file; `same-matrix`: what is factorised; `same-call`: all arguments of a function without effect.
    """
    function = around[0] if around and isinstance(around[0], FUNCTIONS) else None
    loops = [node for node in around if isinstance(node, (*LOOPS, *COMPREHENSIONS))]
    if function is None and not loops:
        return
    yield from _files(around, statement, function, loops, facts)
    calls = [node for node in statement if isinstance(node, ast.Call)]
    for call in calls:
        inner = [loop for loop in loops if repeats(loop, call)]
        name = facts.name_of(call.func)
        if _OF_MATRIX.fullmatch(name) and call.args:
            matrix = dotted(call.args[0])
            if matrix and (places := stays(call.args[0], function, inner, facts)) is not None:
                yield Construct("same-matrix", matrix, " ".join((name, *places)))
        elif (
            name.rpartition(".")[2] in _FITS
            and (model := _fitted_model(call, function, inner, facts)) is not None
        ):
            yield Construct("same-fit", model[0], " ".join(("fit", *model[1])))
        elif inner and _is_same_call(call, function, inner[-1:], facts):
            again = sum(
                _is_same_call(other, function, inner[-1:], facts) for other in _calls_of(calls, name, facts)
            )
            yield Construct(
                "same-call",
                name.rpartition(".")[2],
                f"{again} {len(_calls_of(calls, name, facts))} {ast.unparse(call)[:LONGEST]}",
            )


def _calls_of(calls: Sequence[ast.Call], name: str, facts: FileFacts) -> list[ast.Call]:
    """Return the calls of one function."""
    return [call for call in calls if facts.name_of(call.func) == name]


def repeats(loop: ast.AST, node: ast.AST) -> bool:
    """Return whether a loop evaluates an expression for each of its items."""
    first = loop.iter if isinstance(loop, (ast.For, ast.AsyncFor)) else None
    first = loop.generators[0].iter if isinstance(loop, COMPREHENSIONS) else first
    once = first is not None and any(part is node for part in ast.walk(first))
    return not once and any(part is node for part in ast.walk(loop))


def _is_same_call(
    call: ast.Call, function: ast.AST | None, loops: Sequence[ast.AST], facts: FileFacts
) -> bool:
    """Return whether a function without effect gets what stays in the loop, for all that it gets."""
    name = facts.name_of(call.func)
    if not call.args or call.keywords or not (_OF_ARRAYS.fullmatch(name) or facts.is_pure(name)):
        return False
    if not any(dotted(argument) for argument in call.args):
        return False
    return all(
        isinstance(argument, ast.Constant)
        or (dotted(argument) and stays(argument, function, loops, facts) is not None)
        for argument in call.args
    )


def _fitted_model(
    call: ast.Call, function: ast.AST | None, loops: Sequence[ast.AST], facts: FileFacts
) -> tuple[str, tuple[str, ...]] | None:
    """Return a model that is fitted to what stays, with parameters that stay, and what both depend on."""
    if not isinstance(call.func, ast.Attribute) or not call.args:
        return None
    made: ast.AST | None = call.func.value
    if isinstance(made, ast.Name):
        values = _assigned(function or facts.tree, made.id)
        made = values[0] if len(values) == 1 else None
    if not isinstance(made, ast.Call):
        return None
    kind = facts.name_of(made.func).rpartition(".")[2]
    if _BY_CHANCE.search(kind) and not any(keyword.arg == "random_state" for keyword in made.keywords):
        return None  # another fit is another model
    given = [*call.args, *(keyword.value for keyword in (*call.keywords, *made.keywords)), *made.args]
    if not all(dotted(argument) for argument in call.args):
        return None
    places: list[str] = []
    for argument in given:
        found = stays(argument, function, loops, facts, is_text=argument not in call.args)
        if found is None:
            return None
        places += found
    return kind, tuple(dict.fromkeys(places))


# ------------------------------------------------------------ what stays


def stays(
    value: ast.AST,
    function: ast.AST | None,
    loops: Sequence[ast.AST],
    facts: FileFacts,
    *,
    is_text: bool = False,
    depth: int = 2,
) -> tuple[str, ...] | None:
    """Return None where a value may be another one each time; else the parameters that it depends on, as numbers.

    Each time is each item of the loops, or each call of the function where there are none. `is_text`: it is a path,
    which nothing changes that gets it.
    """
    if any(
        isinstance(part, ast.Call) and not _gives_the_same(part, facts, is_text=is_text)
        for part in ast.walk(value)
    ):
        return None
    if loops:
        changes = stores_in(*loops) if is_text else changed_in(loops, facts)
        known = {path for part in ast.walk(value) if (name := dotted(part)) for path in _paths(name)}
        return () if not known & (changes | (facts.replaced if _is_called(loops, facts) else set())) else None
    places: list[str] = []
    given, local = parameters_of(function), stores_in(function) if function is not None else set()
    changes = changed_in([function], facts) if function is not None and not is_text else set[str]()
    if "self" in changes and _stay_in_methods(value, facts):
        changes.discard("self")  # a method of its own is called, which does not change them
    for part in ast.walk(value):
        name = dotted(part)
        if not name or (isinstance(part, ast.Attribute) and name in facts.replaced):
            if name:
                return None
            continue
        if name in given:
            places.append(str(given.index(name)))
        elif name in facts.replaced or (name not in local and name in changes):
            return None
        elif isinstance(part, ast.Name) and name in local:
            values = _assigned(function, name)
            if len(values) != 1 or depth == 0:
                return None
            found = stays(values[0], function, (), facts, is_text=is_text, depth=depth - 1)
            if found is None:
                return None
            places += found
    return tuple(dict.fromkeys(places))


def _stay_in_methods(value: ast.AST, facts: FileFacts) -> bool:
    """Return whether no method of the file but constructors may change the attributes of an expression's own object."""
    attributes = {name for part in ast.walk(value) if (name := dotted(part)).startswith("self.")}
    methods = [
        node
        for node in ast.walk(facts.tree)
        if isinstance(node, FUNCTIONS) and node.name not in _CONSTRUCTORS
    ]
    return bool(attributes) and not attributes & changed_in(methods, facts)


_CONSTRUCTORS = ("__init__", "__new__", "__post_init__", "setUp")


def _gives_the_same(call: ast.Call, facts: FileFacts, *, is_text: bool) -> bool:
    """Return whether a call gives the same for the same arguments."""
    if not is_text:
        return _is_without_effect(call, facts)
    method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    return _is_of_paths(call, facts) or method in (
        "joinpath",
        "with_suffix",
        "with_name",
        "resolve",
        "expanduser",
    )


def _is_called(loops: Sequence[ast.AST], facts: FileFacts) -> bool:
    """Return whether a loop calls functions of the program that may have an effect."""
    return any(
        isinstance(node, ast.Call) and not _is_without_effect(node, facts)
        for loop in loops
        for node in ast.walk(loop)
    )


def _assigned(function: ast.AST | None, name: str) -> list[ast.AST]:
    """Return what a local name is set to; what is bound in another way counts as several values."""
    bound = [
        node
        for node in ast.walk(function or ast.Module([], []))
        if isinstance(node, ast.Name) and node.id == name and not isinstance(node.ctx, ast.Load)
    ]
    values: list[ast.AST] = [
        node.value
        for node in ast.walk(function or ast.Module([], []))
        if isinstance(node, ast.Assign) and [dotted(target) for target in node.targets] == [name]
    ]
    return values if len(bound) == len(values) == 1 else []


def _paths(name: str) -> set[str]:
    """Return `self` and `self.a` of `self.a`."""
    parts = name.split(".")
    return {".".join(parts[: at + 1]) for at in range(len(parts))}


def changed_in(blocks: Sequence[ast.AST], facts: FileFacts) -> set[str]:
    """Return the names that blocks bind, or whose values they may change: by an index, a method, or a call."""
    changed = stores_in(*blocks)
    for node in (part for block in blocks for part in ast.walk(block)):
        if isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
            into: ast.AST = node.value
            while isinstance(into, ast.Subscript):
                into = into.value
            changed.add(dotted(into))
        elif isinstance(node, ast.Call) and not _is_without_effect(node, facts):
            only_reads = facts.name_of(node.func).rpartition(".")[2] in _ONLY_READ
            given = [] if only_reads else [*node.args, *(keyword.value for keyword in node.keywords)]
            given += [node.func.value] if isinstance(node.func, ast.Attribute) else []
            changed |= {dotted(argument) for argument in given}
    return changed - {""}


def _is_without_effect(call: ast.Call, facts: FileFacts) -> bool:
    """Return whether a call changes nothing that it is given."""
    name = facts.name_of(call.func)
    if any(keyword.arg == "out" or (keyword.arg or "").startswith("overwrite") for keyword in call.keywords):
        return False
    return (
        facts.is_harmless(name)
        or facts.is_pure(name)
        or (name.startswith(_LIBRARIES) and ".random." not in name)
    )


# ------------------------------------------------------------ files


def _files(
    around: Sequence[ast.AST],
    statement: Sequence[ast.AST],
    function: ast.AST | None,
    loops: Sequence[ast.AST],
    facts: FileFacts,
) -> Iterator[Construct]:
    """Yield the file that a line opens, or reads from, where it is the same each time and nobody writes it."""
    opened = [
        item.context_expr
        for node in around
        if isinstance(node, ast.With)
        for item in node.items
        if isinstance(item.context_expr, ast.Call)
    ]
    names = names_in(*statement)
    kept = [
        node.value
        for node in ast.walk(function or ast.Module([], []))
        if isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Call)
        and names & set(map(dotted, node.targets))
    ]
    for call in (*(node for node in statement if isinstance(node, ast.Call)), *opened, *kept):
        path = _path_read(call, facts)
        if path is None:
            continue
        text = ast.unparse(path)
        inner = [loop for loop in loops if repeats(loop, call)]
        places = stays(path, function, inner, facts, is_text=True)
        if places is None or _OF_OTHERS.search(text) or (function is None and not inner):
            continue
        if text not in _written(facts):
            yield Construct("reads-again", text[:LONGEST], " ".join(("loop",) if inner else places))
            return


def _path_read(call: ast.Call, facts: FileFacts) -> ast.AST | None:
    """Return the path that a call reads; None where it reads none, or may write."""
    name = facts.name_of(call.func)
    if name in _OPENS and call.args:
        return call.args[0] if _mode(call, 1).startswith("r") and "+" not in _mode(call, 1) else None
    if _READS.fullmatch(name) and call.args:
        return call.args[0]
    if isinstance(call.func, ast.Attribute):
        reads = call.func.attr == "open" and _mode(call, 0).startswith("r") and "+" not in _mode(call, 0)
        if (reads and name == ".open" and len(call.args) < 2) or call.func.attr in _READS_OF_PATH:
            return call.func.value
    return None


def _mode(call: ast.Call, at: int) -> str:
    """Return the mode in which a file is opened; "?" where it is not written there."""
    given = [keyword.value for keyword in call.keywords if keyword.arg == "mode"] or call.args[at : at + 1]
    if not given:
        return "r"
    return given[0].value if isinstance(given[0], ast.Constant) and isinstance(given[0].value, str) else "?"


def _written(facts: FileFacts) -> set[str]:
    """Return the paths, as they are written, that functions and loops of the file write, or give away."""
    found: set[str] = set()
    once = {
        id(part)
        for node in ast.iter_child_nodes(facts.tree)
        if not isinstance(node, (*LOOPS, *FUNCTIONS, ast.ClassDef))
        for part in ast.walk(node)
        if not isinstance(part, (*LOOPS, *COMPREHENSIONS))
    }
    owned = owned_nodes(facts.tree)
    looped, single = _in_loops(facts.tree), _run_once(owned, facts.tree)
    for node, owners in owned:
        if not isinstance(node, ast.Call) or (id(node) in once and not owners):
            continue
        if owners and single.issuperset(owners) and id(node) not in looped:
            continue  # it is written once, whenever that is: in between it stays
        if _path_read(node, facts) is None and not _is_of_paths(node, facts):
            found |= {
                ast.unparse(argument) for argument in (*node.args, *(each.value for each in node.keywords))
            }
        if isinstance(node.func, ast.Attribute) and node.func.attr in (*_WRITES_OF_PATH, "open"):
            found |= {ast.unparse(node.func.value)} if _path_read(node, facts) is None else set()
    return found


def _in_loops(tree: ast.AST) -> set[int]:
    """Return the identities of all nodes within loops and comprehensions."""
    loops = [node for node in ast.walk(tree) if isinstance(node, (*LOOPS, *COMPREHENSIONS))]
    return {id(part) for loop in loops for part in ast.walk(loop) if part is not loop}


def _run_once(owned: Sequence[tuple[ast.AST, tuple[str, ...]]], tree: ast.AST) -> set[str]:
    """Return the functions that are named once in the file, by a call outside of loops that itself runs once."""
    looped = _in_loops(tree)
    called = {id(node.func): node for node, _ in owned if isinstance(node, ast.Call)}
    uses: dict[str, list[tuple[ast.AST, tuple[str, ...]]]] = {}
    for node, owners in owned:
        name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
        uses.setdefault(name, []).append((node, owners))
    defined = [node.name for node, _ in owned if isinstance(node, FUNCTIONS)]
    single = {
        name
        for name in defined
        if defined.count(name) == 1
        and len(uses.get(name, ())) == 1
        and id(uses[name][0][0]) in called
        and id(uses[name][0][0]) not in looped
    }
    last: set[str] = set()
    while single != last:  # a function that another one calls runs once where that does
        last, single = single, {name for name in single if set(uses[name][0][1]) <= single}
    return single


def _is_of_paths(call: ast.Call, facts: FileFacts) -> bool:
    """Return whether a call only makes a path, or a text, of what it gets, or asks whether it is there."""
    name = facts.name_of(call.func)
    return (
        name.startswith("os.path.")
        or name in ("pathlib.Path", "str", "print", "len", "repr")
        or (hasattr(builtins, name) and facts.is_harmless(name))
    )
