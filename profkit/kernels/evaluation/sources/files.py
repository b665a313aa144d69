"""Run a file of kernels as a module of its own.

Which functions a user's file registers as kernels, in the process that runs the file.

A folder of kernels: one folder for each operation, in every layout of the field.

A file of kernels: functions decorated with `kernel`, or called `relu_kernel_impl`.

Kernels from a text, as a language model writes them.
"""

from __future__ import annotations

import hashlib
import importlib.util
import inspect
import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from profkit.core.errors import UsageError
from profkit.core.files.regular import read_bounded
from profkit.core.files.temporary import TemporaryFolder
from profkit.core.formatting import plural
from profkit.kernels.evaluation.sources.names import (
    Named,
    describe_unknown,
    encode_name,
    folder_meaning,
    function_stems,
    name_meaning,
    overloads_of,
)
from profkit.kernels.evaluation.sources.source import Kernel, ListedSource, LoadError
from profkit.kernels.evaluation.sources.text import (
    SUFFIX,
    FileText,
    choose_file,
    kernel_folders,
    parse_text,
    read_text,
    with_imports,
)


def load_module(path: Path, name: str) -> ModuleType:
    """The module that the file becomes when it is run.

    What lies beside the file can be imported, and belongs to this file alone: each of two kernels may have a
    `utils.py`. Raises LoadError where the file cannot be read, and whatever it raises itself.
    """
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise LoadError(f"{path} is no file of Python")
    module = importlib.util.module_from_spec(spec)
    beside = str(path.parent)
    before = set(sys.modules)
    sys.path.insert(0, beside)
    sys.modules[name] = module  # dataclasses and pickle look there
    try:
        with _as_pytorch_begins():
            spec.loader.exec_module(module)
    except BaseException:
        sys.modules.pop(name, None)
        raise
    finally:
        if beside in sys.path:
            sys.path.remove(beside)
        sys.path.append(beside)  # for what is imported when the kernel is called
        for added in set(sys.modules) - before - {name}:
            if str(getattr(sys.modules[added], "__file__", None) or "").startswith(f"{beside}/"):
                del sys.modules[added]
    return module


def _as_pytorch_begins() -> AbstractContextManager[object]:
    """With gradients, as everywhere where nobody has turned them off: a file may train something at its top."""
    import torch

    gradients: AbstractContextManager[object] = torch.enable_grad()
    return gradients


def find_function(module: ModuleType, names: tuple[str, ...]) -> Kernel:
    """The first of the functions that the module has. Raises LoadError, which lists those it has."""
    for name in names:
        function = getattr(module, name, None)
        if callable(function):
            return function  # type: ignore[no-any-return]
    there = [
        name
        for name, value in vars(module).items()
        if callable(value) and getattr(value, "__module__", None) == module.__name__
    ]
    raise LoadError(
        f"{module.__file__} does not define {names[0]}; its functions: {', '.join(there) or 'none'}"
    )


_F = TypeVar("_F", bound=Callable[..., Any])
_registered: dict[str, Callable[..., Any]] = {}  # by the name that was given


def kernel(*operations: str) -> Callable[[_F], _F]:
    """Register a function as the kernel of operations, in a file that is given to `profkit evaluate FILE`.

        from profkit.evaluation import kernel

        @kernel("aten::add.Tensor")
        def add(input, other, *, alpha=1):
            ...

    It is called with exactly the arguments of the operation. `add.Tensor` is one overload; `add` is every overload
    whose required arguments the function takes. Raises UsageError for what is no operation, or has a kernel already.
    """
    if not operations or not all(isinstance(name, str) for name in operations):
        raise UsageError("kernel() wants the name of an operation", '@kernel("add.Tensor")')
    for name in operations:
        name_meaning(name)
        if name in _registered:
            raise UsageError(f"{name} has a kernel already", "register one function for it")

    def register(function: _F) -> _F:
        _registered.update(dict.fromkeys(operations, function))
        return function

    return register


def take_registrations() -> Mapping[str, Callable[..., Any]]:
    """What was registered since the last call, by the names that were given; they are free again."""
    taken = dict(_registered)
    _registered.clear()
    return taken


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


class FileSource(ListedSource):
    """The kernels of a file: which there are is read in its text, and it is run when the first one is asked for."""

    def __init__(self, path: Path) -> None:
        text = read_text(path)
        self._named, unknown = _names_of_file(text)
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


def _names_of_file(text: FileText) -> tuple[Mapping[str, str], list[str]]:
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


def compile_kernel_from_string(
    kernel_code: str,
    op_name: str,
    kernel_file_path: str | Path,
    expected_fn_name: str,
    module_name: str,
) -> Kernel:
    """The function `{expected_fn_name}_kernel_impl` of a text, which is kept in `kernel_file_path`.

    Where the text uses `torch`, `nn`, `F`, `triton`, `tl`, `helion` or `hl` without an import, the file has the import,
    behind `from __future__`: it runs alone. `relu`, `relu__default` and `relu.default` name the same function. Triton
    compiles when a kernel is first launched: what it does not accept is raised then.

    Raises LoadError (a RuntimeError) for a text that cannot be run, or that lacks the function; then it lists those
    that are there.
    """
    path = Path(kernel_file_path)
    stem, kernel_code = expected_fn_name.removesuffix(SUFFIX), with_imports(kernel_code)
    stems = [stem, encode_name(stem)]
    for name in (stem, op_name):
        with suppress(UsageError):  # a function may have any name
            stems += function_stems(name_meaning(name))
    function_names = tuple(dict.fromkeys(each + SUFFIX for each in stems))
    try:
        parse_text(kernel_code, path.name)
        if not _holds(path, kernel_code):  # who judges it may not write there
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(kernel_code, encoding="utf-8")
        return find_function(load_module(path, module_name), function_names)
    except (Exception, SystemExit) as error:
        reason = str(error) if isinstance(error, LoadError) else f"{type(error).__name__}: {error}"
        raise LoadError(f"Failed to compile kernel for {op_name}: {reason}") from error


def _holds(path: Path, text: str) -> bool:
    with suppress(OSError):
        return read_bounded(path) == text.encode()
    return False


class StringSource(ListedSource):
    """The kernel of one operation as a text. Its file is `path`, or one that is removed with this object."""

    def __init__(self, text: str, operation: str, path: Path | None = None) -> None:
        meaning = name_meaning(operation)
        stems = function_stems(meaning)
        parsed = None
        with suppress(LoadError):  # loading it says what is wrong
            parsed = parse_text(text, operation)
        # Of the names that its function may have, the one that it has; the shortest where it has none.
        there = parsed.names if parsed is not None else ()
        self._stem = next((stem for stem in stems if stem + SUFFIX in there), stems[-1])
        signature = parsed.signatures.get(self._stem + SUFFIX) if parsed is not None else None
        if path is None:
            self._folder = TemporaryFolder("kernel")
            path = Path(self._folder.name, f"{self._stem}.py")
        super().__init__(dict.fromkeys(overloads_of(meaning, signature), str(path)))
        self._text = text
        self._path = path
        self._kernel: Kernel | None = None

    def load(self, operation: str) -> Kernel:
        """The function of the text, which is run once. Raises LoadError."""
        if not self.has_kernel(operation):
            raise LoadError(f"the text has no kernel for {operation}")
        if self._kernel is None:
            digest = hashlib.sha256(self._text.encode(errors="replace")).hexdigest()[:12]
            module = f"profkit_kernel_{self._stem}_{digest}"
            self._kernel = compile_kernel_from_string(self._text, operation, self._path, self._stem, module)
        return self._kernel
