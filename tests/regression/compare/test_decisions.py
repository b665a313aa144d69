"""DIFFERENT, SAME and AMBIGUOUS: what is promised of each word, and what refuses to be one."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import pytest

from profkit.analysis.metrics.catalogue import all_metrics
from profkit.core.types import Change, Comparison, Disturbance, Reading, RunDocument, SampleSet, Timing
from profkit.regression.compare import CompareOptions, compare
from profkit.regression.compare.metrics import all_rules
from tests import documents
from tests.comparison_documents import run, timing, value
from tests.spoken import spoken


def of(found: Comparison, metric: str) -> Change:
    return next(change for change in found.changes if change.metric == metric)


def test_a_slowdown_beyond_the_floor_is_a_regression_with_its_interval() -> None:
    found = compare(run(), run(0.10, seed=2))
    change = of(found, "time.median")
    assert found.outcome == "regressed"
    assert (change.word, change.course) == ("different", "worse")
    assert change.ratio == pytest.approx(1.10, abs=0.01)
    assert change.low is not None
    assert change.high is not None
    assert 1.02 < change.low < change.ratio < change.high
    assert change.p is not None
    assert change.p < 0.01


# ---------------------------------------------------------------- single values


@pytest.mark.parametrize(
    ("before", "after", "word"),
    [(1e6, 1e6, "same"), (1e6, 1.009e6, "same"), (1e6, 1.011e6, "different"), (1e6, 0.98e6, "different")],
)
def test_simulated_instructions_are_exact_beyond_their_floor(before: float, after: float, word: str) -> None:
    found = compare(run(0.0, value("instructions", before)), run(0.0, value("instructions", after)))
    assert of(found, "instructions").word == word


@pytest.mark.parametrize(
    ("before", "after", "word"),
    [
        (200 << 20, 200 << 20, "same"),
        (200 << 20, 203 << 20, "same"),
        (200 << 20, 210 << 20, "ambiguous"),
        (200 << 20, 230 << 20, "different"),
        (10 << 20, 13 << 20, "same"),  # 30 % more, and less than 4 MiB
    ],
)
def test_a_measured_value_is_judged_by_how_far_such_values_differ(
    before: float, after: float, word: str
) -> None:
    sides = (run(0.0, value("memory.rss_peak", v, "B", "psutil")) for v in (before, after))
    assert of(compare(*sides), "memory.rss_peak").word == word


def test_without_a_time_the_work_stands_in_for_it() -> None:
    bare = [replace(run(0.0, value("instructions", v)), timings=()) for v in (1e6, 1.2e6)]
    assert compare(*bare).outcome == "regressed"
    assert compare(bare[0], bare[0]).outcome == "same"
    timed = [run(0.0, value("instructions", v)) for v in (1e6, 1.2e6)]
    assert compare(*timed).outcome == "changed"


def test_a_time_that_collapsed_is_not_believed_unless_it_was_asked_for() -> None:
    found = compare(run(), run(-0.95, seed=2))
    assert found.outcome == "ambiguous"
    assert "did it do the work" in spoken(found)
    assert compare(run(), run(-0.95, seed=2), CompareOptions(metrics=("time.median",))).outcome == "improved"


# ---------------------------------------------------------------- many looks


def test_many_times_at_once_are_corrected_for() -> None:
    """Of 40 equal regions none may come out, where about two would by themselves."""
    one = replace(
        run(), timings=tuple(replace(timing(seed=n, between=0.01), name=f"r{n}") for n in range(40))
    )
    two = replace(
        run(), timings=tuple(replace(timing(seed=100 + n, between=0.01), name=f"r{n}") for n in range(40))
    )
    found = compare(one, two, CompareOptions(floor=0.0))
    assert found.looked_at == 40
    assert [c for c in found.changes if c.word == "different"] == []
    worse = replace(two, timings=(*two.timings[:39], replace(timing(0.2, seed=9), name="r39")))
    changed = [c for c in compare(one, worse).changes if c.word == "different"]
    assert [c.scope.name for c in changed] == ["r39"]
    alone = compare(
        replace(one, timings=one.timings[39:]), replace(worse, timings=worse.timings[39:])
    ).changes[0]
    assert changed[0].high is not None
    assert alone.high is not None
    assert changed[0].high > alone.high  # picked out of forty, its interval is wider


# ---------------------------------------------------------------- the machine


def test_a_time_that_only_the_clock_explains_is_no_regression() -> None:
    runs = [
        replace(run(), timings=(timing(by, seed=s, clock="cuda-events", clocks=(hertz,)),))
        for s, by, hertz in ((1, 0.0, 1.98e9), (2, 0.10, 1.80e9))
    ]
    found = compare(*runs)
    assert found.outcome == "ambiguous"
    assert "clock" in [doubt.code for doubt in of(found, "time.median").doubts]
    slower = replace(runs[1], timings=(timing(0.25, seed=2, clock="cuda-events", clocks=(1.80e9,)),))
    assert compare(runs[0], slower).outcome == "regressed"


def test_on_a_busy_machine_a_time_decides_only_with_the_work_or_when_it_is_large() -> None:
    robbed = (Disturbance(1.0, stolen=0.5, others=0.0, waited=0.0),)
    work = [value("instructions", v) for v in (1e6, 1.1e6)]
    busy = replace(run(0.10, work[0], seed=2), disturbances=robbed)
    found = compare(run(0.0, work[0]), busy)
    assert found.outcome == "ambiguous"
    assert compare(run(0.0, work[0]), replace(busy, readings=(work[1],))).outcome == "regressed"
    hardly = replace(busy, timings=(timing(0.8, seed=2),), readings=(value("instructions", 1.02e6),))
    assert compare(run(0.0, work[0]), hardly).outcome == "ambiguous"
    far = replace(busy, timings=(timing(9.0, seed=2),))  # who takes half of the time cannot do that
    assert compare(run(0.0, work[0]), far).outcome == "regressed"


def beside_loop(by: float, turn: float, seed: int, python: str = "3.11.7") -> RunDocument:
    """A run whose time is `by` off, with a reference loop of `turn` seconds beside its samples."""
    plain = run(by, seed=seed, packages={"python": python})
    turns = tuple(turn * (1 + 0.001 * (n % 5)) for n in range(40))
    (timed,) = plain.timings
    beside = tuple(replace(process, reference_loop=turns) for process in timed.processes)
    return replace(plain, timings=(replace(timed, processes=beside),))


def test_what_a_slower_processor_may_have_done_decides_nothing_and_the_loop_says_so() -> None:
    found = compare(beside_loop(0.0, 1.00e-4, 1), beside_loop(0.5, 1.55e-4, 2))
    assert found.outcome == "ambiguous"
    assert "the same arithmetic took 55 % longer in the candidate" in spoken(of(found, "time.median"))
    back = compare(beside_loop(0.5, 1.55e-4, 2), beside_loop(0.0, 1.00e-4, 1))
    assert back.outcome == "ambiguous"


# ---------------------------------------------------------------- refusals


def refused(a: RunDocument, b: RunDocument) -> str:
    found = compare(a, b)
    assert found.outcome == "refused"
    assert found.changes == ()
    return spoken(found)


def test_of_two_inputs_it_is_said_how_both_can_be_timed() -> None:
    work = replace(run().workload, command=("python", "bench.py", "--size", "8"))
    other = replace(work, command=("python", "bench.py", "--size", "9"))
    both = compare(replace(run(), workload=work), replace(run(), workload=other))
    assert both.outcome == "refused"
    assert "--a COMMAND --b COMMAND alternates runs of both" in spoken(both.fix)
    machine = replace(documents.machine(), cpu="Another CPU", virtual=None)
    elsewhere = compare(run(), replace(run(), machine=machine))
    assert spoken(elsewhere.fix) == "--force compares them anyway"


def test_another_machine_is_refused_by_name_and_compared_by_force() -> None:
    other = replace(run(0.1, seed=2), machine=replace(documents.machine(), cpu="Another CPU", virtual=None))
    assert "Another CPU" in refused(run(), other)
    forced = compare(run(), other, CompareOptions(force=True))
    assert (forced.outcome, forced.forced) == ("regressed", True)
    assert not compare(
        run(), run(0.1, seed=2), CompareOptions(force=True)
    ).forced  # there was nothing to force


@pytest.mark.parametrize("state", ["failed", "running"])
def test_a_run_that_failed_or_goes_on_is_never_green(state: str) -> None:
    assert refused(run(), replace(run(), state=state))  # type: ignore[arg-type]


def test_what_a_tool_of_another_major_version_counted_is_refused_and_compared_by_force() -> None:
    sides = [
        run(0.0, value("instructions", count), tools={"valgrind": v})
        for v, count in (("3.19.0", 1e6), ("4.0.0", 2e6))
    ]
    assert "valgrind" in refused(*sides)
    assert "instructions" in {c.metric for c in compare(*sides, CompareOptions(force=True)).changes}


# ---------------------------------------------------------------- the rules as data


def test_every_rule_can_say_same_and_names_a_metric_of_the_catalogue() -> None:
    known = {info.name for info in all_metrics()}
    for rule in all_rules():
        assert rule.metric in known
        assert rule.repeat is None or rule.repeat < rule.floor
        assert rule.spread is None or rule.spread < rule.least


# ---------------------------------------------------------------- times of a device


def timed(
    by: float = 0.0,
    noise: float = 0.001,
    clock: Literal["wall", "cuda-events"] = "cuda-events",
    why: tuple[str, ...] = (),
) -> Timing:
    """One process of 60 samples that lie up to `noise` about their middle."""
    seconds = tuple(80e-6 * (1 + by) * (1 + noise * ((place * 37) % 61 / 30 - 1)) for place in range(60))
    return Timing("norm", "benchmark", (SampleSet(seconds, clock=clock, throttle_reasons=why),), 0.01)


def gpu(timing: Timing) -> RunDocument:
    return run(timings=(timing,))


def test_a_steady_device_shows_sameness_and_three_per_cent_with_one_process_each() -> None:
    assert compare(gpu(timed()), gpu(timed(0.005))).outcome == "same"
    assert compare(gpu(timed()), gpu(timed(0.012))).outcome == "ambiguous"
    assert compare(gpu(timed()), gpu(timed(0.035))).outcome == "regressed"
    assert compare(gpu(timed(clock="wall")), gpu(timed(0.035, clock="wall"))).outcome == "ambiguous"


def alone(by: float = 0.0, *readings: Reading, seed: int = 1, swing: float = 0.0) -> RunDocument:
    """A run of one process; `swing`: its samples rise by that and fall again, three times."""
    told = timing(by, processes=1, samples=120, seed=seed)
    if swing:
        seconds = tuple(1e-3 * (1 + by) * (1 + swing * abs((place / 20) % 2 - 1)) for place in range(120))
        told = replace(told, processes=(SampleSet(seconds),))
    return run(0.0, *readings, timings=(told,))


def time_of(found: Comparison) -> Change:
    return next(change for change in found.changes if change.metric == "time.median")


def test_samples_that_follow_each_other_still_show_a_large_change() -> None:
    found = compare(alone(swing=0.06), alone(0.57, swing=0.06))
    assert found.outcome == "regressed"
    assert "neighbouring samples are correlated" in spoken(time_of(found))
