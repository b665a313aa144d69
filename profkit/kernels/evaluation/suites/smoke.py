"""A handful of ordinary operations: is the whole chain from a kernel to its result in order?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from profkit.core.types import EvaluationTest
from profkit.kernels.evaluation.suites.notation import SHORT_DTYPES
from profkit.kernels.evaluation.suites.suite import (
    Arguments,
    Selection,
    check_dtype,
    check_names,
    make_test,
    matches,
)
from profkit.kernels.evaluation.suites.values import make_values

DTYPES = ("float32", "bfloat16", "float16", "float64")
# X stands for the dtype. Small calls are for correctness alone; what has 1024 in it is timed, too. "~" after the
# arguments: with NaN, infinities and a negative zero among the values.
_CALLS: dict[str, tuple[str, ...]] = {
    "relu.default": (
        "((T([2], X),), {})",
        "((T([], X),), {})",
        "((T([0], X),), {})",
        "((T([3, 0, 2], X),), {})",
        "((T([33, 17], X, stride=(1, 33)),), {})",
        "((T([8, 16], X),), {})  # offsets [1048577] storages [0]",
        "((T([4, 8], X),), {}) ~",
        "((T([1024, 1024], X),), {})",
        "((T([1024, 1000], X, stride=(1024, 1)),), {})",
    ),
    "relu_.default": (
        "((T([5, 7], X),), {})",
        "((T([5, 7], X, stride=(14, 2)),), {})",
        "((T([1024, 1024], X),), {})",
    ),
    "add.Tensor": (
        "((T([5], X), T([5], X)), {})",
        "((T([5, 3], X), T([3], X)), {'alpha': 2})",
        "((T([], X), T([], X)), {})",
        "((T([0, 4], X), T([1, 4], X)), {})",
        "((T([4, 6], X, stride=(1, 4)), T([4, 6], X)), {})",
        "((T([4, 6], X), T([4, 6], X)), {})  # offsets [0, 0] storages [0, 0]",
        "((T([4, 6], X), T([4, 6], X)), {}) ~",
        "((T([1024, 1024], X), T([1024, 1024], X)), {})",
        "((T([1024, 1024], X), T([1024], X)), {})",
    ),
    "add_.Tensor": (
        "((T([5], X), T([5], X)), {})",
        "((T([6, 4], X), T([4], X)), {'alpha': 3})",
        "((T([6, 4], X, stride=(8, 2)), T([6, 4], X)), {})  # offsets [3, 0] storages [0, 1]",
        "((T([1024, 1024], X), T([1024, 1024], X)), {})",
    ),
    "mul.Tensor": (
        "((T([2, 3], X), T([2, 3], X)), {})",
        "((T([2, 3], X), T([], X)), {})",
        "((T([2, 3], X), T([2, 3], X)), {}) ~",
        "((T([3, 2, 5], X, stride=(0, 5, 1)), T([3, 1, 5], X)), {})",
        "((T([1024, 1024], X), T([1024, 1024], X)), {})",
    ),
    "sum.dim_IntList": (
        "((T([4, 5], X), [1]), {})",
        "((T([4, 5], X), [0, 1], True), {})",
        "((T([0, 5], X), [0]), {})",
        "((T([4, 5], X, stride=(1, 4)), [-1]), {})",
        "((T([4, 5], X), [1]), {}) ~",
        "((T([1024, 1024], X), [1]), {})",
        "((T([1024, 1024], X), [0]), {})",
    ),
    "_softmax.default": (
        "((T([3, 7], X), -1, False), {})",
        "((T([3, 7], X), 0, False), {})",
        "((T([], X), 0, False), {})",
        "((T([0, 7], X), 1, False), {})",
        "((T([3, 7], X, stride=(1, 3)), 1, False), {})",
        "((T([3, 7], X), 1, False), {}) ~",
        "((T([1024, 1024], X), -1, False), {})",
    ),
    "mm.default": (
        "((T([3, 4], X), T([4, 5], X)), {})",
        "((T([1, 1], X), T([1, 1], X)), {})",
        "((T([3, 0], X), T([0, 5], X)), {})",
        "((T([17, 33], X, stride=(1, 17)), T([33, 9], X, stride=(1, 33))), {})",
        "((T([256, 1024], X), T([1024, 256], X)), {})",
    ),
    "native_layer_norm.default": (
        "((T([3, 8], X), [8], T([8], X), T([8], X), 1e-05), {})",
        "((T([2, 3, 4], X), [3, 4], None, None, 1e-05), {})",
        "((T([0, 8], X), [8], T([8], X), T([8], X), 1e-05), {})",
        "((T([1024, 1024], X), [1024], T([1024], X), T([1024], X), 1e-05), {})",
    ),
    "gelu.default": (
        "((T([7], X),), {})",
        "((T([7], X),), {'approximate': 'tanh'})",
        "((T([4, 8], X),), {}) ~",
        "((T([1024, 1024], X),), {})",
    ),
    "where.self": (
        "((T([4, 5], b8), T([4, 5], X), T([4, 5], X)), {})",
        "((T([4, 1], b8), T([1, 5], X), T([], X)), {})",
        "((T([4, 5], b8), T([4, 5], X), T([4, 5], X)), {}) ~",
        "((T([1024, 1024], b8), T([1024, 1024], X), T([1024, 1024], X)), {})",
    ),
    "cat.default": (
        "(([T([2, 3], X), T([4, 3], X)],), {})",
        "(([T([2, 3], X), T([2, 0], X), T([2, 2], X)], 1), {})",
        "(([T([1024, 512], X), T([1024, 512], X)], 1), {})",
    ),
    "index_select.default": (
        "((T([6, 4], X), 0, T([3], i64)), {})",
        "((T([6, 4], X), 1, T([9], i64)), {})",
        "((T([6, 4], X), 0, T([0], i64)), {})",
        "((T([1024, 1024], X), 0, T([512], i64)), {})",
    ),
}


@dataclass(frozen=True)
class Smoke:
    """The suite `smoke`."""

    name: str = "smoke"
    device: str = "cpu"

    def tests(self, selection: Selection) -> Iterator[EvaluationTest]:
        """Its tests, operation by operation. Raises UsageError for an operation or a dtype that it has not."""
        check_names(selection.operations, _CALLS, self.name)
        dtype = selection.dtype or DTYPES[0]
        check_dtype(dtype, DTYPES, self.name)
        for operation, calls in _CALLS.items():
            if not matches(selection.operations, operation):
                continue
            for call in calls:
                text = call.removesuffix(" ~").replace("X", SHORT_DTYPES[dtype])
                special = call.endswith("~")
                yield make_test(
                    self.name,
                    operation,
                    dtype,
                    f"{text}  # with NaN and infinity" if special else text,
                    {"special": special},
                    timed="1024" in text,
                )

    def make_arguments(self, test: EvaluationTest, seed: int) -> Arguments:
        """The arguments of a test of this suite, with values by the seed."""
        special = isinstance(test.source, dict) and bool(test.source.get("special"))
        return make_values(test.operation, test.arguments, seed, device=self.device, special=special)
