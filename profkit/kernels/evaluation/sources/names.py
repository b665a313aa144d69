"""Names of operations: from a folder, a file or a person to the overloads that PyTorch knows.

Also what files say of their kernels, read without running them: names, functions, decorators; and which file
of several is the kernel. Importing this needs no torch.
"""

from __future__ import annotations

import ast
import difflib
import json
import re
import symtable
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from profkit.core.errors import UsageError
from profkit.core.files.regular import read_bounded

_PREFIXES = ("torch.ops.aten.", "aten::", "aten.")
# Bare names whose most called overload, by the operator traces of tritonbench, is neither `default` nor `Tensor`.
_USUAL_OVERLOADS = {
    **dict.fromkeys(("eq", "ge", "gt", "le", "lt", "ne", "fmod", "remainder", "rsub"), "Scalar"),
    **dict.fromkeys(("masked_fill", "masked_fill_"), "Scalar"),
    **dict.fromkeys(("std", "var", "std_mean", "var_mean"), "correction"),
    "mean": "dim",
    "pow": "Tensor_Scalar",
    "sum": "dim_IntList",
    "unbind": "int",
    "where": "self",
}


@dataclass(frozen=True)
class NameMeaning:
    """The meaning of a name: one overload (`add.Tensor`), or all of an operation (`add`; empty `overload`)."""

    operation: str
    overload: str = ""

    @property
    def name(self) -> str:
        """Return the name as torch writes it: `add.Tensor`; `add` for all overloads."""
        return f"{self.operation}.{self.overload}" if self.overload else self.operation

    @property
    def main(self) -> str:
        """Return the one overload that a kernel of this name is for: for a bare name, the most called overload."""
        return f"{self.operation}.{self.overload or main_overload(self.operation)}"


@cache
def known_overloads() -> Mapping[str, tuple[str, ...]]:
    """Return the overloads of every aten operation that PyTorch dispatches: `add` has `Tensor`, `Scalar`, `out`."""
    import torch

    known: dict[str, list[str]] = {}
    for name in sorted(torch._C._dispatch_get_all_op_names()):
        if name.startswith("aten::"):
            operation, _, overload = name.removeprefix("aten::").partition(".")
            known.setdefault(operation, []).append(overload or "default")
    return {operation: tuple(overloads) for operation, overloads in known.items()}


@cache
def _encoded() -> Mapping[str, NameMeaning]:
    """Return every name that a folder can have.

    Names are looked up here, never decoded: `__lshift__.Scalar` cannot be.
    """
    names = {operation: NameMeaning(operation) for operation in known_overloads()}
    for operation, overloads in known_overloads().items():
        for overload in overloads:
            names[encode_name(f"{operation}.{overload}")] = NameMeaning(operation, overload)
    return names


def encode_name(name: str) -> str:
    """Return the folder's name of an overload, with which its function's begins: `add_.Tensor` is `add___Tensor`."""
    return name.replace(".", "__")


def folder_meaning(folder: str) -> NameMeaning | None:
    """Return the overload or operation that a folder is named after; None if there is none."""
    return _encoded().get(folder)


def name_meaning(name: str) -> NameMeaning:
    """Return what a user means by `aten::add.Tensor`, `add.Tensor`, `add__Tensor` or `add`.

    Raises UsageError with similar names for what PyTorch does not have.
    """
    name = without_prefix(name)
    meaning = _encoded().get(encode_name(name))
    if meaning is None:
        raise UsageError(
            f"PyTorch has no operation called {name!r}{near_names(name)}",
            "a name as torch.ops.aten has it: add.Tensor",
        )
    return meaning


def without_prefix(name: str) -> str:
    """Remove `torch.ops.aten.`, `aten::` or `aten.` from the beginning of the name."""
    for prefix in _PREFIXES:
        name = name.removeprefix(prefix)
    return name


def function_stems(meaning: NameMeaning) -> tuple[str, ...]:
    """Return how the name of its kernel may begin, the full name first: `add__Tensor`, `add`; the same for `add`."""
    return tuple(dict.fromkeys((encode_name(meaning.name), encode_name(meaning.main), meaning.operation)))


def operation_name(op: Any) -> str:
    """Return the aten overload that an operation of torch's, or a name, means (`add.Tensor`).

    Raises UsageError for what is no operation of aten.
    """
    import torch

    if isinstance(op, torch._ops.OpOverload):
        op = f"{op._schema.name}.{op._overloadname}"
    elif isinstance(op, torch._ops.OpOverloadPacket):
        op = op._qualified_op_name
    if not isinstance(op, str):
        raise UsageError(f"{op!r:.80} is not an operation", "torch.ops.aten.relu.default, or its name")
    return name_meaning(op).main


def near_names(name: str) -> str:
    """Return ` (near: glu, gelu)` with up to three similar known names, in the form of `name`; or nothing."""
    known: Iterable[str] = _encoded()
    if "." in name:
        known = [meaning.name for meaning in _encoded().values()]
    near = difflib.get_close_matches(name, known, 3, 0.7)
    return f" (near: {', '.join(near)})" if near else ""


def find_operator(name: str) -> Any:
    """Return torch's own object of an overload (`add.Tensor`). Raises LookupError if there is none."""
    import torch

    operation, _, overload = name.partition(".")
    if (overload := overload or "default") not in known_overloads().get(operation, ()):
        library = f"it is an operation of the library {operation}, and " if "." in overload else ""
        raise LookupError(f"{library}torch {torch.__version__} has no aten::{name}")
    return getattr(getattr(torch.ops.aten, operation), overload)


@cache
def main_overload(operation: str) -> str:
    """Return the most called overload of a bare name: `relu` is `relu.default`, `add` is `add.Tensor`."""
    overloads = known_overloads()[operation]
    wanted = (_USUAL_OVERLOADS.get(operation, "default"), "default", "Tensor", *overloads)
    return next(overload for overload in wanted if overload in overloads)


@dataclass(frozen=True)
class OperationDescription:
    """A description of one overload. `main`: a bare name means it (`add` is `add.Tensor`)."""

    name: str
    schema: str
    main: bool = False


def describe_operation(name: str) -> OperationDescription:
    """Describe an overload (`add.Tensor`) as PyTorch declares it. Raises LookupError if there is none."""
    operation = find_operator(name)
    base, _, overload = name.partition(".")
    return OperationDescription(name, str(operation._schema), main_overload(base) == overload)


# ---------------------------------------------------------------- files of kernels

MAX_BYTES = 16 << 20  # of a file of Python; the largest generated ones have 2 MB
SUFFIX = "_kernel_impl"  # of the function in a folder's file, after the folder's name
# What kernels from texts use without importing it, as the field's evaluators let them.
_USUAL = {
    "torch": "import torch",
    "nn": "from torch import nn",
    "F": "import torch.nn.functional as F",
    "triton": "import triton",
    "tl": "import triton.language as tl",
    "helion": "import helion",
    "hl": "import helion.language as hl",
}
_DECORATOR = "kernel"


class LoadError(RuntimeError):
    """There is no such kernel: its file cannot be read, or does not define it."""


@dataclass(frozen=True)
class FileText:
    """The names that a file binds, its functions, and the operations that it decorates with `kernel`."""

    names: frozenset[str]
    functions: frozenset[str]
    kernels: tuple[str, ...] = ()

    def kernel_of(self, stem: str) -> str | None:
        """Return the function of `relu`: `relu_kernel_impl`, or one of an overload, `relu__default_kernel_impl`."""
        if stem + SUFFIX in self.names:
            return stem + SUFFIX
        of_overload = re.compile(f"{re.escape(stem)}__[^_].*{SUFFIX}")  # `add___Tensor` is of `add_`
        return next(filter(of_overload.fullmatch, sorted(self.names)), None)

    def implementations(self) -> tuple[str, ...]:
        """Return the names before `_kernel_impl`, sorted."""
        return tuple(name.removesuffix(SUFFIX) for name in sorted(self.names) if name.endswith(SUFFIX))


def read_text(path: Path) -> FileText:
    """Read what a file defines. Raises LoadError where it cannot be read, or is no Python."""
    try:
        return parse_text(read_bounded(path, MAX_BYTES), str(path))
    except OSError as error:
        raise LoadError(f"{path} cannot be read: {error.strerror or error}") from error


def parse_text(text: bytes | str, name: str) -> FileText:
    """Parse what a text defines; `name` is for messages. Raises LoadError for what is no Python."""
    try:
        tree = ast.parse(text, name)
        functions = frozenset(node.name for node in _top_level(tree) if isinstance(node, ast.FunctionDef))
        return FileText(frozenset(_bound_names(tree)), functions, tuple(dict.fromkeys(_decorated(tree))))
    except SyntaxError as error:
        line = f", line {error.lineno}" if error.lineno is not None else ""  # a null byte has none
        raise LoadError(f"{name}{line}: {error.msg}") from error
    except (ValueError, RecursionError, MemoryError) as error:  # a null byte, a hostile depth
        raise LoadError(f"{name} is no Python: {str(error) or 'it is nested too deeply'}") from error


def with_imports(text: str) -> str:
    """Add an import of each usual module that the text uses and does not bind, so that it runs alone.

    They stand behind its docstring and `from __future__`. What is no Python stays as it is.
    """
    try:
        tree, table = ast.parse(text), symtable.symtable(text, "kernel", "exec")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return text
    bound = {each.get_name() for each in table.get_symbols() if each.is_assigned() or each.is_imported()}
    missing = [line for name, line in _USUAL.items() if name in _free_names(table) - bound]
    if not missing:
        return text
    lines = text.split("\n")
    at = _end_of_head(tree)
    return "\n".join([*lines[:at], *missing, *lines[at:]])


def _free_names(table: symtable.SymbolTable) -> set[str]:
    """Return the module-level names that the module, and all functions and classes in it, use."""
    here = {
        each.get_name()
        for each in table.get_symbols()
        if each.is_referenced() and (each.is_global() or table.get_type() == "module")
    }
    return here.union(*map(_free_names, table.get_children()))


def _end_of_head(tree: ast.Module) -> int:
    """Return the line behind docstring and `from __future__`, else the one before the first statement."""
    at = 0
    for place, node in enumerate(tree.body):
        is_docstring = place == 0 and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if not (is_docstring or (isinstance(node, ast.ImportFrom) and node.module == "__future__")):
            first = min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", ()))])
            return at or first - 1
        at = node.end_lineno or at
    return at


def _top_level(tree: ast.Module) -> Iterator[ast.stmt]:
    """Yield the statements of the module, also those under `if`, `try` and `with`."""
    pending = list(reversed(tree.body))
    while pending:
        node = pending.pop()
        yield node
        if isinstance(node, (ast.If, ast.Try, ast.With)):
            inner = [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.stmt)]
            inner += [each for child in getattr(node, "handlers", ()) for each in child.body]
            pending.extend(reversed(inner))


def _bound_names(tree: ast.Module) -> Iterator[str]:
    """Yield the names that the top level of a module binds."""
    for node in _top_level(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            yield from ((alias.asname or alias.name).partition(".")[0] for alias in node.names)
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                yield from (name.id for name in ast.walk(target) if isinstance(name, ast.Name))


def _decorated(tree: ast.Module) -> Iterator[str]:
    """Yield the texts given to `@kernel(...)` of a function or class, and to `kernel(...)(anything)`."""
    for node in ast.walk(tree):
        calls = node.decorator_list if isinstance(node, (ast.FunctionDef, ast.ClassDef)) else ()
        for call in (node.func,) if isinstance(node, ast.Call) else calls:
            if isinstance(call, ast.Call) and ast.unparse(call.func).rpartition(".")[2] == _DECORATOR:
                values = [each.value for each in call.args if isinstance(each, ast.Constant)]
                yield from (value for value in values if isinstance(value, str))


def kernel_folders(root: Path) -> Iterator[Path]:
    """Yield the folders in `root` that may belong to an operation, by name."""
    for entry in sorted(root.iterdir()):
        if entry.is_dir() and not entry.name.startswith((".", "__pycache__")):
            yield entry


def kernel_files(folder: Path) -> list[Path]:
    """Return the files that are named after the folder; the last one is used without a summary.

    `relu.py`, `relu_attempt_3.py`, `relu_implementation_v1.py`: files without a number come first, the highest
    last.
    """
    named = re.compile(rf"{re.escape(folder.name)}(_attempt_?\w*|_implementation\w*)?\.py")
    return sorted((file for file in folder.glob("*.py") if named.fullmatch(file.name)), key=_order)


def _order(file: Path) -> tuple[int, str]:
    """Return the sort key of a file: its number, -1 without any, then its name."""
    number = re.search(r"(\d+)$", file.stem.removeprefix(file.parent.name))
    return (int(number[1]) if number else -1, file.name)


def choose_file(folder: Path) -> Path:
    """Return the kernel file of a folder: the one its summary calls correct, else the highest number.

    Raises LoadError if there is none.
    """
    files = kernel_files(folder)
    if not files:
        raise LoadError(
            f"{folder} has no kernel: no {folder.name}.py, {folder.name}_implementation_v1.py, and none like them"
        )
    summary = folder / f"{folder.name}_kernel_gen_summary.json"
    return _correct_file(summary, {file.name: file for file in files}) or files[-1]


def _correct_file(summary: Path, files: Mapping[str, Path]) -> Path | None:
    """Return the file that a generation's record keeps, else its last correct one; None without a record."""
    try:
        rows: Any = json.loads(read_bounded(summary))
    except (OSError, ValueError, RecursionError):
        return None
    correct = [
        (row.get("kept") is True, place, files[name])
        for place, row in enumerate(rows if isinstance(rows, list) else ())
        if isinstance(row, dict) and row.get("is_correct") is True
        if (name := Path(str(row.get("kernel_file"))).name) in files
    ]
    return max(correct)[-1] if correct else None
