"""The least work of random calls, against what torch's own counter says and against the sizes of their tensors."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from profkit.analysis.necessary_work.calls import (
    NUMBERED,
    WIDTHS,
    Argument,
    OperationCall,
    Tensor,
    plain_name,
)
from profkit.analysis.necessary_work.convolutions import _windows
from profkit.analysis.necessary_work.formulas import necessary_work
from profkit.analysis.necessary_work.work import NecessaryWork

pytestmark = pytest.mark.torch
NAMES = {
    "bool": "bool",
    "uint8": "uint8",
    "int32": "int32",
    "int64": "int64",
    "float16": "fp16",
    "bfloat16": "bf16",
    "float32": "fp32",
    "float64": "fp64",
}
SIZE = st.integers(1, 9)


def as_tensor(value: Any) -> Tensor:
    shape = tuple(value.shape)
    stored = (
        prod(n for n, stride in zip(shape, value.stride(), strict=True) if stride)
        if 0 in value.stride()
        else None
    )
    return Tensor(shape, NAMES[str(value.dtype).removeprefix("torch.")], stored)


def as_argument(value: Any) -> Argument:
    import torch

    if isinstance(value, torch.Tensor):
        return as_tensor(value)
    if isinstance(value, (list, tuple)) and value and all(isinstance(one, torch.Tensor) for one in value):
        return tuple(map(as_tensor, value))
    if isinstance(value, torch.dtype):  # a trace has its number
        return {type_: number for number, type_ in NUMBERED.items()}[NAMES[str(value).removeprefix("torch.")]]
    return "" if value is None else str(value)


def dispatched(
    run: Callable[[], object],
) -> list[tuple[NecessaryWork | None, str, float | None, list[Any], list[Any]]]:
    """Of each operation of ATen that runs: its least work, its name, torch's FLOP, and tensors in and out."""
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils._pytree import tree_leaves
    from torch.utils.flop_counter import flop_registry

    rows = []

    class Watch(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            out = func(*args, **(kwargs or {}))
            names = [one.name for one in func._schema.arguments]
            given = [*args, *((kwargs or {}).get(name) for name in names[len(args) :])]
            call = OperationCall(plain_name(str(func._schema.name)), tuple(map(as_argument, given)))
            counter = flop_registry.get(func._overloadpacket)
            flop = counter(*args, **(kwargs or {}), out_val=out) if counter is not None else None
            inputs, outputs = (
                [one for one in tree_leaves(x) if isinstance(one, torch.Tensor)] for x in (given, out)
            )
            rows.append((necessary_work(call), call.name, flop, inputs, outputs))
            return out

    with Watch():
        run()
    return rows


def meta(*shape: int, type_: str = "float32") -> Any:
    import torch

    return torch.empty(shape, device="meta", dtype=getattr(torch, type_))


def check_flop(run: Callable[[], object], *, equal: bool = True) -> None:
    """All that torch counts is known here, and the same (or less, where only a part is necessary)."""
    rows = [(work, name, flop) for work, name, flop, _, _ in dispatched(run) if flop is not None]
    assert rows
    for work, name, flop in rows:
        assert work is not None, name
        assert work.flop == flop if equal else 0 < work.flop <= flop, name


@pytest.mark.thorough
@given(st.data())
@settings(max_examples=60, deadline=None)
def test_products_have_the_flop_that_torch_counts(data: st.DataObject) -> None:
    import torch

    b, m, n, k = (data.draw(SIZE) for _ in range(4))
    check_flop(lambda: torch.mm(meta(m, k), meta(k, n)))
    check_flop(lambda: torch.addmm(meta(n), meta(m, k), meta(k, n)))
    check_flop(lambda: torch.bmm(meta(b, m, k), meta(b, k, n)))
    check_flop(lambda: torch.baddbmm(meta(b, m, n), meta(b, m, k), meta(b, k, n)))


@given(st.data())
@settings(max_examples=100, deadline=None)
def test_convolutions_without_padding_have_the_flop_that_torch_counts(data: st.DataObject) -> None:
    import torch

    dims = data.draw(st.integers(1, 3))
    groups, each, out = (data.draw(st.integers(1, 3)) for _ in range(3))
    kernel = [data.draw(st.integers(1, 3)) for _ in range(dims)]
    stride, dilation = ([data.draw(st.integers(1, 3)) for _ in range(dims)] for _ in range(2))
    sizes = [d * (k - 1) + 1 + data.draw(SIZE) for k, d in zip(kernel, dilation, strict=True)]
    transposed, padded = data.draw(st.booleans()), data.draw(st.booleans())
    padding = [data.draw(st.integers(0, k // 2)) if padded else 0 for k in kernel]
    shape = (groups * each, out, *kernel) if transposed else (groups * out, each, *kernel)
    data_in, weight = meta(2, groups * each, *sizes), meta(*shape)

    def forward() -> Any:
        zeros = [0] * dims
        return torch.ops.aten.convolution(
            data_in, weight, None, stride, padding, dilation, transposed, zeros, groups
        )

    def backward() -> None:
        mask = [True, True, False]
        torch.ops.aten.convolution_backward(
            meta(*forward().shape),
            data_in,
            weight,
            None,
            stride,
            padding,
            dilation,
            transposed,
            [0] * dims,
            groups,
            mask,
        )

    check_flop(forward, equal=not any(padding))
    # of groups torch counts each gradient of the weights as if there were one
    check_flop(backward, equal=not any(padding) and groups == 1)


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_attention_has_the_flop_that_torch_counts_and_half_where_causal(data: st.DataObject) -> None:
    import torch

    b, h, rows, columns, d = (data.draw(SIZE) for _ in range(5))
    q, k = meta(b, h, rows, 8 * d, type_="float16"), meta(b, h, columns, 8 * d, type_="float16")
    causal = data.draw(st.booleans())
    attention = torch.ops.aten._scaled_dot_product_flash_attention
    back = torch.ops.aten._scaled_dot_product_flash_attention_backward

    def run() -> None:
        out, lse, *_ = attention(q, k, k, 0.0, causal)
        seed = meta(2, type_="int64")
        back(q, q, k, k, out, lse, None, None, rows, columns, 0.0, causal, seed, seed)

    check_flop(run, equal=not causal)


TYPES = st.sampled_from(sorted(NAMES))
FLOATS = st.sampled_from(["float16", "bfloat16", "float32", "float64"])


def check_bytes(run: Callable[[], object], name: str) -> None:
    """Every tensor that goes in is read, and every one that comes out is written."""
    rows = [row for row in dispatched(run) if row[1] == name]
    assert rows
    for work, _, _, inputs, outputs in rows:
        assert work is not None, name
        moved = sum(as_tensor(one).bytes or 0.0 for one in (*inputs, *outputs))
        assert work.bytes == moved, (name, work.bytes, moved)


@pytest.mark.thorough
@given(st.data())
@settings(max_examples=200, deadline=None)
def test_element_by_element_every_tensor_moves_once_in_its_own_type(data: st.DataObject) -> None:
    import torch

    shape = [data.draw(SIZE) for _ in range(data.draw(st.integers(0, 3)))]
    # of a number without dimensions a trace does not tell whether it is one of Python's
    begin = data.draw(st.integers(0, max(0, len(shape) - 1)))
    other = [data.draw(st.sampled_from([1, size])) for size in shape[begin:]]
    first, second = meta(*shape, type_=data.draw(TYPES)), meta(*other, type_=data.draw(TYPES))
    for name in ("add", "mul", "div", "maximum", "gt", "eq"):
        check_bytes(lambda name=name: getattr(torch, name)(first, second), name)
    (work,) = (row[0] for row in dispatched(lambda: first.copy_(second)))
    assert work is not None
    assert work.bytes == first.nbytes + second.nbytes
    x, y = meta(*shape, type_=data.draw(FLOATS)), meta(*other, type_=data.draw(TYPES))
    check_bytes(lambda: torch.nn.functional.gelu(x), "gelu")
    check_bytes(lambda: torch.exp(first), "exp") if first.is_floating_point() else None
    check_bytes(lambda: torch.addcmul(x, x, x), "addcmul")
    check_bytes(lambda: x.add_(y), "add_")
    check_bytes(lambda: x.to(torch.int32), "_to_copy")


@pytest.mark.thorough
@given(st.data())
@settings(max_examples=100, deadline=None)
def test_reductions_softmax_and_norms_read_all_and_write_what_is_left(data: st.DataObject) -> None:
    import torch

    shape = [data.draw(SIZE) for _ in range(data.draw(st.integers(2, 4)))]
    dim, type_ = data.draw(st.integers(-len(shape), len(shape) - 1)), data.draw(FLOATS)
    x, w = meta(*shape, type_=type_), meta(shape[-1], type_=type_)
    for name in ("sum", "mean", "amax", "argmax", "cumsum"):
        check_bytes(lambda name=name: getattr(torch, name)(x, dim), name)
    check_bytes(lambda: torch.linalg.vector_norm(x, 2, dim), "linalg_vector_norm")
    check_bytes(lambda: torch.ops.aten._softmax(x, dim, False), "_softmax")
    check_bytes(
        lambda: torch.ops.aten._log_softmax_backward_data(x, x, dim, x.dtype), "_log_softmax_backward_data"
    )
    check_bytes(lambda: torch.cat([x, x], dim), "cat")
    check_bytes(lambda: torch.native_dropout(x, 0.5, True), "native_dropout")
    mean = meta(*shape[:-1], 1, type_="float32" if WIDTHS[NAMES[type_]] == 2 else type_)
    layer = torch.ops.aten.native_layer_norm_backward
    rows = dispatched(lambda: layer(x, x, [shape[-1]], mean, mean, w, w, [True, True, True]))
    (work,) = (row[0] for row in rows if row[1] == "native_layer_norm_backward")
    written = x.nbytes + 2 * w.nbytes
    assert work is not None
    assert work.bytes == 2 * x.nbytes + 2 * mean.nbytes + w.nbytes + written


@given(*[st.integers(1, 12)] * 2, st.integers(1, 5), st.integers(1, 5), st.integers(0, 4), st.integers(1, 4))
@settings(max_examples=500, deadline=None)
def test_windows_touch_what_they_touch_one_by_one(
    size: int, windows: int, kernel: int, stride: int, padding: int, dilation: int
) -> None:
    places = [w * stride - padding + k * dilation for w in range(windows) for k in range(kernel)]
    inside = [place for place in places if 0 <= place < size]
    assert _windows(size, windows, kernel, stride, padding, dilation) == (len(set(inside)), len(inside))
