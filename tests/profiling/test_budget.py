"""What fits into the time that a run may take."""

from __future__ import annotations

import json
import shutil
import sys
import time
from dataclasses import replace
from math import inf
from pathlib import Path
from types import SimpleNamespace

import pytest
from cli_runner import profkit

from profkit.backends import PlanState, RunContext
from profkit.core.errors import Progress
from profkit.core.run_folder import read_run
from profkit.core.types import Fact, PassPlan, Step
from profkit.profiling.collect import RunCollector, needs_peaks
from profkit.profiling.time_limits import keep_to_budget
from tests import documents
from tests.spoken import spoken, spoken_lines


def pass_plan(name, seconds):
    return PassPlan(name, None, (Step(name, ("true",)),), cost=seconds)


STACKS, CALLS, COUNTERS = pass_plan("stacks", 2.0), pass_plan("cprofile", 4.0), pass_plan("counters", 6.0)
WAITING = (STACKS, CALLS, pass_plan("tracemalloc", 5.0), pass_plan("trace", 3.0), COUNTERS)


def kept(left):
    return [plan.name for plan in keep_to_budget(WAITING, left, 1.0, 30.0) if plan.skipped is None]


@pytest.mark.parametrize(
    ("left", "names"),
    [
        (20.0, ["stacks", "cprofile", "tracemalloc", "trace", "counters"]),
        (15.0, ["stacks", "cprofile", "trace", "counters"]),
        (11.0, ["stacks", "trace", "counters"]),
        (5.0, ["stacks", "trace"]),
        (4.0, ["stacks"]),  # net.py: a trace in place of them named none of its lines
        (0.0, []),
    ],
)
def test_what_says_most_for_its_time_is_kept_and_runs_in_the_plans_order(left, names):
    assert kept(left) == names


def test_a_pass_that_is_left_out_says_what_it_would_take_and_the_budget_that_would_do():
    (counters,) = keep_to_budget((COUNTERS,), 2.0, 1.0, 30.0)
    assert spoken(counters.skipped) == "it would take about 6 s, but only 2 s of --budget 30 are left"
    assert counters.fix == "--budget 34"
    assert counters.steps == ()


def test_a_pass_that_is_left_out_says_whose_limit_it_is_and_what_of_it_is_left():
    (counters,) = keep_to_budget((COUNTERS,), 2.0, 4.0, 30.0, {}, (5.0, 10.0))
    assert spoken(counters.skipped) == (
        "it would take about 24 s, but only 2 s of profkit's own limit of 5 normal runs + 10 s (about 30 s) are left"
    )
    plans = keep_to_budget(WAITING, 3.0, 1.0, 15.0, {"stacks": inf, "counters": inf}, (5.0, 10.0))
    assert spoken(next(plan.skipped for plan in plans if plan.skipped is not None)) == (
        "it would take about 4 s, but what ran before and the more important passes need all of "
        "profkit's own limit of 5 normal runs + 10 s (about 15 s)"
    )
    (counters,) = keep_to_budget((COUNTERS,), 0.0, 1.0, 97.0)
    assert (
        spoken(counters.skipped)
        == "it would take about 6 s, but what ran before and the more important passes need all of --budget 97"
    )


def test_the_sentence_of_an_older_run_names_its_limit_without_saying_whose_it_is():
    reason = Fact.of("over-budget", seconds=17.0, left=4.0, budget=24.0)
    assert spoken(reason) == "it would take about 17 s, but only 4 s of the time limit of 24 s are left"


def test_a_pass_that_may_be_cut_gets_what_is_left_and_no_less_than_it_needs():
    cut = replace(COUNTERS, limit=6.0, least=4.0)
    (counters,) = keep_to_budget((cut,), 5.0, 2.0, 30.0)
    assert (counters.skipped, counters.limit, counters.cost) == (None, 5.0, 2.5)
    counters, calls = keep_to_budget((cut, CALLS), 9.5, 1.0, 30.0)  # what is left after it is cProfile's
    assert (counters.limit, calls.skipped) == (5.5, None)
    (counters,) = keep_to_budget((cut,), 3.0, 2.0, 30.0)
    assert counters.skipped is not None


def test_a_pass_whose_tool_may_write_long_is_planned_for_the_limit_that_this_leaves_it():
    """Programs of C++ were simulated for 6 s where 13 were estimated."""
    step = replace(COUNTERS.steps[0], finish=20.0)
    cut = replace(COUNTERS, steps=(step,), cost=13.0, limit=13.0, least=5.0)
    (counters,) = keep_to_budget((cut,), 17.0, 1.0, 23.0, {"counters": inf})
    assert counters.limit == 1.25 * 5.0
    assert counters.cost == counters.limit + 1.0
    (counters,) = keep_to_budget((cut,), 60.0, 1.0, 70.0, {"counters": inf})
    assert (counters.limit, counters.cost) == (12.0, 13.0)


def test_what_is_kept_runs_where_nothing_is_left_and_what_did_not_fit_counts_it_in_its_budget():
    plans = keep_to_budget(WAITING, 3.0, 1.0, 30.0, {"stacks": inf, "counters": inf})
    assert [plan.name for plan in plans if plan.skipped is None] == ["stacks", "counters"]
    assert plans[1].fix == "--budget 39"  # 5 s that counters take beyond it, and 4 of its own


def test_what_is_kept_and_may_be_cut_gets_the_least_that_it_needs():
    cut = replace(COUNTERS, limit=6.0, least=4.0)
    (counters,) = keep_to_budget((cut,), -1.0, 2.0, 30.0, {"counters": inf})
    assert (counters.skipped, counters.limit) == (None, 4.0)


@pytest.mark.parametrize(
    ("left", "runs"),
    [
        (10.0, ["cprofile", "counters"]),
        (8.0, ["cprofile", "counters"]),  # 3 s more than are left
        (6.9, ["cprofile"]),
        (3.0, ["cprofile"]),  # which alone takes longer than is left
    ],
)
def test_what_may_exceed_the_limit_by_some_seconds_comes_after_what_runs_in_any_case(left, runs):
    """Imports of scikit-learn took 14 s under valgrind, and the whole run 15 s more than it may."""
    simulated = replace(COUNTERS, least=None, cost=7.0)
    plans = keep_to_budget((simulated, CALLS), left, 1.0, 30.0, {"counters": 3.0, "cprofile": inf})
    assert sorted(plan.name for plan in plans if plan.skipped is None) == sorted(runs)
    if plans[0].skipped is not None:
        assert plans[0].fix == f"--budget {30 + 11 - left:.0f}"


@pytest.mark.parametrize(
    ("trials", "left", "kept"),
    [
        (0.0, 16.0, [True, True]),
        (5.0, 16.0, [True, False]),  # 2 s for the allocations, of 8
        (5.0, 8.0, [True, False]),  # the trials get nothing: calls say more than they
        (9.0, 16.0, [True, True]),  # so much is not left: no pass makes room in vain
    ],
)
def test_allocations_leave_the_time_of_trials_that_may_save_much(
    trials: float, left: float, kept: list[bool]
) -> None:
    heap = PassPlan("tracemalloc", None, (Step("run", ("p",)),), cost=8.0)
    plans = keep_to_budget((replace(CALLS, cost=8.0), heap), left, 1.0, 30.0, {}, None, trials)
    assert [plan.skipped is None for plan in plans] == kept


def begun(folder: Path, budget: float | None = None) -> RunCollector:
    """Return the collector of a run of T + 14.7 s that began 4 s ago, of which profkit's own start is a part."""
    known = documents.document()
    context = RunContext(known.workload, known.machine, folder, "standard", None, 0.01, 1.0, budget=budget)
    backend = SimpleNamespace(name="cpu", allowances={"standard": (1.0, 14.0 / 0.95)}, has_device=False)
    began = time.monotonic() - 4.0
    return RunCollector(context, backend, SimpleNamespace(), Progress(), lambda d: d, began)


@pytest.mark.parametrize(("runs", "skipped"), [(0.0, False), (1.0, True)])
def test_what_a_run_makes_likely_to_save_much_has_its_time_kept(
    tmp_path: Path, runs: float, skipped: bool
) -> None:
    collector = begun(tmp_path)
    collector._runs_for_trials = runs
    state = PlanState(marked=False, plain_seconds=2.0)
    (heap,) = collector._fit_to_time((pass_plan("tracemalloc", 4.5),), state)
    assert (heap.skipped is not None) == skipped  # 10.9 s are left, and 8.9 beside a run of a trial


@pytest.mark.parametrize(
    ("seconds", "simulated", "marked", "budget", "skipped"),
    [
        (8.0, True, False, None, False),  # 11 - 4 for cProfile - 1 for the reports: 2 s too many
        (11.0, True, False, None, True),
        (11.0, False, False, None, False),  # counts by a PMU
        (11.0, True, True, None, False),  # of a region
        (8.0, True, False, 14.0, False),
        (8.0, True, False, 12.0, True),  # a budget is never exceeded
    ],
)
def test_a_simulation_is_left_out_where_it_would_make_the_run_much_longer_than_it_may_be(
    tmp_path, seconds, simulated, marked, budget, skipped
):
    collector = begun(tmp_path, budget)
    counters = replace(COUNTERS, cost=seconds, simulated=simulated)
    state = PlanState(marked=marked, plain_seconds=1.0)
    _, found = collector._fit_to_time((CALLS, counters), state)
    assert (found.skipped is not None) == skipped


def test_peaks_are_measured_only_where_something_is_held_against_them():
    rates = (documents.reading("cache.l1.miss_rate", 4.0), documents.reading("flops", None, "FLOP"))
    nothing = replace(documents.empty(), readings=rates)
    assert not needs_peaks(nothing)
    assert needs_peaks(replace(nothing, readings=(documents.reading("dram.bytes", 1e9, "B"),)))
    declared = replace(documents.timing(), flops=1e9)
    assert needs_peaks(replace(nothing, timings=(declared,)))


@pytest.mark.thorough
@pytest.mark.skipif(not shutil.which("valgrind"), reason="valgrind is not installed")
def test_a_simulation_that_the_budget_ended_tells_no_total(tmp_path):
    """The program's beginning would pass for all of it, and its instructions for exact ones."""
    (tmp_path / "loop.py").write_text("n = 0\nfor i in range(8_000_000):\n    n += i\n")
    said = profkit(
        *("profile", "--passes", "counters", "--budget", "6", "--quiet", "--output", "runs"),
        *("--", sys.executable, "loop.py"),
        cwd=tmp_path,
    )
    (folder,) = (tmp_path / "runs").iterdir()
    document = read_run(folder)
    assert any("of the program were simulated" in note for note in spoken_lines(document.notes)), said.err
    simulated = [r for r in document.readings if r.metric == "instructions" and r.source.tool == "valgrind"]
    assert simulated
    assert all(reading.value is None for reading in simulated)


# ------------------------------------------------------------ test_timing_pass

# Ten times the same time in each process, which is what a process's own interval calls precise; the processes
# themselves differ by the factor that stands in the file of turns.
PROCESS = """
import json, os, pathlib, sys
turns = pathlib.Path("turns"); n = int(turns.read_text()) if turns.exists() else 0
turns.write_text(str(n + 1))
factor = {factors}[n % len({factors})]
directive = json.loads(os.environ["PROFKIT_DIRECTIVE"])
samples = [factor * (1 + 0.0001 * (i % 3)) for i in range(30)]
record = {{"schema": "profkit.region/2", "pid": os.getpid(), "pass": "timing", "regions": [], "benchmarks": [
    {{"name": "made", "flops": None, "bytes": None, "sample_set": {{"seconds": samples}}}}]}}
pathlib.Path(f"{{directive['record']}}.{{os.getpid()}}.json").write_text(json.dumps(record))
"""


@pytest.mark.parametrize(
    ("factors", "least", "most"),
    [
        ([1.0], 3, 3),  # alike: the planned three tell all there is
        ([1.0, 1.4, 1.0, 1.0, 1.0, 1.0], 6, 40),  # one of six is slow: more are needed to know the rule
    ],
)
def test_processes_are_added_while_they_differ(
    tmp_path: Path, factors: list[float], least: int, most: int
) -> None:
    (tmp_path / "made.py").write_text(PROCESS.format(factors=factors))
    said = profkit(
        *("profile", "--passes", "timing", "--sampling", "3", "--format", "json", "--quiet"),
        *("--", "python3", "made.py"),
        cwd=tmp_path,
    )
    assert said.code == 0, said.err
    timing = json.loads(said.out)["timings"][0]
    assert least <= len(timing["processes"]) <= most
    interval = next(r for r in said.json()["readings"] if r["metric"] == "time.interval")
    assert interval["value"] <= 1.0


def test_a_budget_that_ends_first_is_said(tmp_path: Path) -> None:
    (tmp_path / "made.py").write_text(PROCESS.format(factors=[1.0, 2.0, 3.0, 1.5, 2.5]))
    said = profkit(
        *("profile", "--passes", "timing", "--sampling", "0.3", "--format", "json", "--quiet"),
        *("--", "python3", "made.py"),
        cwd=tmp_path,
    )
    assert said.code == 0, said.err
    words = {verdict["target"]: verdict["verdict"] for verdict in said.json()["verdicts"]}
    assert words["time-precision"] == "unknown"


def test_a_short_budget_for_the_whole_run_is_not_spent_on_plain_runs(tmp_path: Path) -> None:
    """Of a program of 0.4 s another run would end after a quarter of 1 s; without a budget there are three."""
    said = profkit(
        *("profile", "--passes", "timing", "--budget", "1", "--format", "json", "--quiet"),
        *("--", "sleep", "0.4"),
        cwd=tmp_path,
    )
    assert said.code == 0, said.err
    assert len(said.json()["timings"][0]["processes"][0]["seconds"]) == 1


ENTERED = """
import time, profkit
time.sleep(0.3)
for _ in range(20):
    with profkit.region("part"):
        time.sleep(0.02)
"""


def test_the_time_beside_a_region_and_in_it_is_the_whole(tmp_path: Path) -> None:
    """Of a region that was entered 200 times "start-up 3.02 s of 3.02 s" was said."""
    (tmp_path / "entered.py").write_text(ENTERED)
    said = profkit(
        *("profile", "--backend", "cpu", "--passes", "timing", "--output", "runs", "--quiet"),
        *("--", sys.executable, "entered.py"),
        cwd=tmp_path,
    )
    assert said.code == 0, said.err
    (folder,) = (tmp_path / "runs").iterdir()
    split = read_run(folder).time_split
    assert split is not None
    assert split.startup is not None
    assert 0.3 <= split.startup <= split.wall - 0.35
    assert "outside the region" in said.out


@pytest.mark.thorough
def test_the_first_answer_waits_for_one_process_and_the_time_is_that_of_all(tmp_path: Path) -> None:
    """Of the main job it came after 21 s: three processes began with `import torch`, 5 s each."""
    (tmp_path / "entered.py").write_text(ENTERED.replace("time.sleep(0.02)", "sum(range(1_000_000))"))
    said = profkit(
        *("profile", "--backend", "cpu", "--passes", "timing,stacks,cprofile", "--output", "runs"),
        *("--sampling", "1", "--", sys.executable, "entered.py"),
        cwd=tmp_path,
    )
    assert said.code == 0, said.err
    at = [
        said.err.index(words)
        for words in ("a first process", "first answer:", "further processes", "cprofile")
    ]
    assert at == sorted(at)
    (folder,) = (tmp_path / "runs").iterdir()
    run = read_run(folder)
    assert [result.name for result in run.passes[:3]] == ["timing", "stacks", "cprofile"]
    assert len(run.timings[0].processes) >= 3
    assert len(run.disturbances) == len(run.timings[0].processes)
    assert [reading.metric for reading in run.readings].count("memory.rss_peak") == 1
    assert len({series.kind for series in run.memory}) == len(run.memory)
    assert run.passes[0].seconds > sum(sum(process.seconds) for process in run.timings[0].processes)


def test_without_a_pass_that_answers_all_processes_are_timed_at_once(tmp_path: Path) -> None:
    (tmp_path / "entered.py").write_text(ENTERED)
    said = profkit(
        *(
            "profile",
            "--backend",
            "cpu",
            "--passes",
            "timing,cprofile",
            "--sampling",
            "0.1",
            "--output",
            "runs",
        ),
        *("--", sys.executable, "entered.py"),
        cwd=tmp_path,
    )
    assert said.code == 0, said.err
    assert "3 processes, no profiler" in said.err
    assert "further processes" not in said.err
