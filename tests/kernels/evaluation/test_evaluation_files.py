"""The files of an evaluation: strict JSON, right units, honest counts; and the results of other programs."""

from __future__ import annotations

import csv
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import pytest

from profkit.analysis.evaluation import scores_of
from profkit.core.errors import UnreadableReport
from profkit.core.run_folder import read_run
from profkit.core.types import EvaluationDocument, Speedup
from profkit.kernels.evaluation.results.as_run import evaluation_as_run
from profkit.kernels.evaluation.results.field_files import operator_summaries, result_rows
from profkit.kernels.evaluation.results.outputs import write_results
from profkit.kernels.evaluation.results.read_results import is_evaluation, read_evaluation
from profkit.profiling.scrub import scrub
from profkit.reporting.html import page
from profkit.reporting.views.evaluation import view
from tests.conftest import ROOT
from tests.evaluation_documents import a_test, evaluation, every_status, failed, passed, speedup
from tests.reporting.shown import text_of

CORRECTNESS = [
    "op_name", "args", "is_correct", "error_msg", "error_type", "traceback", "max_abs_error", "max_rel_error",
    "test_type",
]  # fmt: skip
PERFORMANCE = [
    "op_name", "args", "speedup", "benchmark_time_ms", "reference_time_ms", "error_msg", "successfully_ran",
    "test_type", "speedup_low", "speedup_high", "speedup_word",
]  # fmt: skip


def strict(path: Path) -> Any:
    def refuse(name: str) -> NoReturn:
        raise AssertionError(f"{name} is no JSON")

    return json.loads(path.read_text(encoding="utf-8"), parse_constant=refuse)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("evaluation")
    assert write_results(path, every_status()) == ()
    return path


def test_the_document_is_read_back_as_it_was_written(folder: Path) -> None:
    assert is_evaluation(folder)
    assert read_evaluation(folder) == read_evaluation(folder / "evaluation.json") == every_status()
    data = strict(folder / "evaluation.json")
    assert data["schema"] == "profkit.evaluation/1"
    assert sum(data["statuses"].values()) == len(data["tests"])
    assert data["n"] == 6
    relu = next(one for one in data["operations"] if one["operation"] == "relu.default")
    assert (relu["status"], relu["tests"], relu["passed"], relu["speedup"]["word"]) == (
        "passed",
        3,
        3,
        "FASTER",
    )
    assert data["tests"][0]["arguments"] == "((T([64, 64], f32),), {})"


def test_speed_over_torch_compile_is_in_the_rows_where_it_was_measured() -> None:
    test = a_test("relu.default")
    plain, compared = passed(test, 2.0), passed(test, 2.0, compiled=speedup(0.5))
    assert [row.get("compiled_speedup") for row in result_rows(evaluation(compared))] == [None, 0.5]
    assert all("compiled_speedup" not in row for row in result_rows(evaluation(plain)))


def test_a_run_is_of_the_backend_that_torch_computed_on() -> None:
    for kind, backend in (("cuda:0", "cuda"), ("cpu", "cpu"), ("", "cpu")):
        document = evaluation(device="NVIDIA H100", device_type=kind)
        assert evaluation_as_run(document).backend == backend


def test_a_number_that_is_none_is_null_and_what_a_suite_keeps_is_any_json(tmp_path: Path) -> None:
    test = replace(a_test("add.Tensor"), source={"seed": [1, None, {"x": "y"}]})
    odd = replace(failed(test), max_abs_error=math.nan, max_rel_error=math.inf)
    write_results(tmp_path, evaluation(odd))
    (row,) = strict(tmp_path / "failed_tests.json")
    assert (row["max_abs_error"], row["max_rel_error"]) == (None, None)
    assert read_evaluation(tmp_path).results[0].test == test


def test_the_rows_are_those_of_backendbench_in_milliseconds(folder: Path) -> None:
    rows = strict(folder / "full_results.json")
    assert [list(row) for row in rows if row["op_name"] == "mul.Tensor"] == [CORRECTNESS, PERFORMANCE]
    assert [(row["op_name"], row["args"]) for row in rows] == sorted((r["op_name"], r["args"]) for r in rows)
    (time,) = (r for r in rows if r["op_name"] == "mul.Tensor" and r["test_type"] == "performance")
    assert (time["reference_time_ms"], time["benchmark_time_ms"]) == (pytest.approx(0.1), pytest.approx(0.1))
    failures = strict(folder / "failed_tests.json")
    assert {row["op_name"] for row in failures} == {
        "sum.default", "mm.default", "bmm.default", "conv.default", "gelu.default", "tanh.default", "cos.default",
    }  # fmt: skip
    assert all(row["speedup"] is None for row in failures if row["test_type"] == "performance")


def test_an_operators_tests_are_counted_as_tests_and_a_crash_is_one() -> None:
    document = evaluation(
        passed(a_test("add.Tensor", (8,)), 2.0),
        passed(a_test("add.Tensor", (2,), timed=False)),
        failed(a_test("add.Tensor", (16,)), "crashed", "SIGSEGV"),
    )
    (row,) = operator_summaries(result_rows(document))
    names = ("total_tests", "correctness_tests", "performance_tests", "failed_correctness_tests")
    assert [row[name] for name in names] == [5, 3, 2, 1]
    assert (row["geomean_speedup"], row["correctness_rate"]) == (pytest.approx(2.0), pytest.approx(2 / 3))


def test_the_summary_names_what_it_counts_and_sorts_by_numbers(folder: Path) -> None:
    text = (folder / "OVERALL_SUMMARY.md").read_text(encoding="utf-8")
    assert "| Correctness Score | 0.3636 |" in text
    data = strict(folder / "evaluation.json")
    assert data["combined_score"] == pytest.approx(4 / 11 * data["geomean"])
    assert f"| Combined Score (correctness x performance) | {data['combined_score']:.2f} |" in text
    assert "- 5 of 21 tests are in none of these: skipped, not run, or passed and weak." in text
    order = [line.split()[1] for line in text.splitlines() if "x | " in line]
    assert order == ["sum.default", "relu.default", "mul.Tensor", "add.Tensor"]
    with (folder / "operator_summary.csv").open(encoding="utf-8", newline="") as file:
        rows = {row["operator"]: row for row in csv.DictReader(file)}
    assert rows["mm.default"]["geomean_speedup"] == ""
    assert float(rows["add.Tensor"]["max_absolute_error"]) == 1e-6


def test_no_speedup_stands_in_a_file_without_its_interval_and_word(tmp_path: Path) -> None:
    """A kernel that only calls `torch.mul`, on a busy machine."""
    busy = Speedup(3.8355, 1.0, 4.25, "AMBIGUOUS", 26)
    test = a_test("mul.Tensor")
    write_results(tmp_path, evaluation(replace(passed(test, 1.0), speedup=busy, compiled=busy)))
    summary = (tmp_path / "OVERALL_SUMMARY.md").read_text(encoding="utf-8")
    assert "| mul.Tensor | 1.0000 | 3.8355x | 1.00 to 4.25, AMBIGUOUS |" in summary
    assert "| Performance Score (geomean speedup) | 3.84 (1.00 to 4.25, AMBIGUOUS) |" in summary
    with (tmp_path / "operator_summary.csv").open(encoding="utf-8", newline="") as file:
        (row,) = csv.DictReader(file)
    assert (float(row["speedup_high"]), row["speedup_word"]) == (pytest.approx(4.25), "AMBIGUOUS")
    data = strict(tmp_path / "evaluation.json")
    words = [data[f"{name}_word"] for name in ("geomean", "geomean_with_fallback", "geomean_of_compiled")]
    assert words == ["AMBIGUOUS"] * 3
    told = view(read_evaluation(tmp_path))
    for text in (text_of(told), page.render(told)):
        assert " ".join(text.split()).count("3.84 x (1.00-4.25, AMBIGUOUS) as fast as") == 3


def test_as_a_run_it_has_what_targets_and_histories_ask_for(folder: Path) -> None:
    run = read_run(folder)
    readings = {(r.metric, r.scope.name): r.value for r in run.readings}
    assert readings["tests.failed", None] == 8
    assert readings["operations.correct", None] == pytest.approx(400 / 11)
    assert readings["speedup", "add.Tensor"] == pytest.approx(math.sqrt(0.7))
    assert run.workload.command[:2] == ("profkit", "evaluate")
    other = evaluation_as_run(replace(every_status(), command=("profkit", "evaluate", "--kernels", "others")))
    assert other.workload.command == run.workload.command  # other kernels of one series


# ---------------------------------------------------------------- results of other programs


def written(folder: Path, data: object, name: str = "full_results.json") -> EvaluationDocument:
    (folder / name).write_text(json.dumps(data), encoding="utf-8")  # NaN and Infinity, as they write them
    assert is_evaluation(folder)
    return read_evaluation(folder)


def correctness(name: str, *, right: bool = True, **fields: object) -> dict[str, object]:
    values: list[object] = [
        name,
        "((T([8], bf16),), {})",
        right,
        "",
        "",
        "",
        math.nan,
        -math.inf,
        "correctness",
    ]
    return {**dict(zip(CORRECTNESS, values, strict=True)), **fields}


def performance(name: str, value: float | None, *, ran: bool = True) -> dict[str, object]:
    values: list[object] = [
        name,
        "((T([8], bf16),), {})",
        value,
        0.5 if ran else None,
        1.0,
        "",
        ran,
        "performance",
    ]
    return dict(zip(PERFORMANCE[:8], values, strict=True))


def test_backendbench_results_become_tests_with_times_of_their_own_arguments(tmp_path: Path) -> None:
    rows = [
        correctness("relu.default"),
        performance("relu.default", 2.0),
        correctness("relu.default", args="((T([9], bf16),), {})", right=False, error_type="AssertionError"),
        correctness("mm.default", right=False, error_type="RuntimeError", error_msg="bad shape\nmore"),
        performance("mm.default", None, ran=False),
        correctness("add.Tensor", right=False, error_type="OutOfMemoryError"),
        performance("silu.default", 1.5),
    ]
    document = written(tmp_path, rows)
    found = {(r.test.operation, r.test.arguments): r for r in document.results}
    relu = found["relu.default", "((T([8], bf16),), {})"]
    assert (relu.status, relu.seconds, relu.reference_seconds, relu.test.dtype) == (
        "passed",
        5e-4,
        1e-3,
        "bfloat16",
    )
    assert (relu.max_abs_error, relu.max_rel_error) == (None, None)
    assert relu.speedup is not None
    assert (relu.speedup.median, relu.speedup.word) == (2.0, "AMBIGUOUS")  # no interval
    assert found["relu.default", "((T([9], bf16),), {})"].status == "incorrect"
    mm = found["mm.default", "((T([8], bf16),), {})"]
    assert (mm.status, mm.fault, mm.reason, mm.speedup) == (
        "incorrect",
        "raised",
        "RuntimeError: bad shape",
        None,
    )
    assert found["add.Tensor", "((T([8], bf16),), {})"].status == "out-of-memory"
    assert len({result.test.id for result in document.results}) == 5


def test_older_results_of_backendbench_have_numbers_as_texts(tmp_path: Path) -> None:
    row = {"op_name": "abs.default", "args": "((T([20], f16),), {})", "correctness_score": 1,
           "correctness_errors": "", "absolute_error": "nan", "relative_error": "0.5",
           "benchmark_time": "2.0", "speedup": "0.5"}  # fmt: skip
    wrong = {
        **row,
        "correctness_score": 0,
        "correctness_errors": "Tensor-likes are not close!",
        "speedup": "1.0",
    }
    document = written(tmp_path, [row, wrong])
    first, second = document.results
    assert (first.status, first.max_abs_error, first.max_rel_error, first.seconds) == (
        "passed",
        None,
        0.5,
        2e-3,
    )
    assert (second.status, second.reason, second.speedup) == (
        "incorrect",
        "Tensor-likes are not close!",
        None,
    )
    mean = scores_of(document).geomean
    assert mean is not None
    assert (mean.value, mean.low, mean.n) == (0.5, None, 1)


def test_kernelbench_problems_become_operations(tmp_path: Path) -> None:
    ok = {"sample_id": 0, "compiled": True, "correctness": True, "metadata": {"hardware": "NVIDIA H100"},
          "runtime": 2.0, "runtime_stats": {"mean": 2.0}, "ref_runtime": 3.0}  # fmt: skip
    error = {"compilation_error": "nvcc: fatal", "compilation_error_name": "builtins.RuntimeError"}
    bad = {**ok, "compiled": False, "correctness": False, "runtime": -1.0, "metadata": error}
    off = {
        **ok,
        "sample_id": 1,
        "correctness": False,
        "runtime": -1.0,
        "metadata": {"correctness_issue": "Output mismatch"},
    }
    document = written(tmp_path, {"1": [ok], "2": [bad], "3": [ok, off]}, "eval_results.json")
    found = {r.test.operation: (r.status, r.reason) for r in document.results}
    assert found == {
        "problem 1": ("passed", ""),
        "problem 2": ("load-error", "RuntimeError: nvcc: fatal"),
        "problem 3 sample 0": ("passed", ""),
        "problem 3 sample 1": ("incorrect", "Output mismatch"),
    }
    speedup = document.results[0].speedup
    assert speedup is not None
    assert (speedup.median, document.device) == (1.5, "NVIDIA H100")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[1, 2]",
        "{}",
        '{"schema": "profkit.evaluation/2", "tests": []}',
        '{"schema": "profkit.evaluation/1"}',
        '{"schema": "profkit.evaluation/1", "started": "", "suite": "", "backend": "", "device": "", "tests": [7]}',
        '{"1": [{"compiled": true}]}',
    ],
)
def test_what_is_no_evaluation_is_refused_with_its_name(tmp_path: Path, text: str) -> None:
    file = tmp_path / "evaluation.json"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(UnreadableReport, match=r"cannot read .*evaluation\.json"):
        read_evaluation(file)


# ---------------------------------------------------------------- a recorded one

RECORDED = ROOT / "tests" / "data" / "evaluations" / "own-kernels"


def test_a_recorded_evaluation_has_the_scores_that_its_tests_give() -> None:
    document = read_evaluation(RECORDED)
    data, scores = strict(RECORDED / "evaluation.json"), scores_of(document)
    assert (
        scores.statuses == data["statuses"] == {"passed": 15, "incorrect": 10, "load-error": 4, "crashed": 1}
    )
    assert (scores.correctness_score, scores.weak_tests) == (data["correctness_score"], 2)
    assert scores.mean_pass_rate == data["mean_pass_rate"] == pytest.approx(0.396, abs=1e-3)
    told = " ".join(text_of(view(document, RECORDED), width=100).split())
    for words in (
        "0 of 6 operations correct; ",
        "its process was killed by SIGSEGV",
        "incorrect gelu.default raised: NotImplementedError: tanh",
        "where.self LoadError: my_kernels.py has no kernel for where.self",
        "2 of 30 tests are weak",
    ):
        assert words in told


def test_a_scrubbed_evaluation_is_whole_and_names_no_folder(tmp_path: Path) -> None:
    document = read_evaluation(RECORDED)
    results = tuple(
        replace(result, reason=result.reason.replace("my_kernels.py", f"{tmp_path}/at-home/my_kernels.py"))
        for result in document.results
    )
    command = ("profkit", "evaluate", f"{tmp_path}/at-home/my_kernels.py")
    (tmp_path / "run").mkdir()
    write_results(tmp_path / "run", replace(document, results=results, command=command))
    scrub(tmp_path / "run", tmp_path / "copy")
    for path in (tmp_path / "copy").rglob("*.*"):
        assert "at-home" not in path.read_text(encoding="utf-8"), path
        assert str(tmp_path) not in path.read_text(encoding="utf-8"), path
    copy = read_evaluation(tmp_path / "copy")
    assert [result.status for result in copy.results] == [result.status for result in document.results]
    assert (copy.device, copy.command[:2]) == (document.device, command[:2])
    assert len(strict(tmp_path / "copy" / "full_results.json")) > 0
