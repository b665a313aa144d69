"""Suites out of traces: every call that real programs make, with how often they make it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from profkit.core.errors import UsageError
from profkit.core.types import EvaluationTest
from profkit.kernels.evaluation.suites.notation import DTYPES, SHORT_DTYPES, CallCounts, read_traces
from profkit.kernels.evaluation.suites.suite import (
    Arguments,
    Selection,
    check_dtype,
    check_names,
    make_test,
    matches,
)
from profkit.kernels.evaluation.suites.values import make_values

TABLE = Path(__file__).with_name("data") / "torchbench.txt.gz"
_FLOATS = ("f16", "bf16", "f32", "f64")
_COMPLEX = {"f16": "c32", "f32": "c64", "f64": "c128"}
_DTYPE = re.compile(r"\b(?:" + "|".join(sorted(DTYPES, key=len, reverse=True)) + r")\b")
_LONG_DTYPE = re.compile(r"\b(?:torch|th)\.(" + "|".join(SHORT_DTYPES) + r")\b")


@dataclass(frozen=True)
class TraceSuite:
    """The calls of a trace file, of a folder of them, or of a table: most often called first.

    `most`: tests of an operation, None: all. With a dtype in the selection, the floating dtype that most of the calls
    have becomes that one; others stay: a program of mixed precision has tensors of both.
    """

    name: str
    path: Path
    most: int | None = None
    device: str = "cpu"

    def tests(self, selection: Selection) -> Iterator[EvaluationTest]:
        """Its tests, operation by operation. Raises UsageError where the file or a name is of no use."""
        calls = read_traces(self.path)
        check_names(selection.operations, (call.operation for call in calls), self.name)
        if selection.dtype:
            check_dtype(selection.dtype, (DTYPES[short] for short in _FLOATS), self.name)
            calls = _with_dtype(calls, SHORT_DTYPES[selection.dtype])
        wanted = [call for call in calls if matches(selection.operations, call.operation)]
        return self._in_order(wanted)

    def make_arguments(self, test: EvaluationTest, seed: int) -> Arguments:
        """Arguments as traced, values by the seed. Raises Skip where they cannot be made."""
        return make_values(test.operation, test.arguments, seed, device=self.device)

    def _in_order(self, calls: Iterable[CallCounts]) -> Iterator[EvaluationTest]:
        groups: dict[str, list[CallCounts]] = {}
        for call in calls:
            groups.setdefault(call.operation, []).append(call)
        for _, group in sorted(
            groups.items(), key=lambda item: (-sum(call.calls for call in item[1]), item[0])
        ):
            for call in sorted(group, key=lambda call: (-call.calls, call.arguments))[: self.most]:
                yield self._test(call)

    def _test(self, call: CallCounts) -> EvaluationTest:
        dtype = _main_dtype(call.arguments)
        # Who makes the call does not make it another test.
        test = make_test(self.name, call.operation, dtype, call.arguments, None, calls=call.calls)
        return replace(test, source={"programs": dict(call.programs)})


def _main_dtype(text: str) -> str:
    """That of the first tensor of floating-point numbers, else of the first tensor."""
    found = _DTYPE.findall(text)
    first = next((short for short in found if short in _FLOATS), found[0] if found else "")
    return DTYPES.get(first, "")


def _with_dtype(calls: list[CallCounts], wanted: str) -> list[CallCounts]:
    counts = Counter[str]()
    for call in calls:
        counts.update(
            {short: call.calls for short in set(_DTYPE.findall(call.arguments)) if short in _FLOATS}
        )
    if not counts:
        return calls
    ((usual, _),) = counts.most_common(1)
    if usual == wanted:
        return calls
    change = {usual: wanted}
    if usual in _COMPLEX and wanted in _COMPLEX:
        change[_COMPLEX[usual]] = _COMPLEX[wanted]
    changed: dict[tuple[str, str], CallCounts] = {}
    for call in calls:
        text = _DTYPE.sub(lambda match: change.get(match[0], match[0]), _shortened(call.arguments))
        known = changed.get((call.operation, text))
        programs = Counter(known.programs if known else {}) + Counter(call.programs)
        changed[call.operation, text] = CallCounts(call.operation, text, dict(programs))
    return list(changed.values())


def _shortened(text: str) -> str:
    return _LONG_DTYPE.sub(lambda match: SHORT_DTYPES[match[1]], text)


def torchbench(path: Path | None = None, most: int | None = None) -> TraceSuite:
    """Training steps of 155 models, of tritonbench's traces; `path`: the text files themselves, or others like them."""
    return TraceSuite("torchbench", path or TABLE, most)


def traced(path: Path | None = None, most: int | None = None) -> TraceSuite:
    """What a program of the user called, by the file that `record` wrote. Raises UsageError without one."""
    if path is None:
        raise UsageError("the suite traced needs a trace", "profkit evaluate --trace -- python train.py")
    return TraceSuite("traced", path, most)
