"""The command line of an evaluation: faults with their fix, and what is said before anything is tested."""

from __future__ import annotations

from pathlib import Path

import pytest

from profkit.core.codec import to_plain_data
from profkit.execution.child import JobStatus
from profkit.execution.pool import Job, JobOutcome
from profkit.kernels.evaluation import run
from profkit.kernels.evaluation.request import (
    EvaluationRequest,
    JudgeSettings,
    note_started,
    was_started,
)
from profkit.kernels.evaluation.sources.source import SourceRequest
from tests.cli_runner import ENVIRONMENT, Said, call_in_process
from tests.evaluation_documents import a_test
from tests.journals import store_evaluation
from tests.spoken import spoken


def evaluate(*arguments: str, cwd: Path) -> Said:
    """`profkit evaluate` where no judge has to start: in the process of the tests."""
    return call_in_process(["evaluate", *arguments], cwd, ENVIRONMENT)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An evaluation that has just begun."""
    path = tmp_path / "evaluation"
    path.mkdir()
    store_evaluation(EvaluationRequest(JudgeSettings(), path, "aten"))
    return path


@pytest.mark.parametrize(
    ("words", "said", "fix"),
    [
        (["--timeout", "0"], "--timeout 0 is not above 0 and at most 10,000,000", "--timeout 60"),
        (["--budget", "nan"], "--budget nan is not above 0 and at most 10,000,000", "--budget 5"),
        (["--floor", "-1"], "--floor -1 is not above 0 and at most 0.5", "--floor 0.05"),
    ],
)
def test_a_number_out_of_range_is_refused_with_the_usual_one(
    tmp_path: Path, words: list[str], said: str, fix: str
) -> None:
    done = evaluate(*words, cwd=tmp_path)
    assert done.code == 2
    assert said in done.err
    assert fix in done.err


@pytest.mark.parametrize("option", ["--kernels", "--kernels-dir", "--ops-directory"])
def test_run_is_evaluate_by_the_names_of_the_guide_and_says_so(tmp_path: Path, option: str) -> None:
    words = ["run", "--backend", "pregenerated", option, "K", "--suite", "opinfo", "--llm-max-attempts", "3"]
    done = call_in_process(words, tmp_path, ENVIRONMENT)
    assert done.code == 2
    assert "profkit run is profkit evaluate here" in done.err
    assert "error: K cannot be read" in done.err
    assert "│ run " not in call_in_process(["--help"], tmp_path, ENVIRONMENT).out


def test_an_unknown_backend_is_refused_with_all_there_are(tmp_path: Path) -> None:
    done = evaluate("--backend", "cuda", cwd=tmp_path)
    assert done.code == 2
    assert "--backend aten|directory|flag_gems|llm" in done.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["kernels.py"], "kernels.py cannot be changed by --resume"),
        (["--correctness-only"], "--correctness-only cannot be changed by --resume"),
    ],
)
def test_what_would_not_be_heeded_is_refused(folder: Path, words: list[str], said: str) -> None:
    done = evaluate(*words, "--resume", str(folder), cwd=folder.parent)
    assert done.code == 2
    assert said in done.err


@pytest.mark.parametrize(
    ("settings", "options"),
    [
        (JudgeSettings(source=SourceRequest("file", ("/tmp/k.py",))), "/tmp/k.py"),
        (JudgeSettings(source=SourceRequest("directory", ("/tmp/ks",))), "--kernels /tmp/ks"),
        (JudgeSettings("my.py", "/tmp/my.py"), "--suite /tmp/my.py"),
    ],
)
def test_code_that_a_folder_names_runs_only_where_the_user_names_it_too(
    tmp_path: Path, settings: JudgeSettings, options: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store_evaluation(EvaluationRequest(settings, tmp_path, "file"))
    done = evaluate("--resume", str(tmp_path), cwd=tmp_path)
    assert done.code == 2
    assert "the folder names code that would run here: /tmp/" in done.err
    assert f"profkit evaluate --resume {tmp_path} {options}" in done.err
    again = evaluate("--replay", "0", str(tmp_path), cwd=tmp_path)
    assert again.code == 2
    assert f"--replay 0 {tmp_path} {options if options[0] == '-' else f'--kernels {options}'}" in again.err
    asked: list[EvaluationRequest] = []

    def stop(request: EvaluationRequest, *_: object) -> None:
        asked.append(request)
        raise SystemExit(9)

    monkeypatch.setattr(run, "run_evaluation", stop)
    assert evaluate("--resume", str(tmp_path), *options.split(), cwd=tmp_path).code == 9
    assert [request.settings for request in asked] == [settings]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--suite", "absent.py"], "there is no file absent.py"),
        (["--suite", "mine.py", "--traces", "t.txt"], "the suite mine.py takes no trace"),
    ],
)
def test_a_file_of_tests_that_is_not_there_or_has_a_trace_is_refused(
    tmp_path: Path, words: list[str], said: str
) -> None:
    (tmp_path / "mine.py").write_text("SUITE = []")
    for verb in ("evaluate", "generate"):
        done = call_in_process(
            [verb, *words, "--ops", "relu", "--command", "x"][: 1 + len(words)], tmp_path, ENVIRONMENT
        )
        assert (done.code, said in done.err) == (2, True), done.err


def test_functions_whose_text_stands_in_a_folder_are_not_run_from_it(tmp_path: Path) -> None:
    settings = JudgeSettings(source=SourceRequest("function", text="import os; os.abort()"))
    store_evaluation(EvaluationRequest(settings, tmp_path, "function"))
    for words in (("--resume", str(tmp_path)), ("--replay", "0", str(tmp_path))):
        done = evaluate(*words, cwd=tmp_path)
        assert done.code == 2
        assert "are functions of a program" in done.err


def test_no_kernel_gets_out_of_a_test_by_ending_the_judge(tmp_path: Path) -> None:
    job = Job("1", {"test": to_plain_data(a_test("relu.default"))})
    for asked, status in ((False, "skipped"), (True, "lost")):
        if asked:
            note_started(tmp_path, 0, job.key)
        outcome = JobOutcome(job, JobStatus.crash, reason="its process was killed by SIGKILL")
        result = run.test_result(outcome, started=was_started(tmp_path, 0, job.key))
        assert result is not None
        assert result.status == status
        assert "killed by SIGKILL" in spoken(result.reason)
