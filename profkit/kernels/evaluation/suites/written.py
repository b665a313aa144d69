"""Suites whose calls are written down: a handful of ordinary operations, and traces of real programs.

`smoke`: is the whole chain from a kernel to its result in order? Out of traces: every call, and how often it is made.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from profkit.core.errors import UsageError
from profkit.core.types import EvaluationTest
from profkit.kernels.evaluation.suites.notation import DTYPES, SHORT_DTYPES, TracedCall, read_traces
from profkit.kernels.evaluation.suites.suite import (
    Arguments,
    Selection,
    check_dtype,
    check_names,
    make_test,
    matches,
)
from profkit.kernels.evaluation.suites.values import make_values

_OF_SMOKE = ("float32", "bfloat16", "float16", "float64")
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
        dtype = selection.dtype or _OF_SMOKE[0]
        check_dtype(dtype, _OF_SMOKE, self.name)
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


# ---------------------------------------------------------------- traces

TABLE = Path(__file__).with_name("data") / "torchbench.txt.gz"
_FLOATS = ("f16", "bf16", "f32", "f64")
_DTYPE = re.compile(r"\b(?:" + "|".join(sorted(DTYPES, key=len, reverse=True)) + r")\b")


@dataclass(frozen=True)
class TraceSuite:
    """The calls of a trace file, or of a folder of them: most often called first.

    With a dtype in the selection, those whose main dtype it is.
    """

    name: str
    path: Path
    device: str = "cpu"

    def tests(self, selection: Selection) -> Iterator[EvaluationTest]:
        """Its tests, operation by operation. Raises UsageError where the file or a name is of no use."""
        calls = read_traces(self.path)
        check_names(selection.operations, (call.operation for call in calls), self.name)
        if selection.dtype:
            check_dtype(selection.dtype, (DTYPES[short] for short in _FLOATS), self.name)
            calls = [call for call in calls if _main_dtype(call.arguments) == selection.dtype]
        wanted = [call for call in calls if matches(selection.operations, call.operation)]
        return self._in_order(wanted)

    def make_arguments(self, test: EvaluationTest, seed: int) -> Arguments:
        """Arguments as traced, values by the seed. Raises Skip where they cannot be made."""
        return make_values(test.operation, test.arguments, seed, device=self.device)

    def _in_order(self, calls: Iterable[TracedCall]) -> Iterator[EvaluationTest]:
        groups: dict[str, list[TracedCall]] = {}
        for call in calls:
            groups.setdefault(call.operation, []).append(call)
        for _, group in sorted(
            groups.items(), key=lambda item: (-sum(call.count for call in item[1]), item[0])
        ):
            for call in sorted(group, key=lambda call: (-call.count, call.arguments)):
                dtype, text = _main_dtype(call.arguments), call.arguments
                yield make_test(self.name, call.operation, dtype, text, None, calls=call.count)


def _main_dtype(text: str) -> str:
    """That of the first tensor of floating-point numbers, else of the first tensor."""
    found = _DTYPE.findall(text)
    first = next((short for short in found if short in _FLOATS), found[0] if found else "")
    return DTYPES.get(first, "")


def torchbench(path: Path | None = None) -> TraceSuite:
    """Training steps of 155 models, of tritonbench's traces; `path`: the text files themselves, or others like them."""
    return TraceSuite("torchbench", path or TABLE)


def traced(path: Path | None = None) -> TraceSuite:
    """What a program of the user called, by the file that `record_operations` wrote. Raises UsageError without one."""
    if path is None:
        raise UsageError("the suite traced needs a trace", "profkit evaluate --trace -- python train.py")
    return TraceSuite("traced", path)
