"""The sweep as a call of Python and as a script, and single cases as programs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("torch")

from small_sweep import in_process as in_process

from profkit.core.errors import Silent
from profkit.core.run_folder import read_run
from profkit.core.types import RunDocument, SweepDocument, Workload
from profkit.kernels.sweep.request import SweepGrid
from profkit.regression.compare import compare
from profkit.regression.history import open_history
from profkit.regression.history.actions import add_paths
from profkit.sweep import run_comprehensive_benchmark
from tests import sweep_documents as sweeps

ROOT = Path(__file__).resolve().parents[3]
RUN = RunDocument(
    "a case", "cpu", "complete", Workload(("true",), "a case", "/"), "2026-01-01T00:00:00+00:00"
)
KEYS = (
    "operation",
    "implementation",
    "batch_size",
    "sequence_length",
    "tensor_dimension",
    "time_ms",
    "memory_mb",
    "inference_speed",
    "gpu_efficiency",
    "throughput_gbps",
)


@pytest.mark.thorough
@pytest.mark.usefixtures("in_process")
def test_the_benchmark_as_one_call_gives_the_records_that_it_writes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def call(*, quiet: bool = False) -> list[dict[str, object]]:
        return run_comprehensive_benchmark(
            [2],
            [4],
            [8, 16],
            ["gelu"],
            tmp_path / "results.json",
            device="cpu",
            precision=0.5,
            budget=0.02,
            threads=1,
            folder=tmp_path / "reports",
            progress=Silent(),
            quiet=quiet,
        )

    first = call()
    shown = capsys.readouterr().out
    for title in (
        "Time",
        "Memory",
        "Inference Speed",
        "GPU Efficiency",
        "P PyTorch",
    ):  # as the command has them
        assert title in shown
    assert max(map(len, shown.splitlines()[:20])) <= 80
    assert [tuple(record)[:10] for record in first] == [KEYS, KEYS]
    assert json.loads((tmp_path / "results.json").read_text()) == first
    call(quiet=True)
    assert capsys.readouterr().out == ""


def test_the_script_passes_options_through() -> None:
    script = ROOT / "benchmark" / "comprehensive_benchmark.py"
    done = subprocess.run(
        [sys.executable, str(script), "--device", "cpu", "--operations", "nothing"],
        capture_output=True,
        text=True,
        env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
    )
    assert done.returncode == 2, done.stderr
    assert "there is no operation called 'nothing'" in done.stderr


def _document(scale: float) -> SweepDocument:
    sizes = {"batches": (2,), "sequences": (3,), "dimensions": (8, 16)}
    made = sweeps.sampled(sweeps.sweep(factors={"PyTorch": scale}, **sizes))
    return replace(made, started=f"2026-01-0{int(scale)}T00:00:00+00:00")


def test_sweeps_are_remembered_and_compared_like_any_run(tmp_path: Path) -> None:
    from profkit.kernels.sweep.outputs import write_results

    grid = SweepGrid(("GELU",), ("PyTorch",), (2,), (3,), (8, 16))
    for name, scale in (("a", 1.0), ("b", 2.0)):
        (tmp_path / name).mkdir()
        write_results(tmp_path / name, _document(scale), grid, 0.01, "sweep")
    with open_history(tmp_path / "history.sqlite") as history:
        stored = add_paths(history, [tmp_path / "a", tmp_path / "b"], lambda _: None)
        assert [one.added for one in stored] == [True, True]
        keys = {value.key.scope.name for one in stored if one.entry for value in one.entry.values}
        cases = {"PyTorch: GELU forward float32 2x3x8", "PyTorch: GELU forward float32 2x3x16"}
        assert keys == {None, "PyTorch: GELU forward float32, 2 shapes", *cases}
    before, after = (read_run(tmp_path / name) for name in ("a", "b"))
    found = compare(before, after)
    assert found.outcome == "regressed"
