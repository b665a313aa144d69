"""Functions of a running program as kernels: how each travels to another process and is rebuilt there."""

from __future__ import annotations

import base64
import importlib.util
import io
import json
import marshal
import pickle
import sys
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from operator import attrgetter
from pathlib import Path
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any

from profkit.core.errors import UsageError
from profkit.kernels.evaluation.sources.modules import load_module
from profkit.kernels.evaluation.sources.names import LoadError, find_operator, main_overload, name_meaning
from profkit.kernels.evaluation.sources.source import Kernel, KernelSource, SourceRequest

_PUT_IN_FILE = "define it at the top of a file, or give its text"
_running: set[str] = set()  # files of functions that are being run here


def request_function(function: Callable[..., Any] | str, operation: str) -> SourceRequest:
    """Return the request that brings a function, or its text, to another process as the kernel of an overload.

    A function at the top of a file goes by its name; that file is run there, except what stands under `if
    __name__ == '__main__'`. A lambda, or a function inside of another, goes as its code with the values that it
    uses. Others go as pickle takes them: functions of libraries, partial ones, callable objects. Raises
    UsageError for what cannot travel.
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
            f"{what} cannot be sent to the process that calls kernels: {error}", _PUT_IN_FILE
        ) from error
    text = json.dumps({"pickle": base64.b64encode(data.getvalue()).decode()})
    return SourceRequest("function", (), text, operation)


def is_running_file() -> bool:
    """Return whether this process is now running a file for one of its functions, and its top level again."""
    return bool(_running)


class FunctionSource(KernelSource):
    """The function of a request, rebuilt in this process."""

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
        """Return the function. Raises LoadError, and what its file raises."""
        if not self.has_kernel(operation):
            raise LoadError(f"the function is a kernel of {self._request.operation}, not of {operation}")
        if self._kernel is None:
            self._kernel = self._make()
        return self._kernel

    def _make(self) -> Kernel:
        """Rebuild the function from the request."""
        parts = json.loads(self._request.text)
        if "aten" in parts:
            operator: Kernel = find_operator(parts["aten"])
            return operator
        if "pickle" in parts:
            kernel: Kernel = pickle.loads(base64.b64decode(parts["pickle"]))
            return kernel
        defined: Kernel = _find(self._request.paths[0], parts["module"], parts["name"])
        return defined


def _find(file: str, module: str, name: str) -> Any:
    """Return what the file defines under this name. Raises LoadError, and what the file raises."""
    there = run_file(file, module)
    try:
        return attrgetter(name)(there)
    except AttributeError:
        raise LoadError(f"{file} does not define {name} when it is run") from None


def run_file(path: str, name: str) -> ModuleType:
    """Import a file by its module name where possible, else run it under another name than `__main__`."""
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
    """Return the overload if the function is torch's own operator, by `operation` where it has several."""
    import torch

    if isinstance(function, torch._ops.OpOverload) and function.namespace == "aten":
        return f"{function._schema.name.removeprefix('aten::')}.{function._overloadname}"
    if isinstance(function, torch._ops.OpOverloadPacket):
        name = function._qualified_op_name.removeprefix("aten::")
        return operation if operation.startswith(f"{name}.") else f"{name}.{main_overload(name)}"
    return None


def _place_of(value: Any) -> tuple[str, str, str] | None:
    """Return file, module and name of a function or class; None where no file defines it that can be run again."""
    name, module = getattr(value, "__qualname__", ""), getattr(value, "__module__", None)
    file = _file_of(value)
    if file is None or not module or not name or "<" in name or not _is_there(value, name):
        return None
    return str(file), module, name


def _file_of(function: Any) -> Path | None:
    """Return the file of a function's module; None where it has none that can be run again, as in a notebook."""
    module = sys.modules.get(getattr(function, "__module__", None) or "")
    code = getattr(function, "__code__", None)
    name = getattr(module, "__file__", None) or (code.co_filename if code is not None else None)
    file = Path(name).resolve() if name and str(name).endswith(".py") else None
    return file if file is not None and file.is_file() else None


def _is_there(function: Any, name: str) -> bool:
    """Return whether the module has the function by that name; a function that a program made is not there."""
    module = sys.modules.get(function.__module__)
    if module is None:  # as of compile_kernel_from_string
        return True
    try:
        return attrgetter(name)(module) is function
    except AttributeError:
        return False


class _Pickler(pickle.Pickler):
    """A pickler that stores definitions of files by their place, other functions by code, and modules by name.

    The reader has the same Python, since this process has started it.
    """

    def reducer_override(self, value: Any) -> Any:
        """Return how pickle rebuilds the value. Raises PicklingError for a class that no file defines."""
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
    """Return what `_make_function` needs: code, global values, closure cells, defaults."""
    values = {
        name: function.__globals__[name]
        for name in sorted(_names_used(function.__code__))
        if name in function.__globals__
    }
    cells = tuple(cell.cell_contents for cell in function.__closure__ or ())
    code = marshal.dumps(function.__code__)
    return code, values, cells, function.__defaults__, function.__kwdefaults__


def _names_used(code: CodeType) -> set[str]:
    """Return the names that code, and the functions in it, look up in their module, and those of attributes."""
    inner = [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    return set(code.co_names).union(*map(_names_used, inner))


def _make_function(
    code: bytes,
    values: dict[str, Any],
    cells: tuple[Any, ...],
    defaults: tuple[Any, ...] | None,
    keywords: dict[str, Any] | None,
) -> FunctionType:
    """Rebuild a function from its parts."""
    closure = tuple(map(CellType, cells))
    function = FunctionType(marshal.loads(code), values, None, defaults, closure or None)
    function.__kwdefaults__ = keywords
    return function
