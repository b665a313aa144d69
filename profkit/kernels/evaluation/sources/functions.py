"""A function of a running program as a source of kernels: how it travels to the process that calls it."""

from __future__ import annotations

import base64
import importlib.util
import io
import json
import marshal
import pickle
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from importlib import import_module
from operator import attrgetter
from pathlib import Path
from types import CellType, FunctionType, ModuleType
from typing import Any

from profkit.core.errors import UsageError
from profkit.kernels.evaluation.sources.files import load_module
from profkit.kernels.evaluation.sources.names import find_operator, main_overload, name_meaning, overloads_of
from profkit.kernels.evaluation.sources.source import (
    Kernel,
    KernelSource,
    ListedSource,
    LoadError,
    SourceRequest,
)

_PUT_IN_FILE = "define it at the top of a file, as profkit evaluate FILE.py takes it"
_running: set[str] = set()  # files of functions that are being run here


def request_function(function: Callable[..., Any] | str, operation: str) -> SourceRequest:
    """The request that brings a function, or its text, to another process, as the kernel of an overload (`add.Tensor`).

    A function at the top of a file goes by its name; that file is run there, and what stands under
    `if __name__ == "__main__"` is not. One inside of another takes its code and the values that it closes over along.
    Raises UsageError for what cannot travel.
    """
    if isinstance(function, str):
        return SourceRequest("source", text=function, operation=operation)
    overload = _overload_of(function, operation)
    if overload == operation:
        return SourceRequest("aten", operation=operation)
    if overload is not None:
        return SourceRequest("function", text=json.dumps({"aten": overload}), operation=operation)
    name = getattr(function, "__qualname__", "")
    file = _file_of(function)
    if file is not None and name and "<" not in name and _is_there(function, name):
        text = json.dumps({"module": function.__module__, "name": name})
        return SourceRequest("function", (str(file),), text, operation)
    try:
        data = io.BytesIO()
        _Pickler(data).dump(function)
        pickle.loads(data.getvalue())  # what cannot be read again is known here
    except UsageError:
        raise
    except Exception as error:
        what = name or type(function).__name__
        raise UsageError(
            f"{what} cannot be taken to the process that calls kernels: {error}", _PUT_IN_FILE
        ) from error
    text = json.dumps({"pickle": base64.b64encode(data.getvalue()).decode()})
    return SourceRequest("function", (str(file),) if file is not None else (), text, operation)


def request_functions(requests: Sequence[SourceRequest]) -> SourceRequest:
    """One request of several, each of another operation."""
    return SourceRequest("functions", text=json.dumps([asdict(request) for request in requests]))


def is_running_file() -> bool:
    """Whether this process is running a file now to get a function of it: what it does at its top is done again."""
    return bool(_running)


class FunctionSource(ListedSource):
    """The function of a request, made again in this process."""

    def __init__(self, request: SourceRequest) -> None:
        self._request = request
        self._kernel: Kernel | None = None
        place = request.paths[0] if request.paths else "a function"
        names = {
            request.operation
        }  # a reference of the user's own goes by its name, which may be one of torch's
        with suppress(UsageError):
            names.update(overloads_of(name_meaning(request.operation), None))
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
        module = run_file(self._request.paths[0], parts["module"])
        try:
            found: Kernel = attrgetter(parts["name"])(module)
        except AttributeError:
            raise LoadError(
                f"{self._request.paths[0]} does not define {parts['name']} when it is run"
            ) from None
        return found


class FunctionsSource(ListedSource):
    """Several kernels, each the one of its own operation."""

    def __init__(self, sources: Mapping[str, KernelSource]) -> None:
        super().__init__({name: source.where(name) for name, source in sources.items()})
        self._sources = sources

    def load(self, operation: str) -> Kernel:
        """The kernel of the operation. Raises LoadError, and what its file raises."""
        if operation not in self._sources:
            raise LoadError(f"there is no function for {operation}")
        return self._sources[operation].load(operation)


def split_request(request: SourceRequest) -> Mapping[str, SourceRequest]:
    """By operation the requests that `request_functions` made one of."""
    parts = [SourceRequest(**{**each, "paths": tuple(each["paths"])}) for each in json.loads(request.text)]
    return {each.operation: each for each in parts}


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
    """Pickles functions that have no name in a module, by their code; and modules, by their names."""

    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, ModuleType):
            return import_module, (value.__name__,)
        if isinstance(value, FunctionType) and not _is_importable(value):
            return _make_function, _function_parts(value)
        return NotImplemented


def _is_importable(function: FunctionType) -> bool:
    plain = "<" not in function.__qualname__ and function.__module__ != "__main__"
    return plain and _is_there(function, function.__qualname__)


def _function_parts(function: FunctionType) -> tuple[Any, ...]:
    file = _file_of(function)
    cells = tuple(cell.cell_contents for cell in function.__closure__ or ())
    used = () if file is not None else _names_used(function.__code__)
    values = {name: function.__globals__[name] for name in used if name in function.__globals__}
    return (
        marshal.dumps(function.__code__),
        str(file or ""),
        function.__module__,
        values,
        cells,
        function.__defaults__,
        function.__kwdefaults__,
    )


def _names_used(code: Any) -> set[str]:
    inner = [constant for constant in code.co_consts if hasattr(constant, "co_names")]
    return set(code.co_names).union(*map(_names_used, inner))


def _make_function(
    code: bytes,
    file: str,
    module: str,
    values: dict[str, Any],
    cells: tuple[Any, ...],
    defaults: tuple[Any, ...] | None,
    keywords: dict[str, Any] | None,
) -> FunctionType:
    names = values
    if file:
        there = sys.modules.get(module)
        same = there is not None and Path(getattr(there, "__file__", None) or "").resolve() == Path(file)
        names = vars(there if same and there is not None else run_file(file, module))
    closure = tuple(map(CellType, cells))
    function = FunctionType(marshal.loads(code), names, None, defaults, closure or None)
    function.__kwdefaults__ = keywords
    return function
