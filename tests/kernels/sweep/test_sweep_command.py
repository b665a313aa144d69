"""The command line of a sweep: documents, exit codes, and faults with their fix."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("torch")

from small_sweep import MISBEHAVING, request_for, settled

from profkit.core.types import CaseResult, CaseState
from tests.cli_runner import ENVIRONMENT, Said, call_in_process, profkit
from tests.journals import store_sweep
from tests.spoken import message, sentences


def sweep(*arguments: str, cwd: Path) -> Said:
    """`profkit sweep` where no worker has to start: in the process of the tests."""
    return call_in_process(["sweep", *arguments], cwd, ENVIRONMENT)


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
    assert found["schema"] == "profkit.sweep/3"
    assert found["folder"] == str(folder)
    assert len(found["sweep"]["results"]) == 2
    assert sentences(found["sweep"]) == []
    assert found["sweep"]["complete"] is True


REGISTERS = """
from pathlib import Path
from profkit.sweep import implementation

Path(__file__).with_name("ran").touch()

@implementation("GELU", "mine")
def mine(problem):
    raise NotImplementedError
"""


def test_python_that_a_folder_names_runs_only_where_the_user_names_it_too(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(REGISTERS)
    request = request_for(tmp_path / "out", "PyTorch", "mine", files=(tmp_path / "mine.py",))
    settled(request, 1)
    done = sweep("--resume", str(request.folder), cwd=tmp_path)
    assert done.code == 2
    assert f"the folder names code that would run here: {tmp_path}/mine.py" in " ".join(done.err.split())
    assert f"--with {tmp_path}/mine.py" in done.err
    assert not (tmp_path / "ran").exists()


def test_the_records_go_into_a_file_that_is_named(folder: Path, tmp_path: Path) -> None:
    assert (
        sweep("--resume", str(folder), "--results", str(tmp_path / "mine.json"), "-q", cwd=tmp_path).code == 0
    )
    assert len(json.loads((tmp_path / "mine.json").read_text())) == 2
    done = sweep("--resume", str(folder), "--results", str(tmp_path / "no" / "mine.json"), cwd=tmp_path)
    assert done.code == 3
    assert "cannot be written: No such file or directory" in done.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--dtype", "float16"], "--dtype cannot be changed by --resume"),
        (["--with", "x.py"], "--with x.py cannot be changed by --resume"),
    ],
)
def test_what_would_not_be_heeded_is_refused(
    folder: Path, tmp_path: Path, words: list[str], said: str
) -> None:
    done = sweep("--resume", str(folder), *words, cwd=tmp_path)
    assert done.code == 2
    assert said in done.err
    assert "fix: " in done.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--operations", "Conv"], "there is no operation called 'Conv'"),
        (["--batch", "many"], "--batch many is not a list of sizes"),
        (["--budget", "0"], "--budget 0 is not a time in seconds"),
        (["--timeout", "inf"], "--timeout inf is not a time in seconds"),
        (["--dtype", ","], "there is no dtype called ''"),
        (["--results", "."], ". is a folder"),
        (["--threads", "-1"], "--threads -1 is not a number of threads"),
        (["--gpus", "0"], "--gpus are devices of cuda"),
        (["--with", "nowhere.py"], "nowhere.py does not exist"),
        (["--resume", "nowhere"], "there is no sweep in nowhere"),
    ],
)
def test_a_slip_is_told_before_anything_is_made(tmp_path: Path, words: list[str], said: str) -> None:
    device = [] if "--resume" in words else ["--device", "cpu"]
    done = sweep(*device, *words, cwd=tmp_path)
    assert done.code == 2
    assert said in done.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("implementation", "state", "code"),
    [
        ("PyTorch", "wrong", 0),
        ("torch.compile", "wrong", 0),
        ("PyTorch", "failed", 4),
        ("PyTorch", "crashed", 4),
        ("torch.compile", "timed out", 4),
        ("wrong", "wrong", 4),
        ("wrong", "too large", 0),
        ("wrong", "unavailable", 0),
    ],
)
def test_wrong_arithmetic_of_the_framework_is_told_and_fails_nothing(
    tmp_path: Path, implementation: str, state: CaseState, code: int
) -> None:
    (tmp_path / "mine.py").write_text(MISBEHAVING)
    request = request_for(tmp_path / "out", implementation, "raises", files=(tmp_path / "mine.py",))
    settled(request)
    point = next(iter(request.grid.points()))
    store_sweep(
        request, [CaseResult(point, implementation, state, reason=message("a reason of its own"))], {}
    )
    named = ("--with", str(tmp_path / "mine.py"))
    done = sweep("--resume", str(request.folder), *named, "-q", cwd=tmp_path)
    assert done.code == code, done.err
    told = " ".join(done.out.split())
    assert ("Not right 1 case (1 " in told) == (state not in ("too large", "unavailable"))
    assert ("itself, which does not fail the sweep" in told) == (state == "wrong" and code == 0)
    if state == "wrong":
        assert "a reason of its own" in told
