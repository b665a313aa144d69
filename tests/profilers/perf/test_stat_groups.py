import pytest

from profkit.analysis.metrics import derive, formula_table
from profkit.core.types import Counter, Report
from profkit.profilers.perf.events import check_drift, merge_groups


def counted(name, value, share=1.0, pmu=None):
    return Counter(name, value, "measured" if share >= 1 else "multiplexed", share=share, pmu=pmu)


def group(*counters, warnings=()):
    return Report("perf", "perf-stat-csv", counters=counters, warnings=warnings)


@pytest.mark.parametrize(
    ("instructions", "spread", "stable"),
    [
        ((1000, 1000, 1000), 0.0, True),
        ((1000, 1010, 1005), 10 / 1005, True),
        ((1000, 1019, 1010), 19 / 1010, True),
        ((1000, 1020, 1000), 0.02, False),
        ((1000, 2000), 0.5, False),
        ((1000,), None, True),
        ((), None, True),
    ],
)
def test_drift_is_how_far_the_instructions_of_the_groups_lie_apart(instructions, spread, stable):
    drift = check_drift([[counted("instructions", n), counted("cycles", 5 * n)] for n in instructions])
    assert drift.spread == (None if spread is None else pytest.approx(spread, rel=0.01))
    assert drift.stable is stable
    assert (drift.warning is None) is stable


def test_an_unstable_run_is_warned_of_with_the_figure():
    drift = check_drift([[counted("instructions", 1000)], [counted("instructions", 1100)]])
    assert drift.warning.startswith("unstable: instructions differ by 9.1%")


def test_without_instructions_the_cycles_are_the_anchor():
    dead = Counter("instructions", None, "not-supported")
    drift = check_drift([[dead, counted("cycles", 100)], [dead, counted("cycles", 200)]])
    assert (drift.anchor, drift.stable) == ("cycles", False)


def test_a_run_that_moved_between_kinds_of_core_did_not_drift():
    groups = [
        [counted("instructions", 900, pmu="cpu_core"), counted("instructions", 100, pmu="cpu_atom")],
        [counted("instructions", 500, pmu="cpu_core"), counted("instructions", 500, pmu="cpu_atom")],
    ]
    assert check_drift(groups).spread == 0


def test_merged_groups_hold_each_counter_once_with_the_middle_of_its_counts():
    merged = merge_groups(
        [
            group(counted("cycles", 100), counted("instructions", 300), counted("branches", 7)),
            group(counted("cycles", 102), counted("instructions", 300), counted("LLC-loads", 9)),
            group(counted("cycles", 190), counted("instructions", 301), counted("LLC-load-misses", 2)),
        ]
    )
    assert {c.name: c.value for c in merged.counters} == {
        "cycles": 102,
        "instructions": 300,
        "branches": 7,
        "LLC-loads": 9,
        "LLC-load-misses": 2,
    }
    assert len(merged.groups) == 3
    assert merged.drift.stable
    assert merged.warnings == ()


def test_a_count_that_was_on_all_the_time_beats_multiplexed_ones_and_a_dead_counter_loses():
    merged = merge_groups(
        [
            group(counted("cycles", 5, 0.3)),
            group(counted("cycles", 9)),
            group(Counter("cycles", None, "not-counted")),
        ]
    )
    assert [(c.value, c.state) for c in merged.counters] == [(9, "measured")]


def test_a_counter_that_never_counted_keeps_its_state():
    merged = merge_groups([group(Counter("LLC-loads", None, "not-supported"))] * 2)
    assert [(c.value, c.state) for c in merged.counters] == [(None, "not-supported")]


def test_repeated_runs_of_one_group_are_one_group():
    merged = merge_groups([group(counted("cycles", n), counted("branches", n)) for n in (1, 2, 3)])
    assert merged.groups == (("cycles", "branches"),)


def test_warnings_of_all_groups_are_kept_once():
    merged = merge_groups([group(counted("instructions", 5), warnings=("cut off",))] * 2)
    assert merged.warnings == ("cut off",)


def test_nothing_merged_is_nothing():
    merged = merge_groups([])
    assert (merged.counters, merged.groups, merged.drift.spread) == ((), (), None)


def test_from_groups_to_readings_a_ratio_inside_one_group_stays_measured_though_the_runs_drifted():
    merged = merge_groups(
        [
            group(counted("instructions", 1000), counted("branches", 100), counted("branch-misses", 5)),
            group(counted("instructions", 1100), counted("L1-icache-load-misses", 10)),
            group(counted("instructions", 1100), counted("LLC-loads", 10)),
            group(counted("instructions", 1100), counted("LLC-load-misses", 1)),
        ]
    )
    readings = {
        r.metric: r
        for r in derive(
            merged.counters, formula_table("perf"), "perf", groups=merged.groups, drift=merged.drift.spread
        )
    }
    assert (readings["branch.miss_rate"].quality, readings["branch.miss_rate"].value) == ("measured", 5.0)
    assert readings["cache.l3.miss_rate"].quality == "estimated"
    assert "unstable" in readings["cache.l3.miss_rate"].reason
