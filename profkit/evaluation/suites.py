"""Suites and backends for a loop of one's own: the tests of each operation, and the kernel of each.

suite, backend = open_suite("smoke"), open_backend("directory", "generated_kernels")
for op_test in suite:
    if op_test.op in backend:
        print(eval_one_op(op_test.op, backend[op_test.op], op_test.correctness_tests, op_test.performance_tests))
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from profkit.core.errors import UsageError
from profkit.core.types import EvaluationTest
from profkit.kernels.evaluation.request import SEED_BITS
from profkit.kernels.evaluation.sources.names import find_operator, operation_name
from profkit.kernels.evaluation.sources.registry import make_source_request, open_source
from profkit.kernels.evaluation.sources.source import Kernel, KernelSource
from profkit.kernels.evaluation.suites.registry import find_suite
from profkit.kernels.evaluation.suites.suite import Arguments, Selection, Suite


@dataclass(frozen=True)
class SuiteTest:
    """A call of an operation. Its values are drawn whenever it is read, the same ones each time: none are kept."""

    test: EvaluationTest
    suite: Suite
    seed: int

    @property
    def args(self) -> tuple[Any, ...]:
        """Its positional arguments. Raises Skip where they cannot be made here."""
        return self._make().args

    @property
    def kwargs(self) -> Mapping[str, Any]:
        """Its named arguments. Raises Skip where they cannot be made here."""
        return self._make().kwargs

    def _make(self) -> Arguments:
        return self.suite.make_arguments(self.test, self.seed)


@dataclass(frozen=True)
class OpTest:
    """An operation with its tests: all of them are for correctness, and those that are worth it are timed, too."""

    op: Any  # torch's own overload; its name where this torch has none
    correctness_tests: Sequence[SuiteTest]
    performance_tests: Sequence[SuiteTest]


@dataclass(frozen=True)
class OpenSuite:
    """The tests of a suite, operation by operation."""

    suite: Suite
    selection: Selection
    seed: int

    def __iter__(self) -> Iterator[OpTest]:
        """An OpTest for each operation. Raises UsageError for an operation or a dtype that the suite has not."""
        for name, group in groupby(self.suite.tests(self.selection), key=lambda test: test.operation):
            tests = [SuiteTest(test, self.suite, self.seed) for test in group]
            yield OpTest(_operator(name), tests, [each for each in tests if each.test.timed])


def open_suite(
    name: str = "smoke",
    operations: Sequence[str] = (),
    dtype: str = "",
    device: str = "cpu",
    *,
    path: str | Path | None = None,
    seed: int | None = None,
) -> OpenSuite:
    """The suite called so, as `--suite` has it, to loop over; `path` is what `--traces` names.

    Values follow from `seed`; without one nobody knows them beforehand. Raises UsageError where there is no such suite.
    """
    suite = find_suite(name, Path(path) if path is not None else None, device=device)
    wanted = (operations,) if isinstance(operations, str) else tuple(operations)
    drawn = secrets.randbits(SEED_BITS) if seed is None else seed
    return OpenSuite(suite, Selection(wanted, dtype, device), drawn)


@dataclass(frozen=True)
class OpenBackend:
    """Kernels by operation: `backend[torch.ops.aten.relu.default]`, `backend["relu"]`, `"add__Tensor" in backend`."""

    source: KernelSource

    def __getitem__(self, op: Any) -> Kernel:
        """The kernel, whose file is run in this process. Raises KeyError without one, LoadError for a broken one."""
        name = operation_name(op)
        if not self.source.has_kernel(name):
            raise KeyError(name)
        return self.source.load(name)

    def __contains__(self, op: Any) -> bool:
        """Whether there is a kernel, by names alone: nothing is run."""
        with suppress(UsageError):  # an operation of another library
            return self.source.has_kernel(operation_name(op))
        return False

    def __iter__(self) -> Iterator[str]:
        """The names of its operations."""
        return iter(self.source.operations())

    def __len__(self) -> int:
        """How many operations it has."""
        return len(self.source.operations())


def open_backend(name: str = "", kernels: str | Path | None = None, device: str = "auto") -> OpenBackend:
    """The kernels of a backend, as `--backend` and `--kernels` have it, or of a file: `open_backend("", "mine.py")`.

    Raises UsageError for what is not there, and MachineError for a backend that cannot be had.
    """
    path = Path(kernels) if kernels is not None else None
    if path is not None and path.suffix == ".py":
        return OpenBackend(open_source(make_source_request(name, None, path, device)))
    return OpenBackend(open_source(make_source_request(name, path, None, device)))


def _operator(name: str) -> Any:
    try:
        return find_operator(name)
    except KeyError:
        return name
