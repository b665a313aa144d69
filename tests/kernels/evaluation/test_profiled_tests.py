"""Chosen tests of an evaluation go through `profkit profile`, as programs of their own."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("torch")

import torch

from profkit.core.errors import Interrupted, Silent, WorkloadError
from profkit.core.types import (
    EvaluationDocument,
    EvaluationTest,
    Gain,
    Insight,
    RunDocument,
    TestResult,
    Workload,
)
from profkit.evaluation import one_test
from profkit.kernels.evaluation.outputs import write_results
from profkit.kernels.evaluation.request import EvaluationRequest, JudgeSettings, read_document
from profkit.kernels.evaluation.sources.source import SourceRequest
from profkit.kernels.evaluation.suites.find import find_suite
from profkit.kernels.evaluation.suites.suite import Selection
from profkit.profiling import drill_down
from profkit.profiling.profile import ProfileOptions
from tests.evaluation_documents import a_test, failed, passed
from tests.journals import store_evaluation
from tests.spoken import spoken

RUN = RunDocument(
    "relu",
    "cpu",
    "complete",
    Workload(("python",), "relu", "/"),
    "2026-11-22T00:00:00+00:00",
    insights=(
        Insight("r", "Use fewer threads", "79 %", "fewer", gain=Gain(0.79, "the CPU time", "what waits")),
    ),
)


def evaluation(folder: Path, *results: TestResult, **settings: object) -> EvaluationRequest:
    """A finished evaluation in `folder` with these results."""
    request = EvaluationRequest(JudgeSettings(**settings), folder, "aten")  # type: ignore[arg-type]
    store_evaluation(request, results)
    return request


def profiled(request: EvaluationRequest, count: int) -> EvaluationDocument:
    """What `--profile COUNT` makes of it."""
    document = read_document(request.folder)
    return drill_down.profile_tests(request, document, count, "gate", Silent(), write_results)


def test_a_profiled_test_has_its_link_and_its_insight_and_one_that_fails_costs_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = evaluation(
        tmp_path,
        passed(a_test("relu.default"), 2.0),
        passed(a_test("gelu.default"), 0.5),
        failed(a_test("abs.default")),
        passed(a_test("sin.default")),  # not timed
    )
    asked: list[ProfileOptions] = []

    def profile(wanted: ProfileOptions, progress: object) -> tuple[RunDocument, Path]:
        asked.append(wanted)
        if len(asked) == 1:
            raise WorkloadError("it failed by itself")
        folder = wanted.output / "run"
        folder.mkdir(parents=True, exist_ok=True)
        return RUN, folder

    monkeypatch.setattr(drill_down, "profile_workload", profile)
    found = profiled(request, 9)
    names = [options.command[-1] for options in asked]
    assert names == [
        found.results[1].test.id,
        found.results[0].test.id,
    ]  # the slowest first, timed ones alone
    assert [result.profile for result in found.results] == ["profiles/run", None, None, None]
    assert spoken(found.results[0].insight) == "Use fewer threads (could save up to 79 % of the CPU time)"
    written = json.loads((tmp_path / "evaluation.json").read_text())
    assert written["operations"][0]["insight"]["names"]["name"] == "Use fewer threads"
    assert "Use fewer threads" in (tmp_path / "report.html").read_text()
    profiled(request, 9)
    assert len(asked) == 3  # only the one that failed is tried again


def test_a_ctrl_c_ends_all_profiles_and_says_how_to_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = evaluation(tmp_path, passed(a_test("relu.default"), 2.0), passed(a_test("gelu.default"), 0.5))
    asked: list[ProfileOptions] = []

    def profile(wanted: ProfileOptions, progress: object) -> tuple[RunDocument, Path]:
        asked.append(wanted)
        return replace(RUN, state="interrupted"), tmp_path

    monkeypatch.setattr(drill_down, "profile_workload", profile)
    with pytest.raises(Interrupted) as ended:
        profiled(request, 2)
    assert len(asked) == 1
    assert ended.value.fix == f"profkit evaluate --resume {tmp_path} --profile 2 --profile-depth gate"
    assert {result.profile for result in read_document(tmp_path).results} == {None}


def a_result(operation: str) -> TestResult:
    """A timed test of the smoke suite."""
    tests = find_suite("smoke").tests(Selection((operation,)))
    test: EvaluationTest = next(test for test in tests if not test.timed)
    return passed(test, 1.0, bytes=1024.0)


def test_a_test_is_a_program_that_calls_the_kernel_of_the_evaluation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    kernels = tmp_path / "kernels.py"
    kernels.write_text("def relu_kernel_impl(x):\n    print('mine')\n    return x.clamp(min=0)\n")
    (tmp_path / "e").mkdir()
    result = a_result("relu")
    evaluation(tmp_path / "e", result, source=SourceRequest("file", (str(kernels),)))
    calls: list[dict[str, object]] = []
    monkeypatch.setattr(
        "profkit.runtime.passes.benchmark.benchmark",
        lambda fn, **named: calls.append({**named, "value": fn()}),
    )
    try:
        assert one_test.main([str(tmp_path / "e"), result.test.id]) == 0
        assert one_test.main([str(tmp_path / "e"), "zzz"]) != 0
    finally:
        torch.set_grad_enabled(True)
    (call,) = calls
    assert (call["name"], call["bytes"]) == ("relu.default", 1024.0)
    printed = capsys.readouterr()
    assert printed.out.startswith("mine")
    assert "has no tests that begin with zzz" in printed.err


def test_arguments_that_the_operation_changes_are_given_their_values_back() -> None:
    numbers, out = torch.ones(3), torch.zeros(3)
    restore = one_test._restorer("mul_.Tensor", (numbers, out), {})
    assert restore is not None
    numbers.mul_(out)
    restore()
    assert numbers.tolist() == [1.0, 1.0, 1.0]
    assert one_test._restorer("mul.Tensor", (numbers, out), {}) is None
