"""Simulated counts against kernels whose misses, bytes and operations are known by theory, within 2 %.

A small machine is simulated (L1 32 KiB, L2 256 KiB, L3 2 MiB), so that small arrays overflow it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from profkit.core.types import Cache, Scope
from profkit.profilers.valgrind.command import (
    callgrind_argv,
    callgrind_outputs,
    single_thread_env,
)
from profkit.profilers.valgrind.instructions import InstructionMix, instruction_mix
from profkit.profilers.valgrind.levels import combine_levels
from profkit.profilers.valgrind.read import read_callgrind

ROOT = Path(__file__).resolve().parents[3]
COUNT, SIDE = 1 << 19, 128  # doubles in a vector: 4 MiB; side of a float32 matrix: 64 KiB
LINES = COUNT * 8 // 64

WORKLOAD = f"""
import numpy as np
from profkit.runtime.region.valgrind import ValgrindSwitch
switch = ValgrindSwitch()
a, b, c = np.ones({COUNT}), np.ones({COUNT}), np.ones({COUNT})
x, y, z = (np.ones(({SIDE}, {SIDE}), np.float32) for _ in range(3))
kernels = {{
    "copy": lambda: np.copyto(c, a),
    "add": lambda: np.add(a, b, out=c),
    "triad": lambda: (np.multiply(b, 3.0, out=c), np.add(c, a, out=c)),
    "product": lambda: np.matmul(x, y, out=z),
}}
switch.prepare()
for name, kernel in kernels.items():
    kernel()
    switch.enter(name)
    kernel()
    switch.exit(name)
assert switch.reason is None, switch.reason
"""

pytestmark = pytest.mark.valgrind
Counts = dict[str, dict[str, float]]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    pytest.importorskip("numpy")
    folder = tmp_path_factory.mktemp("simulated")

    def record(name: str, last: Cache, instructions: bool) -> Path:
        argv = callgrind_argv(
            [sys.executable, "-c", WORKLOAD],
            folder / name,
            i1=Cache(1, 32768, 8),
            d1=Cache(1, 32768, 8),
            last=last,
            region=True,
            instructions=instructions,
        )
        env = {**os.environ, **single_thread_env(), "PYTHONPATH": str(ROOT)}
        done = subprocess.run(argv, capture_output=True, text=True, env=env)
        assert done.returncode == 0, done.stderr[-2000:]
        (file,) = callgrind_outputs(folder / name)
        return file

    with ThreadPoolExecutor() as both:
        l2 = both.submit(record, "l2", Cache(2, 256 << 10, 8), False)
        l3 = both.submit(record, "l3", Cache(3, 2 << 20, 16), True)
        return l2.result(), l3.result()


@pytest.fixture(scope="module")
def counts(recorded: tuple[Path, Path]) -> Counts:
    levels = combine_levels(read_callgrind(recorded[0]), read_callgrind(recorded[1]))
    assert levels.same_work, levels.warnings
    found: Counts = {}
    for counter in levels.counters:
        if counter.scope.kind == "region":
            found.setdefault(str(counter.scope.name), {})[counter.name] = counter.value or 0.0
    return found


@pytest.fixture(scope="module")
def mix(recorded: tuple[Path, Path]) -> InstructionMix:
    found = instruction_mix(recorded[1])
    assert found is not None
    return found


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("kernel", "read", "missed_writes", "written_back"),
    [
        # arrays read; written and not read before; dirty afterwards. Triad's second step finds c evicted.
        ("copy", 1, 1, 1),
        ("add", 2, 1, 1),
        ("triad", 3, 1, 2),
    ],
)
def test_streams_miss_every_level_once_per_line(
    counts: Counts, kernel: str, read: int, missed_writes: int, written_back: int
) -> None:
    of = counts[kernel]
    for level in "123":
        assert of[f"D{level}mr"] == pytest.approx(read * LINES, rel=0.02)
        assert of[f"D{level}mw"] == pytest.approx(missed_writes * LINES, rel=0.02)
    assert of["D3wb"] == pytest.approx(written_back * LINES, rel=0.02)


def test_operations(mix: InstructionMix) -> None:
    # add: N; triad: 2 N; in double. Product: 2 side^3 in single, and side^2 to scale the result.
    assert mix.whole.flop64 == pytest.approx(3 * COUNT, rel=0.02)
    assert mix.whole.flop32 == pytest.approx(2 * SIDE**3, rel=0.02)
    assert mix.whole.undecoded < 0.001 * mix.whole.executed


def test_the_run_is_the_sum_of_its_regions(recorded: tuple[Path, Path]) -> None:
    report = read_callgrind(recorded[1])
    run = next(c.value for c in report.counters if c.name == "Ir" and c.scope == Scope("run"))
    regions = sum(c.value or 0 for c in report.counters if c.name == "Ir" and c.scope.kind == "region")
    assert run == regions
    assert report.facts["caches at first entry"] == "warm"
