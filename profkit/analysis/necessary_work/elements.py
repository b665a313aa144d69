"""Element by element, copies, reductions and softmax."""

from __future__ import annotations

from math import prod
from typing import Literal

from profkit.analysis.necessary_work.calls import OperationCall, Tensor
from profkit.analysis.necessary_work.work import (
    DEFINITION,
    ONCE_EACH,
    TRAFFIC,
    NecessaryWork,
    Rule,
    WorkFormula,
    added_bytes,
    broadcast_shape,
    kind_of,
    moved_bytes,
    promoted_type,
    tensor_like,
    with_in_place,
    words,
)

_Result = Literal["same", "bool", "float"]


def _elementwise(inputs: int, flop: int, result: _Result = "same") -> Rule:
    """Return the rule of an elementwise operation.

    The first `inputs` arguments may be tensors; `flop` is per element of the result.
    """

    def rule(call: OperationCall) -> NecessaryWork | None:
        tensors = call.tensors(*range(inputs))
        shape = broadcast_shape(tensors) if tensors else None
        if shape is None:
            return None
        type_ = promoted_type(tensors)
        if call.name.endswith("_") and call.tensor(0) is not None:  # in place
            type_ = tensors[0].type
        elif result == "bool":
            type_ = "bool"
        elif result == "float" and type_ is not None and kind_of(type_) < 2:
            type_ = "fp32"
        new = Tensor(shape, type_)
        return NecessaryWork(
            float(flop * new.elements), moved_bytes(*tensors, new), "fma" if flop else "memory", type_
        )

    return rule


def _chosen(call: OperationCall) -> NecessaryWork | None:
    """Return `where`: of the condition all, of both others together at least one element for each of the result."""
    tensors = call.tensors(0, 1, 2)
    shape = broadcast_shape(tensors) if len(tensors) == 3 else None
    if shape is None:
        return None
    type_ = promoted_type(tensors[1:])
    new = Tensor(shape, type_)
    smaller = min((tensor.bytes for tensor in tensors[1:] if tensor.bytes is not None), default=None)
    return NecessaryWork(0.0, added_bytes(moved_bytes(tensors[0], new), smaller), "memory", type_)


def _filled(call: OperationCall) -> NecessaryWork | None:
    """Return the work of a tensor that is written without being read."""
    target = call.tensor(0)
    return NecessaryWork(0.0, moved_bytes(target), "memory", target.type) if target is not None else None


def _copied(call: OperationCall) -> NecessaryWork | None:
    """Return `copy_`: from the second into the first."""
    target, source = call.tensors(0), call.tensors(1)
    if not target or not source:
        return None
    read = source[0]
    if read.elements > target[0].elements:
        return None
    return NecessaryWork(0.0, moved_bytes(read, target[0]), "memory", target[0].type)


def _converted(call: OperationCall) -> NecessaryWork | None:
    source = call.tensor(0)
    if source is None or not call.has_values:
        return None
    new = tensor_like(source, type_=call.type_number(1))
    return NecessaryWork(0.0, moved_bytes(source, new), "memory", new.type)


def _cloned(call: OperationCall) -> NecessaryWork | None:
    source = call.tensor(0)
    return (
        NecessaryWork(0.0, moved_bytes(source, tensor_like(source)), "memory", source.type)
        if source is not None
        else None
    )


def _concatenated(call: OperationCall) -> NecessaryWork | None:
    parts = call.list(0)
    if not parts:
        return None
    moved = moved_bytes(*parts, *(tensor_like(part) for part in parts))
    return NecessaryWork(0.0, moved, "memory", parts[0].type)


def _dropped(call: OperationCall) -> NecessaryWork | None:
    """Return `native_dropout`: the result, and a mask of one byte for each element."""
    data = call.tensor(0)
    if data is None or call.flag(2) is False:
        return None
    return NecessaryWork(
        float(data.elements),
        moved_bytes(data, tensor_like(data), tensor_like(data, type_="bool")),
        "fma",
        data.type,
    )


# ------------------------------------------------------------ reductions, softmax


def _reduction(dims: int | None, flop: int, result: str | None = None, pair: str | None = None) -> Rule:
    """Return `dims`: which argument names the dimensions; `result`: the type of what comes out, of `pair` a second
    one.
    """

    def rule(call: OperationCall) -> NecessaryWork | None:
        data = call.tensor(0)
        if data is None:
            return None
        left = _remaining(data, call.numbers(dims) if dims is not None else None)
        kept = [
            tensor_like(data, (left,), result),
            *([tensor_like(data, (left,), pair)] if pair and left != 1 else []),
        ]
        return NecessaryWork(float(flop * data.elements), moved_bytes(data, *kept), "fma", data.type)

    return rule


def _remaining(data: Tensor, dims: tuple[int, ...] | None) -> int:
    """Return how many elements a reduction leaves, 1 where its dimensions are not known: at least."""
    if not dims:
        return 1
    count = len(data.shape)
    gone = {dim % count for dim in dims if -count <= dim < count} if count else set()
    return prod(size for place, size in enumerate(data.shape) if place not in gone)


def _scanned(call: OperationCall) -> NecessaryWork | None:
    data = call.tensor(0)
    return (
        NecessaryWork(float(data.elements), moved_bytes(data, tensor_like(data)), "fma", data.type)
        if data is not None
        else None
    )


def _softmax(call: OperationCall) -> NecessaryWork | None:
    data = call.tensor(0)
    if data is None:
        return None
    widened = "fp32" if call.flag(2) is True and call.name.startswith("_") else None
    return NecessaryWork(
        3.0 * data.elements, moved_bytes(data, tensor_like(data, type_=widened)), "fma", data.type
    )


def _softmax_backward(call: OperationCall) -> NecessaryWork | None:
    gradient, result = call.tensor(0), call.tensor(1)
    if gradient is None or result is None or gradient.shape != result.shape:
        return None
    new = tensor_like(gradient, type_=call.type_number(3))
    return NecessaryWork(3.0 * gradient.elements, moved_bytes(gradient, result, new), "fma", gradient.type)


ELEMENTS: tuple[WorkFormula, ...] = (
    *(
        WorkFormula(
            title,
            with_in_place(words(names)),
            f"{flop} an element",
            ONCE_EACH,
            f"{DEFINITION}; {TRAFFIC}",
            rule,
        )
        for title, names, flop, rule in (
            (
                "one tensor",
                "abs neg exp exp2 log log2 log10 log1p expm1 sqrt rsqrt reciprocal sin cos tan tanh sinh cosh asin "
                "acos atan sigmoid relu relu6 gelu silu mish erf erfinv floor ceil round trunc frac sign sgn clamp "
                "clamp_min clamp_max hardtanh hardswish hardsigmoid leaky_relu elu selu celu softplus square logit "
                "nan_to_num logical_not bitwise_not threshold",
                1,
                _elementwise(1, 1),
            ),
            ("questions of one tensor", "isnan isinf isfinite signbit", 1, _elementwise(1, 1, "bool")),
            (
                "two tensors",
                "add sub rsub mul remainder fmod maximum minimum fmax fmin pow bitwise_and bitwise_or bitwise_xor "
                "copysign prelu",
                1,
                _elementwise(2, 1),
            ),
            (
                "two tensors, as floats",
                "div true_divide floor_divide atan2 hypot xlogy",
                1,
                _elementwise(2, 1, "float"),
            ),
            (
                "comparisons",
                "eq ne lt le gt ge logical_and logical_or logical_xor",
                1,
                _elementwise(2, 1, "bool"),
            ),
            ("three tensors", "addcmul addcdiv", 2, _elementwise(3, 2)),
            ("between two tensors", "lerp", 2, _elementwise(3, 2)),
        )
    ),
    WorkFormula(
        "element by element, backward",
        words(
            "threshold_backward gelu_backward silu_backward sigmoid_backward tanh_backward hardtanh_backward "
            "leaky_relu_backward elu_backward hardswish_backward hardsigmoid_backward softplus_backward mish_backward "
            "native_dropout_backward"
        ),
        "1 an element",
        ONCE_EACH,
        f"{DEFINITION}; {TRAFFIC}",
        _elementwise(2, 1),
    ),
    WorkFormula("masked", words("masked_fill masked_fill_"), "0", ONCE_EACH, TRAFFIC, _elementwise(2, 0)),
    WorkFormula("where", ("where",), "0", "condition + the smaller of both + result", TRAFFIC, _chosen),
    WorkFormula(
        "filled",
        words("fill_ zero_ uniform_ normal_ random_ bernoulli_ exponential_"),
        "0",
        "result",
        TRAFFIC,
        _filled,
    ),
    WorkFormula("copy", ("copy_",), "0", "source + target, each in its type", TRAFFIC, _copied),
    WorkFormula("conversion", ("_to_copy",), "0", "source + result, each in its type", TRAFFIC, _converted),
    WorkFormula("clone", words("clone contiguous"), "0", "2 x the tensor", TRAFFIC, _cloned),
    WorkFormula("concatenation", words("cat stack"), "0", "2 x all parts", TRAFFIC, _concatenated),
    WorkFormula(
        "dropout", ("native_dropout",), "1 an element", "input + result + mask (1 byte)", TRAFFIC, _dropped
    ),
    *(
        WorkFormula(
            title,
            words(names),
            f"{flop} an element",
            "input + what is left",
            f"{DEFINITION}; {TRAFFIC}",
            rule,
        )
        for title, names, flop, rule in (
            (
                "sum, mean",
                "sum mean nansum prod amax amin all any logsumexp count_nonzero",
                1,
                _reduction(1, 1),
            ),
            ("largest, smallest", "max min median", 1, _reduction(1, 1, pair="int64")),
            ("place of the largest", "argmax argmin", 1, _reduction(1, 1, "int64")),
            ("norm", "norm linalg_vector_norm", 2, _reduction(2, 2)),
            ("variance", "var std", 3, _reduction(1, 3)),
            ("variance and mean", "var_mean std_mean", 3, _reduction(1, 3)),
        )
    ),
    WorkFormula(
        "running sum",
        words("cumsum cumprod logcumsumexp"),
        "1 an element",
        "2 x the tensor",
        TRAFFIC,
        _scanned,
    ),
    WorkFormula(
        "softmax",
        words("_softmax _log_softmax softmax log_softmax"),
        "3 an element: exponential, sum, quotient",
        ONCE_EACH,
        f"{DEFINITION}; in one pass: Milakov and Gimelshein 2018",
        _softmax,
    ),
    WorkFormula(
        "softmax, backward",
        words("_softmax_backward_data _log_softmax_backward_data"),
        "3 an element",
        "gradient + result of the forward pass + new gradient",
        DEFINITION,
        _softmax_backward,
    ),
)
