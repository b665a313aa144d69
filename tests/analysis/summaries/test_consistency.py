"""A report that contradicts itself: which readings are doubted, and that it is said."""

from __future__ import annotations

from dataclasses import replace

import pytest

from profkit.analysis.metrics.catalogue import all_metrics
from profkit.analysis.metrics.formula import checked_counters, consistency_checks
from profkit.analysis.summaries.gpu import check_consistency
from profkit.core.types import Counter, RunDocument
from tests.kernel_documents import Values, document, kernel
from tests.spoken import spoken

# silu_mul on an H200, --set full: every number as it was recorded.
SOUND: dict[str, float | None] = {
    "bandwidth.dram": 3.711183216783217e12,
    "bandwidth.dram.share": 77.25418952124747,
    "bandwidth.dram.peak": 4.8039e12,
    "dram.bytes": 84.9e6,
    "dram.read": 67_115_520,
    "dram.written": 17.8e6,
    "time.kernel": 22.88e-6,
    "clock.sm": 1.9478e9,
    "occupancy.achieved": 82.86,
    "occupancy.theoretical": 100,
    "ipc": 1.8966,
    "issue.active": 47.114,
    "shared.bank_conflicts": 0,
}
COUNTERS: dict[str, float] = {
    "gpc__cycles_elapsed.max": 44_798,
    "sm__warps_active.avg.per_cycle_active": 53.03,
    "device__attribute_max_warps_per_multiprocessor": 64,
    "lts__t_sectors.sum": 4_806_605,
    "lts__t_sectors_lookup_hit.sum": 1_650_000,
    "lts__t_sectors_lookup_miss.sum": 3_150_000,
}


def report(values: Values, counters: dict[str, float]) -> RunDocument:
    one = kernel("silu_mul")
    told = document({one: (1e-3, values)})
    raw = tuple(Counter(n, v, "measured", scope=one.scope) for n, v in counters.items())
    return replace(told, counters=raw)


def doubted(values: Values, counters: dict[str, float]) -> set[str]:
    return {r.metric for r in check_consistency(report(values, counters)).readings if r.doubt is not None}


def test_a_recorded_report_agrees_with_itself() -> None:
    done = check_consistency(report(SOUND, COUNTERS))
    assert not any(spoken(r.doubt) for r in done.readings)


@pytest.mark.parametrize(
    ("changed", "counter", "metrics"),
    [
        ({"bandwidth.dram.share": 40.0}, {}, {"bandwidth.dram", "bandwidth.dram.share"}),
        ({"bandwidth.dram.share": 0.0}, {}, {"bandwidth.dram", "bandwidth.dram.share"}),
        (
            {"bandwidth.dram": 5.2e12, "bandwidth.dram.share": 108.2},
            {},
            {"bandwidth.dram", "bandwidth.dram.share"},
        ),
        ({"dram.bytes": 200e6}, {}, {"dram.bytes", "bandwidth.dram", "bandwidth.dram.share"}),
        ({"dram.read": 200e6}, {}, {"dram.bytes", "dram.read"}),
        ({"occupancy.theoretical": 50.0}, {}, {"occupancy.achieved", "occupancy.theoretical"}),
        ({}, {"sm__warps_active.avg.per_cycle_active": 30.0}, {"occupancy.achieved"}),
        ({"issue.active": 5.0}, {}, {"issue.active"}),
        ({"time.kernel": 45e-6}, {}, {"time.kernel", "clock.sm", "bandwidth.dram", "dram.bytes"}),
        ({}, {"gpc__cycles_elapsed.max": 90_000.0}, {"time.kernel", "clock.sm"}),
        ({}, {"lts__t_sectors_lookup_miss.sum": 0.0}, set()),  # no reading hangs on it here
    ],
)
def test_what_cannot_be_true_together_is_doubted(
    changed: dict[str, float | None], counter: dict[str, float], metrics: set[str]
) -> None:
    assert metrics <= doubted({**SOUND, **changed}, {**COUNTERS, **counter})
    untouched = {"shared.bank_conflicts"}
    assert not untouched & doubted({**SOUND, **changed}, {**COUNTERS, **counter})


def test_replay_passes_differ_a_little_and_that_is_no_contradiction() -> None:
    """35 conflicts in all and 56 of loads: two replay passes of one clean kernel on an H100."""
    few = {
        "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum": 35.0,
        "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum": 56.0,
    }
    assert doubted(SOUND, {**COUNTERS, **few}) == set()
    many = {name: value * 1e5 for name, value in few.items()}
    assert doubted(SOUND, {**COUNTERS, **many}) == {"shared.bank_conflicts"}
    assert doubted({**SOUND, "bandwidth.dram.share": 73.7}, COUNTERS) == set()


def test_checking_again_changes_nothing() -> None:
    once = check_consistency(report({**SOUND, "occupancy.theoretical": 50.0}, COUNTERS))
    assert check_consistency(once) == once


def test_readings_of_different_artifacts_are_not_held_against_each_other() -> None:
    told = report({**SOUND, "occupancy.theoretical": 50.0}, COUNTERS)
    apart = tuple(
        replace(r, source=replace(r.source, artifact="explain.ncu-rep")) if "theoretical" in r.metric else r
        for r in told.readings
    )
    assert not any(spoken(r.doubt) for r in check_consistency(replace(told, readings=apart)).readings)


def test_every_check_speaks_of_metrics_that_there_are() -> None:
    known = {info.name for info in all_metrics()}
    for check in (check for tool in ("ncu", "perf", "valgrind") for check in consistency_checks(tool)):
        assert set(check.doubts) <= known
        assert {name for name in check.names if "__" not in name} <= known
    assert "lts__t_sectors_lookup_hit.sum" in checked_counters("ncu")
    assert consistency_checks("nsys") == ()
