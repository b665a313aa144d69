"""The runs of several groups of events become one report."""

import pytest

from profkit.analysis.metrics import derive, formula_table
from profkit.core.types import Counter, Report
from profkit.profilers.perf.events import check_drift, merge_groups

DEAD = Counter("instructions", None, "not-supported")


def counted(name, value, share=1.0, pmu=None):
    return Counter(name, value, "measured" if share >= 1 else "multiplexed", share=share, pmu=pmu)


def group(*counters, warnings=()):
    return Report("perf", "perf-stat-csv", counters=counters, warnings=warnings)


@pytest.mark.parametrize(
    ("instructions", "spread", "stable"),
    [
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
    assert (drift.warning or "unstable: instructions differ by").startswith(
        "unstable: instructions differ by"
    )
    assert (drift.warning is None) is stable


def test_without_instructions_the_cycles_are_the_anchor_and_kinds_of_core_are_added():
    drift = check_drift([[DEAD, counted("cycles", 100)], [DEAD, counted("cycles", 200)]])
    assert (drift.anchor, drift.stable) == ("cycles", False)
    moved = [
        [counted("instructions", n, pmu="cpu_core"), counted("instructions", 1000 - n, pmu="cpu_atom")]
        for n in (900, 500)
    ]
    assert check_drift(moved).spread == 0


def test_merged_groups_hold_each_counter_once_with_the_middle_of_its_counts():
    merged = merge_groups(
        [
            group(
                counted("cycles", 100),
                counted("instructions", 300),
                counted("branches", 7),
                warnings=("cut off",),
            ),
            group(
                counted("cycles", 102),
                counted("instructions", 300),
                counted("LLC-loads", 9),
                warnings=("cut off",),
            ),
            group(counted("cycles", 190), counted("instructions", 301), counted("LLC-load-misses", 2)),
        ]
    )
    values = {"cycles": 102, "instructions": 300, "branches": 7, "LLC-loads": 9, "LLC-load-misses": 2}
    assert {c.name: c.value for c in merged.counters} == values
    assert (len(merged.groups), merged.drift.stable, merged.warnings) == (3, True, ("cut off",))


def test_a_count_that_was_on_all_the_time_beats_others_and_one_that_never_counted_keeps_its_state():
    never = Counter("cycles", None, "not-counted")
    merged = merge_groups([group(counted("cycles", 5, 0.3)), group(counted("cycles", 9)), group(never)])
    assert [(c.value, c.state) for c in merged.counters] == [(9, "measured")]
    assert [(c.value, c.state) for c in merge_groups([group(DEAD)] * 2).counters] == [(None, "not-supported")]
    assert merge_groups([group(counted("a", n), counted("b", n)) for n in (1, 2, 3)]).groups == (("a", "b"),)
    assert merge_groups([]).counters == ()


def test_a_ratio_inside_one_group_stays_measured_though_the_runs_drifted():
    merged = merge_groups(
        [
            group(counted("instructions", 1000), counted("branches", 100), counted("branch-misses", 5)),
            group(counted("instructions", 1100), counted("L1-icache-load-misses", 10)),
            group(counted("instructions", 1100), counted("LLC-loads", 10)),
            group(counted("instructions", 1100), counted("LLC-load-misses", 1)),
        ]
    )
    found = derive(
        merged.counters, formula_table("perf"), "perf", groups=merged.groups, drift=merged.drift.spread
    )
    readings = {reading.metric: reading for reading in found}
    assert (readings["branch.miss_rate"].quality, readings["branch.miss_rate"].value) == ("measured", 5.0)
    assert readings["cache.l3.miss_rate"].quality == "estimated"
    assert "unstable" in readings["cache.l3.miss_rate"].reason
