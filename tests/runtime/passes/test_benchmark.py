"""profkit.benchmark by hand, in the timing pass and under an instrument, in processes of their own."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from tests.simulated_clock import SIMULATED
from tests.workload_process import Done, run_workload


def run(folder: Path, code: str, clock: str = SIMULATED, **directive: object) -> Done:
    return run_workload(folder, clock + "import profkit\ncalls = []\n" + textwrap.dedent(code), directive)


SLEEP = """
def fn():
    calls.append(1)
    time.sleep(0.002)
"""

# ---------------------------------------------------------------- by hand


def test_by_hand_it_prints_one_line_with_what_the_work_says_of_itself(tmp_path: Path) -> None:
    done = run(tmp_path, SLEEP + "r = profkit.benchmark(fn, name='nap', flops=2e6, bytes=4e6, budget=1)")
    assert done.err == ""
    (line,) = done.out.splitlines()
    assert line.startswith("nap: 2.00 ms ± ")
    for word in (" ms ± ", " samples", " GFLOP/s", " GB/s"):
        assert word in line


def test_the_result_is_returned_with_median_interval_and_rates(tmp_path: Path) -> None:
    done = run(
        tmp_path,
        SLEEP
        + """
r = profkit.benchmark(fn, name="nap", flops=2e6, budget=1)
assert 0.002 <= r.interval.low <= r.median <= r.interval.high < 0.0021
assert r.flops_per_second == 2e6 / r.median and r.bytes_per_second is None
assert len(r.samples.seconds) >= 16 and r.samples.loops == 1 and r.samples.warmup
assert len(calls) >= len(r.samples.seconds) + len(r.samples.warmup)
""",
    )
    assert done.code == 0, done.err


def test_what_cannot_be_known_in_the_budget_is_said(tmp_path: Path) -> None:
    # Spread evenly: of two values alone the median may by chance be one of them, and its interval of no width.
    noisy = "import random\ndef fn(): time.sleep(random.uniform(0.001, 0.03))\n"
    done = run(
        tmp_path, noisy + "r = profkit.benchmark(fn, name='noisy', budget=0.6)\nassert not r.samples.precise"
    )
    assert done.code == 0, done.err
    assert "±1 % was not reached within 0." in done.out


@pytest.mark.parametrize(
    "word", ["flops=0", "flops=float('nan')", "bytes=-1", "budget=float('inf')", "precision=0"]
)
def test_a_number_that_is_none_is_refused(tmp_path: Path, word: str) -> None:
    done = run(tmp_path, f"profkit.benchmark(lambda: None, name='a', {word})")
    assert f"ValueError: a: {word.split('=')[0]} must be a positive finite number" in done.err


# ---------------------------------------------------------------- the timing pass


def test_the_timing_pass_is_quiet_and_records(tmp_path: Path) -> None:
    code = SLEEP + "profkit.benchmark(fn, name='nap', flops=2e6)"
    done = run(tmp_path, code, pass_name="timing", sampling=0.8, precision=0.05)
    assert (done.code, done.out, done.err) == (0, "", "")
    (timing,) = done.timings
    assert (timing.name, timing.kind, timing.flops, timing.bytes) == ("nap", "benchmark", 2e6, None)
    assert timing.precision == 0.05
    (samples,) = timing.processes
    assert samples.pid is not None
    assert 0 < samples.spent <= 0.8
    assert all(0.002 <= seconds < 0.0021 for seconds in samples.seconds)


def test_a_reference_loop_runs_between_the_samples_of_benchmarks_and_regions_in_the_timing_pass_alone(
    tmp_path: Path,
) -> None:
    code = """
    import time
    import profkit
    profkit.benchmark(lambda: sum(range(2000)), name='sum')
    for _ in range(8):
        with profkit.region('nap'): time.sleep(0.01)
    """
    (tmp_path / "counters").mkdir()
    timed, counted = (
        run(folder, code, clock="", pass_name=name, sampling=0.3, precision=0.05)
        for folder, name in ((tmp_path, "timing"), (tmp_path / "counters", "counters"))
    )
    benchmarked, nap = timed.timings
    turns = benchmarked.processes[0].reference_loop
    assert 2 <= len(turns) <= 20  # one in 20 ms, or later where the machine is busy
    assert 1e-5 < min(turns) < 1e-2  # others use the processor, too
    assert 2 <= len(nap.processes[0].reference_loop) <= 8
    assert counted.record.reference_loop == ()


def test_regions_inside_a_benchmark_and_around_it_are_not_timed_beside_it(tmp_path: Path) -> None:
    code = """
    def fn():
        with profkit.region("inner"): time.sleep(0.001)
    with profkit.region("outer"):
        profkit.benchmark(fn, name="a")
    with profkit.region("apart"): pass
    """
    done = run(tmp_path, code, pass_name="timing", sampling=0.3)
    assert [timing.name for timing in done.timings] == ["a", "apart"]


# ---------------------------------------------------------------- under an instrument

LOG = """
import sys, types
class Log:
    def prepare(self): calls.append("prepare")
    def enter(self, name): calls.append("+" + name)
    def exit(self, name): calls.append("-" + name)
sys.modules["profkit_pass_host"] = types.SimpleNamespace(switch=Log())
fn = lambda: calls.append("fn")
"""


def test_warm_up_is_outside_the_one_region_around_the_iterations(tmp_path: Path) -> None:
    code = LOG + "profkit.benchmark(fn, name='a')\nprint(*calls)"
    done = run(tmp_path, code, pass_name="counters", iterations=3, warmup=2)
    assert done.out.split() == ["prepare", "fn", "fn", "+a", "fn", "fn", "fn", "-a"]
    (region,) = done.record.regions
    assert (region.name, region.entries, region.iterations) == ("a", 1, 3)
