"""The small functions of the kernel-evaluation guides: arguments as text, time, errors, memory, CUDA streams."""

from __future__ import annotations

import ast
import functools
import gc
import inspect
import textwrap
from collections.abc import Callable, Mapping, Sequence
from time import perf_counter
from typing import Any

import torch

from profkit.kernels.evaluation.suites.capture import describe_call
from profkit.kernels.evaluation.suites.notation import (
    DTYPES,
    SHORT_DTYPES,
    TensorForm,
    format_call,
    parse_call,
    replace_tensors,
)
from profkit.kernels.evaluation.suites.values import plain_value

INTEGERS = (-9, 10)  # the range of made integers, as torch's make_tensor has it


def serialize_args(args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    """Format a call's arguments as `((T([8, 16], f16), 1.0), {'alpha': 2})`: of tensors shape, dtype and strides.

    Lists and tuples keep what is in them. Raises ValueError for what the notation has no word for.
    """
    return format_call(describe_call(tuple(args), kwargs))


def deserialize_args(text: str, device: str = "cuda") -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return (args, kwargs) of such a text, with new values: floats between 0 and 1, integers from -9 to 9.

    Nothing of the text is executed. Raises ValueError for any other text. The CPU is used if there is no GPU.
    Tensors that shared memory have memory of their own.
    """
    call = parse_call(text)

    def make(form: TensorForm) -> torch.Tensor:
        return _make_tensor(form, device)

    args = replace_tensors(call.args, make)
    kwargs = {name: replace_tensors(value, make) for name, value in call.kwargs.items()}
    where = _device(device)
    named = {name: plain_value(value, where) for name, value in kwargs.items()}
    return tuple(plain_value(value, where) for value in args), named


def deserialize_tensor(
    size: Sequence[int],
    dtype: torch.dtype | str = torch.float32,
    stride: Sequence[int] | None = None,
    device: str = "cuda",
) -> torch.Tensor:
    """Return a tensor with new values of this size, dtype (`torch.float16`, `float16` or `f16`) and stride.

    Values and device are those of `deserialize_args`: on the CPU only if CUDA is not there. Raises ValueError for
    what is no size, no dtype, or a stride that does not fit.
    """
    name = str(dtype).removeprefix("torch.")
    name = DTYPES.get(name, name)
    if name not in SHORT_DTYPES:
        raise ValueError(f"{dtype!r} is not a dtype that is known here: {', '.join(SHORT_DTYPES)}")
    shape, steps = tuple(size), None if stride is None else tuple(stride)
    if any(length < 0 for length in (*shape, *(steps or ()))) or (
        steps is not None and len(steps) != len(shape)
    ):
        raise ValueError(f"a tensor of size {list(shape)} has no stride {list(steps or ())}")
    return _make_tensor(TensorForm(shape, name, steps), device)


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


WARM_UPS = 10


def cpu_bench(fn: Callable[[], object], num_runs: int = 100) -> float:
    """Return the seconds of one call of `fn`: the mean of `num_runs` after 10 calls that are not counted.

    It is one mean on one machine: what else runs there is in it. `eval_performance` measures kernel and reference
    alternately, and says how sure it is.
    """
    for _ in range(WARM_UPS):
        fn()
    begin = perf_counter()
    for _ in range(num_runs):
        fn()
    return (perf_counter() - begin) / num_runs


def compute_errors(ref: Any, res: Any, eps: float = 1e-10) -> tuple[float | None, float | None]:
    """Return the largest |ref - res| and the largest |ref - res| / (|ref| + eps), computed in float64.

    Lists and tuples of tensors give the largest over all of them. NaN in both is no error, nor is the same
    infinity in both; if only one is not finite, the error is infinite. (None, None) if there is nothing to
    subtract: other shapes, other lengths, no tensors.
    """
    if isinstance(ref, torch.Tensor) and isinstance(res, torch.Tensor):
        return _tensor_errors(ref, res, eps)
    both_lists = isinstance(ref, (list, tuple)) and isinstance(res, (list, tuple))
    if not both_lists or len(ref) != len(res):
        return None, None
    errors = [compute_errors(expected, actual, eps) for expected, actual in zip(ref, res, strict=True)]
    absolute = [error for error, _ in errors if error is not None]
    relative = [error for _, error in errors if error is not None]
    return max(absolute, default=None), max(relative, default=None)


def _tensor_errors(ref: torch.Tensor, res: torch.Tensor, eps: float) -> tuple[float | None, float | None]:
    if ref.shape != res.shape or ref.layout is not torch.strided or res.layout is not torch.strided:
        return None, None
    if not ref.numel():
        return 0.0, 0.0
    wide = torch.complex128 if ref.is_complex() or res.is_complex() else torch.float64
    expected, actual = ref.detach().cpu().to(wide), res.detach().cpu().to(wide)
    same = (expected == actual) | (expected.isnan() & actual.isnan())
    finite = expected.isfinite() & actual.isfinite()
    difference = torch.where(finite, (expected - actual).abs(), torch.inf).masked_fill(same, 0.0)
    size = torch.where(finite, expected.abs(), 0.0)
    return float(difference.max()), float((difference / (size + eps)).max())


def cleanup_memory_and_gpu() -> None:
    """Free what is not used any more, wait for the GPU, and release its cached memory: between two tests.

    Without a GPU it only collects garbage.
    """
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
        torch.cuda.empty_cache()


# What makes or enters a stream or a CUDA graph where it is called, by the end of its name.
_STREAMS = ("Stream", "ExternalStream", "make_stream", "create_stream", "CUDAGraph", "make_graphed_callables")
_BEHIND_CUDA = (".cuda.stream", ".cuda.graph")


def uses_cuda_stream(func: Callable[..., Any]) -> bool:
    """Return whether the code of a function calls what makes or enters a stream or a CUDA graph.

    It is a remark and no verdict: work on other streams is allowed, and an evaluation has to wait for it and to
    count it. What the function calls is not looked into; what has no source (built-in functions) has no streams
    of Python's.
    """
    while isinstance(func, functools.partial):
        func = func.func
    func = getattr(func, "fn", func)  # of a Triton kernel
    if not hasattr(func, "__name__"):
        func = type(func).__call__
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(inspect.unwrap(func))))
    except (OSError, TypeError, SyntaxError):
        return False
    called = [f".{ast.unparse(node.func)}" for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return any(name.rpartition(".")[2] in _STREAMS or name.endswith(_BEHIND_CUDA) for name in called)
