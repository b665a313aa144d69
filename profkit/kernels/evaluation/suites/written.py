"""Suites whose calls are written down: a handful of ordinary operations, and traces of real programs.

`smoke` checks the whole chain from a kernel to its result. A trace gives every call, and how often it is
made.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from profkit.core.errors import UsageError
from profkit.core.tables import load_yaml
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
_DATA = Path(__file__).with_name("data")


@cache
def _calls() -> Mapping[str, Sequence[str]]:
    """Load the calls by operation; see the head of smoke.yaml."""
    calls: Mapping[str, Sequence[str]] = load_yaml(_DATA / "smoke.yaml")
    return calls


@dataclass(frozen=True)
class Smoke:
    """The suite `smoke`."""

    name: str = "smoke"
    device: str = "cpu"

    def tests(self, selection: Selection) -> Iterator[EvaluationTest]:
        """Yield the tests, operation by operation. Raises UsageError for an operation or dtype that it lacks."""
        check_names(selection.operations, _calls(), self.name)
        dtype = selection.dtype or _OF_SMOKE[0]
        check_dtype(dtype, _OF_SMOKE, self.name)
        for operation, calls in _calls().items():
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
        """Return the arguments of a test of this suite, with values by the seed."""
        special = isinstance(test.source, dict) and bool(test.source.get("special"))
        return make_values(test.operation, test.arguments, seed, device=self.device, special=special)


# ---------------------------------------------------------------- traces

TABLE = _DATA / "torchbench.txt.gz"
_FLOATS = ("f16", "bf16", "f32", "f64")
_DTYPE = re.compile(r"\b(?:" + "|".join(sorted(DTYPES, key=len, reverse=True)) + r")\b")


@dataclass(frozen=True)
class TraceSuite:
    """The calls of a trace file, or of a folder of them, most often called first.

    With a dtype in the selection, only those whose main dtype it is.
    """

    name: str
    path: Path
    device: str = "cpu"

    def tests(self, selection: Selection) -> Iterator[EvaluationTest]:
        """Yield the tests, operation by operation. Raises UsageError where the file or a name is of no use."""
        calls = read_traces(self.path)
        check_names(selection.operations, (call.operation for call in calls), self.name)
        if selection.dtype:
            check_dtype(selection.dtype, (DTYPES[short] for short in _FLOATS), self.name)
            calls = [call for call in calls if _main_dtype(call.arguments) == selection.dtype]
        wanted = [call for call in calls if matches(selection.operations, call.operation)]
        return self._in_order(wanted)

    def make_arguments(self, test: EvaluationTest, seed: int) -> Arguments:
        """Return the arguments as traced, with values by the seed. Raises Skip where they cannot be made."""
        return make_values(test.operation, test.arguments, seed, device=self.device)

    def _in_order(self, calls: Iterable[TracedCall]) -> Iterator[EvaluationTest]:
        """Yield the tests, most called operations and calls first."""
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
    """Return the dtype of the first floating-point tensor, else of the first tensor."""
    dtypes = _DTYPE.findall(text)
    first = next((short for short in dtypes if short in _FLOATS), dtypes[0] if dtypes else "")
    return DTYPES.get(first, "")


def torchbench(path: Path | None = None) -> TraceSuite:
    """Return training steps of 155 models, of tritonbench's traces; `path`: the text files, or others like them."""
    return TraceSuite("torchbench", path or TABLE)


def traced(path: Path | None = None) -> TraceSuite:
    """Return the calls of a user's program, from the file of `record_operations`. Raises UsageError without one."""
    if path is None:
        raise UsageError("the suite traced needs a trace", "profkit evaluate --trace -- python train.py")
    return TraceSuite("traced", path)
