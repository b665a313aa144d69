"""Kernels of the user's that are run: a file, a folder with one for each operation, a text, a function of a program."""

from __future__ import annotations

import base64
import hashlib
import importlib.util
import io
import json
import marshal
import pickle
import sys
import zlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib import import_module
from operator import attrgetter
from pathlib import Path
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any, TypeVar

from profkit.core.errors import UsageError
from profkit.core.files.regular import read_bounded
from profkit.core.files.safe_folder import TemporaryFolder
from profkit.core.types import Fact
from profkit.kernels.evaluation.sources.names import (
    SUFFIX,
    LoadError,
    Named,
    choose_file,
    encode_name,
    find_operator,
    folder_meaning,
    function_stems,
    kernel_folders,
    main_overload,
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


def load_module(path: Path, name: str) -> ModuleType:
    """The module that the file becomes when it is run.

    What lies beside the file can be imported, and belongs to this file alone: each of two kernels may have a
    `utils.py`. Raises LoadError where the file cannot be read, and whatever it raises itself.
    """
    import torch

    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise LoadError(f"{path} is no file of Python")
    module = importlib.util.module_from_spec(spec)
    beside = str(path.parent)
    before = set(sys.modules)
    sys.path.insert(0, beside)
    sys.modules[name] = module  # dataclasses and pickle look there
    try:
        with torch.enable_grad():  # as where nobody has turned them off: it may train something at its top
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


def _module_name(file: Path) -> str:
    """A name of its own for each file: a program may have `relu.py` of several folders at once."""
    return f"profkit_kernel_{file.stem}_{zlib.crc32(str(file.resolve()).encode()):08x}"


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
    file = Path(str(module.__file__)).name
    raise LoadError(f"{file} does not define {names[0]}; its functions: {', '.join(there) or 'none'}")


_F = TypeVar("_F", bound=Callable[..., Any])
_registered: dict[str, Callable[..., Any]] = {}  # by the name that was given


def kernel(*operations: str) -> Callable[[_F], _F]:
    """Register a function as the kernel of operations, in a file that is given to `profkit evaluate FILE`.

        from profkit.evaluation import kernel

        @kernel("aten::add.Tensor")
        def add(input, other, *, alpha=1):
            ...

    It is called with exactly the arguments of the operation. `add.Tensor` is one overload; `add` is the one that
    programs call most. Raises UsageError for what is no operation, or has a kernel already.
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


class DirectorySource(KernelSource):
    """The kernels below a folder. No kernel is loaded, and none is left out, until it is asked for."""

    def __init__(self, root: Path) -> None:
        self._root = root
        # By overload; one of the overload itself goes first.
        self._folders: dict[str, tuple[Path, Named]] = {}
        self._functions: dict[str, Kernel] = {}
        places, remarks = dict[str, str](), list[Fact]()
        for folder in kernel_folders(root):
            meaning = folder_meaning(folder.name)
            if meaning is None:
                if any(folder.glob("*.py")):  # else it is of logs, results, or a cache
                    remarks.append(_unknown(folder.name))
                continue
            place = str(folder)
            named = {meaning.main: meaning}
            with suppress(LoadError):  # loading it says what is wrong
                place = str(file := choose_file(folder))
                named = _named_in(file, meaning)
            for operation, each in named.items():
                if operation not in self._folders or meaning.overload:
                    self._folders[operation], places[operation] = (folder, each), place
        super().__init__(places, tuple(remarks))

    def load(self, operation: str) -> Kernel:
        """The function of the folder's file. Raises LoadError, and what the file raises."""
        if operation not in self._folders:
            raise LoadError(f"{self._root} has no folder {encode_name(operation)}")
        if operation not in self._functions:
            folder, meaning = self._folders[operation]
            file = choose_file(folder)
            module = load_module(file, _module_name(file))
            names = tuple(stem + SUFFIX for stem in function_stems(meaning))
            self._functions[operation] = find_function(module, names)
        return self._functions[operation]


def _named_in(file: Path, meaning: Named) -> Mapping[str, Named]:
    """By overload what the file of a folder is a kernel for: that of the folder, and others of its operation.

    Raises LoadError where it cannot be read.
    """
    text = read_text(file)
    named: dict[str, Named] = {}
    for stem in () if meaning.overload else text.implementations():
        with suppress(UsageError):
            each = name_meaning(stem)
            if each.overload and each.operation == meaning.operation:
                named[each.main] = each
    if not named or any(stem + SUFFIX in text.names for stem in function_stems(meaning)):
        named[meaning.main] = meaning
    return named


def _unknown(name: str) -> Fact:
    """That a name is no operation's, and the names that are near."""
    return Fact.of("like-no-operation", name=name, near=near_names(name.removesuffix(SUFFIX)))


class FileSource(KernelSource):
    """The kernels of a file: which there are is read in its text, and it is run when the first one is asked for."""

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
        module = load_module(self._path, _module_name(self._path))
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
        """The function of the text, which is run once. Raises LoadError."""
        if not self.has_kernel(operation):
            raise LoadError(f"the text has no kernel for {operation}")
        if self._kernel is None:
            digest = hashlib.sha256(self._text.encode(errors="replace")).hexdigest()[:12]
            module = f"profkit_kernel_{self._stem}_{digest}"
            self._kernel = compile_kernel_from_string(self._text, operation, self._path, self._stem, module)
        return self._kernel


# ---------------------------------------------------------------- functions of a running program

_PUT_IN_FILE = "define it at the top of a file, or give its text"
_running: set[str] = set()  # files of functions that are being run here


def request_function(function: Callable[..., Any] | str, operation: str) -> SourceRequest:
    """The request that brings a function, or its text, to another process, as the kernel of an overload (`add.Tensor`).

    A function at the top of a file goes by its name; that file is run there, and what stands under
    `if __name__ == "__main__"` is not. A lambda, and a function inside of another, goes as its code with the values
    that it uses. Others go as pickle takes them: functions of libraries, partial ones, objects that can be called.
    Raises UsageError for what cannot travel.
    """
    if isinstance(function, str):
        return SourceRequest("source", text=function, operation=operation)
    overload = _overload_of(function, operation)
    if overload is not None:
        return SourceRequest("function", text=json.dumps({"aten": overload}), operation=operation)
    if (place := _place_of(function)) is not None:
        file, module, name = place
        text = json.dumps({"module": module, "name": name})
        return SourceRequest("function", (file,), text, operation)
    try:
        data = io.BytesIO()
        _Pickler(data).dump(function)
    except Exception as error:
        what = getattr(function, "__qualname__", type(function).__name__)
        raise UsageError(
            f"{what} cannot be taken to the process that calls kernels: {error}", _PUT_IN_FILE
        ) from error
    text = json.dumps({"pickle": base64.b64encode(data.getvalue()).decode()})
    return SourceRequest("function", (), text, operation)


def is_running_file() -> bool:
    """Whether this process is running a file now to get a function of it: what it does at its top is done again."""
    return bool(_running)


class FunctionSource(KernelSource):
    """The function of a request, made again in this process."""

    def __init__(self, request: SourceRequest) -> None:
        self._request = request
        self._kernel: Kernel | None = None
        place = request.paths[0] if request.paths else "a function"
        # a reference of the user's own goes by its name, which may be one of torch's
        names = [request.operation]
        with suppress(UsageError):
            names.append(name_meaning(request.operation).main)
        super().__init__(dict.fromkeys(names, place))

    def load(self, operation: str) -> Kernel:
        """The function. Raises LoadError, and what its file raises."""
        if not self.has_kernel(operation):
            raise LoadError(f"the function is a kernel of {self._request.operation}, not of {operation}")
        if self._kernel is None:
            self._kernel = self._make()
        return self._kernel

    def _make(self) -> Kernel:
        parts = json.loads(self._request.text)
        if "aten" in parts:
            operator: Kernel = find_operator(parts["aten"])
            return operator
        if "pickle" in parts:
            kernel: Kernel = pickle.loads(base64.b64decode(parts["pickle"]))
            return kernel
        found: Kernel = _find(self._request.paths[0], parts["module"], parts["name"])
        return found


def _find(file: str, module: str, name: str) -> Any:
    """What the file defines under this name. Raises LoadError, and what the file raises."""
    there = run_file(file, module)
    try:
        return attrgetter(name)(there)
    except AttributeError:
        raise LoadError(f"{file} does not define {name} when it is run") from None


def run_file(path: str, name: str) -> ModuleType:
    """The module of a file: imported where it can be by its name, else run under another name than `__main__`."""
    file = Path(path)
    root = file.parents[name.count(".") + (file.name == "__init__.py")]
    if str(root) not in sys.path:
        sys.path.append(str(root))
    _running.add(path)
    try:
        if name != "__main__":
            try:
                spec = importlib.util.find_spec(name)
            except (ImportError, ValueError):
                spec = None
            if spec is not None and spec.origin is not None and Path(spec.origin).resolve() == file:
                return import_module(name)
        own = f"profkit_functions_{file.stem}"
        return sys.modules[own] if own in sys.modules else load_module(file, own)
    finally:
        _running.discard(path)


def _overload_of(function: Any, operation: str) -> str | None:
    """The overload of torch's own operator, where the function is one; of all of an operation the one that is asked."""
    import torch

    if isinstance(function, torch._ops.OpOverload) and function.namespace == "aten":
        return f"{function._schema.name.removeprefix('aten::')}.{function._overloadname}"
    if isinstance(function, torch._ops.OpOverloadPacket):
        name = function._qualified_op_name.removeprefix("aten::")
        return operation if operation.startswith(f"{name}.") else f"{name}.{main_overload(name)}"
    return None


def _place_of(value: Any) -> tuple[str, str, str] | None:
    """Where a function or a class stands: file, module, name; None where nothing has it that can be run again."""
    name, module = getattr(value, "__qualname__", ""), getattr(value, "__module__", None)
    file = _file_of(value)
    if file is None or not module or not name or "<" in name or not _is_there(value, name):
        return None
    return str(file), module, name


def _file_of(function: Any) -> Path | None:
    """The file of its module; None where that has none that can be run again, as in a notebook."""
    module = sys.modules.get(getattr(function, "__module__", None) or "")
    code = getattr(function, "__code__", None)
    name = getattr(module, "__file__", None) or (code.co_filename if code is not None else None)
    file = Path(name).resolve() if name and str(name).endswith(".py") else None
    return file if file is not None and file.is_file() else None


def _is_there(function: Any, name: str) -> bool:
    """Whether the module has the function by that name; one that a program made and gave away is not there."""
    module = sys.modules.get(function.__module__)
    if module is None:  # as of compile_kernel_from_string
        return True
    try:
        return attrgetter(name)(module) is function
    except AttributeError:
        return False


class _Pickler(pickle.Pickler):
    """Pickles what stands in a file by its place there, other functions by their code, and modules by their names.

    A reader has the same Python: it is a process that this one has started.
    """

    def reducer_override(self, value: Any) -> Any:
        """How pickle is to make the value again. Raises PicklingError for a class that no file has."""
        if isinstance(value, FunctionType) and value in (import_module, _find, _make_function):
            return NotImplemented  # by which the reader makes the others
        if isinstance(value, ModuleType):
            return import_module, (value.__name__,)
        if isinstance(value, (FunctionType, type)) and (place := _place_of(value)) is not None:
            return _find, place
        if isinstance(value, FunctionType):
            return _make_function, _function_parts(value)
        if isinstance(value, type) and value.__module__ == "__main__":  # of this process alone
            raise pickle.PicklingError(f"the class {value.__name__} is defined in no file")
        return NotImplemented


def _function_parts(function: FunctionType) -> tuple[Any, ...]:
    values = {
        name: function.__globals__[name]
        for name in sorted(_names_used(function.__code__))
        if name in function.__globals__
    }
    cells = tuple(cell.cell_contents for cell in function.__closure__ or ())
    code = marshal.dumps(function.__code__)
    return code, values, cells, function.__defaults__, function.__kwdefaults__


def _names_used(code: CodeType) -> set[str]:
    """The names that it and the functions in it look up in their module, and those of attributes."""
    inner = [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    return set(code.co_names).union(*map(_names_used, inner))


def _make_function(
    code: bytes,
    values: dict[str, Any],
    cells: tuple[Any, ...],
    defaults: tuple[Any, ...] | None,
    keywords: dict[str, Any] | None,
) -> FunctionType:
    closure = tuple(map(CellType, cells))
    function = FunctionType(marshal.loads(code), values, None, defaults, closure or None)
    function.__kwdefaults__ = keywords
    return function


# ---------------------------------------------------------------- all of them

_OF_PACKAGES: Mapping[str, Callable[[], KernelSource]] = {
    "aten": AtenSource,
    "flag_gems": FlagGemsSource,
}


def open_source(request: SourceRequest) -> KernelSource:
    """The source of a request; needs torch. No kernel is loaded yet.

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
