"""Run one test of an evaluation as a program, for any profiler.

`python -m profkit.evaluation.one_test FOLDER ID` makes the arguments that the evaluation made, loads the
kernel in this very process, and gives the call to `profkit.benchmark`.
"""

from __future__ import annotations

import argparse
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from profkit.core.errors import MachineError, ProfkitError, WorkloadError
from profkit.core.types import EvaluationTest, TestResult
from profkit.kernels.evaluation.request import JudgeSettings, find_result, read_request


def test_command(folder: Path, test: EvaluationTest) -> tuple[str, ...]:
    """Return the command line of a test of the evaluation in `folder`."""
    return (sys.executable, "-m", "profkit.evaluation.one_test", str(folder.resolve()), test.id)


test_command.__test__ = False  # type: ignore[attr-defined]  # for pytest


def main(argv: Sequence[str] | None = None) -> int:
    """Measure one test, or run it under the instrument of the present pass; return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m profkit.evaluation.one_test",
        description="The kernel of one test of an evaluation, given to profkit.benchmark.",
        epilog="example:  profkit profile -- python -m profkit.evaluation.one_test FOLDER 0123456789ab",
    )
    parser.add_argument("folder", type=Path, help="of the evaluation")
    parser.add_argument("test", metavar="ID", help="of the test, or how it begins")
    options = parser.parse_args(argv)
    try:
        settings = read_request(options.folder).settings
        _measure(settings, find_result(options.folder, options.test))
        return 0
    except ProfkitError as error:
        print(f"error: {error.message}", file=sys.stderr)
        if error.fix:
            print(f"fix:   {error.fix}", file=sys.stderr)
        return error.exit_code


def _measure(settings: JudgeSettings, result: TestResult) -> None:
    import torch

    from profkit.runtime.passes.benchmark import benchmark

    test = result.test
    if settings.threads:
        torch.set_num_threads(settings.threads)
    torch.set_grad_enabled(False)
    args, kwargs = _make_arguments(settings, result)
    kernel = _load_kernel(settings, test)
    restore = _restorer(test.operation, args, kwargs)
    try:
        kernel(*args, **kwargs)
    except Exception as error:
        traceback.print_exc()
        raise WorkloadError(
            f"the kernel of {test.operation} raised {type(error).__name__}: {error}"
        ) from error

    def call() -> None:
        kernel(*args, **kwargs)
        if restore is not None:
            restore()

    benchmark(call, name=test.operation, flops=result.flops or None, bytes=result.bytes or None)


def _make_arguments(settings: JudgeSettings, result: TestResult) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Make the arguments that the test was judged on. Raises MachineError if they cannot be made here."""
    import torch

    from profkit.kernels.evaluation.suites.find import find_suite
    from profkit.kernels.evaluation.suites.suite import Skip
    from profkit.kernels.evaluation.worker.arguments import Encoder, NotPortable, decode

    test, device = result.test, torch.device(settings.device)
    path = Path(settings.suite_path) if settings.suite_path else None
    suite = find_suite(settings.suite, path, device=device.type, seed=settings.seed)
    try:
        arguments = suite.make_arguments(test, settings.seed_of(test.id))
        encoder = Encoder(device)  # which moves them there as they are: strides, and storages that they share
        return decode(encoder.encode(arguments.args, arguments.kwargs).body, encoder.contents)
    except (Skip, NotPortable) as why:
        raise MachineError(f"the arguments of test {test.id} cannot be made here: {why}") from why


def _load_kernel(settings: JudgeSettings, test: EvaluationTest) -> Callable[..., Any]:
    """Load the kernel. Raises WorkloadError if its source does not give it."""
    from profkit.kernels.evaluation.sources.files import open_source

    try:
        return open_source(settings.source).load(test.operation)
    except ProfkitError:
        raise
    except (Exception, SystemExit) as error:
        raise WorkloadError(f"the kernel of {test.operation} cannot be loaded: {error}") from error


def _restorer(operation: str, args: Sequence[Any], kwargs: dict[str, Any]) -> Callable[[], object] | None:
    """Return a function that restores the arguments that the operation changes; None if it changes none.

    Numbers that are multiplied a million times end as infinity or as denormals, which are slow.
    """
    from profkit.kernels.evaluation.judging.reference import written_places
    from profkit.kernels.evaluation.sources.names import find_operator
    from profkit.kernels.operations.in_float64 import flat_tensors

    tensors = flat_tensors([args, kwargs])
    changed = [tensors[place] for place in sorted(written_places(find_operator(operation), args, kwargs))]
    if not changed:
        return None
    kept = [tensor.clone() for tensor in changed]

    def restore() -> None:
        for tensor, values in zip(changed, kept, strict=True):
            if tensor.shape != values.shape:  # out= of a size that does not fit is resized
                tensor.resize_(values.shape)
            tensor.copy_(values)

    return restore


if __name__ == "__main__":
    sys.exit(main())
