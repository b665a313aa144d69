"""What two recorded simulations say of a run, and from which of them each reading comes."""

from __future__ import annotations

import json
import math
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from profkit.backends import PlanState, RunContext
from profkit.backends.cpu.simulation import Simulation, read_simulation
from profkit.core.errors import UnreadableReport
from profkit.core.types import CountedLine, Directive, PassPlan, Step, Workload
from profkit.hardware.machine import read_machine
from profkit.profilers.valgrind.probe import ValgrindAbility, probe_valgrind
from profkit.profiling.run_steps import RunSettings, run_step
from profkit.profiling.time_limits import keep_to_budget
from profkit.runtime.passes.command import host_command
from profkit.runtime.passes.host import simulation_window
from tests.spoken import spoken

DATA = Path(__file__).resolve().parents[1] / "data" / "valgrind"
METRICS = {
    "cache.l1.miss_rate": 3,
    "cache.l2.miss_rate": 2,
    "cache.l3.miss_rate": 3,
    "branch.miss_rate": 3,
    "dram.bytes": 3,
    "instructions": 3,
}


def recorded(folder: Path, *levels: int) -> RunContext:
    """A run whose simulations of these levels are recorded ones."""
    (folder / "artifacts").mkdir()
    for level in levels:
        shutil.copy(
            DATA / f"kernels.l{level}.callgrind", folder / "artifacts" / f"simulate-l{level}.callgrind.7"
        )
    return RunContext(
        Workload(("true",), str(folder), "true"), read_machine(), folder, "gate", None, 0.5, 1.0
    )


@pytest.mark.parametrize("levels", [(2, 3), (2,)])
def test_a_reading_names_the_simulation_that_counted_it(levels: tuple[int, ...], tmp_path: Path) -> None:
    plan = PassPlan("counters", "valgrind", tuple(Step(f"simulate-l{level}", ("true",)) for level in levels))
    found = read_simulation(recorded(tmp_path, *levels), plan).readings
    readings = {r.metric: r for r in found if r.scope.kind == "run"}
    for metric, level in METRICS.items():
        told = f"artifacts/simulate-l{min(level, levels[-1])}.callgrind.7"
        assert (metric, readings[metric].source.artifact) == (metric, told)


WORKS = ValgrindAbility(Path("/usr/bin/valgrind"), "3.19", True)
PYTHON, COMPILED = (sys.executable, "work.py"), ("./work",)


def planned(tmp_path, command, seconds, *, depth="standard", imports=None, marked=False):
    """The plan for a program whose plain run takes `seconds`."""
    python = sys.executable if command is PYTHON else None
    workload = Workload(command, str(tmp_path), "work", python=python)
    context = RunContext(workload, read_machine(), tmp_path, depth, None, 0.5, 1.0)
    state = PlanState(marked, plain_seconds=seconds, start_seconds=seconds / 2, import_seconds=imports)
    (plan,) = Simulation(context, WORKS).plan(state)
    return plan


@pytest.mark.parametrize(
    ("command", "seconds", "imports", "limit", "delay"),
    [
        (PYTHON, 0.08, None, 5.32, None),  # all of it fits
        (PYTHON, 1.0, 0.2, 9.0, 3.5),  # a window, past the imports
        (PYTHON, 60.0, 0.2, 20.0, 15.0),
        (PYTHON, 60.0, 1.5, 21.5, 16.5),
        (COMPILED, 60.0, None, 20.0, None),  # nothing could begin it later: the beginning
    ],
)
def test_a_simulation_has_its_time_and_a_long_python_program_a_window_past_its_imports(
    tmp_path, command, seconds, imports, limit, delay
):
    plan = planned(tmp_path, command, seconds, imports=imports)
    assert plan.limit == pytest.approx(limit)
    assert all(step.directive.delay == pytest.approx(delay) for step in plan.steps)
    assert plan.cost * seconds <= limit + 1e-9


@pytest.mark.parametrize(
    ("awake", "delay"), [(1.0, 1.5 + 1.5 * 2.4), (0.0, 1.5 + 0.5 * 2.4), (0.5, 1.5 + 2.4)]
)
def test_the_window_of_a_program_that_sleeps_begins_before_its_end(tmp_path, awake, delay):
    """A program that polls by the clock had ended before its window: while it sleeps valgrind makes it no slower."""
    workload = Workload(PYTHON, str(tmp_path), "work", python=sys.executable)
    context = RunContext(workload, read_machine(), tmp_path, "standard", None, 0.5, 1.0)
    (plan,) = Simulation(context, WORKS).plan(PlanState(False, plain_seconds=2.4, main_share=awake))
    assert plan.steps[0].directive.delay == pytest.approx(delay)


def test_a_busy_machine_makes_a_window_no_later_and_its_limit_is_extended(tmp_path):
    workload = Workload(PYTHON, str(tmp_path), "work", python=sys.executable)
    context = RunContext(workload, read_machine(), tmp_path, "standard", None, 0.5, 1.0)
    (busy,) = Simulation(context, WORKS).plan(PlanState(False, plain_seconds=3.0, main_seconds=1.0))
    quiet = planned(tmp_path, PYTHON, 1.0)
    assert (busy.limit, busy.steps[0].directive.delay) == (quiet.limit, quiet.steps[0].directive.delay)
    assert all(step.extended for step in busy.steps)
    assert busy.cost * 3.0 == pytest.approx(2 * quiet.cost)  # of three times as long it is ended at twice
    assert not any(step.extended for step in planned(tmp_path, PYTHON, 1.0, marked=True).steps)


@pytest.mark.parametrize(
    ("seconds", "estimate"), [(0.27, 3 + 36 * 0.27), (12.0, 3 + 72 + 20)]
)  # half of it is its start
def test_a_marked_program_is_ended_after_twice_what_it_was_thought_to_take(tmp_path, seconds, estimate):
    """Counters of a program of 3 s with a region took 193 s."""
    plan = planned(tmp_path, PYTHON, seconds, marked=True)
    assert plan.cost * seconds == pytest.approx(estimate)
    assert plan.limit == pytest.approx(2 * estimate)
    assert all(step.cut for step in plan.steps)


@pytest.mark.parametrize(
    ("share", "estimate"),
    [
        (0.0, 3 + 12 * 0.05 + 60 * 0.014),
        (0.7, 3 + 12 * 0.05 + (60 + 0.7 * 1540) * 0.014),  # 16.9 s were measured where 5 had been thought
        (1.0, 3 + 12 * 0.05 + 20),
    ],
)
def test_a_region_in_products_of_matrices_is_known_to_take_longer(tmp_path, share, estimate):
    state = PlanState(
        marked=True, plain_seconds=0.19, iteration_seconds=0.007, entries=20, product_share=share
    )
    context = RunContext(
        Workload(PYTHON, str(tmp_path), "work", python=sys.executable),
        *(read_machine(), tmp_path, "standard", None, 0.5, 1.0),
    )
    (plan,) = Simulation(context, WORKS).plan(state)
    assert plan.cost * 0.19 == pytest.approx(estimate)


def test_a_simulation_that_was_ended_before_it_counted_is_not_said_to_lack_a_region(tmp_path):
    (tmp_path / "artifacts").mkdir()
    (tmp_path / "artifacts" / "simulate-l2.callgrind.7").write_text(
        "version: 1\ncreator: callgrind-3.19.0\npid: 7\npositions: line\nevents: Ir\nfn=(1) main\n1 0\ntotals: 0\n"
    )
    step = Step("simulate-l2", ("true",), directive=Directive("counters", "x"), cut=True)
    plan = PassPlan("counters", "valgrind", (step,), limit=9.0)
    context = RunContext(
        Workload(PYTHON, str(tmp_path), "work", python=sys.executable),
        *(read_machine(), tmp_path, "standard", None, 0.5, 1.0),
    )
    with pytest.raises(UnreadableReport, match="took more than 9 s and was ended"):
        read_simulation(context, plan, 9.5)
    with pytest.raises(UnreadableReport, match="never entered"):
        read_simulation(context, plan, 4.0)


@pytest.mark.parametrize(
    ("age", "queued", "waits"),
    [
        (0.8, 0.0, 0.3),  # a fast start
        (1.6, 0.0, 0.2),  # one a little slower than planned
        (5.0, 0.0, 0.0),  # a start that was far slower
        (2.4, 0.8, 0.2),  # on a busy machine: it has worked for 1.6 s
        (3.7, 3.0, 0.0),  # twice the time is over
    ],
)
def test_the_window_begins_no_later_into_a_program_that_starts_fast(
    monkeypatch, tmp_path, age, queued, waits
):
    """Of a program of 0.2 s nothing was counted: it had ended before its window."""
    slept = _slept(monkeypatch, tmp_path, age, [queued] * 9)
    assert sum(slept) == pytest.approx(waits, abs=0.02)


def test_the_window_begins_later_by_the_time_for_which_the_program_waited_for_a_processor(
    monkeypatch, tmp_path
):
    """With two other programs beside it, one of 3.6 s was simulated in its imports: "too little was simulated"."""
    slept = _slept(monkeypatch, tmp_path, 1.6, [0.0, 0.15, 0.15])
    assert slept == [pytest.approx(0.2, abs=0.02), pytest.approx(0.15, abs=0.02)]
    assert sum(_slept(monkeypatch, tmp_path, 1.6, [0.0, *range(1, 9)])) == pytest.approx(
        2 * 1.8 - 1.6, abs=0.02
    )


def _slept(monkeypatch, folder, age, queued):
    """Sleep until a window of 1.8 s, `age` seconds after the start; `queued`: seconds in a queue, at each look."""
    slept, looks = [], iter(queued)
    clock = SimpleNamespace(
        sleep=slept.append,
        clock_gettime=lambda _: age + _started() + sum(slept),
        CLOCK_BOOTTIME=time.CLOCK_BOOTTIME,
    )
    monkeypatch.setattr(simulation_window, "time", clock)
    monkeypatch.setattr(simulation_window, "_queued_seconds", lambda: next(looks))
    requests = SimpleNamespace(ClientRequests=lambda: SimpleNamespace(reason="not under valgrind"))
    monkeypatch.setattr(simulation_window.importlib, "import_module", lambda _: requests)
    simulation_window.SimulationWindow(str(folder / "window"))._begin_after(1.8)
    began = json.loads((folder / "window").read_text())["began"]
    assert began == pytest.approx(age + sum(slept), abs=0.03)
    return slept


def _started():
    """Seconds since the boot of the machine when this process started."""
    ticks = int(Path("/proc/self/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[19])
    return ticks / os.sysconf("SC_CLK_TCK")


@pytest.mark.parametrize(
    ("entries", "iteration", "told"),
    [
        (20, 0.03, (1, 1)),  # 123 s where all were simulated: fused multiply-adds are 3,000 times slower
        (5000, 0.0001, (1, 16)),
        (3, 0.0001, (1, 2)),
        (1, 0.6, (0, 1)),  # also that of a benchmark: what comes after it is not run
        (None, 0.03, None),  # several regions: each has to be entered
    ],
)
def test_of_a_region_that_is_entered_often_a_few_entries_are_simulated_after_one_that_fills_the_caches(
    tmp_path, entries, iteration, told
):
    state = PlanState(marked=True, plain_seconds=0.8, iteration_seconds=iteration, entries=entries)
    context = RunContext(
        Workload(PYTHON, str(tmp_path), "work", python=sys.executable),
        *(read_machine(), tmp_path, "standard", None, 0.5, 1.0),
    )
    (plan,) = Simulation(context, WORKS).plan(state)
    for step in plan.steps:
        assert (step.directive.entries, step.directive.ends) == (told, told is not None)


def test_a_program_of_3_6_s_has_room_for_its_cache_numbers_beside_cprofile(tmp_path):
    """Of 0.95 (5 T + 10) s that a run may take, timing and stacks took 7.8 s, and profkit itself 1.5."""
    counters = planned(tmp_path, PYTHON, 3.6, imports=0.2)
    calls = PassPlan("cprofile", None, (Step("cprofile", ("true",)),), cost=1.5)
    heap = PassPlan("tracemalloc", None, (Step("tracemalloc", ("true",)),), cost=2.5)
    plans = keep_to_budget((counters, calls, heap), 17.3, 3.6, 26.6)
    assert [plan.skipped is None for plan in plans] == [True, True, False]
    assert plans[0].limit >= counters.steps[0].directive.delay + 3


def test_a_program_that_is_mostly_imports_is_not_simulated_and_full_depth_simulates_all(tmp_path):
    heavy = planned(tmp_path, PYTHON, 9.0, imports=4.0)
    assert heavy.skipped is not None
    assert "loading modules takes 4.0 s" in spoken(heavy.skipped)
    assert planned(tmp_path, PYTHON, 9.0, imports=4.0, depth="full").limit is None


def test_of_a_part_of_the_program_rates_are_estimates_and_totals_are_not_known(tmp_path):
    told = Directive("counters", "x")
    steps = tuple(Step(f"simulate-l{level}", ("true",), directive=told, cut=True) for level in (2, 3))
    plan = PassPlan("counters", "valgrind", steps, limit=20.0)
    context = recorded(tmp_path, 2, 3)

    def of_run(seconds):
        return {
            r.metric: r for r in read_simulation(context, plan, seconds).readings if r.scope.kind == "run"
        }

    whole, part = of_run(19.0), of_run(20.3)
    assert whole["dram.bytes"].value is not None
    assert spoken(part["dram.bytes"].reason) == "only the first 20 s of the program were simulated"
    assert part["cache.l1.miss_rate"].quality == "estimated"
    assert part["cache.l1.miss_rate"].value == whole["cache.l1.miss_rate"].value


PROGRAM = """
import time
begin = time.time()
while time.time() - begin < 200:
    sum(i * i for i in range(1000))
"""


HOT = """
import time
def fill():
    begin = time.time()
    while time.time() - begin < 1.5:
        sum(i * i for i in range(1000))
def work():
    while True:
        time.sleep(0.01)
fill()
print("filled", flush=True)
work()
"""


def _window_directive(line, **more):
    wanted = {"file": "work.py", "line": line, "function": "work", "each": True, "names": [], "loop": False}
    return json.dumps({"pass_name": "counters", "record": "r", "delay": 60.0, "lines": [wanted], **more})


@pytest.mark.thorough
def test_a_window_begins_where_the_hottest_line_is_met_and_the_program_ends_after_it(tmp_path):
    """Under no valgrind here: what counts is when. Of a program of 5 s, 8 s had gone by before its window."""
    (tmp_path / "work.py").write_text(HOT)
    argv, _ = host_command((sys.executable, "work.py"), "simulation-window", tmp_path / "window")
    given = _window_directive(HOT.splitlines().index("        time.sleep(0.01)") + 1, longest=0.5)
    env = {
        **os.environ,
        "PROFKIT_DIRECTIVE": given.replace('"work.py"', json.dumps(str(tmp_path / "work.py"))),
    }
    done = subprocess.run(argv, cwd=tmp_path, env=env, capture_output=True, text=True, check=True, timeout=30)
    assert done.stdout == "filled\n"  # it would not have ended by itself
    assert 1.5 < json.loads((tmp_path / "window").read_text())["began"] < 20.0


def test_a_program_with_others_below_it_is_left_to_the_limit(tmp_path):
    """Their simulations would be killed before they had written their reports."""
    code = """import subprocess, sys
subprocess.run([sys.executable, '-c', 'import time; time.sleep(1.5)'])
print('end')"""
    (tmp_path / "work.py").write_text(code)
    argv, _ = host_command((sys.executable, "work.py"), "simulation-window", tmp_path / "window")
    env = {**os.environ, "PROFKIT_DIRECTIVE": _window_directive(9, delay=0.1, longest=0.3)}
    done = subprocess.run(argv, cwd=tmp_path, env=env, capture_output=True, text=True, check=True, timeout=30)
    assert done.stdout == "end\n"


@pytest.mark.parametrize(
    ("lines", "imports", "begin"),
    [
        ((), 0.1, 1.5 + 1.5 * 3.0),  # by the clock
        ((CountedLine("work.py", 4, "work"),), 0.1, 1.5 + 0.6 * 1.5 * 3.0),
        ((CountedLine("work.py", 4, "work"),), 0.4, 1.5 + 10 * 0.4),
        ((CountedLine("work.py", 4, "work"),), 0.8, 1.5 + 10 * 0.8),
    ],
)
def test_a_window_that_waits_for_a_line_is_thought_to_begin_before_its_time_is_over(
    tmp_path, lines, imports, begin
):
    """Simulations were estimated at 8.7, 13.8 and 9.6 s, and took 5.3, 9.0 and 5.2."""
    context = RunContext(
        Workload(PYTHON, str(tmp_path), "work", python=sys.executable),
        *(read_machine(), tmp_path, "standard", None, 0.5, 1.0),
    )
    state = PlanState(False, plain_seconds=3.0, import_seconds=imports, lines=lines)
    (plan,) = Simulation(context, WORKS).plan(state)
    assert plan.cost * 3.0 == pytest.approx(begin + 3.6)
    assert plan.least == pytest.approx(plan.steps[0].directive.delay + 3.6)
    (fitted,) = keep_to_budget((plan,), 0.0, 3.0, 25.0, {"counters": math.inf})
    assert fitted.limit >= plan.least  # else it would be ended within its window


def test_a_part_of_a_program_says_when_it_began_and_the_plan_allows_for_its_end(tmp_path):
    plan = planned(tmp_path, PYTHON, 3.0, imports=0.2)
    directive = plan.steps[0].directive
    assert directive.longest == 3.0
    assert plan.cost * 3.0 == pytest.approx(directive.delay + 3.0 + 0.6)
    context = recorded(tmp_path, 2, 3)
    found = {r.metric: r for r in read_simulation(context, plan, 5.0).readings if r.scope.kind == "run"}
    assert spoken(found["dram.bytes"].reason).endswith("beginning 6 s after its start (under valgrind)")
    (tmp_path / "artifacts" / "simulate-l2.window").write_text('{"began": 1.8}')
    found = {r.metric: r for r in read_simulation(context, plan, 5.0).readings if r.scope.kind == "run"}
    assert spoken(found["dram.bytes"].reason).endswith("beginning 2 s after its start (under valgrind)")


@pytest.fixture
def one_processor():
    """Keep this process and what it starts on one processor; a function starts others that are busy there."""
    before, others = os.sched_getaffinity(0), []
    os.sched_setaffinity(0, {min(before)})
    yield lambda: others.append(
        subprocess.Popen(
            [sys.executable, "-c", "import os\nparent = os.getppid()\nwhile os.getppid() == parent: pass"],
            start_new_session=True,
        )
    )
    for other in others:
        other.kill()
        other.wait()
    os.sched_setaffinity(0, before)


@pytest.mark.thorough
@pytest.mark.valgrind
@pytest.mark.skipif(sys.platform != "linux", reason="the kernel counts no waiting for a processor here")
@pytest.mark.parametrize("busy", [0, 1])
def test_a_real_simulation_begins_late_ends_in_time_and_leaves_its_counts(tmp_path, one_processor, busy):
    """Beside another busy program the window was over before the program had left its start."""
    for _ in range(busy):
        one_processor()
    (tmp_path / "work.py").write_text(PROGRAM)
    workload = Workload(
        (sys.executable, str(tmp_path / "work.py")), str(tmp_path), "w", python=sys.executable
    )
    context = RunContext(workload, read_machine(), tmp_path, "standard", None, 0.5, 1.0)
    (plan,) = Simulation(context, probe_valgrind()).plan(PlanState(False, plain_seconds=60.0))
    step = plan.steps[0]
    quick = Step(**{**vars(step), "directive": Directive("counters", step.directive.record, delay=2.0)})
    # To start under valgrind takes 2 s of a processor, 4 s where another program has its other thread.
    done = run_step(quick, RunSettings(tmp_path, timeout=6.0, longest=240.0))
    assert done.ran_out
    counts = read_simulation(context, PassPlan("counters", "valgrind", (quick,), limit=6.0), 6.1)
    assert next(c.value for c in counts.counters if c.name == "Ir") > 1e6
    assert any("genexpr" in h.function or "eval" in h.function.lower() for h in counts.profiles[0].hotspots)


@pytest.mark.thorough
@pytest.mark.valgrind
def test_a_program_that_ends_before_its_window_is_not_said_to_lack_a_region(tmp_path):
    (tmp_path / "work.py").write_text("pass")
    workload = Workload(
        (sys.executable, str(tmp_path / "work.py")), str(tmp_path), "w", python=sys.executable
    )
    context = RunContext(workload, read_machine(), tmp_path, "standard", None, 0.5, 1.0)
    (plan,) = Simulation(context, probe_valgrind()).plan(PlanState(False, plain_seconds=60.0))
    run_step(plan.steps[0], RunSettings(tmp_path, timeout=60))
    one = PassPlan("counters", "valgrind", plan.steps[:1], limit=60.0)
    with pytest.raises(UnreadableReport, match="ended before the simulation began"):
        read_simulation(context, one, 2.0)


@pytest.mark.parametrize(("host", "by_the_system"), [("simulation-window", True), ("tracemalloc", False)])
def test_a_simulated_program_ends_at_once_in_the_midst_of_a_call_of_c(tmp_path, host, by_the_system):
    """Simulated, `json.loads` took a minute to come to a handler in Python: valgrind was killed before its report."""
    (tmp_path / "work.py").write_text(
        "import signal; print(signal.getsignal(signal.SIGTERM) is signal.SIG_DFL)"
    )
    argv, _ = host_command((sys.executable, "work.py"), host, tmp_path / "out")
    directive = json.dumps({"pass_name": "counters", "record": str(tmp_path / "r"), "delay": 60.0})
    env = {**os.environ, "PROFKIT_DIRECTIVE": directive}
    done = subprocess.run(argv, cwd=tmp_path, env=env, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(by_the_system)
