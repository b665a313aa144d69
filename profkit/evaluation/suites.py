"""Suites and backends for a loop of one's own.

for op_test in open_suite("smoke"):
    if op_test.op in backend:
        print(eval_one_op(op_test.op, backend[op_test.op], op_test.correctness_tests, op_test.performance_tests))
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import torch

from profkit.core.errors import UsageError
from profkit.core.types import EvaluationTest
from profkit.kernels.evaluation.request import SEED_BITS, JudgeSettings
from profkit.kernels.evaluation.sources.files import open_source
from profkit.kernels.evaluation.sources.names import find_operator, operation_name
from profkit.kernels.evaluation.sources.source import BACKENDS, Kernel, KernelSource, make_source_request
from profkit.kernels.evaluation.suites.find import find_suite
from profkit.kernels.evaluation.suites.op_tests import OpTest
from profkit.kernels.evaluation.suites.suite import Selection, Suite, is_file
from profkit.kernels.evaluation.worker.arguments import Encoder, decode


@dataclass(frozen=True)
class SuiteTest:
    """One call of an operation. Its arguments are made whenever they are read, with the same values each time.

    Raises Skip if they cannot be made here. `settings` has the seed, and the name of the suite.
    """

    test: EvaluationTest
    suite: Suite
    settings: JudgeSettings

    @property
    def args(self) -> tuple[Any, ...]:
        """Return its positional arguments, tensors on the suite's device."""
        return self._make()[0]

    @property
    def kwargs(self) -> dict[str, Any]:
        """Return its named arguments."""
        return self._make()[1]

    def _make(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        arguments = self.suite.make_arguments(self.test, self.settings.seed_of(self.test.id))
        encoder = Encoder(torch.device(self.settings.device))  # strides, and storages that they share
        body = encoder.encode(arguments.args, arguments.kwargs).body
        return decode(body, [content.clone() for content in encoder.contents])


def open_suite(
    name: str | Path = "smoke",
    ops: str | Sequence[str] = (),
    dtype: str = "",
    device: str = "",
    *,
    traces: str | Path | None = None,
    seed: int | None = None,
) -> list[OpTest]:
    """Return the operations of a suite with their tests: smoke, opinfo, torchbench, traced, or FILE.py, run here.

    All tests of an operation are its `correctness_tests`, those that are worth it its `performance_tests`, too.
    `ops` are names or patterns, one with commas between them or a list; `device` is cuda if there is a GPU,
    `traces` the file of the suite traced. Values follow from `seed`; without one they are not known beforehand.
    Raises UsageError if there is no such suite, and for an operation or a dtype that it does not have.
    """
    names = ops.split(",") if isinstance(ops, str) else ops
    wanted = tuple(entry.strip() for entry in names if entry.strip())
    path = Path(traces) if traces is not None else None
    if is_file(str(name)):
        if path is not None:
            raise UsageError(f"the suite {name} takes no trace", 'open_suite("traced", traces=FILE)')
        path, name = Path(name).resolve(), Path(name).name
    settings = JudgeSettings(
        str(name),
        str(path or ""),
        dtype=dtype,
        device=device or ("cuda" if torch.cuda.is_available() else "cpu"),
        seed=secrets.randbits(SEED_BITS) if seed is None else seed,
    )
    kind = torch.device(settings.device).type
    suite = find_suite(settings.suite, path, device=kind, seed=settings.seed)
    opened = []
    tests = suite.tests(Selection(wanted, dtype))
    for operation, group in groupby(tests, key=lambda test: test.operation):
        operation_tests = [SuiteTest(test, suite, settings) for test in group]
        op: Any = operation
        with suppress(LookupError):  # of a trace of another torch
            op = find_operator(operation)
        opened.append(OpTest(op, operation_tests, [entry for entry in operation_tests if entry.test.timed]))
    return opened


@dataclass(frozen=True)
class KernelBackend:
    """Kernels by operation: `backend[torch.ops.aten.relu.default]`, `backend["relu"]`, `"add__Tensor" in backend`."""

    source: KernelSource

    def __getitem__(self, op: Any) -> Kernel:
        """Load the kernel, running its file in this process.

        Raises KeyError without one, LoadError for a broken one.
        """
        name = operation_name(op)
        if not self.source.has_kernel(name):
            raise KeyError(name)
        return self.source.load(name)

    def __contains__(self, op: Any) -> bool:
        """Return whether there is a kernel, by names alone: nothing is run."""
        with suppress(UsageError):  # an operation of another library
            return self.source.has_kernel(operation_name(op))
        return False

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names of its operations."""
        return iter(self.source.operations())

    def __len__(self) -> int:
        """Return the number of its operations."""
        return len(self.source.operations())


def open_backend(name: str | Path = "aten", kernels: str | Path | None = None) -> KernelBackend:
    """Open the kernels of aten, flag_gems, a FOLDER or a FILE.py.

    `open_backend("directory", FOLDER)` is the same as `open_backend(FOLDER)`. A kernel that is requested is
    loaded in this process, and may do here what it likes. Raises UsageError for what is not there, and
    MachineError for a backend that is not available.
    """
    backend = str(name)
    if backend == "llm":
        raise UsageError(
            "a language model's kernels lie in a folder", "profkit generate, then open_backend(FOLDER)"
        )
    if kernels is None and backend not in (*BACKENDS, "pregenerated"):
        backend, kernels = "", name
    path = Path(kernels) if kernels is not None else None
    if path is not None and backend in ("", "directory", "pregenerated") and path.suffix == ".py":
        return KernelBackend(open_source(make_source_request(file=path)))
    if path is not None and not backend and not path.exists():
        raise UsageError(
            f"there is no backend, folder or file called {str(name)!r}", "aten, flag_gems, FOLDER or FILE.py"
        )
    return KernelBackend(open_source(make_source_request(backend, path)))
