"""`profkit.load`: rows of runs and reports, which pandas takes as they are."""

from __future__ import annotations

import math
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import profkit
from profkit.core.errors import ProfkitError
from profkit.core.run_folder import write_run
from profkit.profiling.api import Row
from tests import documents
from tests.conftest import ROOT
from tests.reporting.test_renderers import hostile, judged

NSYS = ROOT / "tests" / "data" / "cuda" / "nsys" / "hostbound.sqlite"
NCU = ROOT / "tests" / "data" / "cuda" / "ncu" / "truths.full.ncu-rep"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of a judged run."""
    write_run(tmp_path / "20261120-054700-gated_mlp-cpu", judged())
    return tmp_path / "20261120-054700-gated_mlp-cpu"


@pytest.mark.parametrize("method", ["rows", "verdicts"])
def test_rows_are_flat_and_all_alike_with_one_type_in_a_column(folder: Path, method: str) -> None:
    rows: list[Row] = [
        row for source in (folder, NSYS, NCU) for row in getattr(profkit.load(source), method)()
    ]
    assert rows
    assert {tuple(row) for row in rows} == {tuple(rows[0])}
    assert list(rows[0])[:6] == ["run", "workload", "backend", "state", "started", "commit"]
    kinds = {key: {type(row[key]) for row in rows} - {type(None)} for key in rows[0]}
    assert [key for key, kind in kinds.items() if len(kind) > 1 or not kind <= {str, int, float, bool}] == []
    cells = [cell for row in rows for cell in row.values()]
    assert not [cell for cell in cells if isinstance(cell, float) and not math.isfinite(cell)]


def test_a_reading_is_a_row_with_its_source_and_its_reason(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    write_run(folder, replace(judged(), readings=documents.document().readings))
    rows = profkit.load(folder).rows()
    ipc = next(row for row in rows if row["metric"] == "ipc")
    assert (ipc["value"], ipc["quality"]) == (None, "unavailable")
    assert ipc["reason"] == "no hardware counters in this virtual machine"
    misses = next(
        row for row in rows if row["metric"] == "cache.l1.miss_rate" and row["scope_kind"] == "region"
    )
    assert (misses["value"], misses["unit"], misses["tool"]) == (9.0, "%", "valgrind")
    assert (misses["run"], misses["workload"], misses["backend"]) == (folder.name, "gated_mlp", "cpu")
    assert len(rows) == len(profkit.load(folder).document.readings)


def test_verdicts_come_worst_first(folder: Path) -> None:
    words = [str(row["verdict"]) for row in profkit.load(folder).verdicts()]
    assert words == sorted(words, key=["fail", "unknown", "pass", "not-applicable"].index)


def test_a_run_is_known_by_its_folder_however_it_is_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    for source in (folder, str(folder), f"{folder}/", folder / "run.json", "run.json", "."):
        assert profkit.load(source).name == folder.name


def test_a_prompt_shows_one_line_and_obeys_nothing(tmp_path: Path, folder: Path) -> None:
    line = repr(profkit.load(folder))
    assert len(line) < 400
    assert "4.10 ms" in line
    assert "rows()" in line
    write_run(tmp_path / "<script>x", hostile())
    assert repr(profkit.load(tmp_path / "<script>x")).isprintable()


@pytest.mark.parametrize("content", [b"", b"not a report", b'{"schema": "profkit.run/99"}'])
def test_what_cannot_be_read_is_one_exception_with_its_reason(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "x"
    file.write_bytes(content)
    with pytest.raises(ProfkitError) as caught:
        profkit.load(file)
    assert caught.value.message


def test_importing_profkit_does_not_load_what_load_needs() -> None:
    code = (
        "import sys, profkit; print('profkit.profiling.api' in sys.modules); "
        "profkit.load; print('rich' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


def test_a_run_is_saved_without_what_no_pass_leaves_and_no_link_is_followed(
    folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "secret.json").write_text("of somebody")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "stacks.jsonl").write_text("of somebody")
    artifacts = folder / "artifacts"
    artifacts.mkdir()
    (artifacts / "stacks.jsonl").write_text("{}")
    (artifacts / "cprofile.json").symlink_to(tmp_path / "secret.json")
    (artifacts / "trace.trace").symlink_to(tmp_path / "outside")
    (artifacts / "conftest.py").write_text("import os")
    os.mkfifo(artifacts / "tracemalloc.json")
    saved = profkit.load(folder).save(tmp_path / "saved")
    assert [path.name for path in (saved / "artifacts").rglob("*")] == ["stacks.jsonl"]
    assert "4 entries of artifacts/ are not copied" in (saved / "report.md").read_text().replace("\\", "")
    shutil.rmtree(artifacts)
    artifacts.symlink_to(tmp_path / "outside")
    assert list((profkit.load(folder).save(tmp_path / "again") / "artifacts").iterdir()) == []


def test_a_report_is_saved_as_a_run_without_artifacts(tmp_path: Path) -> None:
    assert profkit.load(profkit.load(NSYS).save(tmp_path)).rows()
