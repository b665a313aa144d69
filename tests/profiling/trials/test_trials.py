"""Real programs, run with a change and without it."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import get_args

import pytest
from cli_runner import profkit, runs

from profkit.analysis.judge.tried import with_trials
from profkit.backends import RunContext
from profkit.backends.artifacts import run_files
from profkit.core.errors import Progress
from profkit.core.types import (
    RUN,
    Fact,
    Gain,
    Insight,
    PassResult,
    Place,
    RunDocument,
    SampledTime,
    TrialName,
    TrialState,
    TriedChange,
)
from profkit.profiling.trials import experiment as experiment_module
from profkit.profiling.trials import stage
from profkit.profiling.trials.experiment import TrialRun, TrialSetting
from profkit.profiling.trials.hypotheses import Experiment
from profkit.reporting.html import page
from profkit.reporting.view import ItemList, Section, View
from profkit.reporting.views.run_trials import trial_line, trials_section
from tests import documents
from tests.spoken import spoken

LINE = "4"  # of SLOW, inside of `cost`
DEADLINE = 120.0  # seconds, for four pairs on a machine that others use
BECAUSE = Fact.of("trial-collector", share=0.2)
SLOW = """
def cost(a):
    total = 0
    for i in range(20_000):
        total += i * a % 7
    return total

print(sum(cost(i % 3) for i in range(100)))
"""
IMPURE = SLOW.replace("def cost(a):", "count = 0\ndef cost(a):\n    global count\n    count += 1").replace(
    "return total", "return total + count"
)


def bench(folder: Path, source: str, plain: float = 10.0) -> TrialSetting:
    script = folder / "program.py"
    script.write_text(source)
    return TrialSetting(
        (sys.executable, str(script)), folder, folder / "try", folder / "logs", RUN, (plain,), plain, seed=1
    )


def trial(
    folder: Path,
    source: str,
    name: str = "memoise",
    environment: Mapping[str, str] | None = None,
    plain: float = 10.0,
) -> TriedChange:
    on = bench(folder, source, plain)
    options = (
        {"file": f"{folder}/./program.py", "function": "cost", "line": LINE} if name == "memoise" else {}
    )
    inside = {} if environment is not None else {name: options}
    tried = Experiment(name, BECAUSE, 0.5, environment or {}, inside)  # type: ignore[arg-type]
    return TrialRun(on, tried, time.monotonic() + DEADLINE, 0.0, None).run()


@pytest.mark.thorough
def test_a_function_whose_results_are_kept_is_faster_and_prints_the_same(tmp_path: Path) -> None:
    told = trial(tmp_path, SLOW)
    assert (told.state, told.output, told.pairs >= 4) == ("faster", "same", True)
    assert told.ratio is not None
    assert told.ratio < 0.7
    assert told.before is not None
    assert 0.01 < told.before < 5  # of the pairs, not the 10 s of the plain run from before


def test_what_is_no_faster_stands_beside_the_fastest_run_without_it(tmp_path: Path) -> None:
    """A program that is faster than its median, and no faster than it was at times, is not shown as a gain."""
    on = replace(bench(tmp_path, "import time\ntime.sleep(0.3)\n"), plain=(0.2, 10.0, 10.0))
    tried = Experiment("threads", BECAUSE, 0.5, {"OMP_NUM_THREADS": "1"}, {})
    told = TrialRun(on, tried, time.monotonic() + DEADLINE, 0.0, None).run()
    assert (told.state, told.before) == ("same", 0.2)
    assert told.after is not None
    assert told.after > told.before


def test_an_interval_that_knows_nothing_is_cut_to_what_can_be_read() -> None:
    one = TriedChange(
        "threads", "undecided", BECAUSE, before=2.0, after=1.4, ratio=0.65, low=0.0, high=1.75e43
    )
    section = trials_section(replace(documents.empty(), trials=(one,)))
    assert section is not None
    text = page.render(View("one", (section,)))
    assert "-35 % (-100 to over +1000)" in text


def test_a_function_that_answers_differently_each_time_is_no_gain(tmp_path: Path) -> None:
    told = trial(tmp_path, IMPURE)
    assert told.state == "without-hold"
    assert told.reason == Fact("trial-impure")


def test_a_program_that_prints_something_else_is_no_gain(tmp_path: Path) -> None:
    source = "import os, time\nfast = os.environ.get('OMP_NUM_THREADS') == '1'\n"
    source += "time.sleep(0.05 if fast else 0.3)\nprint('fast' if fast else 'slow')\n"
    told = trial(tmp_path, source, "threads", {"OMP_NUM_THREADS": "1"})
    assert (told.state, told.output) == ("other-output", "different")


def test_a_change_that_brings_nothing_costs_one_run(tmp_path: Path) -> None:
    source = "import time\nopen('runs', 'a').write('x')\ntime.sleep(1)\n"
    told = trial(tmp_path, source, "collector", plain=1.05)
    assert told.state in ("same", "slower")  # a busy machine starts Python late
    assert told.pairs == 0
    assert (tmp_path / "runs").read_text() == "x"


def test_a_program_that_fails_with_the_change_is_told_so(tmp_path: Path) -> None:
    told = trial(
        tmp_path, "import gc, sys\nsys.exit(3 if gc.get_threshold()[0] > 1000 else 0)\n", "collector"
    )
    assert told.state == "failed"
    assert told.reason is not None
    assert "exited with 3" in told.reason.names["text"]


def test_a_program_that_hangs_with_the_change_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(experiment_module, "plain_time_limit", lambda *_: 1.0)
    source = "import gc, time\ntime.sleep(60 if gc.get_threshold()[0] > 1000 else 0)\n"
    told = trial(tmp_path, source, "collector")
    assert told.state == "failed"
    assert told.reason is not None
    assert "ran past its time limit" in told.reason.names["text"]


def test_a_change_that_does_not_reach_the_program_was_not_tried(tmp_path: Path) -> None:
    told = trial(tmp_path, "print('no torch here')\n", "convolutions")
    assert (told.state, told.reason) == ("without-hold", Fact("trial-not-reached"))


@pytest.mark.parametrize(("own", "frozen"), [("", True), ("gc.set_threshold(300, 5, 5)", False)])
def test_what_a_program_leaves_is_not_walked_at_its_end_unless_it_sets_its_own_thresholds(
    tmp_path: Path, own: str, frozen: bool
) -> None:
    """Walks of what is left would take what was saved: 2.5 s of 350,000 kept objects stayed 2.5 s."""
    changes = json.dumps({"out": str(tmp_path), "collector": {}})
    source = "import atexit, gc\nfrom profkit.runtime.passes.host import interventions\n"
    source += "atexit.register(lambda: print(gc.get_freeze_count() > 0))\n"  # runs after all that come later
    source += f"interventions.start({changes!r})\n{own}\n"
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=True)
    assert done.stdout == f"{frozen}\n"
    (report,) = tmp_path.glob("*.json")
    assert json.loads(report.read_text()) == ({"collector": True} if frozen else {})


EPOCHS = """
import time
import torch
from torch.utils.data import DataLoader

class Rows(torch.utils.data.Dataset):
    def __len__(self):
        return 8
    def __getitem__(self, at):
        return torch.tensor(float(at))

def main():
    loader = DataLoader(Rows(), batch_size=4, WORKERS)
    print(sum(float(batch.sum()) for _ in range(PASSES) for batch in loader))
    print(loader._iterator is not None)

main()
"""


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("workers", "passes", "reached"),
    [
        ("num_workers=1", 3, True),
        ("num_workers=1", 1, False),  # nothing to keep
        ("num_workers=1, persistent_workers=True", 3, False),  # as it should be
        ("num_workers=0", 3, False),  # none are there: another trial gives it some
    ],
)
def test_workers_are_kept_where_a_loader_that_ends_them_is_gone_through_again(
    tmp_path: Path, workers: str, passes: int, reached: bool
) -> None:
    pytest.importorskip("torch")
    source = EPOCHS.replace("WORKERS", workers).replace("PASSES", str(passes))
    on = bench(tmp_path, source, 0.01)
    told = TrialRun(
        on, Experiment("workers", BECAUSE, 0.5, {}, {"workers": {}}), time.monotonic(), 0.0, None
    ).run()
    printed = (tmp_path / "try" / "printed").read_text().split()
    assert printed[0] == f"{28.0 * passes}"
    if reached:
        assert told.state in ("same", "slower")  # than the 10 ms of the plain run
        assert printed[1] == "True"  # torch itself holds the iterator of workers that stay
    else:
        assert (told.state, told.reason) == ("without-hold", Fact("trial-not-reached"))


@pytest.mark.thorough
def test_attention_is_left_to_other_libraries_where_torch_knows_the_switch(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    source = "import torch\nprint(torch.backends.cuda.cudnn_sdp_enabled())\n"
    on = bench(tmp_path, source, 0.01)
    experiment = Experiment("attention", BECAUSE, 0.5, {}, {"attention": {}})
    told = TrialRun(on, experiment, time.monotonic(), 0.0, None).run()
    assert told.state in ("same", "slower")  # than the 10 ms of the plain run: it did reach the program
    assert (tmp_path / "try" / "printed").read_text() == "False\n"
    faster = replace(tried("faster", 0.4).trials[0], name="attention")
    (found,) = with_trials(replace(documents.empty(), trials=(faster,)), ())
    assert "torch.backends.cuda.enable_cudnn_sdp(False)" in found.change
    assert "the printed numbers were compared, nothing else" in found.change


def test_the_line_that_keeps_workers_is_said_where_keeping_them_was_faster() -> None:
    one = replace(tried("faster", 0.5).trials[0], name="workers")
    restarted = Insight("restarted-workers", "Keep them", "x", "y", gain=GAIN)
    slow = replace(restarted, rule="slow-loader")
    (found, *others) = with_trials(replace(documents.empty(), trials=(one,)), (restarted, slow))
    assert "persistent_workers=True" in found.change
    assert others == [slow]
    assert trial_line(replace(one, state="slower", pairs=0)) == (
        "keep the workers of DataLoader from one epoch to the next: slower in one run"
    )


@pytest.mark.thorough
def test_output_that_is_flushed_by_line_is_kept_whole(tmp_path: Path) -> None:
    source = "for i in range(50_000):\n    print(i, flush=True)\n"
    told = trial(tmp_path, source, "output")
    assert (told.state, told.output) == ("faster", "same")


def test_a_child_does_not_print_its_parents_lines_once_more(tmp_path: Path) -> None:
    source = "import os\nprint('before', flush=True)\nif os.fork() == 0:\n    print('child')\n"
    source += "    os._exit(0)\nos.wait()\nprint('after')\n"
    on = bench(tmp_path, source)
    TrialRun(on, Experiment("output", BECAUSE, 0.5, {}, {"output": {}}), time.monotonic(), 0.0, None).run()
    # `os._exit` loses what the child printed into a buffer, with the change as without it.
    assert (tmp_path / "try" / "printed").read_text() == "before\nafter\n"


def test_a_generator_is_not_kept_since_it_can_be_used_once(tmp_path: Path) -> None:
    source = "def cost(a):\n    for i in range(20_000):\n        yield i * a % 7\n\n"
    told = trial(tmp_path, source + "\nprint(sum(sum(cost(i % 3)) for i in range(2)))\n")
    assert (told.state, told.reason) == ("without-hold", Fact("trial-not-reached"))


@pytest.mark.thorough
def test_another_function_of_the_same_name_is_left_alone(tmp_path: Path) -> None:
    other = "class Fixed:\n    def cost(self):\n        return 7\n\nFixed().cost()\n"
    told = trial(tmp_path, SLOW + other)
    assert told.state == "faster"


def test_a_secret_that_the_program_prints_is_in_no_log(tmp_path: Path) -> None:
    on = bench(tmp_path, "import sys\nprint('token-of-a-user', file=sys.stderr)\n")
    on.hidden = ("token-of-a-user",)
    on.logs.mkdir()
    TrialRun(
        on, Experiment("collector", BECAUSE, 0.5, {}, {"collector": {}}), time.monotonic(), 0.0, None
    ).run()
    assert (on.logs / "try-collector.log").read_text() == "***\n"


def test_a_full_disk_costs_only_the_trial(tmp_path: Path) -> None:
    (tmp_path / "try").write_text("no folder can be made here")
    told = trial(tmp_path, SLOW)
    assert told.state == "failed"


def test_logs_of_trials_come_back_from_another_machine() -> None:
    assert all(run_files().wants(f"logs/try-{name}.log") for name in get_args(TrialName))


def test_a_wrong_first_run_alone_is_no_finding(tmp_path: Path) -> None:
    """The plain run was slow by chance: one pair shows it, and the other three are spared."""
    source = "import time\nopen('runs', 'a').write('x')\ntime.sleep(0.2)\n"
    told = trial(tmp_path, source, "collector", plain=1.0)
    assert told.state == "same"
    assert len((tmp_path / "runs").read_text()) == 3


def test_no_pair_is_made_where_the_four_that_decide_do_not_fit(tmp_path: Path) -> None:
    source = "import time\nopen('runs', 'a').write('x')\ntime.sleep(0.2)\n"
    on = bench(tmp_path, source, 10.0)
    tried = Experiment("collector", BECAUSE, 0.5, {}, {"collector": {}})
    told = TrialRun(on, tried, time.monotonic() + 3.0, 0.0, None).run()
    assert (told.state, (tmp_path / "runs").read_text()) == ("undecided", "x")


@pytest.mark.parametrize(("patient", "pairs"), [(True, 4), (False, 0)])
def test_pairs_that_nobody_asked_for_end_within_the_time_that_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, patient: bool, pairs: int
) -> None:
    """Four pairs take 4 s, and 3.8 are left: a trial that was asked for may take half a pair longer."""

    def measured(trial: TrialRun, *, changed: bool, seed: int) -> float:
        trial._printed[changed].append("")
        return 0.6 if changed else 1.0

    monkeypatch.setattr(TrialRun, "_measure", measured)
    on, tried = bench(tmp_path, "", 1.0), Experiment("collector", BECAUSE, 0.5)
    now = time.monotonic()
    told = TrialRun(on, tried, now, now + 3.8, None, patient=patient).run()
    assert (told.pairs, told.state) == (pairs, "faster" if pairs else "undecided")


def measured(
    monkeypatch: pytest.MonkeyPatch,
    changed: Sequence[float],
    plain: Sequence[float],
    waits_known: bool = True,
    printed: str = "",
) -> list[float]:
    """Let the runs with and without the change take these seconds; return what is left of the first."""
    left = {True: list(changed), False: list(plain)}

    def measure(trial: TrialRun, *, changed: bool, seed: int) -> float:
        trial._printed[changed].append(printed if changed and seed else "")
        trial._waits_known &= waits_known
        return left[changed].pop(0)

    monkeypatch.setattr(TrialRun, "_measure", measure)
    return left[True]


@pytest.mark.parametrize(
    ("times", "without", "waits_known", "printed", "state", "pairs"),
    [
        ((0.3, 0.4), (1.0,), True, "", "faster", 1),
        ((0.3, 0.6), (1.0,), True, "", "undecided", 0),  # by one pair it is not known
        ((0.3, 0.4), (0.4,), True, "", "same", 0),  # the normal run before was slow by chance
        ((0.6, 0.4), (1.0,), True, "", "undecided", 0),  # no pair is made
        ((0.3, 0.4), (1.0,), True, "1.5 s", "undecided", 0),  # without the change the text may vary, too
        ((0.3, 0.4, 0.35), (1.0, 0.9), False, "", "faster", 2),  # threads that spin: 0.7 % by one pair
        ((0.3, 0.4, 0.35), (1.0, 0.6), False, "", "undecided", 0),
    ],
)
def test_what_halves_the_time_is_confirmed_by_one_or_two_pairs_where_four_do_not_fit(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    times: tuple[float, ...],
    without: tuple[float, ...],
    waits_known: bool,
    printed: str,
    state: str,
    pairs: int,
) -> None:
    """A function whose results are kept took 0.36 s of 2.4, and stayed undecided while 4 s were left."""
    left = measured(monkeypatch, times, without, waits_known, printed)
    on, tried = bench(tmp_path, "", 1.0), Experiment("collector", BECAUSE, 0.5)
    now = time.monotonic()
    told = TrialRun(on, tried, now, now + 3.0, None, patient=False).run()
    assert (told.state, told.pairs, told.low) == (state, pairs, None)
    assert (len(left) == 1) == (times[0] > 0.5)
    if pairs:
        assert told.ratio == pytest.approx(0.35)
        document = replace(documents.empty(), trials=(told,))
        (found,) = with_trials(document, ())
        assert f"{pairs} pair" in found.evidence
        assert "each run with it took less than half the time" in found.evidence
        assert "-65 %" in page.render(View("one", (trials_section(document),)))


SPINNING = (33.0, 18.6, 10.6, 18.9)  # seconds of four processes with threads for each core, on two cores


@pytest.mark.parametrize(
    ("slowest", "decided"), [(5.7, True), (8.9, False)]
)  # of 10.6, the fastest without it
def test_runs_that_are_far_apart_need_no_interval(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, slowest: float, decided: bool
) -> None:
    """By the interval of four pairs a loss is possible, though all runs with the change are faster."""
    measured(monkeypatch, (5.7, 5.7, 4.7, slowest, *[4.9] * 17), (*SPINNING, *[20.0] * 16))
    on, tried = replace(bench(tmp_path, "", 18.0), longest=0.0), Experiment("threads", BECAUSE, 0.5)
    told = TrialRun(on, tried, time.monotonic() + DEADLINE, 0.0, None).run()
    assert told.state == "faster"
    assert (told.pairs == 4, told.low is None) == (decided, decided)
    if decided:
        assert (told.before, told.after) == (18.6, 5.7)
        (found,) = with_trials(replace(documents.empty(), trials=(told,)), ())
        assert (
            "4 pairs of alternating runs: each run with it took less than 0.8 of the time" in found.evidence
        )


# ------------------------------------------------------------ a run's trials


def judged(tmp_path: Path, source: str) -> RunDocument:
    script = tmp_path / "program.py"
    script.write_text(source)
    known = documents.document()
    workload = replace(known.workload, command=(sys.executable, str(script)), folder=str(tmp_path))
    sampled = (SampledTime(1.0, 1.0, collecting=0.3),)
    return replace(known, workload=workload, sampled=sampled)


@pytest.mark.parametrize(
    ("collecting", "program", "trying", "runs"),
    [
        (0.6, sys.executable, "auto", 2.0),
        (0.3, sys.executable, "auto", 0.0),  # one pair would not decide
        (0.6, sys.executable, "none", 0.0),
        (0.6, "/bin/true", "auto", 0.0),  # it is not reached
    ],
)
def test_a_change_that_may_save_half_of_the_time_gets_its_runs_before_lesser_passes(
    tmp_path: Path, collecting: float, program: str, trying: stage.Trying, runs: float
) -> None:
    document = judged(tmp_path, "")
    document = replace(document, sampled=(SampledTime(1.0, 1.0, collecting=collecting),))
    workload = replace(document.workload, command=(program, "program.py"))
    context = replace(timed(), workload=workload, folder=tmp_path)
    assert stage.runs_for_trials(context, document, trying) == runs


def test_a_ctrl_c_costs_only_the_experiment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_: TrialRun) -> TriedChange:
        raise KeyboardInterrupt

    monkeypatch.setattr(TrialRun, "run", interrupted)
    document = judged(tmp_path, "")
    told: list[tuple[tuple[TriedChange, ...], PassResult]] = []
    setting = TrialSetting((sys.executable,), tmp_path, tmp_path, tmp_path, RUN, (1.0,), 1.0)
    monkeypatch.setattr(stage, "_setting", lambda *_: setting)
    monkeypatch.setattr(stage, "wanted", lambda *_: True)
    stage.try_changes(
        replace(timed(), workload=document.workload, folder=tmp_path),
        document,
        "auto",
        None,
        Progress(),
        lambda *one: told.append(one),
    )
    ((trials, result),) = told
    assert [one.state for one in trials] == ["interrupted"]
    assert result.state == "interrupted"


def timed(**more: object) -> RunContext:
    workload = documents.document().workload
    machine = documents.document().machine
    assert machine is not None
    options = {"depth": "standard", "wanted": None, "precision": 0.01, "sampling": 1.0, **more}
    return RunContext(workload=workload, machine=machine, folder=Path("x"), **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("context", "trying", "left", "time"),
    [
        (timed(), "auto", 6.3, stage.TrialTime(6.3, 0.0, requested=False)),  # of a program of 5 s
        (timed(), "auto", 40.0, stage.TrialTime(15.0, 25.0, requested=False)),  # three runs, and four pairs
        (timed(), "auto", -4.0, stage.TrialTime(0.0, 0.0, requested=False)),
        (timed(), "all", 6.3, stage.TrialTime(600.0, stage.DECIDING)),
        (timed(wanted=("timing", "try")), "auto", 6.3, stage.TrialTime(30.0, stage.DECIDING)),
        (timed(budget=90.0), "auto", 50.0, stage.TrialTime(30.0, 20.0)),
        (timed(budget=90.0), "all", 50.0, stage.TrialTime(50.0, 0.0)),
        (timed(depth="full"), "auto", None, stage.TrialTime(30.0, stage.DECIDING, requested=False)),
    ],
)
def test_trials_that_nobody_asked_for_keep_to_the_time_of_the_run(
    context: RunContext, trying: stage.Trying, left: float | None, time: stage.TrialTime
) -> None:
    assert stage.time_for(context, trying, 5.0, left) == time


def carried_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, left: float
) -> list[tuple[tuple[TriedChange, ...], PassResult]]:
    """Make the trials of a run that has `left` seconds for two, of which each takes 1.2."""
    now = [0.0]

    def undecided(one: Experiment) -> TriedChange:
        now[0] += 1.2
        return TriedChange(one.name, "undecided", one.because, before=2.0, after=1.0)

    def trial_of(_: TrialSetting, experiment: Experiment, *__: object, patient: bool) -> SimpleNamespace:
        assert not patient
        return SimpleNamespace(run=lambda: undecided(experiment))

    monkeypatch.setattr(stage, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(stage, "TrialRun", trial_of)
    setting = TrialSetting((sys.executable,), tmp_path, tmp_path, tmp_path, RUN, (1.0,), 1.0)
    told: list[tuple[tuple[TriedChange, ...], PassResult]] = []
    likely = [Experiment("collector", BECAUSE, 0.5), Experiment("output", BECAUSE, 0.5)]
    stage._make_trials(timed(), setting, likely, "auto", left, Progress(), lambda *one: told.append(one))
    return told


@pytest.mark.parametrize("left", [-4.0, 0.9])
def test_nothing_is_tried_that_would_make_the_run_longer_than_it_may_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, left: float
) -> None:
    """One run was made in any case: five of twelve programs took up to 2.8 s longer than 5 T + 10 s."""
    ((trials, result),) = carried_out(tmp_path, monkeypatch, left)
    assert [one.state for one in trials] == ["left-out", "left-out"]
    assert (result.state, result.fix) == ("skipped", "--try all")


def test_what_fits_into_the_time_that_is_left_is_tried_and_the_others_are_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    *_, (trials, result) = carried_out(tmp_path, monkeypatch, 2.0)
    assert [one.state for one in trials] == ["undecided", "left-out"]
    assert result.state == "finished"
    assert spoken(trials[1].reason).startswith("one run takes about 1.00 s, but only ")
    section = trials_section(replace(documents.empty(), trials=trials))
    assert isinstance(section, Section)
    assert isinstance(section.blocks[0], ItemList)
    assert section.blocks[0].items[-1] == (
        "not tried, no time was left: write output in larger pieces; --try all tries them"
    )
    # One run that was faster is no gain.
    assert with_trials(replace(documents.empty(), trials=trials), (COLLECTING,)) == (COLLECTING,)


def test_a_run_that_nobody_asked_for_is_ended_once_it_is_clearly_no_faster(tmp_path: Path) -> None:
    """The plain run took 10 ms: one of a minute has its answer after five seconds."""
    on = bench(tmp_path, "import time\ntime.sleep(60)\n", 0.01)
    tried = Experiment("collector", BECAUSE, 0.5, {}, {"collector": {}})
    begin = time.monotonic()
    told = TrialRun(on, tried, begin, 0.0, None, patient=False).run()
    assert told.state == "failed"
    assert time.monotonic() - begin < 30


@pytest.mark.thorough
def test_a_run_shows_what_was_tried_and_keeps_its_log(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(SLOW.replace("range(100)", "range(500)"))
    line = ("profile", "--passes", "timing,stacks,try", "--quiet", "--", sys.executable, "slow.py")
    said = profkit(*line, cwd=tmp_path)
    (run,) = runs(tmp_path / "reports")
    assert [one["state"] for one in run["trials"]] == ["faster"]
    assert "Keep the results of cost - tried: " in said.out
    assert "same output" in " ".join(said.out.split())
    assert [one["name"] for one in run["passes"]] == ["timing", "stacks", "try"]
    assert (next((tmp_path / "reports").iterdir()) / run["passes"][-1]["log"]).exists()


@pytest.mark.thorough
def test_nothing_is_tried_where_it_was_not_asked_for(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(SLOW.replace("range(100)", "range(600)"))
    line = ("profile", "--depth", "quick", "--quiet", "--", sys.executable, "slow.py")
    profkit(*line, cwd=tmp_path)
    (run,) = runs(tmp_path / "reports")
    assert run["trials"] == []


def test_an_unknown_word_after_try_is_refused_with_those_it_knows(tmp_path: Path) -> None:
    said = profkit("profile", "--try", "some", "--", sys.executable, "-c", "0", cwd=tmp_path)
    assert said.code == 2
    assert "none, auto, all" in said.err


# ------------------------------------------------------------ what trials make of the findings

GAIN = Gain(0.3, "the run time", "x")
COLLECTING = Insight("garbage-collection", "The collector", "it took 30 %", "gc.freeze()", gain=GAIN)
OTHER = Insight("linear-search", "A set", "x", "y", gain=GAIN)


def tried(state: TrialState, ratio: float | None) -> RunDocument:
    times = TriedChange("collector", state, BECAUSE, before=2.0, after=1.4, ratio=ratio, low=0.65, high=0.75)
    one = replace(times, pairs=4, output="same")
    return replace(documents.empty(), trials=(one,))


def test_what_was_faster_comes_first_and_takes_the_place_of_the_guess() -> None:
    found = with_trials(tried("faster", 0.7), (OTHER, COLLECTING))
    assert [one.rule for one in found] == ["tried-collector", "linear-search"]
    assert found[0].gain is not None
    assert found[0].gain.bound == "2.00 s to 1.40 s (-30 %), same output"


@pytest.mark.parametrize(("bound", "first"), [(0.79, "growing-copy"), (0.2, "tried-allocator")])
def test_copies_that_need_not_be_made_come_before_an_allocator_that_makes_them_cheaper(
    bound: float, first: str
) -> None:
    trial = replace(tried("faster", 0.35).trials[0], name="allocator")
    copies = replace(OTHER, rule="growing-copy", gain=replace(GAIN, at_most=bound))
    assert with_trials(replace(documents.empty(), trials=(trial,)), (copies,))[0].rule == first


def test_a_trial_of_one_function_says_nothing_of_the_repeated_work_of_another() -> None:
    again = Insight("repeated-work", "cost gets the same", "x", "y", Place(function="cost"), gain=GAIN)
    called = replace(again, title="cost(n) is called again", where=Place(function="main"))
    patterns = replace(again, title="Patterns are compiled again", where=Place(function="route"))
    trial = TriedChange("memoise", "same", BECAUSE, where=Place(function="cost"))
    document = replace(documents.empty(), trials=(trial,))
    assert with_trials(document, (again, called, patterns)) == (patterns,)


def test_a_collection_that_the_program_asks_for_is_no_matter_of_thresholds() -> None:
    forced = replace(COLLECTING, rule="forced-collection")
    assert with_trials(tried("slower", None), (forced,)) == (forced,)


def test_a_cause_that_could_win_far_more_stays_in_front_of_what_was_faster() -> None:
    cause = replace(OTHER, gain=replace(GAIN, at_most=0.86))
    place = replace(cause, rule="hot-spot")  # no cause, and all of its time is no gain
    faster = tried("faster", 0.74)
    assert [one.rule for one in with_trials(faster, (cause, OTHER))] == [
        "linear-search", "tried-collector", "linear-search"
    ]  # fmt: skip
    assert with_trials(faster, (place, OTHER))[0].rule == "tried-collector"


@pytest.mark.parametrize("state", ["same", "slower", "other-output"])
def test_advice_that_brought_nothing_is_not_given(state: TrialState) -> None:
    assert with_trials(tried(state, None), (OTHER, COLLECTING)) == (OTHER,)


@pytest.mark.parametrize("state", ["same", "slower"])
def test_segments_that_grow_in_vain_do_not_refute_that_memory_is_allocated_in_each_step(
    state: TrialState,
) -> None:
    """They are another way: a program that calls cudaMalloc itself is none the faster for them."""
    allocating = Insight("device-allocations", "Keep the memory", "x", "y", gain=GAIN)
    document = tried(state, None)
    document = replace(document, trials=(replace(document.trials[0], name="device-memory"),))
    assert with_trials(document, (allocating, OTHER)) == (allocating, OTHER)


@pytest.mark.parametrize("state", ["undecided", "failed", "without-hold", "interrupted"])
def test_a_trial_without_a_result_decides_nothing(state: TrialState) -> None:
    assert with_trials(tried(state, None), (OTHER, COLLECTING)) == (OTHER, COLLECTING)


@pytest.mark.thorough
def test_the_pairs_that_can_decide_are_made_also_where_the_program_became_slower(tmp_path: Path) -> None:
    on = replace(bench(tmp_path, SLOW), longest=0.01)
    options = {"file": str(tmp_path / "program.py"), "function": "cost", "line": LINE}
    tried = Experiment("memoise", BECAUSE, 0.5, {}, {"memoise": options})
    now = time.monotonic()
    told = TrialRun(on, tried, now, now + DEADLINE, None).run()
    assert (told.state, told.pairs >= 4) == ("faster", True)


@pytest.mark.parametrize(
    ("state", "pairs", "says"),
    [
        ("undecided", 0, "collect garbage less often: not decided; --try all runs more pairs"),
        ("undecided", 4, "collect garbage less often: not decided; --try all runs more pairs"),
        ("slower", 0, "collect garbage less often: slower in one run"),
        ("slower", 4, "collect garbage less often: 30.0 % slower"),
    ],
)
def test_a_number_is_said_of_decided_pairs_alone(state: TrialState, pairs: int, says: str) -> None:
    (one,) = tried(state, None).trials
    assert trial_line(replace(one, pairs=pairs)) == says
