"""What two recorded simulations say of a run, and from which of them each reading comes."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from profkit.backends import RunContext
from profkit.backends.cpu.simulation import read_simulation
from profkit.core.types import PassPlan, Step, Workload
from profkit.hardware.machine import read_machine

DATA = Path(__file__).resolve().parents[1] / "data" / "valgrind"
METRICS = {
    "cache.l1.miss_rate": 3,
    "cache.l2.miss_rate": 2,
    "cache.l3.miss_rate": 3,
    "branch.miss_rate": 3,
    "dram.bytes": 3,
    "instructions": 3,
}


@pytest.mark.parametrize("levels", [(2, 3), (2,)])
def test_a_reading_names_the_simulation_that_counted_it(levels: tuple[int, ...], tmp_path: Path) -> None:
    (tmp_path / "artifacts").mkdir()
    for level in levels:
        shutil.copy(
            DATA / f"kernels.l{level}.callgrind", tmp_path / "artifacts" / f"simulate-l{level}.callgrind.7"
        )
    plan = PassPlan("counters", "valgrind", tuple(Step(f"simulate-l{level}", ("true",)) for level in levels))
    context = RunContext(
        Workload(("true",), str(tmp_path), "true"), read_machine(), tmp_path, "gate", None, 0.5, 1.0
    )
    readings = {r.metric: r for r in read_simulation(context, plan).readings if r.scope.kind == "run"}
    for metric, level in METRICS.items():
        told = f"artifacts/simulate-l{min(level, levels[-1])}.callgrind.7"
        assert (metric, readings[metric].source.artifact) == (metric, told)
