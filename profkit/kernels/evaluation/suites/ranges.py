"""What values an argument may have: an index must lie in range, a variance is positive.

A trace has shapes and no values. What an integer tensor means follows from the operation's name and the argument's,
and its range from the shapes of the other arguments.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from profkit.kernels.evaluation.suites.notation import TensorForm

# normal: of both signs. positive: 0.5 to 1.5. fraction: 0 to 1. signed-fraction: -1 to 1. any: small integers.
# index: 0 to `below`. distinct: the same, no two equal along `dim`, or in all with `dim` None. sorted: ascending, from
# 0 on. nonzero: integers without 0. definite: a symmetric positive definite matrix in the last two dimensions.
Kind = Literal[
    "normal",
    "positive",
    "fraction",
    "signed-fraction",
    "any",
    "nonzero",
    "index",
    "distinct",
    "sorted",
    "definite",
]


@dataclass(frozen=True)
class Values:
    """Of one argument. `below`: indices are less than it; `least`: and at least this."""

    kind: Kind
    below: int = 0
    dim: int | None = None
    least: int = 0


class UnknownRange(ValueError):
    """Values of this argument cannot be chosen; the text says which and why."""


Named = Mapping[str, Any]  # the arguments of a call by their names in the schema
_Rule = Callable[[Named], Values]


def _size(of: str, dim: int) -> _Rule:
    return lambda named: Values("index", named[of].shape[dim])


def _along_dim(kind: Kind = "index") -> _Rule:
    def rule(named: Named) -> Values:
        shape, dim = named["self"].shape, int(named["dim"])
        return Values(kind, shape[dim] if shape else 1, dim)

    return rule


def _last_dimensions(of: str, count: int) -> _Rule:
    return lambda named: Values("index", math.prod(named[of].shape[-count:]))


def _classes(named: Named) -> Values:
    shape = named["self"].shape
    return Values("index", shape[1] if len(shape) > 1 else shape[0])


def _of_argument(name: str) -> _Rule:
    return lambda named: Values("index", int(named[name]))


def _elements(named: Named) -> Values:
    return Values("index", named["self"].elements)


def _reduced_sizes(named: Named) -> Values:
    sizes = named["sizes"]
    return Values("index", sizes[int(named["dim"])] if sizes else 1)


def _of_list(name: str, last: int) -> _Rule:
    return lambda named: Values("index", math.prod(named[name][-last:]))


_BAG_OFFSETS: _Rule = lambda named: Values("sorted", named["indices"].elements + 1)  # noqa: E731
_BAG_OF: _Rule = lambda named: Values("sorted", named["grad"].shape[0])  # noqa: E731

# (operation without overload and trailing underscore, argument): `*` is any operation.
_RULES: dict[tuple[str, str], _Rule | Values] = {
    ("gather", "index"): _along_dim(),
    ("scatter", "index"): _along_dim("distinct"),  # of two values for one place either may win
    ("scatter_add", "index"): _along_dim(),
    ("scatter_reduce", "index"): _along_dim(),
    ("index_select", "index"): _along_dim(),
    ("index_add", "index"): _along_dim(),
    ("index_reduce", "index"): _along_dim(),
    ("index_copy", "index"): _along_dim("distinct"),
    ("index_fill", "index"): _along_dim(),
    ("gather_backward", "index"): _along_dim(),
    ("index_select_backward", "index"): lambda named: Values(
        "index", named["self_sizes"][int(named["dim"])], int(named["dim"])
    ),
    ("take", "index"): _elements,
    ("put", "index"): lambda named: Values("distinct", named["self"].elements),
    ("embedding", "indices"): _size("weight", 0),
    ("embedding_renorm", "indices"): _size("self", 0),
    ("embedding_dense_backward", "indices"): _of_argument("num_weights"),
    ("_embedding_bag", "indices"): _size("weight", 0),
    ("_embedding_bag", "offsets"): _BAG_OFFSETS,
    ("_embedding_bag_forward_only", "indices"): _size("weight", 0),
    ("_embedding_bag_forward_only", "offsets"): _BAG_OFFSETS,
    ("_embedding_bag_per_sample_weights_backward", "indices"): _size("weight", 0),
    ("_embedding_bag_per_sample_weights_backward", "offsets"): _BAG_OFFSETS,
    ("_embedding_bag_per_sample_weights_backward", "offset2bag"): _BAG_OF,
    ("_embedding_bag_dense_backward", "indices"): _of_argument("num_weights"),
    ("_embedding_bag_dense_backward", "offset2bag"): _BAG_OF,
    ("nll_loss", "target"): _classes,
    ("nll_loss_forward", "target"): _classes,
    ("nll_loss_backward", "target"): _classes,
    ("nll_loss2d_forward", "target"): _classes,
    ("nll_loss2d_backward", "target"): _classes,
    ("multi_margin_loss", "target"): _classes,
    ("multi_margin_loss_backward", "target"): _classes,
    ("max_pool2d_with_indices_backward", "indices"): _last_dimensions("self", 2),
    ("max_pool3d_with_indices_backward", "indices"): _last_dimensions("self", 3),
    ("adaptive_max_pool2d_backward", "indices"): _last_dimensions("self", 2),
    ("adaptive_max_pool3d_backward", "indices"): _last_dimensions("self", 3),
    ("fractional_max_pool2d_backward", "indices"): _last_dimensions("self", 2),
    ("max_unpool2d", "indices"): _of_list("output_size", 2),
    ("max_unpool3d", "indices"): _of_list("output_size", 3),
    ("value_selecting_reduction_backward", "indices"): _reduced_sizes,
    ("searchsorted", "sorted_sequence"): Values("sorted"),
    ("bucketize", "boundaries"): Values("sorted"),
    ("bincount", "self"): Values("index", 64),
    ("grid_sampler_2d", "grid"): Values("signed-fraction"),
    ("grid_sampler_2d_backward", "grid"): Values("signed-fraction"),
    ("grid_sampler_3d", "grid"): Values("signed-fraction"),
    ("grid_sampler_3d_backward", "grid"): Values("signed-fraction"),
    ("binary_cross_entropy", "self"): Values("fraction"),
    ("binary_cross_entropy", "target"): Values("fraction"),
    ("binary_cross_entropy_backward", "self"): Values("fraction"),
    ("binary_cross_entropy_backward", "target"): Values("fraction"),
    ("pow", "self"): lambda named: Values("positive" if not _is_whole(named.get("exponent")) else "normal"),
    ("addcdiv", "tensor2"): Values("positive"),
    ("_foreach_addcdiv", "tensor2"): Values("positive"),
}
_POSITIVE_INPUT = {
    "log", "log2", "log10", "log1p", "sqrt", "rsqrt", "lgamma", "digamma", "mvlgamma", "polygamma", "xlogy",
    "_foreach_log", "_foreach_sqrt", "_foreach_rsqrt", "_foreach_reciprocal", "reciprocal", "acosh", "i0e",
}  # fmt: skip
_FRACTION_INPUT = {"asin", "acos", "atanh", "logit", "erfinv", "log_normal"}
_DEFINITE_INPUT = {"linalg_cholesky_ex", "cholesky", "linalg_inv_ex", "_linalg_det", "_linalg_slogdet"}
_POSITIVE_NAMES = {"running_var", "var", "invstd", "save_invstd", "save_var", "rstd", "std", "total_weight"}
_POSITIVE_LISTS = {"exp_avg_sqs", "max_exp_avg_sqs", "exp_avg_sq"}
_DIVISIONS = {"div", "floor_divide", "remainder", "fmod", "true_divide", "divide"}
_SHIFTS = {"__lshift__", "__rshift__", "bitwise_left_shift", "bitwise_right_shift"}
# An integer tensor called like this is an index of something.
_INDEX_NAMES = ("index", "indices", "idx", "target", "offset", "lengths", "repeats", "batch_sizes", "labels")
_INTEGERS = {"int8", "int16", "int32", "int64", "uint8"}


def _is_whole(exponent: Any) -> bool:
    return isinstance(exponent, int) or (isinstance(exponent, float) and exponent.is_integer())


def operation_base(operation: str) -> str:
    """`add` of `add_.Tensor`."""
    base = operation.partition(".")[0]
    return base if base.endswith("__") else base.rstrip("_") or base


def find_values(operation: str, name: str, form: TensorForm, named: Named) -> Values:
    """What the tensor `name` of a call may hold; `named` are all arguments of it. Raises UnknownRange."""
    base = operation_base(operation)
    rule = _RULES.get((base, name))
    if rule is not None:
        try:
            values = rule if isinstance(rule, Values) else rule(named)
        except (KeyError, IndexError, AttributeError, TypeError, ValueError):
            raise UnknownRange(f"the range of `{name}` does not follow from the other arguments") from None
        if values.kind in ("index", "distinct") and values.below < 1 and form.elements:
            raise UnknownRange(f"`{name}` has nothing to point at")
        return values
    if form.dtype in _INTEGERS:
        return _find_integers(base, name)
    if name in _POSITIVE_NAMES or name in _POSITIVE_LISTS:
        return Values("positive")
    if name == "self":
        if base in _POSITIVE_INPUT:
            return Values("positive")
        if base in _FRACTION_INPUT:
            return Values("signed-fraction")
    if base in _DEFINITE_INPUT and name in ("self", "A"):
        return Values("definite")
    return Values("normal")


def _find_integers(base: str, name: str) -> Values:
    if any(word in name for word in _INDEX_NAMES):
        raise UnknownRange(f"the range of the indices `{name}` is not known")
    if base in _DIVISIONS and name == "other":
        return Values("nonzero")
    if base in _SHIFTS and name == "other":
        return Values("index", 7)
    return Values("any")
