"""The worker process of a judge: how it is started, what it is asked, and what its answers mean."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from profkit.core import codec
from profkit.core.errors import MachineError, UnreadableReport, UsageError
from profkit.core.types import EvaluationTest, Json, MeasuredCeilings, TestResult
from profkit.execution.client import WorkerCommand
from profkit.execution.job import JobOutcome, JobStatus
from profkit.execution.places.kinds import words_of
from profkit.kernels.devices import check_device
from profkit.kernels.evaluation.request import WAIT_POLICY, JudgeSettings

JUDGE = "profkit.kernels.evaluation.judging.judge:Judge"
COMPILE_PATIENCE = 400.0  # more, where torch.compile is asked for
PATIENCE = 120.0  # seconds that the judge gets above what a kernel may take: truth in float64, a process started anew


def judge_command(logs: Path, env: Mapping[str, str], slot: int = 0) -> WorkerCommand:
    """How a judge is started. Its threads wait asleep, unless the user has chosen how threads wait."""
    patient = WAIT_POLICY not in os.environ
    waiting = {WAIT_POLICY: "passive"} if patient else {}
    return WorkerCommand(
        JUDGE, (str(logs), slot, patient), env={**env, **waiting}, log=logs / f"judge-{slot}.log"
    )


def seconds_of_a_test(settings: JudgeSettings) -> float:
    """What the judge gets for one test, before it counts as hanging."""
    compiling = COMPILE_PATIENCE if settings.compiled else 0.0
    return 2 * settings.timeout + PATIENCE + compiling


def plain_settings(settings: JudgeSettings) -> Mapping[str, object]:
    """Settings as they travel to a judge."""
    plain = codec.to_plain_data(settings)
    assert isinstance(plain, dict)
    return plain


def check_judge(slot: int, about: Mapping[str, Any], first: Mapping[str, Any]) -> None:
    """Raises MachineError where a judge cannot have its device, or that is of another kind than the first one."""
    if "usage" in about:
        raise MachineError(*about["usage"])
    if "usage" not in first:
        check_device(slot, about, first)


@dataclass(frozen=True)
class _About:
    """What a judge says of itself, as far as it is read here."""

    device: str
    versions: Mapping[str, str]
    tests: tuple[EvaluationTest, ...] = ()
    without_kernel: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    ceilings: Mapping[str, MeasuredCeilings] = field(default_factory=dict)


def check_about(about: Json, first: bool, title: str) -> Json:  # noqa: ARG001
    """What a judge at another place says of itself. Raises UnreadableReport for what no judge would."""
    if not isinstance(about, dict) or "usage" not in about:
        codec.from_plain_data(_About, about)
        return about
    usage = codec.from_plain_data(tuple[str | None, ...], about["usage"], "usage")
    if len(usage) != 2:
        raise UnreadableReport("usage is no message with its fix")
    return {"usage": list(words_of(title, *usage))}


def check_tests(settings: JudgeSettings, about: Mapping[str, Any]) -> tuple[EvaluationTest, ...]:
    """The tests that the judge lists. Raises UsageError where there are none, or where it cannot make any."""
    if "usage" in about:
        raise UsageError(*about["usage"])
    tests = codec.from_plain_data(tuple[EvaluationTest, ...], about.get("tests", []), "tests")
    if tests:
        return tests
    if about.get("without_kernel"):
        raise UsageError(
            f"no operation of the suite {settings.suite} has a kernel there",
            "--ops NAME says what is missing"
            + ("" if settings.suite == "opinfo" else "; --suite opinfo has more operations"),
        )
    raise UsageError(
        f"no test of the suite {settings.suite} is left by these options",
        "leave out --ops, or name others",
    )


def test_result(outcome: JobOutcome, *, asked: bool) -> TestResult | None:
    """The result of a test by the outcome of its job; None where it was not done.

    What ends the judge itself is PyTorch's own kernel, or the making of arguments: no kernel of anybody runs there. But
    one that was `asked` runs beside it, and may have ended it: no test of a kernel's is left out by what it does.
    """
    test = codec.from_plain_data(EvaluationTest, outcome.job.data)
    result = TestResult(test, "lost", outcome.reason, spent=outcome.seconds, slot=outcome.slot)
    if outcome.status is JobStatus.cancelled:
        return None
    if outcome.status is JobStatus.ok:
        try:
            answer = codec.from_plain_data(TestResult, outcome.value, "answer")
        except UnreadableReport as error:
            return replace(result, reason=f"the judge gave a wrong answer: {error.message}")
        if answer.test.id != test.id:
            return replace(result, reason="the judge answered what it was not asked")
        return replace(answer, slot=outcome.slot)
    if asked and outcome.status is not JobStatus.lost:
        result = replace(result, reason=f"the judge ended while the kernel was tested: {outcome.reason}")
    elif outcome.status is not JobStatus.lost:
        reason = (
            f"nothing can be decided: PyTorch's own kernel, or what makes its arguments: {outcome.reason}"
        )
        result = replace(result, status="skipped", reason=reason)
    return result


test_result.__test__ = False  # type: ignore[attr-defined]  # for pytest
