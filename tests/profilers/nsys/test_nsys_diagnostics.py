"""What nsys says of its own failure while it made the report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from profkit.profilers.nsys.sqlite import read_sqlite
from tests.profilers.nsys.made import STRINGS, Rows, export, ordinary

DIAGNOSTIC = ("severity", "text")
EXTERIOR = {"severity": 2, "text": "Error when processing events: Cannot find string for an exterior index"}


def failed(folder: Path, tables: Mapping[str, tuple[Sequence[str], Rows]] | None = None) -> Path:
    """An export that says so."""
    diagnostics = {"DIAGNOSTIC_EVENT": (DIAGNOSTIC, [EXTERIOR])}
    return export(folder / "failed.sqlite", {**(tables or {}), **diagnostics}, STRINGS)


def test_what_nsys_lost_while_it_made_the_report_is_not_said_to_have_never_been(tmp_path: Path) -> None:
    """JAX under --trace=cuda,nvtx: exit code 0, and neither kernels nor calls."""
    report = read_sqlite(failed(tmp_path))
    assert report.fault is not None
    assert report.fault.code == "not-imported"
    assert len(report.warnings) == 1
    assert "its importer could not put the events together" in report.warnings[0]
    assert "nsys profile --trace=cuda " in report.warnings[0]


def test_an_error_that_left_the_kernels_is_told_and_costs_nothing(tmp_path: Path) -> None:
    report = read_sqlite(
        export(
            tmp_path / "lost.sqlite", {**ordinary(), "DIAGNOSTIC_EVENT": (DIAGNOSTIC, [EXTERIOR])}, STRINGS
        )
    )
    assert report.fault is None
    assert report.trace is not None
    assert report.trace.launches == 3
    assert any("importer" in warning for warning in report.warnings)
