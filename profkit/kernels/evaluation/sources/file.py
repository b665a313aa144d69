"""A file of kernels: functions decorated with `kernel`, or called `relu_kernel_impl`."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from pathlib import Path

from profkit.core.errors import UsageError
from profkit.kernels.evaluation.sources.modules import load_module
from profkit.kernels.evaluation.sources.names import describe_unknown, name_meaning, overloads_of
from profkit.kernels.evaluation.sources.registrations import take_registrations
from profkit.kernels.evaluation.sources.source import Kernel, ListedSource, LoadError
from profkit.kernels.evaluation.sources.text import SUFFIX, FileText, read_text


class FileSource(ListedSource):
    """The kernels of a file: which there are is read in its text, and it is run when the first one is asked for."""

    def __init__(self, path: Path) -> None:
        text = read_text(path)
        self._named, unknown = _find_names(text)
        super().__init__(dict.fromkeys(self._named, str(path)), _make_remarks(unknown, text.computed))
        self._path = path
        self._loaded: Mapping[str, Kernel] | None = None

    def load(self, operation: str) -> Kernel:
        """The function of the file, which is run once. Raises LoadError, and what the file raises."""
        name = self._named.get(operation)
        if name is None:
            raise LoadError(f"{self._path} has no kernel for {operation}")
        if self._loaded is None:
            self._loaded = self._run()
        if name not in self._loaded:
            raise LoadError(f"{self._path} did not define {name} when it was run")
        return self._loaded[name]

    def _run(self) -> Mapping[str, Kernel]:
        take_registrations()  # of whoever ran a file here before
        module = load_module(self._path, f"profkit_kernels_{self._path.stem}")
        functions = {
            name: value for name, value in vars(module).items() if name.endswith(SUFFIX) and callable(value)
        }
        return {**functions, **take_registrations()}


def _find_names(text: FileText) -> tuple[Mapping[str, str], list[str]]:
    """By overload the name that is given to `kernel` or that its function has; and the names of no operation.

    A whole name goes before a bare one, and a decorator before a function's name.
    """
    given: dict[str, inspect.Signature | None] = dict(text.kernels)
    for stem in text.implementations():
        given[stem + SUFFIX] = text.signatures.get(stem + SUFFIX)
    whole: dict[str, str] = {}
    bare: dict[str, str] = {}
    unknown = []
    for name, signature in given.items():
        try:
            meaning = name_meaning(name.removesuffix(SUFFIX))
        except UsageError:
            unknown.append(name)
            continue
        for overload in overloads_of(meaning, signature):
            (whole if meaning.overload else bare).setdefault(overload, name)
    return bare | whole, unknown


def _make_remarks(unknown: list[str], computed: tuple[int, ...]) -> tuple[str, ...]:
    remarks = [describe_unknown(name, name.removesuffix(SUFFIX)) for name in unknown]
    remarks += [
        f"line {line}: the name of a kernel is computed there, and it is not evaluated: only a name that is "
        "written out is known before the file is run"
        for line in computed
    ]
    return tuple(remarks)
