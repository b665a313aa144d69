"""Convolutions and pooling: windows over an input, by their strides, paddings and dilations."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

from profkit.analysis.necessary_work.calls import OperationCall, Tensor
from profkit.analysis.necessary_work.work import (
    DIRECT,
    TRAFFIC,
    NecessaryWork,
    Rule,
    WorkFormula,
    moved_bytes,
    tensor_like,
    unit_of,
    words,
)


@dataclass(frozen=True)
class _Places:
    """Where an operation of convolution has its arguments; None: it has no such argument."""

    stride: int | None
    padding: int | None
    dilation: int | None = None
    groups: int | None = None
    bias: int | None = None
    transposed: int | bool = False
    output_padding: int | None = None

    def named(self) -> dict[str, int]:
        """Return the places of what is no tensor, by the names of the arguments."""
        names = ("stride", "padding", "dilation", "groups", "transposed", "output_padding")
        places = {name: getattr(self, name) for name in names}
        return {name: at for name, at in places.items() if at is not None and not isinstance(at, bool)}


def _spread(values: tuple[int, ...] | None, count: int, default: int) -> list[int] | None:
    if values is None or not values:
        return [default] * count
    return list(values) if len(values) == count else [values[0]] * count if len(values) == 1 else None


@dataclass(frozen=True)
class _Geometry:
    """One convolution: what goes in and out, and how much of the input its windows touch."""

    result: tuple[int, ...]
    touched: int  # elements of the input
    multiplied: float  # multiply-adds


_MAX_TAPS = 4096  # in one dimension


def _geometry(call: OperationCall, data: Tensor, weight: Tensor, at: _Places) -> _Geometry | None:
    count = len(data.shape) - 2
    if count < 1 or len(weight.shape) != len(data.shape) or not call.has_values:
        return None

    def numbers(place: int | None, default: int) -> list[int] | None:
        return _spread(call.numbers(place) if place is not None else None, count, default)

    stride, padding, dilation = numbers(at.stride, 1), numbers(at.padding, 0), numbers(at.dilation, 1)
    extra = numbers(at.output_padding, 0)
    groups = (call.numbers(at.groups) or (1,))[0] if at.groups is not None else 1
    if (
        stride is None
        or padding is None
        or dilation is None
        or extra is None
        or groups < 1
        or min(stride) < 1
        or max(stride) > _MAX_TAPS
    ):
        return None
    transposed = at.transposed if isinstance(at.transposed, bool) else call.flag(at.transposed) is True
    batch, channels, *sizes = data.shape
    kernel = weight.shape[2:]
    out, seen, taps = [], [], []
    for n, k, s, p, d, e in zip(sizes, kernel, stride, padding, dilation, extra, strict=True):
        windows = (
            (n - 1) * s - 2 * p + d * (k - 1) + 1 + e
            if transposed
            else (n + 2 * p - d * (k - 1) - 1) // s + 1
        )
        # of a transposed one the windows lie on the result
        touched, hit = _windows(windows, n, k, s, p, d) if transposed else _windows(n, windows, k, s, p, d)
        out.append(windows)
        seen.append(n if transposed else touched)
        taps.append(hit)
    result = (batch, weight.shape[1] * groups if transposed else weight.shape[0], *out)
    if min(result) < 0 or channels != (weight.shape[0] if transposed else weight.shape[1] * groups):
        return None
    pairs = float(batch) * (channels if transposed else weight.shape[0]) * weight.shape[1]
    return _Geometry(result, batch * channels * prod(seen), pairs * prod(taps))


def _windows(
    size: int, windows: int, kernel: int, stride: int, padding: int, dilation: int
) -> tuple[int, int]:
    """Return how many of `size` places in a row windows touch, and how often: what lies in the padding is not there."""
    touched = times = 0
    ends: list[tuple[int, int]] = []
    for tap in range(min(kernel, _MAX_TAPS)):
        first = tap * dilation - padding  # where this tap of the first window is
        begin = max(0, -(first // stride))  # the first window whose tap is inside, and
        end = min(windows, (size - 1 - first) // stride + 1)  # the one after the last
        if end > begin:
            times += end - begin
            ends.append((first + begin * stride, first + (end - 1) * stride))
    # taps whose places leave the same remainder touch the same ones
    for remainder in range(stride):
        reach = -stride  # the last one that was counted; none yet
        for begin, end in sorted(pair for pair in ends if pair[0] % stride == remainder):
            touched += max(0, (end - max(begin, reach + stride)) // stride + 1)
            reach = max(reach, end)
    return touched, times


def _convolution(at: _Places) -> Rule:
    def rule(call: OperationCall) -> NecessaryWork | None:
        data, weight = call.tensor(0), call.tensor(1)
        shape = _geometry(call, data, weight, at) if data is not None and weight is not None else None
        if shape is None or data is None or weight is None:
            return None
        bias = call.tensor(at.bias) if at.bias is not None else None
        read = Tensor(data.shape, data.type, shape.touched)
        moved = moved_bytes(read, weight, bias, tensor_like(data, shape.result))
        return NecessaryWork(2 * shape.multiplied, moved, unit_of(data.type), data.type)

    return rule


_OF_BACKWARD = _Places(stride=4, padding=5, dilation=6, transposed=7, output_padding=8, groups=9)
_OUTPUT_MASK = 10


def _convolution_backward(call: OperationCall) -> NecessaryWork | None:
    gradient, data, weight = (call.tensor(place) for place in range(3))
    wanted = call.flags(_OUTPUT_MASK)
    if gradient is None or data is None or weight is None or len(wanted) != 3:
        return None
    shape = _geometry(call, data, weight, _OF_BACKWARD)
    if shape is None:
        return None
    of_data, of_weight, of_bias = wanted
    moved = moved_bytes(
        gradient,
        weight if of_data else None,
        tensor_like(data) if of_data else None,
        Tensor(data.shape, data.type, shape.touched) if of_weight else None,
        tensor_like(weight) if of_weight else None,
        tensor_like(gradient, gradient.shape[1:2]) if of_bias else None,
    )
    flop = 2 * shape.multiplied * (of_data + of_weight) + of_bias * gradient.elements
    return NecessaryWork(flop, moved, unit_of(data.type), data.type)


def _pooled(indices: bool) -> Rule:
    def rule(call: OperationCall) -> NecessaryWork | None:
        data = call.tensor(0)
        count = len(data.shape) - 2 if data is not None else 0
        kernel = _spread(call.numbers(1), count, 0)
        if data is None or count < 1 or kernel is None or min(kernel) < 1:
            return None
        stride, padding = (
            _spread(call.numbers(2) or tuple(kernel), count, 1),
            _spread(call.numbers(3), count, 0),
        )
        dilation = _spread(call.numbers(4), count, 1) if indices else [1] * count
        if (
            stride is None
            or padding is None
            or dilation is None
            or not 1 <= min(stride) <= max(stride) <= _MAX_TAPS
        ):
            return None
        out, seen = [], []
        for n, k, s, p, d in zip(data.shape[2:], kernel, stride, padding, dilation, strict=True):
            windows = (n + 2 * p - d * (k - 1) - 1) // s + 1  # rounded down: of `ceil_mode` at least
            out.append(windows)
            seen.append(_windows(n, windows, k, s, p, d)[0])
        if min(out) < 0:
            return None
        result = tensor_like(data, (*data.shape[:2], *out))
        read = Tensor(data.shape, data.type, prod(data.shape[:2]) * prod(seen))
        moved = moved_bytes(read, result, tensor_like(result, type_="int64") if indices else None)
        return NecessaryWork(float(result.elements * prod(kernel)), moved, "fma", data.type)

    return rule


def _pooled_backward(call: OperationCall) -> NecessaryWork | None:
    gradient, data, places = call.tensor(0), call.tensor(1), call.tensor(7)
    if gradient is None or data is None:
        return None
    return NecessaryWork(
        float(gradient.elements), moved_bytes(gradient, tensor_like(data), places), "fma", data.type
    )


_BY_CHANNEL = _Places(4, 5, 6, bias=3)


def _by_channel(call: OperationCall) -> NecessaryWork | None:
    """Return a convolution of each channel for itself: its groups are the channels."""
    data, weight = call.tensor(0), call.tensor(1)
    if data is None or weight is None or len(data.shape) < 3:
        return None
    arguments = (*call.arguments[:7], *[None] * max(0, 7 - len(call.arguments)), str(data.shape[1]))
    return _convolution(replace(_BY_CHANNEL, groups=7))(OperationCall(call.name, arguments, call.has_values))


CONVOLUTIONS: tuple[WorkFormula, ...] = (
    *(
        WorkFormula(
            title,
            names,
            "2 b out (in / groups) kernel, without what lies in the padding",
            "input that is touched + weight + bias + result",
            DIRECT,
            _by_channel if at is _BY_CHANNEL else _convolution(at),
            at.named(),
        )
        for title, names, at in (
            (
                "convolution",
                words("convolution convolution_overrideable _convolution"),
                _Places(3, 4, 5, 8, bias=2, transposed=6, output_padding=7),
            ),
            (
                "convolution, called by its dimensions",
                words("conv1d conv2d conv3d"),
                _Places(3, 4, 5, 6, bias=2),
            ),
            (
                "convolution, transposed",
                words("conv_transpose1d conv_transpose2d conv_transpose3d"),
                _Places(3, 4, 7, 6, bias=2, transposed=True, output_padding=5),
            ),
            ("convolution of cuDNN", ("cudnn_convolution",), _Places(3, 2, 4, 5)),
            (
                "convolution of cuDNN, transposed",
                ("cudnn_convolution_transpose",),
                _Places(4, 2, 5, 6, transposed=True, output_padding=3),
            ),
            ("convolution of oneDNN", ("mkldnn_convolution",), _Places(4, 3, 5, 6, bias=2)),
            ("convolution by channel", words("_conv_depthwise2d conv_depthwise3d"), _BY_CHANNEL),
            (
                "convolution without a library",
                words("_slow_conv2d_forward slow_conv3d_forward"),
                _Places(4, 5, bias=3),
            ),
        )
    ),
    WorkFormula(
        "convolution, backward",
        ("convolution_backward",),
        "that of the forward pass for each gradient that is requested (input, weight)",
        "gradient, weight or input that is needed for each, and what is written",
        DIRECT,
        _convolution_backward,
        {**_OF_BACKWARD.named(), "output_mask": _OUTPUT_MASK},
    ),
    WorkFormula(
        "largest of each window",
        words("max_pool2d_with_indices max_pool3d_with_indices"),
        "kernel, for each result",
        "input that is touched + result + its index (8 bytes)",
        TRAFFIC,
        _pooled(True),
    ),
    WorkFormula(
        "mean of each window",
        words("avg_pool2d avg_pool3d"),
        "kernel, for each result",
        "input that is touched + result",
        TRAFFIC,
        _pooled(False),
    ),
    WorkFormula(
        "largest of each window, backward",
        ("max_pool2d_with_indices_backward",),
        "1 for each of the gradient",
        "gradient + indices + new gradient",
        TRAFFIC,
        _pooled_backward,
    ),
)
