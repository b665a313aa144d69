"""A folder of kernels: one folder for each operation, in every layout of the field."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from profkit.core.formatting import plural
from profkit.kernels.evaluation.sources.folders import choose_file, kernel_folders
from profkit.kernels.evaluation.sources.modules import find_function, load_module
from profkit.kernels.evaluation.sources.names import (
    Named,
    describe_unknown,
    encode_name,
    folder_meaning,
    function_stems,
    overloads_of,
)
from profkit.kernels.evaluation.sources.source import Kernel, ListedSource, LoadError
from profkit.kernels.evaluation.sources.text import SUFFIX, read_text

SHOWN = 8  # names in a remark


@dataclass(frozen=True, eq=False)  # each folder has one: it is itself
class _Kernel:
    """The kernel of a folder, or why it cannot be loaded."""

    folder: Path
    meaning: Named
    file: Path | None = None
    reason: str = ""  # of the choice among several files
    fault: str = ""
    signature: inspect.Signature | None = None

    @property
    def functions(self) -> tuple[str, ...]:
        """What its function may be called: after the folder, which is the overload's or the operation's."""
        return tuple(stem + SUFFIX for stem in function_stems(self.meaning))


class DirectorySource(ListedSource):
    """The kernels below a folder. No kernel is loaded, and none is left out, until it is asked for."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._kernels, unknown = _find_kernels(root)
        self._functions: dict[Path, Kernel] = {}
        places = {name: str(kernel.file or kernel.folder) for name, kernel in self._kernels.items()}
        super().__init__(places, tuple(_describe_unknown_folders(unknown) + _describe_choices(self._kernels)))

    def load(self, operation: str) -> Kernel:
        """The function of the folder's file. Raises LoadError, and what the file raises."""
        kernel = self._kernels.get(operation)
        if kernel is None:
            raise LoadError(f"{self._root} has no folder {encode_name(operation)}")
        if kernel.file is None or kernel.fault:
            raise LoadError(kernel.fault)
        if kernel.file not in self._functions:
            module = load_module(kernel.file, f"profkit_kernel_{kernel.folder.name}")
            self._functions[kernel.file] = find_function(module, kernel.functions)
        return self._functions[kernel.file]


def _find_kernels(root: Path) -> tuple[Mapping[str, _Kernel], list[str]]:
    """By overload; and the folders of no operation. A folder of one overload goes before one of all of them."""
    kernels: dict[str, _Kernel] = {}
    unknown = []
    for folder in kernel_folders(root):
        meaning = folder_meaning(folder.name)
        if meaning is None:
            if any(folder.glob("*.py")):  # else it is of logs, results, or a cache
                unknown.append(folder.name)
            continue
        kernel = _inspect(folder, meaning)
        for overload in overloads_of(kernel.meaning, kernel.signature):
            if overload not in kernels or kernel.meaning.overload:
                kernels[overload] = kernel
    return kernels, unknown


def _describe_unknown_folders(names: list[str]) -> list[str]:
    remarks = [describe_unknown(f"the folder {name}", name) for name in names[:SHOWN]]
    if len(names) > SHOWN:
        remarks.append(f"so are {plural(len(names) - SHOWN, 'more folder')}")
    return remarks


def _describe_choices(kernels: Mapping[str, _Kernel]) -> list[str]:
    """Which file of several is taken, and what a bare name stands for, where that is not `default` alone."""
    served: dict[_Kernel, list[str]] = {}
    for overload, kernel in kernels.items():
        served.setdefault(kernel, []).append(overload)
    remarks = []
    for kernel, overloads in served.items():
        name = kernel.folder.name
        if kernel.reason and kernel.file is not None:
            remarks.append(f"{name}: {kernel.file.name} is taken: {kernel.reason}")
        if not kernel.meaning.overload and overloads != [f"{name}.default"]:
            remarks.append(f"{name}: taken for {', '.join(overloads)}")
    return remarks


def _inspect(folder: Path, meaning: Named) -> _Kernel:
    """The kernel of the folder, as its file says; nothing of it is run."""
    kernel = _Kernel(folder, meaning)
    try:
        choice = choose_file(folder)
        kernel = _Kernel(folder, meaning, choice.file, choice.reason)
        text = read_text(choice.file)
    except LoadError as error:
        return _Kernel(folder, meaning, kernel.file, kernel.reason, str(error))
    function = next((name for name in kernel.functions if name in text.names), None)
    function = function or text.kernel_of(folder.name)
    if function is not None and not meaning.overload:  # that of an overload is for the one alone
        meaning = folder_meaning(function.removesuffix(SUFFIX)) or meaning
    signature = text.signatures.get(function or "")
    return _Kernel(folder, meaning, choice.file, choice.reason, "", signature)
