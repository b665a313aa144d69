"""A sweep that is judged: one screen with what is wrong, what is far from its roofline, and verdicts by the dozen."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from profkit.cli.app import app
from profkit.core.types import RunDocument, SweepDocument
from profkit.kernels.sweep.outputs import sweep_as_run, write_results
from profkit.kernels.sweep.request import SweepGrid
from profkit.profiling.summarize import judge_document, targets_for
from profkit.reporting.views.kernels.sweep import judged as view
from tests import sweep_documents as sweeps
from tests.journals import store_sweep_document
from tests.reporting.shown import text_of
from tests.spoken import spoken


def judged(document: SweepDocument, precision: float = 0.01) -> RunDocument:
    """Its run with samples, and verdicts on it."""
    run = sweep_as_run(sweeps.sampled(document), ("profkit", "sweep"), "sweep", "", None, (), precision)
    return judge_document(run, targets_for(run.backend, None, "sweep"))


def digest(run: RunDocument, *, width: int = 80) -> str:
    return text_of(view(run), width=width)


def words(text: str) -> str:
    return " ".join(text.split())


def test_thousands_of_cases_are_one_screen() -> None:
    document = sweeps.sweep(
        "LayerNorm", "GELU", "Swish", "MSE", dimensions=(8, 16, 32, 64, 128, 256), batches=(16, 32, 64)
    )
    run = judged(document)
    assert len(document.results) > 500
    told = digest(run)
    assert f"a sweep, {len(document.results)} cases with a time" in told
    assert len(told.splitlines()) < 40
    assert max(map(len, told.splitlines())) <= 80


def test_verdicts_are_counted_by_target() -> None:
    document = sweeps.sweep("GELU", "MSE")
    vague = [
        replace(r, half_width=0.05) if (r.implementation, r.point.operation) == ("CUDA", "MSE") else r
        for r in document.results
    ]
    document = sweeps.of(*vague)
    run = judged(document)
    unknown = [v for v in run.verdicts if v.verdict == "unknown"]
    assert len(unknown) == 12
    assert {v.target for v in unknown} == {"time-precision"}  # it times: of kernels nothing is asked
    told = words(digest(run, width=100))
    assert "? UNKNOWN time-precision" in told
    assert "12 UNKNOWN, 84 PASS" in told


@pytest.mark.parametrize(
    ("name", "state", "word"),
    [
        ("CUDA", "wrong", "fail"),
        ("PyTorch", "wrong", "pass"),
        ("PyTorch", "crashed", "fail"),
        ("Triton", "too large", "pass"),
    ],
)
def test_what_is_not_right_fails_the_check_but_for_arithmetic_of_the_framework(
    name: str, state: str, word: str
) -> None:
    place = list(sweeps.FACTORS).index(name)
    among = (place, place + 4)
    document = sweeps.without(sweeps.sweep(), state, name, "why it is so", among=among)  # type: ignore[arg-type]
    run = judged(document)
    verdict = next(v for v in run.verdicts if v.target == "cases-right")
    assert verdict.verdict == word
    told = words(digest(run, width=100))
    if word == "fail":
        assert "2 of the cases are wrong, failed, crashed or hung" in spoken(verdict.reason)
        assert "why it is so" in spoken(verdict.reason)
        assert "✗ FAIL cases-right" in told


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a sweep leaves in which a case of CUDA is wrong."""
    made = tmp_path_factory.mktemp("runs") / "20260101-000000-sweep-cuda"
    whole = sweeps.without(sweeps.sweep(), "wrong", "CUDA", "half of it is 0", among=(7,))
    grid = SweepGrid(("GELU",), tuple(sweeps.FACTORS), (16, 32), (256, 512), (8, 64, 512))
    store_sweep_document(made, whole, grid)
    write_results(made, sweeps.sampled(whole), grid, 0.01, "sweep")
    return made


@pytest.mark.parametrize("form", ["terminal", "markdown"])
def test_check_shows_the_digest_and_fails_for_a_wrong_case(folder: Path, form: str) -> None:
    done = CliRunner().invoke(app, ["check", str(folder), "--format", form])
    assert done.exit_code == 1
    assert "FAIL" in done.stdout
    assert "half of it is 0" in words(done.stdout)
    assert len(done.stdout.splitlines()) < 60


def test_details_and_machines_get_every_case(folder: Path) -> None:
    every = CliRunner().invoke(app, ["check", str(folder), "--details"])
    assert len(every.stdout.splitlines()) > 80
    document = json.loads(CliRunner().invoke(app, ["check", str(folder), "--format", "json"]).stdout)
    assert sum(v["target"] == "time-precision" for v in document["verdicts"]) == 47
    junit = CliRunner().invoke(app, ["report", str(folder), "--format", "junit"]).stdout
    assert junit.count("<testcase") >= 47
