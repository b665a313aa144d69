"""The user's own tests: a Python file whose SUITE lists operations with tests, as BackendBench's do.

    import torch
    from profkit.evaluation import OpTest, Test

    SUITE = [
        OpTest(
            torch.ops.aten.relu.default,
            correctness_tests=[Test(torch.randn(5)), Test(lambda: torch.randn(3, 1))],
            performance_tests=[Test(lambda: torch.randn(1024, 1024))],
        )
    ]

Objects of any class with these attributes will do. The judge's process runs the file; that of a kernel never
does.
"""

from __future__ import annotations

import shlex
import traceback
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from inspect import isfunction
from itertools import islice
from pathlib import Path
from typing import Any

import torch

from profkit.core.errors import UsageError
from profkit.core.files.regular import check_regular
from profkit.core.types import EvaluationTest, Fact
from profkit.core.types.readings import Json
from profkit.kernels.evaluation.sources.modules import load_module
from profkit.kernels.evaluation.sources.names import MAX_BYTES, find_operator, operation_name
from profkit.kernels.evaluation.suites.capture import describe_call
from profkit.kernels.evaluation.suites.notation import Call, NotationError, format_call
from profkit.kernels.evaluation.suites.opinfo import FIRST_SEED, quiet_random_numbers
from profkit.kernels.evaluation.suites.suite import (
    Arguments,
    Selection,
    Skip,
    check_names,
    make_test,
    matches,
)
from profkit.kernels.evaluation.suites.values import check_decidable

NAMES = ("SUITE", "suite")
_FORM = "SUITE = [OpTest(torch.ops.aten.relu.default, [Test(torch.randn(5))])], each from profkit.evaluation"
_LISTS = ("correctness_tests", "performance_tests")


class Test:
    """The arguments of one call. A function among them is called at each access: a seed decides its values."""

    __test__ = False  # for pytest

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._args, self._kwargs = args, kwargs

    @property
    def args(self) -> tuple[Any, ...]:
        """Return the positional arguments."""
        return tuple(map(_drawn, self._args))

    @property
    def kwargs(self) -> dict[str, Any]:
        """Return the named arguments."""
        return {name: _drawn(value) for name, value in self._kwargs.items()}


def _drawn(value: Any) -> Any:
    """Call a function or partial; return any other value as it is."""
    return value() if isfunction(value) or isinstance(value, partial) else value


@dataclass(frozen=True)
class OpTest:
    """An operation with its tests: those that are only checked, and those that are checked and timed."""

    op: Any  # torch's own overload, or its name
    correctness_tests: Sequence[Any] = ()
    performance_tests: Sequence[Any] = ()


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """Seed the random numbers of Python, torch and NumPy for the block, on each device."""
    with quiet_random_numbers(seed):
        torch.cuda.manual_seed_all(seed)  # kept until CUDA is begun; nothing without it
        yield


def load_suite(file: Path, seed: int = 0) -> OpTestSuite:
    """Run the file and return the tests of its SUITE. Raises UsageError where it cannot be run, or lists none."""
    try:
        check_regular(file, MAX_BYTES)
        with _seeded(seed):
            module = load_module(file.resolve(), f"profkit_suite_{file.stem}")
    except (Exception, SystemExit) as error:
        fix = f"python {shlex.quote(file.name)}"
        raise UsageError(f"{file.name} cannot be run: {_error_text(error, file)}", fix) from error
    listed = next((value for name in NAMES if (value := getattr(module, name, None)) is not None), None)
    if not isinstance(listed, Iterable) or isinstance(listed, (str, bytes)):
        raise UsageError(f"{file.name} has no list called {NAMES[0]}", _FORM)
    return OpTestSuite(file.name, tuple(listed))


def _error_text(error: BaseException, file: Path) -> str:
    """Return an exception with the last line of the file in it: `ZeroDivisionError: division by zero (line 3)`."""
    text = next(iter(str(error).splitlines()), "")
    lines = [
        frame.lineno
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename == str(file.resolve())
    ]
    line = f" (line {lines[-1]})" if lines else ""
    return f"{type(error).__name__}: {text}{line}"


@dataclass(frozen=True)
class OpTestSuite:
    """A suite of objects with `op`, `correctness_tests` and `performance_tests`; a test has `args` and `kwargs`.

    Values that are drawn when the arguments are read follow from the seed.
    """

    name: str
    op_tests: tuple[Any, ...]
    device: str = "cpu"

    def tests(self, selection: Selection) -> Iterator[EvaluationTest]:
        """Return the tests, object by object: what is in `performance_tests` is timed, too.

        With a dtype in the selection, only those whose main dtype it is. Raises UsageError for what is no operation
        or no test, and for an operation that the file lacks.
        """
        names = [self._operation(op_test) for op_test in self.op_tests]
        check_names(selection.operations, names, self.name)
        return (
            test
            for at, name in enumerate(names)
            if matches(selection.operations, name)
            for which in _LISTS
            for test in self._list(at, name, which)
            if selection.dtype in ("", test.dtype)
        )

    def _operation(self, op_test: Any) -> str:
        """Return the overload of an object's operation. Raises UsageError where it has none."""
        op = getattr(op_test, "op", None)
        if op is None:
            raise UsageError(f"{self.name}: {op_test!r:.80} has no operation", _FORM)
        try:
            return operation_name(op)
        except UsageError as error:
            fix = error.fix
            if isfunction(op):
                fix = "torch.ops.aten.relu.default; profkit.evaluation.eval_one_op takes functions"
            raise UsageError(f"{self.name}: {error.message}", fix) from error

    def _list(self, at: int, operation: str, which: str) -> Iterator[EvaluationTest]:
        """Yield the tests in one list of an object. Raises UsageError for what is no test."""
        number = -1
        try:
            for number, each in enumerate(getattr(self.op_tests[at], which, None) or ()):
                with _seeded(FIRST_SEED):
                    call = describe_call(tuple(each.args), dict(each.kwargs))
                source: Json = {"object": at, "list": which, "number": number}
                timed = which == _LISTS[1]
                text = format_call(call)
                yield make_test(self.name, operation, main_dtype(call), text, source, timed=timed)
        except Exception as error:  # of the file's own classes
            kind = "" if isinstance(error, NotationError) else f"{type(error).__name__}: "
            message = f"{self.name}: test {max(number, 0)} of {which} of {operation}: {kind}{error}"
            raise UsageError(message, "a test has args and kwargs: tensors and plain values") from error

    def make_arguments(self, test: EvaluationTest, seed: int) -> Arguments:
        """Return the file's arguments, which the judge copies. Raises Skip where the test differs by now."""
        check_decidable(find_operator(test.operation), self.device)
        try:
            arguments = self._draw(test, seed)
            if _text(arguments) != test.arguments:  # shapes are drawn, too: those that were listed
                arguments = self._draw(test, FIRST_SEED)
            text = _text(arguments)
        except Exception as error:  # of the file's own classes, or it has the test no more
            reason = Fact.message(f"{type(error).__name__}: {error}")
            raise Skip(Fact.of("fails-itself", reason, name=self.name)) from None
        if text != test.arguments:
            raise Skip(Fact.of("other-arguments", name=self.name, said=text))
        return arguments

    def _draw(self, test: EvaluationTest, seed: int) -> Arguments:
        """Read the arguments from the file's test under the seed."""
        source: Any = test.source
        with _seeded(seed):
            tests = getattr(self.op_tests[source["object"]], source["list"])
            each = next(islice(iter(tests), source["number"], None))
            return Arguments(tuple(each.args), dict(each.kwargs))


def _text(arguments: Arguments) -> str:
    """Format the arguments in the notation of traces."""
    return format_call(describe_call(arguments.args, arguments.kwargs))


def main_dtype(call: Call) -> str:
    """Return the dtype of the first floating-point tensor, else of the first tensor."""
    forms = call.tensors()
    floats = [form for form in forms if "float" in form.dtype]
    return next((form.dtype for form in (*floats, *forms)), "")
