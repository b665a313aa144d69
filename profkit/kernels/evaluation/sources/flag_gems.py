"""FlagGems: a library of Triton kernels for the operations of aten."""

from __future__ import annotations

import ast
import importlib.metadata
import importlib.util
from collections.abc import Iterator, Mapping
from contextlib import suppress
from importlib import import_module
from importlib.metadata import PackageNotFoundError
from operator import attrgetter
from pathlib import Path

from profkit.core.errors import MachineError
from profkit.core.files.regular import read_bounded
from profkit.kernels.evaluation.sources.names import known_overloads
from profkit.kernels.evaluation.sources.source import Kernel, ListedSource, LoadError

PACKAGE = "flag_gems"
FIX = "pip install git+https://github.com/FlagOpen/FlagGems, into the Python that runs profkit"


def find_package() -> Path:
    """Its own `__init__.py`; it is not imported. Raises MachineError where it is not installed."""
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        raise MachineError("FlagGems is not installed", FIX)
    return Path(spec.origin)


class FlagGemsSource(ListedSource):
    """Its kernels, by the list that FlagGems itself registers from.

    The list is read; the package is imported for the first kernel, since it looks for a GPU then.
    """

    def __init__(self) -> None:
        self._functions = read_registrations(find_package())
        version: tuple[str, ...] = ()
        with suppress(PackageNotFoundError):  # where its folder alone was put on the path
            version = (f"the kernels are those of FlagGems {importlib.metadata.version(PACKAGE)}",)
        super().__init__(
            {operation: f"{PACKAGE}.{name}" for operation, name in self._functions.items()}, version
        )

    def load(self, operation: str) -> Kernel:
        """The function of FlagGems. Raises LoadError where it has none, and what importing it raises."""
        name = self._functions.get(operation)
        if name is None:
            raise LoadError(f"FlagGems has no kernel for {operation}")
        try:
            kernel: Kernel = attrgetter(name)(import_module(PACKAGE))
        except AttributeError:
            raise LoadError(f"FlagGems does not define {name}, which it names for {operation}") from None
        return kernel


def read_registrations(file: Path) -> Mapping[str, str]:
    """By overload the name of its function: of all pairs `("add.Tensor", add)` in the file, the first of each.

    Raises MachineError where the file has no such list.
    """
    try:
        tree = ast.parse(read_bounded(file), str(file))
    except (OSError, SyntaxError, ValueError) as error:
        raise MachineError(f"FlagGems in {file} cannot be read: {error}", FIX) from error
    functions: dict[str, str] = {}
    for operation, name in _pairs(tree):
        functions.setdefault(operation, name)
    if not functions:
        raise MachineError(f"{file} does not list the operations of FlagGems as its releases do", FIX)
    return functions


def _pairs(tree: ast.Module) -> Iterator[tuple[str, str]]:
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Tuple) and len(node.elts) >= 2):
            continue
        name, function = node.elts[:2]
        if not (isinstance(name, ast.Constant) and isinstance(name.value, str)):
            continue
        # A name without an overload is the one that torch calls `default`.
        operation = name.value if "." in name.value else f"{name.value}.default"
        base, _, overload = operation.partition(".")
        if isinstance(function, (ast.Name, ast.Attribute)) and overload in known_overloads().get(base, ()):
            yield operation, ast.unparse(function)
