"""The guide's own lines over the comprehensive benchmark's records run as they are written."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from profkit.kernels.sweep.request import SweepOptions, make_request
from tests.conftest import ROOT


def case(operation: str, implementation: str, time_ms: float | None) -> dict[str, Any]:
    return {"operation": operation, "implementation": implementation, "time_ms": time_ms, "reason": None}


CASES = [
    case("GELU", "PyTorch", 0.5),
    case("GELU", "Triton", None),
    case("MSE", "PyTorch", 0.25),
    case("CrossEntropy", "PyTorch", 0.75),
]


@pytest.fixture
def guide(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(sys, "path", [str(ROOT), *sys.path])
    import benchmarks.comprehensive_benchmark as module

    return module


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    calls: list[tuple[Any, ...]] = []

    def run(*axes: Any, output_file: str | Path, **named: Any) -> list[dict[str, Any]]:
        calls.append((axes, output_file, named))
        Path(output_file).write_text(json.dumps(CASES))
        return CASES

    monkeypatch.setattr("profkit.sweep.run_comprehensive_benchmark", run)
    return calls


def test_the_fastest_is_found_beside_cases_that_could_not_run(
    guide: Any, measured: list[tuple[Any, ...]], tmp_path: Path
) -> None:
    rows = guide.run_comprehensive_benchmark([2], [4], [8], ["gelu"], tmp_path / "r.json", device="cpu")
    assert min(rows, key=lambda r: r["time_ms"])["implementation"] == "PyTorch"
    assert json.loads((tmp_path / "r.json").read_text()) == rows
    assert measured == [(([2], [4], [8], ["gelu"]), tmp_path / "r.json", {"device": "cpu"})]


@pytest.mark.parametrize("named", [False, True])
def test_the_script_leaves_the_guides_records_and_a_named_file_as_it_is(
    guide: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: bool
) -> None:
    def sweep(_: list[str]) -> None:
        Path("benchmark_results.json").write_text(json.dumps(CASES))
        raise SystemExit(4)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("benchmark.comprehensive_benchmark.main", sweep)
    with pytest.raises(SystemExit, match="4"):
        guide.main(["--results", "benchmark_results.json"] if named else [])
    assert len(json.loads(Path("benchmark_results.json").read_text())) == (4 if named else 3)


def test_the_guides_operations_and_axes_are_those_of_a_sweep(tmp_path: Path) -> None:
    """`Loss` is the guide's name of two: the mean squared error and the cross entropy."""
    asked = SweepOptions(operations="LayerNorm,GELU,Swish,Loss", device="cpu", output=tmp_path)
    grid = make_request(asked).grid
    assert grid.operations == ("LayerNorm", "GELU", "Swish", "MSE", "CrossEntropy")
    assert grid.batches == (16, 32, 64, 128)
    assert grid.sequences == (256, 512, 1024, 2048)
    assert grid.dimensions == (8, 16, 32, 64, 128, 256, 512)
