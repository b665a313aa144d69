"""`profkit report` of a sweep's folder: its own views for people, a run as any other for machines."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from profkit.kernels.operations.registry import implementation, unregister
from profkit.kernels.sweep.outputs import write_results
from profkit.kernels.sweep.request import SweepGrid, read_sweep
from profkit.profiling.export import ExportOptions, export
from tests import sweep_documents as sweeps
from tests.journals import store_sweep_document


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a sweep leaves that was interrupted before its last case."""
    made = tmp_path_factory.mktemp("runs") / "20260101-000000-sweep-cuda"
    whole = sweeps.sweep()
    grid = SweepGrid(("GELU",), tuple(sweeps.FACTORS), (16, 32), (256, 512), (8, 64, 512))
    kept = replace(whole, results=whole.results[:-1], complete=False)
    store_sweep_document(made, kept, grid)
    write_results(made, kept, grid, 0.01, "sweep")
    return made


@pytest.mark.parametrize(
    ("form", "begins"),
    [("terminal", "? INTERRUPTED  47 of 48 cases"), ("markdown", "## ? INTERRUPTED: Sweep on")],
)
def test_people_get_the_views_of_a_sweep(folder: Path, form: str, begins: str) -> None:
    told = export(ExportOptions(folder, form))
    assert told.startswith(begins)
    assert "CUDA, 2.50 x as fast as PyTorch" in told


def test_who_only_looks_knows_how_many_cases_a_file_of_the_user_adds(tmp_path: Path) -> None:
    """What it registers is not known where it is not run: the journal says it."""
    grid = SweepGrid(("GELU",), ("PyTorch", "of somebody else"), (16, 32), (256, 512), (8, 64, 512))
    implementation("GELU", "of somebody else")(lambda problem: lambda: None)
    store_sweep_document(tmp_path / "run", sweeps.sweep("GELU", factors={"PyTorch": 1.0}), grid)
    unregister([("GELU", "of somebody else")])
    found = read_sweep(tmp_path / "run")
    assert (len(found.results), found.planned, found.complete) == (12, 24, False)
