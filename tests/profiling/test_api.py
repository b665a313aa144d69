"""`profkit.load`: rows of runs and reports, which pandas and polars take as they are."""

from __future__ import annotations

import math
import subprocess
import sys
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import pytest

import profkit
from profkit.core.errors import ProfkitError
from profkit.core.run_folder import write_run
from profkit.profiling.api import Row, Run, Runs, _typed_first
from tests import documents, metal_documents
from tests.conftest import ROOT
from tests.reporting.test_renderers import hostile, judged

NSYS = ROOT / "tests" / "data" / "cuda" / "nsys" / "hostbound.sqlite"
NCU = ROOT / "tests" / "data" / "cuda" / "ncu" / "truths.full.ncu-rep"
METHODS = ("rows", "samples", "kernels", "verdicts")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of a judged run."""
    write_run(tmp_path / "20261120-054700-gated_mlp-cpu", judged())
    return tmp_path / "20261120-054700-gated_mlp-cpu"


@pytest.fixture
def runs(folder: Path) -> Runs:
    """A run, a trace and a report of counters."""
    return profkit.load_all([folder, NSYS, str(NCU)])


def rows_of(source: Run | Runs, method: str) -> list[Row]:
    rows: list[Row] = getattr(source, method)()
    return rows


@pytest.mark.parametrize("method", METHODS)
def test_rows_are_flat_and_all_alike(runs: Runs, method: str) -> None:
    rows = rows_of(runs, method)
    assert rows
    assert {tuple(row) for row in rows} == {tuple(rows[0])}
    assert list(rows[0])[:6] == ["run", "workload", "backend", "state", "started", "commit"]
    cells = [cell for row in rows for cell in row.values()]
    assert {type(cell) for cell in cells} <= {str, int, float, bool, type(None)}
    assert not [cell for cell in cells if isinstance(cell, float) and not math.isfinite(cell)]


@pytest.mark.parametrize("method", METHODS)
def test_a_column_has_one_type(runs: Runs, method: str) -> None:
    rows = rows_of(runs, method)
    kinds = {key: {type(row[key]) for row in rows} - {type(None)} for key in rows[0]}
    assert {key: kind for key, kind in kinds.items() if len(kind) > 1} == {}


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


def test_samples_are_all_there_in_their_order(folder: Path) -> None:
    run = profkit.load(folder)
    rows = [row for row in run.samples() if not row["warmup"]]
    for number, process in enumerate(run.document.timings[0].processes, 1):
        assert [row["seconds"] for row in rows if row["process"] == number] == list(process.seconds)
    assert sum(bool(row["warmup"]) for row in run.samples()) == 9


def test_kernels_have_their_share_and_what_limits_them() -> None:
    rows = profkit.load(NSYS).kernels()
    assert sum(float(row["share"] or 0) for row in rows) == pytest.approx(1)
    assert rows[0]["bound"] == "launch"
    assert (rows[0]["launches"], rows[0]["block"]) == (1000, "128x1x1")


def test_encoders_of_an_apple_gpu_are_kernels_without_a_shape(tmp_path: Path) -> None:
    write_run(tmp_path / "run", metal_documents.run())
    rows = profkit.load(tmp_path / "run").kernels()
    assert [(row["kernel"], row["label"], row["grid"], row["block"]) for row in rows[:2]] == [
        ("MPSMatrixMultiplication", "MPSMatrixMultiplication", None, None),
        ("silu_mul", "silu_mul", None, None),
    ]
    assert sum(float(row["share"] or 0) for row in rows) == pytest.approx(1)


def test_verdicts_come_worst_first(folder: Path) -> None:
    words = [str(row["verdict"]) for row in profkit.load(folder).verdicts()]
    assert words == sorted(words, key=["fail", "unknown", "pass", "not-applicable"].index)


def test_a_run_is_known_by_its_folder_however_it_is_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    for source in (folder, str(folder), f"{folder}/", folder / "run.json", "run.json", "."):
        assert profkit.load(source).name == folder.name


def test_rows_that_tell_a_columns_type_stand_first() -> None:
    rows: list[Row] = [{"a": None, "b": index} for index in range(300)]
    rows[250]["a"] = "late"
    ready = _typed_first(rows)
    assert "late" in [row["a"] for row in ready[:100]]
    assert sorted(int(row["b"] or 0) for row in ready) == list(range(300))
    assert _typed_first(rows[:50]) == rows[:50]


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize("method", METHODS)
def test_frames_are_made_of_rows_as_they_are(runs: Runs, method: str, library: str) -> None:
    try:
        frames = import_module(library)
    except ImportError:
        pytest.skip(f"{library} is not installed (profkit does not need it)")
    rows = rows_of(runs, method) * 3
    frame = frames.DataFrame(rows)
    assert len(frame) == len(rows)
    assert list(frame.columns) == list(rows[0])
    assert len(frames.DataFrame([])) == 0


def test_a_notebook_is_shown_what_matters_and_nothing_is_obeyed(tmp_path: Path, folder: Path) -> None:
    shown = profkit.load(folder)._repr_html_()
    line = repr(profkit.load(folder))
    assert len(line) < 400
    assert "per iteration" in line
    assert "rows()" in line
    assert "4.10 ms" in shown
    assert shown.count("<li>") == 3
    write_run(tmp_path / "<script>x", hostile())
    page = profkit.load_all([folder, tmp_path / "<script>x"])._repr_html_()
    assert "<script>" not in page
    assert repr(profkit.load(tmp_path / "<script>x")).isprintable()


@pytest.mark.parametrize("content", [b"", b"not a report", b'{"schema": "profkit.run/99"}'])
def test_what_cannot_be_read_is_one_exception_with_its_reason(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "x"
    file.write_bytes(content)
    with pytest.raises(ProfkitError) as caught:
        profkit.load(file)
    assert caught.value.message


def test_several_are_a_sequence(runs: Runs) -> None:
    assert len(runs) == 3
    assert [run.name for run in runs[1:]] == [NSYS.name, NCU.name]
    assert runs[0].name in repr(runs)


def test_importing_profkit_does_not_load_what_load_needs() -> None:
    code = (
        "import sys, profkit; print('profkit.profiling.api' in sys.modules); "
        "profkit.load; print('rich' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
