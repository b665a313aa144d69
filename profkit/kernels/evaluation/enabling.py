"""Run a whole program on kernels: PyTorch's own are replaced in its dispatcher, and put back."""

from __future__ import annotations

import threading
import warnings
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import ContextDecorator
from pathlib import Path
from types import TracebackType
from typing import Any

import torch

from profkit.core.errors import MachineError, UsageError
from profkit.core.formatting import plural
from profkit.kernels.evaluation.sources.files import open_source
from profkit.kernels.evaluation.sources.names import find_operator, name_meaning
from profkit.kernels.evaluation.sources.source import Kernel, make_source_request

_lock = threading.RLock()  # around the dispatcher's table, and the counts of calls
_own: dict[tuple[str, str], Any] = {}  # PyTorch's own kernel of an overload and dispatch key
_inside = threading.local()  # whether this thread is in a kernel


class enable(ContextDecorator):  # noqa: N801  # it is used like a function
    """Use kernels instead of PyTorch's own, in a `with` block or for a decorated function, in all threads.

        with profkit.enable("generated_kernels/") as kernels:
            model(inputs)
        print(kernels)

    `kernels` is a folder or a file as `profkit evaluate` takes them, or {operation: function}. `device` is cpu, cuda,
    or auto: cuda where there is a GPU. Eager calls of exactly these overloads are replaced; `calls` counts them.

    What a kernel itself calls is PyTorch's own, also where there is a kernel for it. Gradients stay PyTorch's: its
    backward formulas use what the kernel returned. Operations without a backward formula of their own (`linear`,
    `layer_norm`, `matmul`: PyTorch makes them of others) stay PyTorch's own where a gradient is asked for; `kept`
    counts that.

    A kernel that cannot be loaded leaves PyTorch's own in its place, with a warning, and is in `failed`. Raises
    UsageError for names and files that mean nothing, LoadError (or what its file raises) where no kernel at all can be
    loaded, MachineError for a torch that is too old.
    """

    def __init__(self, kernels: str | Path | Mapping[str, Kernel], device: str = "auto") -> None:
        if not hasattr(torch.library, "get_kernel"):
            raise MachineError(
                f"torch {torch.__version__} cannot tell PyTorch's own kernels", "pip install --upgrade torch"
            )
        self._key = _dispatch_key(device)
        self._kernels, self.failed = _load_kernels(kernels)
        self.replaced = tuple(sorted(self._kernels))  # overloads: add.Tensor
        self._calls, self._kept = Counter[str](), Counter[str]()
        self._library: Any = None
        self._depth = 0

    @property
    def calls(self) -> Mapping[str, int]:
        """By overload how often its kernel was called so far; 0 where nothing called it."""
        return {name: self._calls[name] for name in self.replaced}

    @property
    def kept(self) -> Mapping[str, int]:
        """By overload how often PyTorch's own was used instead, since the kernel has no gradient."""
        return dict(self._kept)

    def __enter__(self) -> enable:
        with _lock:
            if self._depth == 0:
                self._replace()
            self._depth += 1
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with _lock:
            self._depth -= 1
            if self._depth == 0:
                self._put_back()

    def __str__(self) -> str:
        """A line for each replaced operation, those that were called most first."""
        rows = sorted(self.calls.items(), key=lambda row: (-row[1], row[0]))
        lines = [f"{plural(len(self.replaced), 'operation')} replaced ({self._key})"]
        for name, calls in rows:
            kept = self._kept[name]
            note = f", {kept} more by PyTorch's own, for a gradient" if kept else ""
            lines.append(f"  {name}: {plural(calls, 'call')}{note}")
        lines += [f"  {name}: PyTorch's own, {reason}" for name, reason in self.failed.items()]
        return "\n".join(lines)

    def _replace(self) -> None:
        library = torch.library.Library("aten", "IMPL")  # it is destroyed in _put_back
        self._library = library
        try:
            for name in self.replaced:
                self._replace_one(library, name)
        except BaseException:
            self._put_back()
            raise

    def _replace_one(self, library: Any, name: str) -> None:
        operator = find_operator(name)
        keys = [self._key]
        if torch._C._dispatch_has_kernel_for_dispatch_key(operator.name(), "CompositeImplicitAutograd"):
            keys.append(f"Autograd{self._key}")
        # While an overload is replaced, the dispatcher's kernel is not PyTorch's own: it is asked for once.
        for key in keys:
            if (name, key) not in _own:
                _own[name, key] = torch.library.get_kernel(operator, key)
        forward = self._make_forward(operator, name)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that something is overridden: it is what was asked for
            library.impl(operator.name(), forward, self._key, with_keyset=True)
            if len(keys) > 1:
                library.impl(
                    operator.name(),
                    self._make_autograd(operator, name, keys[1], forward),
                    keys[1],
                    with_keyset=True,
                )

    def _make_forward(self, operator: Any, name: str) -> Callable[..., Any]:
        kernel, own = self._kernels[name], _own[name, self._key]

        def call(keys: Any, *args: Any, **kwargs: Any) -> Any:
            if getattr(_inside, "kernel", False):
                return _call_own(own, operator, keys, args, kwargs)
            _inside.kernel = True
            try:
                with _lock:
                    self._calls[name] += 1
                return kernel(*args, **kwargs)
            finally:
                _inside.kernel = False

        return call

    def _make_autograd(
        self, operator: Any, name: str, key: str, forward: Callable[..., Any]
    ) -> Callable[..., Any]:
        """For an operation that PyTorch makes of others: below autograd its kernel would have no gradient."""
        own = _own[name, key]

        def call(keys: Any, *args: Any, **kwargs: Any) -> Any:
            if getattr(_inside, "kernel", False):
                return _call_own(own, operator, keys, args, kwargs)
            if torch.is_grad_enabled() and any(map(_requires_grad, (*args, *kwargs.values()))):
                with _lock:
                    self._kept[name] += 1
                return _call_own(own, operator, keys, args, kwargs)
            with torch._C._AutoDispatchBelowAutograd():
                return forward(keys & torch._C._after_autograd_keyset, *args, **kwargs)

        return call

    def _put_back(self) -> None:
        self._library._destroy()
        self._library = None


def _dispatch_key(device: str) -> str:
    keys = {"cpu": "CPU", "cuda": "CUDA", "auto": "CUDA" if torch.cuda.is_available() else "CPU"}
    key = keys.get(device.lower())
    if key is None:
        raise UsageError(f"kernels cannot be enabled for {device!r}", "device='cpu', 'cuda' or 'auto'")
    if key == "CUDA" and not torch.cuda.is_available():
        raise MachineError("there is no CUDA device that torch can use", "profkit doctor --backend cuda")
    return key


def _load_kernels(kernels: str | Path | Mapping[str, Kernel]) -> tuple[dict[str, Kernel], dict[str, str]]:
    """Kernels by overload, and why the others could not be loaded."""
    if isinstance(kernels, Mapping):
        return _name_kernels(kernels), {}
    path = Path(kernels)
    is_file = path.is_file()
    request = make_source_request(file=path) if is_file else make_source_request(kernels=path)
    source = open_source(request)
    loaded: dict[str, Kernel] = {}
    failed: dict[str, str] = {}
    last: BaseException | None = None
    for name in source.operations():
        try:
            loaded[name] = source.load(name)
        except (Exception, SystemExit) as error:
            last = error
            failed[name] = f"{type(error).__name__}: {error}"
            warnings.warn(f"profkit.enable: {name} stays PyTorch's own: {failed[name]}", stacklevel=3)
    if not loaded and last is not None:
        raise last
    return loaded, failed


def _name_kernels(functions: Mapping[str, Kernel]) -> dict[str, Kernel]:
    """Functions by overload. Raises UsageError for a name of no operation."""
    for name, function in functions.items():
        if not callable(function):
            raise UsageError(f"the kernel of {name} is no function", "{'relu': my_relu}")
    return {name_meaning(name).main: function for name, function in functions.items()}


def _requires_grad(value: Any) -> bool:
    if isinstance(value, torch.Tensor):
        return bool(value.requires_grad)
    return isinstance(value, (list, tuple)) and any(map(_requires_grad, value))


def _call_own(own: Any, operator: Any, keys: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """PyTorch's own kernel with the arguments that the dispatcher gave to Python.

    A number where the schema has a tensor comes as a number, and is made a tensor again that gives the same dtype.
    """
    if any(isinstance(value, (bool, int, float, complex)) for value in args):
        schema = operator._schema.arguments
        tensors = [value for value in (*args, *kwargs.values()) if isinstance(value, torch.Tensor)]
        args = tuple(
            _as_tensor(value, tensors)
            if isinstance(value, (bool, int, float, complex)) and str(argument.type) == "Tensor"
            else value
            for argument, value in zip(schema, args, strict=False)
        )
    return own.call_boxed(keys, *args, **kwargs)


def _as_tensor(number: complex, tensors: list[torch.Tensor]) -> torch.Tensor:
    """A tensor without dimensions that changes no dtype, and is no less exact than the number where it can be."""
    for tensor in sorted(tensors, key=lambda tensor: -tensor.dim()):
        dtype = torch.result_type(tensor, number)
        exact = tensor.dim() > 0 and dtype == tensor.dtype
        if exact and dtype.is_floating_point:
            dtype = torch.float64
        return torch.tensor(number, dtype=dtype)
    return torch.tensor(number)
