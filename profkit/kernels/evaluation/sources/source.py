"""Where kernels come from: what a source of kernels is, those without files of the user's, and which there are.

PyTorch's own kernels are what everything else is compared with, and the test of the judge itself. FlagGems is a library
of Triton kernels for the operations of aten.
"""

from __future__ import annotations

import ast
import importlib.metadata
import importlib.util
import shlex
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import PackageNotFoundError
from operator import attrgetter
from pathlib import Path
from typing import Any, TypeAlias

from profkit.core.errors import MachineError, UsageError
from profkit.core.files.regular import read_bounded
from profkit.core.types import Fact
from profkit.kernels.devices import choose_device
from profkit.kernels.evaluation.sources.names import (
    SUFFIX,
    LoadError,
    find_operator,
    kernel_files,
    kernel_folders,
    known_overloads,
    read_text,
)

Kernel: TypeAlias = Callable[..., Any]  # called with exactly the arguments of the operation


@dataclass(frozen=True)
class SourceRequest:
    """Where kernels come from, as plain data: it travels to the process that loads them.

    `kind` is aten, flag_gems, directory, file, source (`text` of one operation) or function (of a running
    program, as `text` says); `paths` are absolute.
    """

    kind: str
    paths: tuple[str, ...] = ()
    text: str = ""
    operation: str = ""

    @property
    def names(self) -> str:
        """The names of its files or folders, without those above."""
        return ", ".join(Path(path).name for path in self.paths)


class KernelSource:
    """Kernels by overload: where each is, and what the user should know. Only the candidate's process loads one."""

    def __init__(self, places: Mapping[str, str], remarks: tuple[Fact, ...] = ()) -> None:
        self._places = places
        self._remarks = remarks

    def has_kernel(self, operation: str) -> bool:
        """Whether there is a kernel for the overload (`add.Tensor`), by names alone: no kernel is loaded."""
        return operation in self._places

    def load(self, operation: str) -> Kernel:
        """The kernel. Raises LoadError where there is none, or whatever its file raises."""
        raise LoadError(f"there is no kernel for {operation}")

    def where(self, operation: str) -> str:
        """The file of the kernel, or its name in a package; empty where there is none."""
        return self._places.get(operation, "")

    def operations(self) -> tuple[str, ...]:
        """The overloads that there is a kernel for, sorted."""
        return tuple(sorted(self._places))

    def remarks(self) -> tuple[Fact, ...]:
        """What the user should know: names of no operation, which of several files was taken."""
        return self._remarks


class AtenSource(KernelSource):
    """torch.ops.aten: a kernel for every overload."""

    def __init__(self) -> None:
        names = (f"{name}.{each}" for name, overloads in known_overloads().items() for each in overloads)
        super().__init__(dict.fromkeys(names, "torch"))

    def load(self, operation: str) -> Kernel:
        """torch's own object of the overload. Raises LoadError for what PyTorch does not have."""
        if not self.has_kernel(operation):
            raise LoadError(f"PyTorch has no operation called {operation}")
        operator: Kernel = find_operator(operation)
        return operator


PACKAGE = "flag_gems"
FIX = "pip install git+https://github.com/FlagOpen/FlagGems, into the Python that runs profkit"


def find_package() -> Path:
    """Its own `__init__.py`; it is not imported. Raises MachineError where it is not installed."""
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        raise MachineError("FlagGems is not installed", FIX)
    return Path(spec.origin)


class FlagGemsSource(KernelSource):
    """Its kernels, by the list that FlagGems itself registers from.

    The list is read; the package is imported for the first kernel, since it looks for a GPU then.
    """

    def __init__(self) -> None:
        self._functions = read_registrations(find_package())
        version: tuple[Fact, ...] = ()
        with suppress(PackageNotFoundError):  # where its folder alone was put on the path
            version = (Fact.of("of-flag-gems", version=importlib.metadata.version(PACKAGE)),)
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


# ---------------------------------------------------------------- which there are

BACKENDS = ("aten", "directory", "flag_gems", "llm")  # of the command line; a file is given by its path
DEFAULT_FOLDER = Path("generated_kernels")  # as the field's generators write it


def make_source_request(
    backend: str = "", kernels: Path | None = None, file: Path | None = None, device: str = "auto"
) -> SourceRequest:
    """Where kernels come from, as the user says it; nothing of theirs is run, and torch is not needed.

    An empty backend is what the paths say: a file, a folder, and else aten. Raises UsageError for what is not there,
    what has no kernel by its names, and what does not go together; MachineError for a backend that cannot be had.
    """
    name = "directory" if backend == "pregenerated" else backend  # as BackendBench calls it
    if file is not None:
        if name or kernels is not None:
            raise UsageError(
                f"kernels come from {file} or from {f'--backend {backend}' if name else kernels}, not from both",
                f"profkit evaluate {shlex.quote(str(file))}",
            )
        return SourceRequest("file", (str(_check_file(file)),))
    if name in ("", "directory") and (name or kernels is not None):
        return SourceRequest("directory", (str(_check_folder(kernels or DEFAULT_FOLDER)),))
    if name not in ("", *BACKENDS):
        raise UsageError(f"there is no backend called {backend!r}", f"--backend {'|'.join(BACKENDS)}")
    if kernels is not None:
        raise UsageError(
            f"--backend {backend} takes no folder",
            f"--backend directory --kernels {shlex.quote(str(kernels))}",
        )
    if name == "flag_gems":
        _check_flag_gems(device)
    return SourceRequest(name or "aten")


def _check_file(file: Path) -> Path:
    """Raises UsageError for a file that cannot be read, or has no kernel."""
    try:
        text = read_text(file)
    except LoadError as error:
        raise UsageError(str(error), "profkit evaluate FILE.py, or --kernels FOLDER") from error
    if not text.kernels and not text.implementations():
        raise UsageError(
            f"{file} has no kernel whose name is written out",
            f'from profkit.evaluation import kernel; @kernel("add.Tensor"); or a function called relu{SUFFIX}',
        )
    return file.absolute()


def _check_folder(folder: Path) -> Path:
    """Raises UsageError for a folder that cannot be read, or has no kernel in it."""
    try:
        if any(map(kernel_files, kernel_folders(folder))):
            return folder.absolute()
    except OSError as error:
        said = f"{folder} cannot be read: {error.strerror or error}"
        raise UsageError(said, "--kernels FOLDER, which has a folder for each operation") from error
    raise UsageError(
        f"nothing in {folder} is named like an operation",
        "--kernels FOLDER, with relu/relu.py in it, or add__Tensor/add__Tensor_implementation_v1.py",
    )


def _check_flag_gems(device: str) -> None:
    if device == "auto":
        device, _ = choose_device(device, (), "this evaluation")
    if device == "cpu":  # before it is asked for: installing it would be for nothing
        raise MachineError("FlagGems has no kernels for the CPU", "--device cuda, where there is a GPU")
    find_package()
