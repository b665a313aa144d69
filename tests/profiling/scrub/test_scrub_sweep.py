"""A sweep's folder is scrubbed: its journal and records stay, without what is private, and show the sweep again."""

from __future__ import annotations

import json
import platform
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from profkit.analysis.ranking.ranking import FILE as RESULTS
from profkit.cli.app import app
from profkit.core.run_folder import write_run
from profkit.core.types import CaseResult, Workload
from profkit.kernels.sweep import request
from profkit.kernels.sweep.outputs import write_results
from profkit.kernels.sweep.request import SweepGrid, read_sweep
from profkit.profiling.export import ExportOptions, export
from profkit.profiling.scrub import scrub
from tests import sweep_documents as sweeps
from tests.documents import document
from tests.journals import store_sweep_document

SECRET = "Pl4ntedS3cret"
HOME = f"/home/{SECRET}"
PROFILE = "profiles/20260101-000001-GELU-PyTorch-cpu"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A whole sweep with a file of the user's, a case that failed in it, and a profile."""
    monkeypatch.setattr(platform, "node", lambda: f"host-{SECRET}")
    made = tmp_path / "20260101-000000-sweep-cuda"
    whole = sweeps.sweep()
    first = whole.results[0]
    why = f"FileNotFoundError: {HOME}/weights.pt on host-{SECRET}, API_TOKEN=hunter2hunter2"
    failed = CaseResult(first.point, "CUDA", "failed", reason=why, fix=f"ls {HOME}/weights.pt")
    results = [replace(first, profile=PROFILE), *(r for r in whole.results[1:] if r.implementation != "CUDA")]
    results += [failed] + [r for r in whole.results if r.implementation == "CUDA" and r.point != first.point]
    grid = SweepGrid(("GELU",), tuple(sweeps.FACTORS), (16, 32), (256, 512), (8, 64, 512))
    files = (f"{HOME}/my kernels/mine.py",)
    store_sweep_document(made, replace(whole, results=tuple(results)), grid, files)
    with (made / request.FILE).open("a") as file:
        file.write('{"case": "GELU cut off')
    write_results(made, read_sweep(made), grid, 0.01, "sweep")
    (made / "worker.log").write_text(f"loaded {HOME}/weights.pt")
    inner = made / PROFILE
    (inner / "artifacts").mkdir(parents=True)
    command = ("python", "-m", "profkit.sweep.one_case", "GELU", "--with", f"{HOME}/mine.py")
    write_run(inner, replace(document(), workload=Workload(command, "GELU", HOME)))
    (inner / "artifacts" / "trace.collapsed.txt").write_text(f"main;step ({HOME}/train.py:12) 40\n")
    return made


def test_nothing_private_is_left_in_any_file(folder: Path) -> None:
    done = scrub(folder)
    files = sorted(path for path in done.output.rglob("*") if path.is_file())
    names = {path.relative_to(done.output).as_posix() for path in files}
    assert {request.FILE, RESULTS, "run.json", "report.md", "report.html", f"{PROFILE}/run.json"} <= names
    assert f"{PROFILE}/artifacts/trace.collapsed.txt" in names
    assert {left.name for left in done.left_out} == {"worker.log"}
    for path in files:
        text = path.read_text(encoding="utf-8")
        assert SECRET not in text, path
        assert "hunter2" not in text, path
    assert {"host name", "paths", "tokens and passwords"} <= {removed.kind for removed in done.removed}


def test_the_copy_is_the_same_sweep(folder: Path) -> None:
    copy = scrub(folder).output
    before, after = read_sweep(folder), read_sweep(copy)
    assert [replace(r, reason=None, fix=None) for r in after.results] == [
        replace(r, reason=None, fix=None) for r in before.results
    ]
    assert after.complete
    records = json.loads((copy / RESULTS).read_text())
    assert [r["time_ms"] for r in records] == [
        r["time_ms"] for r in json.loads((folder / RESULTS).read_text())
    ]
    told = "".join(export(ExportOptions((copy,), "terminal")).pieces)
    assert "2.50 x as fast as PyTorch" in " ".join(told.split())
    assert "Sweep on" in (copy / "report.md").read_text().partition("\n")[0]
    assert (copy / PROFILE / "report.html").is_file()


def test_a_whole_one_is_shown_by_resume_without_the_files_of_its_user(folder: Path) -> None:
    copy = scrub(folder).output
    done = CliRunner().invoke(app, ["sweep", "--resume", str(copy), "-q", "--format", "json"])
    assert done.exit_code == 4, done.exception  # one case failed
    assert json.loads(done.stdout)["sweep"]["complete"] is True
    again = CliRunner().invoke(app, ["sweep", "--resume", str(copy), "-q", "--again"])
    assert "it runs where you name it, too" in str(again.exception)
