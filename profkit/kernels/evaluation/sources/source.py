"""The sources of kernels: their interface, those that need no files of the user's, and the choice of one.

PyTorch's own kernels are what everything else is compared with, and the test of the judge itself. FlagGems is
a library of Triton kernels for the operations of aten.
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
    """The source of kernels as plain data, which travels to the process that loads them.

    `kind` is aten, flag_gems, directory, file, source (`text` of one operation) or function (of a running
    program, as `text` says); `paths` are absolute.
    """

    kind: str
    paths: tuple[str, ...] = ()
    text: str = ""
    operation: str = ""

    @property
    def names(self) -> str:
        """Return the names of its files or folders, without their parents."""
        return ", ".join(Path(path).name for path in self.paths)


class KernelSource:
    """Kernels by overload: the place of each, and remarks for the user. Only the candidate's process loads any."""

    def __init__(self, places: Mapping[str, str], remarks: tuple[Fact, ...] = ()) -> None:
        self._places = places
        self._remarks = remarks

    def has_kernel(self, operation: str) -> bool:
        """Return whether there is a kernel for the overload (`add.Tensor`), by names alone: no kernel is loaded."""
        return operation in self._places

    def load(self, operation: str) -> Kernel:
        """Load the kernel. Raises LoadError if there is none, or whatever its file raises."""
        raise LoadError(f"there is no kernel for {operation}")

    def where(self, operation: str) -> str:
        """Return the file of the kernel, or its name in a package; empty if there is none."""
        return self._places.get(operation, "")

    def operations(self) -> tuple[str, ...]:
        """Return the overloads that there is a kernel for, sorted."""
        return tuple(sorted(self._places))

    def remarks(self) -> tuple[Fact, ...]:
        """Return what the user should know: names of no operation, the version of a library."""
        return self._remarks


class AtenSource(KernelSource):
    """PyTorch's own kernels, torch.ops.aten: one for every overload."""

    def __init__(self) -> None:
        names = (f"{name}.{each}" for name, overloads in known_overloads().items() for each in overloads)
        super().__init__(dict.fromkeys(names, "torch"))

    def load(self, operation: str) -> Kernel:
        """Return torch's own object of the overload. Raises LoadError for what PyTorch does not have."""
        if not self.has_kernel(operation):
            raise LoadError(f"PyTorch has no operation called {operation}")
        operator: Kernel = find_operator(operation)
        return operator


PACKAGE = "flag_gems"
FIX = "pip install git+https://github.com/FlagOpen/FlagGems, into the Python that runs profkit"


def find_package() -> Path:
    """Find the `__init__.py` of FlagGems without importing it. Raises MachineError where it is not installed."""
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        raise MachineError("FlagGems is not installed", FIX)
    return Path(spec.origin)


class FlagGemsSource(KernelSource):
    """The kernels of FlagGems, by the list that it registers from.

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
        """Return the function of FlagGems. Raises LoadError where it has none, and what importing it raises."""
        name = self._functions.get(operation)
        if name is None:
            raise LoadError(f"FlagGems has no kernel for {operation}")
        try:
            kernel: Kernel = attrgetter(name)(import_module(PACKAGE))
        except AttributeError:
            raise LoadError(f"FlagGems does not define {name}, which it names for {operation}") from None
        return kernel


def read_registrations(file: Path) -> Mapping[str, str]:
    """Return the function's name by overload: of all pairs `("add.Tensor", add)` in the file, the first of each.

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
    """Yield the overload and the function's source of each pair that names an operation."""
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
    """Return the source that the user names; nothing of theirs is run, and torch is not needed.

    Without a backend the paths decide: a file, a folder, or else aten. Raises UsageError for what does not exist,
    what has no kernel by its names, and options that exclude each other; MachineError for a backend that cannot
    be used.
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
    """Return the absolute path. Raises UsageError for a file that cannot be read, or has no kernel."""
    try:
        text = read_text(file)
    except LoadError as error:
        raise UsageError(str(error), "profkit evaluate FILE.py, or --kernels FOLDER") from error
    if not text.kernels and not text.implementations():
        raise UsageError(
            f"{file} has no kernel whose name can be read from its text",
            f'from profkit.evaluation import kernel; @kernel("add.Tensor"); or a function called relu{SUFFIX}',
        )
    return file.absolute()


def _check_folder(folder: Path) -> Path:
    """Return the absolute path. Raises UsageError for a folder that cannot be read, or has no kernel in it."""
    try:
        if any(map(kernel_files, kernel_folders(folder))):
            return folder.absolute()
    except OSError as error:
        message = f"{folder} cannot be read: {error.strerror or error}"
        raise UsageError(message, "--kernels FOLDER, which has a folder for each operation") from error
    raise UsageError(
        f"nothing in {folder} is named like an operation",
        "--kernels FOLDER, with relu/relu.py in it, or add__Tensor/add__Tensor_implementation_v1.py",
    )


def _check_flag_gems(device: str) -> None:
    """Check that FlagGems can be used on the device. Raises MachineError where it cannot."""
    if device == "auto":
        device, _ = choose_device(device, (), "this evaluation")
    if device == "cpu":  # before it is imported: installing it would be for nothing
        raise MachineError("FlagGems has no kernels for the CPU", "--device cuda, where there is a GPU")
    find_package()
