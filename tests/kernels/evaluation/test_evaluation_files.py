"""The files of an evaluation: strict JSON, right units, honest counts; and the results of other programs."""

from __future__ import annotations

import csv
import json
import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import pytest

from profkit.analysis.evaluation.scores import scores_of
from profkit.core.errors import UnreadableReport, UsageError
from profkit.core.run_folder import read_run
from profkit.core.types import Speedup
from profkit.kernels.evaluation.document import is_evaluation, read_evaluation
from profkit.kernels.evaluation.outputs import (
    evaluation_as_run,
    write_results,
)
from profkit.profiling.scrub import scrub
from profkit.reporting.html import page
from profkit.reporting.views.kernels.evaluation import view
from tests.conftest import ROOT
from tests.evaluation_documents import a_test, evaluation, every_status, failed, passed
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
    assert data["schema"] == "profkit.evaluation/2"
    assert sum(data["statuses"].values()) == len(data["tests"])
    assert data["n"] == 7
    relu = next(one for one in data["operations"] if one["operation"] == "relu.default")
    assert (relu["status"], relu["tests"], relu["passed"], relu["speedup"]["word"]) == (
        "passed",
        3,
        3,
        "FASTER",
    )
    assert data["tests"][0]["arguments"] == "((T([64, 64], f32),), {})"


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


def test_the_summary_names_what_it_counts_and_sorts_by_numbers(folder: Path) -> None:
    text = (folder / "OVERALL_SUMMARY.md").read_text(encoding="utf-8")
    assert "| Correctness Score | 0.3333 |" in text
    data = strict(folder / "evaluation.json")
    assert data["combined_score"] == pytest.approx(4 / 12 * data["geomean"])
    (speed,) = re.findall(r"Performance Score \(geomean speedup\) \| (.* \(.*-.*, [A-Z]+\)) \|", text)
    combined = f"{data['combined_score']:.2f} = 0.3333 x {speed}"  # no speed-up without its interval and word
    assert f"| Combined Score (correctness x performance) | {combined} |" in text
    order = [line.split()[1] for line in text.splitlines() if "x | " in line]
    assert order == ["isnan.default", "sum.default", "relu.default", "mul.Tensor", "add.Tensor"]
    with (folder / "operator_summary.csv").open(encoding="utf-8", newline="") as file:
        rows = {row["operator"]: row for row in csv.DictReader(file)}
    assert rows["mm.default"]["geomean_speedup"] == ""
    assert float(rows["add.Tensor"]["max_absolute_error"]) == 1e-6


def test_no_speedup_stands_in_a_file_without_its_interval_and_word(tmp_path: Path) -> None:
    """A kernel that only calls `torch.mul`, on a busy machine."""
    busy = Speedup(3.8355, 1.0, 4.25, "AMBIGUOUS", 26)
    test = a_test("mul.Tensor")
    write_results(tmp_path, evaluation(replace(passed(test, 1.0), speedup=busy)))
    summary = (tmp_path / "OVERALL_SUMMARY.md").read_text(encoding="utf-8")
    assert "| mul.Tensor | 1.0000 | 3.8355x | 3.84 x (1.00-4.25, AMBIGUOUS) |" in summary
    assert "| Performance Score (geomean speedup) | 3.84 x (1.00-4.25, AMBIGUOUS) |" in summary
    with (tmp_path / "operator_summary.csv").open(encoding="utf-8", newline="") as file:
        (row,) = csv.DictReader(file)
    assert (float(row["speedup_high"]), row["speedup_word"]) == (pytest.approx(4.25), "AMBIGUOUS")
    data = strict(tmp_path / "evaluation.json")
    assert [data[f"{name}_word"] for name in ("geomean", "geomean_with_fallback")] == ["AMBIGUOUS"] * 2
    told = view(read_evaluation(tmp_path))
    for text in (text_of(told), page.render(told)):
        assert " ".join(text.split()).count("3.84 x (1.00-4.25, AMBIGUOUS) as fast as") == 1


def test_as_a_run_it_has_what_targets_and_histories_ask_for(folder: Path) -> None:
    run = read_run(folder)
    readings = {(r.metric, r.scope.name): r.value for r in run.readings}
    assert readings["tests.failed", None] == 8
    assert readings["operations.correct", None] == pytest.approx(400 / 12)
    assert readings["speedup", "add.Tensor"] == pytest.approx(math.sqrt(0.7))
    assert run.workload.command[:2] == ("profkit", "evaluate")
    other = evaluation_as_run(replace(every_status(), command=("profkit", "evaluate", "--kernels", "others")))
    assert other.workload.command == run.workload.command  # other kernels of one series


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[1, 2]",
        '{"schema": "profkit.evaluation/2", "tests": []}',
        '{"schema": "profkit.evaluation/2"}',
        '{"schema": "profkit.evaluation/2", "started": "", "suite": "", "backend": "", "device": "", "tests": [7]}',
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
    assert scores.correctness_score == data["correctness_score"]
    assert scores.mean_pass_rate == pytest.approx(
        0.406, abs=1e-3
    )  # recorded with tests left out that count now
    told = " ".join(text_of(view(document, RECORDED), width=100).split())
    for words in (
        "0 of 6 operations correct; ",
        "its process was killed by SIGSEGV",
        "incorrect gelu.default raised: NotImplementedError: tanh",
        "where.self LoadError: my_kernels.py has no kernel for where.self",
    ):
        assert words in told


def test_an_evaluation_is_not_scrubbed_and_says_what_is(folder: Path) -> None:
    with pytest.raises(UsageError, match="only runs and reports can be scrubbed"):
        scrub(folder)
