"""A sweep settles every case once, whatever its implementations do."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("torch")

from small_sweep import MISBEHAVING, request_for, settled
from small_sweep import in_process as in_process

from profkit.core import codec
from profkit.core.errors import MachineError, Silent, UnreadableReport
from profkit.core.types import CaseResult, GridPoint
from profkit.execution.child import JobStatus, WorkerClient
from profkit.execution.pool import JobOutcome
from profkit.kernels.operations.registry import register_files
from profkit.kernels.sweep import request as journals
from profkit.kernels.sweep import run
from profkit.kernels.sweep.request import read_request
from profkit.kernels.sweep.run import case_result, jobs_of, run_sweep
from tests.spoken import message, spoken

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def misbehaving(tmp_path: Path) -> Path:
    path = tmp_path / "it's mine.py"
    path.write_text(MISBEHAVING)
    return path


@pytest.mark.thorough
def test_every_case_is_settled_though_implementations_crash_and_lie(
    tmp_path: Path, misbehaving: Path
) -> None:
    register_files([misbehaving])
    names = ("PyTorch", "wrong", "dies", "raises", "prints", "cannot be had", "too much")
    request = request_for(tmp_path / "out", *names, files=(misbehaving,))
    request = replace(request, grid=replace(request.grid, dimensions=(8,)))
    document = run_sweep(request, Silent())
    found = {result.implementation: result for result in document.results}
    assert {name: result.state for name, result in found.items()} == {
        "PyTorch": "measured",
        "wrong": "wrong",
        "dies": "crashed",
        "raises": "failed",
        "prints": "measured",
        "cannot be had": "unavailable",
        "too much": "too large",
    }
    assert "SIGSEGV" in spoken(found["dies"].reason)
    assert spoken(found["raises"].reason) == "ValueError: no kernel for <script>alert(1)</script>"
    assert found["cannot be had"].fix == "buy one"
    assert found["PyTorch"].median
    assert found["PyTorch"].samples >= 1
    assert all(result.median is None for result in document.results if result.state != "measured")
    assert document.complete


POINT = GridPoint("GELU", 2, 3, 8)


@pytest.mark.parametrize(
    ("status", "state"),
    [
        (JobStatus.error, "failed"),
        (JobStatus.crash, "crashed"),
        (JobStatus.timeout, "timed out"),
        (JobStatus.out_of_memory, "too large"),
        (JobStatus.lost, None),
        (JobStatus.cancelled, None),
    ],
)
def test_what_becomes_of_a_job_becomes_of_its_case(status: JobStatus, state: str | None) -> None:
    outcome = JobOutcome(jobs_of(POINT, ["mine"])[0], status, None, "a reason", 2.0, 3)
    result = case_result(outcome)
    if state is None:
        assert result is None
    else:
        assert result == CaseResult(POINT, "mine", state, message("a reason"), spent=2.0, device=3)  # type: ignore[arg-type]


def test_an_answer_that_is_none_or_of_another_case_is_a_crash() -> None:
    for value in (None, {"point": 3}, codec.to_plain_data(CaseResult(POINT, "another", "measured"))):
        outcome = JobOutcome(jobs_of(POINT, ["mine"])[0], JobStatus.ok, value)
        result = case_result(outcome)
        assert result is not None
        assert (result.implementation, result.state) == ("mine", "crashed")
        assert spoken(result.reason).startswith("its process ")


@pytest.mark.thorough
@pytest.mark.usefixtures("in_process")
def test_a_sweep_goes_on_where_it_was_and_measures_nothing_twice(tmp_path: Path) -> None:
    request = request_for(tmp_path / "out", "PyTorch")
    whole = run_sweep(request, Silent())
    path = request.folder / journals.FILE
    lines = path.read_text().splitlines(keepends=True)
    cases = [number for number, line in enumerate(lines) if '"case"' in line]
    path.write_text("".join(lines[: cases[1]]) + lines[cases[1]][:40])  # killed while it wrote the second
    again = run_sweep(request, Silent())
    assert [r.point for r in again.results] == [r.point for r in whole.results]
    assert again.results[0] == whole.results[0]
    assert again.results[1].seconds != whole.results[1].seconds
    before = path.read_text()
    run_sweep(request, Silent())
    assert path.read_text().startswith(before)
    assert path.read_text().count('"case"') == 2


def test_an_interpreter_without_torch_is_told_with_its_fix(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare = tmp_path / "python"
    bare.write_text("#!/bin/sh\necho \"ModuleNotFoundError: No module named 'torch'\" >&2\nexit 1\n")
    bare.chmod(0o755)
    clients = [WorkerClient("", python=str(bare), log=tmp_path / "log")]
    monkeypatch.setattr(run, "measuring_workers", lambda _: clients)
    with pytest.raises(MachineError) as fault:
        run_sweep(request_for(tmp_path / "out", "PyTorch"), Silent())
    assert not (tmp_path / "out").exists()
    assert fault.value.fix == "pip install torch"
    assert fault.value.exit_code == 3


@pytest.mark.parametrize(
    ("line", "place", "value"),
    [
        (0, ("request", "files"), 7),
        (0, ("request",), [1]),
    ],
)
def test_a_journal_that_says_what_no_sweep_does_is_refused(
    tmp_path: Path, line: int, place: tuple[str, ...], value: object
) -> None:
    settled(request_for(tmp_path, "PyTorch"))
    path = tmp_path / journals.FILE
    lines = [json.loads(each) for each in path.read_text().splitlines()]
    inner = lines[line]
    for word in place[:-1]:
        inner = inner[word]
    inner[place[-1]] = value
    path.write_text("".join(json.dumps(each) + "\n" for each in lines))
    with pytest.raises(UnreadableReport, match=f"line {line + 1}:"):
        read_request(tmp_path)


@pytest.mark.thorough
def test_a_ctrl_c_keeps_what_was_measured_and_says_how_to_go_on(tmp_path: Path) -> None:
    argv = [sys.executable, "-m", "profkit", "sweep", "--device", "cpu", "--operations", "GELU,Swish"]
    argv += ["--batch", "2,4,8", "--sequence", "64", "--dimension", "8,16,32"]
    argv += ["--budget", "0.3", "--precision", "0.0001", "--output", str(tmp_path)]
    child = subprocess.Popen(
        argv,
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    journal: Path | None = None
    end = time.monotonic() + 60
    while time.monotonic() < end:
        journal = next(iter(tmp_path.glob("*/cases.jsonl")), None)
        if journal is not None and journal.read_text().count('"case"') >= 3:
            break
        time.sleep(0.05)
    child.send_signal(signal.SIGINT)
    _, told = child.communicate(timeout=30)
    assert child.returncode == 130, told
    assert journal is not None
    assert f"profkit sweep --resume {journal.parent}" in told
    kept = journal.read_text().count('"case"')
    assert 3 <= kept < 18
    results = json.loads((journal.parent / "benchmark_results.json").read_text())
    assert len(results) == kept
