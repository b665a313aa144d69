"""The user's own kernels: a file, a folder with one for each operation, a text, a function of a program."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from profkit.core.errors import UsageError
from profkit.core.files.regular import read_bounded
from profkit.core.files.safe_folder import TemporaryFolder
from profkit.core.types import Fact
from profkit.kernels.evaluation.sources.functions import FunctionSource
from profkit.kernels.evaluation.sources.modules import find_function, load_module, module_name
from profkit.kernels.evaluation.sources.names import (
    SUFFIX,
    LoadError,
    NameMeaning,
    choose_file,
    encode_name,
    folder_meaning,
    function_stems,
    kernel_folders,
    name_meaning,
    near_names,
    parse_text,
    read_text,
    with_imports,
)
from profkit.kernels.evaluation.sources.source import (
    BACKENDS,
    AtenSource,
    FlagGemsSource,
    Kernel,
    KernelSource,
    SourceRequest,
)

_F = TypeVar("_F", bound=Callable[..., Any])
_registered: dict[str, Callable[..., Any]] = {}  # by the name that was given


def kernel(*operations: str) -> Callable[[_F], _F]:
    """Register a function as the kernel of operations, in a file that is given to `profkit evaluate FILE`.

        from profkit.evaluation import kernel

        @kernel("aten::add.Tensor")
        def add(input, other, *, alpha=1):
            ...

    It is called with exactly the arguments of the operation. `add.Tensor` is one overload; `add` is the overload
    that programs call most. Raises UsageError for what is no operation, or has a kernel already.
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
    """Return what was registered since the last call, by the given names, and free the names."""
    taken = dict(_registered)
    _registered.clear()
    return taken


class DirectorySource(KernelSource):
    """The kernels below a folder. None is loaded before it is needed, and none is left out."""

    def __init__(self, root: Path) -> None:
        self._root = root
        # By overload; one of the overload itself goes first.
        self._folders: dict[str, tuple[Path, NameMeaning]] = {}
        self._functions: dict[str, Kernel] = {}
        places, remarks = dict[str, str](), list[Fact]()
        for folder in kernel_folders(root):
            meaning = folder_meaning(folder.name)
            if meaning is None:
                if any(folder.glob("*.py")):  # else it is of logs, results, or a cache
                    remarks.append(_unknown(folder.name))
                continue
            place = str(folder)
            named: Mapping[str, NameMeaning] = {meaning.main: meaning}
            with suppress(LoadError):  # loading it says what is wrong
                place = str(file := choose_file(folder))
                named = _named_in(file, meaning)
            for operation, each in named.items():
                if operation not in self._folders or meaning.overload:
                    self._folders[operation], places[operation] = (folder, each), place
        super().__init__(places, tuple(remarks))

    def load(self, operation: str) -> Kernel:
        """Return the function of the folder's file. Raises LoadError, and what the file raises."""
        if operation not in self._folders:
            raise LoadError(f"{self._root} has no folder {encode_name(operation)}")
        if operation not in self._functions:
            folder, meaning = self._folders[operation]
            file = choose_file(folder)
            module = load_module(file, module_name(file))
            names = tuple(stem + SUFFIX for stem in function_stems(meaning))
            self._functions[operation] = find_function(module, names)
        return self._functions[operation]


def _named_in(file: Path, meaning: NameMeaning) -> Mapping[str, NameMeaning]:
    """Return by overload what a folder's file has kernels for: the folder's, and others of its operation.

    Raises LoadError where it cannot be read.
    """
    text = read_text(file)
    named: dict[str, NameMeaning] = {}
    for stem in () if meaning.overload else text.implementations():
        with suppress(UsageError):
            each = name_meaning(stem)
            if each.overload and each.operation == meaning.operation:
                named[each.main] = each
    if not named or any(stem + SUFFIX in text.names for stem in function_stems(meaning)):
        named[meaning.main] = meaning
    return named


def _unknown(name: str) -> Fact:
    """Return the remark that a name is no operation's, with similar names."""
    return Fact.of("like-no-operation", name=name, near=near_names(name.removesuffix(SUFFIX)))


class FileSource(KernelSource):
    """The kernels of a file: its text is read to list them, and it is run when the first is needed."""

    def __init__(self, path: Path) -> None:
        text = read_text(path)
        # by overload: a whole name goes before a bare one, a decorator first
        self._named: dict[str, str] = {}
        remarks = list[Fact]()
        bare: dict[str, str] = {}
        for name in (*text.kernels, *(stem + SUFFIX for stem in text.implementations())):
            try:
                meaning = name_meaning(name.removesuffix(SUFFIX))
            except UsageError:
                remarks.append(_unknown(name))
                continue
            (self._named if meaning.overload else bare).setdefault(meaning.main, name)
        self._named = bare | self._named
        super().__init__(dict.fromkeys(self._named, str(path)), tuple(remarks))
        self._path = path
        self._loaded: Mapping[str, Kernel] | None = None

    def load(self, operation: str) -> Kernel:
        """Return the function of the file, which is run once. Raises LoadError, and what the file raises."""
        name = self._named.get(operation)
        if name is None:
            raise LoadError(f"{self._path} has no kernel for {operation}")
        if self._loaded is None:
            self._loaded = self._run()
        if name not in self._loaded:
            raise LoadError(f"{self._path} did not define {name} when it was run")
        return self._loaded[name]

    def _run(self) -> Mapping[str, Kernel]:
        """Run the file and return its functions and registrations by name."""
        take_registrations()  # of whoever ran a file here before
        module = load_module(self._path, module_name(self._path))
        functions = {
            name: value for name, value in vars(module).items() if name.endswith(SUFFIX) and callable(value)
        }
        return {**functions, **take_registrations()}


def compile_kernel_from_string(
    kernel_code: str,
    op_name: str,
    kernel_file_path: str | Path,
    expected_fn_name: str,
    module_name: str,
) -> Kernel:
    """Return the function `{expected_fn_name}_kernel_impl` of a text, which is kept in `kernel_file_path`.

    Where the text uses `torch`, `nn`, `F`, `triton`, `tl`, `helion` or `hl` without an import, the file has the
    import, behind `from __future__`: it runs alone. `relu`, `relu__default` and `relu.default` name the same
    function. Triton compiles when a kernel is first launched: what it does not accept is raised then.

    Raises LoadError (a RuntimeError) for a text that cannot be run, or that lacks the function; then it lists
    those that are there.
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
    """Return whether the file holds exactly this text."""
    with suppress(OSError):
        return read_bounded(path) == text.encode()
    return False


class StringSource(KernelSource):
    """The kernel of one operation as a text. Its file is `path`, or one that is removed with this object."""

    def __init__(self, text: str, operation: str, path: Path | None = None) -> None:
        meaning = name_meaning(operation)
        stems = function_stems(meaning)
        there: frozenset[str] = frozenset()
        with suppress(LoadError):  # loading it says what is wrong
            there = parse_text(text, operation).names
        # Of the names that its function may have, the one that it has; the shortest where it has none.
        self._stem = next((stem for stem in stems if stem + SUFFIX in there), stems[-1])
        if path is None:
            self._folder = TemporaryFolder("kernel")
            path = Path(self._folder.name, f"{self._stem}.py")
        super().__init__({meaning.main: str(path)})
        self._text, self._path = text, path
        self._kernel: Kernel | None = None

    def load(self, operation: str) -> Kernel:
        """Return the function of the text, which is run once. Raises LoadError."""
        if not self.has_kernel(operation):
            raise LoadError(f"the text has no kernel for {operation}")
        if self._kernel is None:
            digest = hashlib.sha256(self._text.encode(errors="replace")).hexdigest()[:12]
            module = f"profkit_kernel_{self._stem}_{digest}"
            self._kernel = compile_kernel_from_string(self._text, operation, self._path, self._stem, module)
        return self._kernel


# ---------------------------------------------------------------- all of them

_OF_PACKAGES: Mapping[str, Callable[[], KernelSource]] = {
    "aten": AtenSource,
    "flag_gems": FlagGemsSource,
}


def open_source(request: SourceRequest) -> KernelSource:
    """Return the source of a request; needs torch. No kernel is loaded yet.

    Raises LoadError where a file cannot be read at all, MachineError for a package that is not installed.
    """
    if request.kind in _OF_PACKAGES:
        return _OF_PACKAGES[request.kind]()
    if request.kind == "function":
        return FunctionSource(request)
    path = Path(request.paths[0]) if request.paths else None
    if request.kind == "source":
        return StringSource(request.text, request.operation, path)
    if path is not None and request.kind in ("directory", "file"):
        return DirectorySource(path) if request.kind == "directory" else FileSource(path)
    raise UsageError(
        f"there is no source of kernels called {request.kind!r}", f"one of {', '.join(BACKENDS)}"
    )
