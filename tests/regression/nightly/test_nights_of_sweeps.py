"""Nights of sweeps: the means over all shapes gate, thousands of cases do not, and none is profiled as a workload."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from profkit.cli.app import app
from profkit.core.run_folder import write_run
from profkit.regression.nightly.session import throttling_reason
from tests.sweep_twins import changed, made_up, noisy, sweep

NIGHTS = 13
SLOWER = 10  # from this night on
MEAN = "Triton: GELU forward float32, 8 shapes"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sweep each night; from one night on Triton's GELU is slower, and one case of CUDA's much slower."""
    folder = tmp_path_factory.mktemp("sweeps") / "sweeps"
    base = made_up(8)
    alone = next(point for point, name in base if name == "CUDA" and point.operation == "MSE")
    for night in range(1, NIGHTS + 1):
        times = noisy(base, night, together=0.002, single=0.004)
        if night >= SLOWER:
            times = changed(times, lambda p, name: 1.2 if (p.operation, name) == ("GELU", "Triton") else 1.0)
        times = changed(
            times, lambda p, name, n=night: 1.5 if (p, name, n) == (alone, "CUDA", NIGHTS) else 1.0
        )  # type: ignore[misc]
        document = replace(sweep(times), started=f"2026-11-{night:02}T02:00:00+00:00")
        made = folder / f"202611{night:02}-020000-sweep-cuda"
        made.mkdir(parents=True)
        write_run(made, document)
    return folder


def config(folder: Path, *lines: str) -> Path:
    file = folder / "nightly.yaml"
    file.write_text("\n".join(("version: 1", "name: sweeps", *lines)) + "\n")
    return file


@pytest.mark.parametrize("gates", [(), ("defaults:", "  gates: [time.median]")])
def test_a_night_is_decided_by_the_means_and_not_by_cases(
    runs: Path, tmp_path: Path, gates: tuple[str, ...]
) -> None:
    file = config(tmp_path, *gates, "workloads:", "  - name: sweep")
    done = CliRunner().invoke(app, ["nightly", str(file), "--runs", str(runs), "--format", "json"])
    assert done.exit_code == 1, done.stderr
    nights = json.loads(done.stdout)["nights"]
    assert [night["outcome"] for night in nights][-2:] == ["regressed", "regressed"]
    metrics = nights[-1]["workloads"][0]["metrics"]
    assert {m["metric"] for m in metrics if m["gates"]} <= {"time.geometric_mean", "cases.faulty"}
    assert [m["scope"]["name"] for m in metrics if m["outcome"] == "regressed"] == [MEAN]
    assert len(metrics) < 12


@pytest.mark.parametrize(
    "command", ["[profkit, sweep]", "[python, -m, profkit, sweep, --quiet]", "/opt/bin/profkit sweep"]
)
def test_a_sweep_is_no_workload_and_the_way_is_told(tmp_path: Path, command: str) -> None:
    file = config(tmp_path, "workloads:", "  - name: my kernels", f"    command: {command}")
    done = CliRunner().invoke(app, ["nightly", str(file), "--plan"])
    assert done.exception is not None
    assert "is a sweep, which is a run by itself" in str(done.exception)
    assert "--name 'my kernels'" in str(getattr(done.exception, "fix", ""))


def test_a_history_shows_the_means_first_and_not_every_case(runs: Path, tmp_path: Path) -> None:
    history = ["--history", str(tmp_path / "history.sqlite")]
    added = CliRunner().invoke(app, ["history", "add", *map(str, sorted(runs.iterdir())), *history])
    assert added.exit_code == 0, added.stderr
    trend = CliRunner().invoke(app, ["history", "trend", *history])
    assert "sweep time.geometric_mean" in trend.stdout
    assert "time.median" not in trend.stdout
    named = CliRunner().invoke(app, ["history", "trend", "sweep:time.median:*MSE*16x256x8", *history])
    assert "time.median" in named.stdout
    shown = CliRunner().invoke(app, ["history", "show", "last", *history]).stdout
    assert shown.index("time.geometric_mean") < shown.index("time.median")
    assert "more scopes: --format json has all of them" in shown


@pytest.mark.parametrize(("heated", "valid"), [(1, True), (3, True), (30, False)])
def test_a_night_is_valid_where_few_cases_were_measured_in_heat(heated: int, valid: bool) -> None:
    document = sweep(made_up(8))
    hot = [
        replace(t, processes=(replace(t.processes[0], throttle_reasons=("thermal slowdown",)),))
        for t in document.timings[:heated]
    ]
    reason = throttling_reason(replace(document, timings=(*hot, *document.timings[heated:])))
    assert (reason is None) == valid
    assert valid or f"throttled in {heated} of 72 cases" in (reason or "")
