"""Where kernels come from: what a source of kernels is, those without files of the user's, and which there are.

PyTorch's own kernels are what everything else is compared with, and the test of the judge itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from profkit.core.errors import UsageError
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

    `kind` is aten, directory, file, source (`text` of one operation) or function (of a running program, as `text`
    says); `paths` are absolute.
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

    def __init__(self, places: Mapping[str, str], remarks: tuple[str, ...] = ()) -> None:
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

    def remarks(self) -> tuple[str, ...]:
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


# ---------------------------------------------------------------- which there are

BACKENDS = ("aten", "directory", "llm")  # of the command line; a file is given by its path
DEFAULT_FOLDER = Path("generated_kernels")  # as the field's generators write it


def make_source_request(
    backend: str = "", kernels: Path | None = None, file: Path | None = None
) -> SourceRequest:
    """Where kernels come from, as the user says it; nothing of theirs is run, and torch is not needed.

    An empty backend is what the paths say: a file, a folder, and else aten. Raises UsageError for what is not there,
    what has no kernel by its names, and what does not go together.
    """
    name = "directory" if backend == "pregenerated" else backend  # as BackendBench calls it
    if file is not None:
        if name or kernels is not None:
            raise UsageError(
                f"kernels come from {file} or from {f'--backend {backend}' if name else kernels}, not from both",
                f"profkit evaluate {file}",
            )
        return SourceRequest("file", (str(_check_file(file)),))
    if name in ("", "directory") and (name or kernels is not None):
        return SourceRequest("directory", (str(_check_folder(kernels or DEFAULT_FOLDER)),))
    if name not in ("", *BACKENDS):
        raise UsageError(f"there is no backend called {backend!r}", f"--backend {'|'.join(BACKENDS)}")
    if kernels is not None:
        raise UsageError(f"--backend {backend} takes no folder", f"--backend directory --kernels {kernels}")
    return SourceRequest(name or "aten")


def _check_file(file: Path) -> Path:
    """Raises UsageError for a file that cannot be read, or has no kernel."""
    if file.is_dir():
        raise UsageError(f"{file} is a folder", f"--backend directory --kernels {file}")
    if not file.exists():
        raise UsageError(f"{file} is not there", "profkit evaluate FILE.py")
    try:
        text = read_text(file)
    except LoadError as error:
        raise UsageError(str(error), f"python {file}") from error
    if not text.kernels and not text.implementations():
        raise UsageError(
            f"{file} has no kernel whose name is written out",
            f'from profkit.evaluation import kernel; @kernel("add.Tensor"); or a function called relu{SUFFIX}',
        )
    return file.absolute()


def _check_folder(folder: Path) -> Path:
    """Raises UsageError for a folder that is not there, or without a kernel in it."""
    if not folder.exists():
        raise UsageError(f"{folder} is not there", "--kernels FOLDER, which has a folder for each operation")
    if not folder.is_dir():
        raise UsageError(f"{folder} is no folder", f"profkit evaluate {folder}")
    try:
        if any(map(kernel_files, kernel_folders(folder))):
            return folder.absolute()
    except OSError as error:
        raise UsageError(f"{folder} cannot be read: {error.strerror or error}", "chmod +rx FOLDER") from error
    raise UsageError(
        f"nothing in {folder} is named like an operation",
        "--kernels FOLDER, with relu/relu.py in it, or add__Tensor/add__Tensor_implementation_v1.py",
    )
