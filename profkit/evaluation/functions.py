"""The small functions of the kernel-evaluation guides: arguments as text, time, errors, memory, CUDA streams."""

from __future__ import annotations

import ast
import functools
import gc
import inspect
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from time import perf_counter
from types import FunctionType, MethodType, ModuleType
from typing import Any

import torch

from profkit.kernels.evaluation.suites.capture import describe_call
from profkit.kernels.evaluation.suites.notation import (
    Symbol,
    TensorForm,
    format_call,
    parse_call,
    replace_tensors,
)

INTEGERS = (-9, 10)  # the range of made integers, as torch's make_tensor has it


def serialize_args(args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    """The arguments of a call as `((T([8, 16], f16), 1.0), {'alpha': 2})`: of tensors shape, dtype and strides.

    Lists and tuples keep what is in them. Raises ValueError for what the notation has no word for.
    """
    return format_call(describe_call(tuple(args), kwargs))


def deserialize_args(text: str, device: str = "cuda") -> tuple[tuple[Any, ...], dict[str, Any]]:
    """(args, kwargs) of such a text, with new values: floats between 0 and 1, integers from -9 to 9.

    Nothing of the text is executed. Raises ValueError for what is no such text. The CPU is used where there is no GPU.
    Tensors that shared memory have memory of their own.
    """
    call = parse_call(text)

    def make(form: TensorForm) -> torch.Tensor:
        return _make_tensor(form, device)

    args = replace_tensors(call.args, make)
    kwargs = {name: replace_tensors(value, make) for name, value in call.kwargs.items()}
    where = torch.device(_device(device))
    return tuple(_plain(value, where) for value in args), {
        name: _plain(value, where) for name, value in kwargs.items()
    }


def deserialize_tensor(
    size: str | Sequence[int],
    dtype: torch.dtype | None = None,
    stride: Sequence[int] | None = None,
    device: str = "cuda",
) -> torch.Tensor:
    """A tensor of its notation, `T([2, 3], f32)` or `T([2, 3], f16, stride=(1, 2))`; or of size, dtype and stride.

    Values and device are those of `deserialize_args`. Raises ValueError for what is no such text.
    """
    if isinstance(size, str):
        ((tensor, *_), _) = deserialize_args(f"(({size},), {{}})", device)
        if not isinstance(tensor, torch.Tensor):
            raise ValueError(f"not a tensor: {size:.80}")
        return tensor
    name = str(dtype or torch.float32).removeprefix("torch.")
    form = TensorForm(tuple(size), name, None if stride is None else tuple(stride))
    return _make_tensor(form, device)


def _make_tensor(form: TensorForm, device: str) -> torch.Tensor:
    dtype = getattr(torch, form.dtype)
    count = form.offset + form.extent
    if dtype == torch.bool:
        storage = torch.rand(count) < 0.5
    elif dtype.is_floating_point or dtype.is_complex:
        wide = torch.complex64 if dtype.is_complex else torch.float32
        storage = torch.rand(count, dtype=wide).to(dtype)
    else:
        low, high = INTEGERS
        storage = torch.randint(max(low, torch.iinfo(dtype).min), high, (count,)).to(dtype)
    stride = form.stride or torch.empty(form.shape, device="meta").stride()
    return storage.to(_device(device)).as_strided(form.shape, stride, form.offset)


def _device(device: str) -> str:
    return "cpu" if device.startswith("cuda") and not torch.cuda.is_available() else device


def _plain(value: Any, device: torch.device) -> Any:
    if isinstance(value, Symbol):
        return device if value.kind == "device" else getattr(torch, value.name)
    if isinstance(value, (list, tuple)):
        return type(value)(_plain(each, device) for each in value)
    return value


WARM_UPS = 10


def cpu_bench(fn: Callable[[], object], num_runs: int = 100) -> float:
    """Seconds of one call of `fn`: the mean of `num_runs` after 10 calls that are not counted.

    It is one mean on one machine: what else runs there is in it. `eval_performance` measures kernel and reference in
    turns, and says how sure it is.
    """
    for _ in range(WARM_UPS):
        fn()
    begin = perf_counter()
    for _ in range(num_runs):
        fn()
    return (perf_counter() - begin) / num_runs


def compute_errors(ref: Any, res: Any, eps: float = 1e-10) -> tuple[float | None, float | None]:
    """The largest |ref - res| and the largest |ref - res| / (|ref| + eps), computed in float64.

    Lists and tuples of tensors give the largest over all of them. NaN where both are NaN is no error, and so is the
    same infinity; where one alone is not finite, the error is infinite. (None, None) where there is nothing to
    subtract: other shapes, other lengths, no tensors.
    """
    if isinstance(ref, torch.Tensor) and isinstance(res, torch.Tensor):
        return _tensor_errors(ref, res, eps)
    both_lists = isinstance(ref, (list, tuple)) and isinstance(res, (list, tuple))
    if not both_lists or len(ref) != len(res):
        return None, None
    errors = [compute_errors(one, other, eps) for one, other in zip(ref, res, strict=True)]
    absolute = [error for error, _ in errors if error is not None]
    relative = [error for _, error in errors if error is not None]
    return max(absolute, default=None), max(relative, default=None)


def _tensor_errors(ref: torch.Tensor, res: torch.Tensor, eps: float) -> tuple[float | None, float | None]:
    if ref.shape != res.shape or ref.layout is not torch.strided or res.layout is not torch.strided:
        return None, None
    if not ref.numel():
        return 0.0, 0.0
    wide = torch.complex128 if ref.is_complex() or res.is_complex() else torch.float64
    one, other = ref.detach().cpu().to(wide), res.detach().cpu().to(wide)
    same = (one == other) | (one.isnan() & other.isnan())
    finite = one.isfinite() & other.isfinite()
    difference = torch.where(finite, (one - other).abs(), torch.inf).masked_fill(same, 0.0)
    size = torch.where(finite, one.abs(), 0.0)
    return float(difference.max()), float((difference / (size + eps)).max())


def cleanup_memory_and_gpu() -> None:
    """Free what is not used any more, wait for the GPU, and give its cached memory back: between two tests.

    Without a GPU it only collects garbage.
    """
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
        torch.cuda.empty_cache()


_STREAMS = {"Stream", "ExternalStream", "make_stream", "create_stream", "CUDAGraph", "make_graphed_callables"}
_GROUPS = {"cuda"}  # torch.cuda.stream(s), torch.cuda.graph(g): only behind this name
_IN_GROUP = {"stream", "graph"}


def uses_cuda_stream(func: Callable[..., Any]) -> bool:
    """Whether a function, or one of its module that it calls, makes or enters a stream or a CUDA graph.

    It is a remark and no verdict: work on other streams is allowed, and an evaluation has to wait for it and to count
    it. Names are looked up, so that an alias, `getattr` and a stream that the module has made are found, and comments,
    texts and `current_stream()` are not. What has no source (built-in functions, operators of torch) has no streams of
    Python's.
    """
    return any(map(_mentions_stream, _reachable(func)))


def _reachable(start: Any) -> Iterator[FunctionType]:
    """The function and those of its module that it names, directly or by others."""
    first = _plain_function(start)
    if first is None:
        return
    pending, seen = [first], {first}
    while pending:
        function = pending.pop()
        yield function
        names = _names_of(function)
        for node in ast.walk(_tree_of(function)):
            value = _look_up(node, names) if isinstance(node, (ast.Name, ast.Attribute)) else None
            other = _plain_function(value) if value is not None else None
            if other is not None and other.__module__ == first.__module__ and other not in seen:
                seen.add(other)
                pending.append(other)


def _plain_function(value: Any) -> FunctionType | None:
    """The Python function behind a partial, a method, a wrapper, a Triton kernel or a callable object."""
    for _ in range(10):
        if isinstance(value, FunctionType):
            inner = getattr(value, "__wrapped__", None)
            if not isinstance(inner, FunctionType):
                return value
            value = inner
        elif isinstance(value, functools.partial):
            value = value.func
        elif isinstance(value, MethodType):
            value = value.__func__
        elif isinstance(value, (type, ModuleType)):
            return None
        elif isinstance(getattr(value, "fn", None), FunctionType):  # a Triton kernel
            value = value.fn
        else:
            value = getattr(type(value), "__call__", None)  # noqa: B004
            if not isinstance(value, FunctionType):
                return None
    return None


def _tree_of(function: FunctionType) -> ast.AST:
    try:
        return ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError, ValueError):
        return ast.Module([], [])


def _names_of(function: FunctionType) -> Mapping[str, Any]:
    """What its global and closed-over names are now."""
    names = dict(function.__globals__)
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=False)
    for name, cell in cells:
        try:
            names[name] = cell.cell_contents
        except ValueError:  # not bound yet
            continue
    return names


def _mentions_stream(function: FunctionType) -> bool:
    names = _names_of(function)
    tree = _tree_of(function)
    annotations = {
        id(inner)
        for node in ast.walk(tree)
        for part in (getattr(node, "annotation", None), getattr(node, "returns", None))
        if part is not None
        for inner in ast.walk(part)
    }
    return any(_is_stream(node, names) for node in ast.walk(tree) if id(node) not in annotations)


def _is_stream(node: ast.AST, names: Mapping[str, Any]) -> bool:
    if isinstance(node, ast.Call) and ast.unparse(node.func) == "getattr" and len(node.args) > 1:
        attribute = node.args[1]
        return isinstance(attribute, ast.Constant) and attribute.value in _STREAMS
    if isinstance(node, ast.ImportFrom):
        return any(alias.name in _STREAMS for alias in node.names)
    if isinstance(node, ast.Attribute):
        if node.attr in _STREAMS:
            return True
        group = ast.unparse(node.value).rpartition(".")[2]
        return node.attr in _IN_GROUP and group in _GROUPS
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
        value = names.get(node.id)
        kind = value if isinstance(value, type) else type(value)
        return any(base.__name__ in _STREAMS for base in kind.__mro__)
    return False


def _look_up(node: ast.expr, names: Mapping[str, Any]) -> Any:
    """What a name or a dotted name of modules stands for; None where nothing is there without running code."""
    if isinstance(node, ast.Name):
        return names.get(node.id)
    if isinstance(node, ast.Attribute):
        owner = _look_up(node.value, names)
        if isinstance(owner, ModuleType):
            return vars(owner).get(node.attr)
    return None
