"""An evaluator in the test's own process, over a suite of one argument."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import torch

from profkit.core import codec
from profkit.core.types import EvaluationTest, TestResult
from profkit.kernels.evaluation.evaluator import Evaluator
from profkit.kernels.evaluation.request import JudgeSettings, PairOptions
from profkit.kernels.evaluation.sources.source import SourceRequest
from profkit.kernels.evaluation.suites.suite import Arguments

FILES = Path(__file__).parent / "files"
POSITIVE = ("log.default", "sqrt.default")


class OneArgument:
    """A suite whose tests have one matrix of float32."""

    name = "one argument"

    def make_arguments(self, test: EvaluationTest, seed: int) -> Arguments:
        """Normal numbers, or positive ones."""
        x = torch.randn(64, 64, generator=torch.Generator().manual_seed(seed))
        return Arguments((x.abs() + 0.1 if test.operation in POSITIVE else x,))


@contextmanager
def evaluator_of(file: str, logs: Path, **settings: object) -> Iterator[Evaluator]:
    """An evaluator of the kernels in `file`, which measures for a short time."""
    evaluator, threads = Evaluator(str(logs)), torch.get_num_threads()
    chosen = JudgeSettings(
        source=SourceRequest("file", (str(FILES / file),)),
        threads=1,
        timeout=20.0,
        timing=PairOptions(budget=0.1),
    )
    plain = codec.to_plain_data(replace(chosen, **settings))  # type: ignore[arg-type]
    assert isinstance(plain, dict)
    try:
        evaluator.open({**plain, "first": False})
        evaluator._suite = OneArgument()
        yield evaluator
    finally:
        evaluator.close()
        torch.set_num_threads(threads)  # an evaluator has its process for itself
        torch.set_grad_enabled(True)


def judge_operation(evaluator: Evaluator, operation: str) -> TestResult:
    """The result of one timed test of the operation."""
    test = EvaluationTest("0" * 12, "one argument", operation, "float32", "((T([64, 64], f32),), {})")
    return evaluator.evaluate(test)
