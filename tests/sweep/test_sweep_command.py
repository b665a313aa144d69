"""The command line of a sweep: documents, exit codes, and faults with their fix."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("torch")

from small_sweep import request_for, settled

from tests.cli_runner import profkit


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A sweep of which nothing is left."""
    request = request_for(tmp_path / "out", "PyTorch")
    settled(request)
    return request.folder


def test_a_sweep_as_json_is_one_document_and_nothing_else(folder: Path, tmp_path: Path) -> None:
    done = profkit("sweep", "--resume", str(folder), "--format", "json", cwd=tmp_path)
    assert done.code == 0, done.err
    found = json.loads(done.out)
    assert found["schema"] == "profkit.sweep/1"
    assert found["folder"] == str(folder)
    assert len(found["sweep"]["results"]) == 2
    assert found["sweep"]["complete"] is True


def test_the_records_go_into_a_file_that_is_named(folder: Path, tmp_path: Path) -> None:
    assert (
        profkit(
            "sweep", "--resume", str(folder), "--results", str(tmp_path / "mine.json"), "-q", cwd=tmp_path
        ).code
        == 0
    )
    assert len(json.loads((tmp_path / "mine.json").read_text())) == 2
    done = profkit(
        "sweep", "--resume", str(folder), "--results", str(tmp_path / "no" / "mine.json"), cwd=tmp_path
    )
    assert done.code == 3
    assert "cannot be written: No such file or directory" in done.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--dtype", "float16"], "--dtype cannot be changed by --resume"),
        (["--with", "x.py"], "--with cannot be changed by --resume"),
        (["--profile", "all"], "--profile all chooses no cases"),
    ],
)
def test_what_would_not_be_heeded_is_refused(
    folder: Path, tmp_path: Path, words: list[str], said: str
) -> None:
    done = profkit("sweep", "--resume", str(folder), *words, cwd=tmp_path)
    assert done.code == 2
    assert said in done.err
    assert "fix: " in done.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--operations", "Conv"], "there is no operation called 'Conv'"),
        (["--batch", "many"], "--batch many is no list of numbers"),
        (["--budget", "0"], "--budget 0.0 is not a time in seconds"),
        (["--threads", "-1"], "--threads -1 is no number of threads"),
        (["--gpus", "0"], "--gpus are devices of cuda"),
        (["--with", "nowhere.py"], "nowhere.py is not there"),
        (["--resume", "nowhere"], "there is no sweep in nowhere"),
    ],
)
def test_a_slip_is_told_before_anything_is_made(tmp_path: Path, words: list[str], said: str) -> None:
    device = [] if "--resume" in words else ["--device", "cpu"]
    done = profkit("sweep", *device, *words, cwd=tmp_path)
    assert done.code == 2
    assert said in done.err
    assert list(tmp_path.iterdir()) == []
