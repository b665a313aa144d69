import pytest

from profkit.analysis.metrics import derive, formula_table
from profkit.core.types import Counter
from tests.spoken import spoken


def readings(chip, **counts):
    counters = [Counter(name, value, "measured") for name, value in counts.items()]
    return {r.metric: r for r in derive(counters, formula_table("xctrace", chip), "xctrace")}


@pytest.mark.parametrize(
    ("counts", "metric", "value"),
    [
        ({"FIXED_CYCLES": 500, "FIXED_INSTRUCTIONS": 2000}, "ipc", 4.0),
        ({"INST_BRANCH": 200, "BRANCH_MISPRED_NONSPEC": 3}, "branch.miss_rate", 1.5),
        (
            {"INST_LDST": 400, "L1D_CACHE_MISS_LD_NONSPEC": 6, "L1D_CACHE_MISS_ST_NONSPEC": 2},
            "cache.l1.miss_rate",
            2.0,
        ),
        (
            {"LD_UNIT_UOP": 300, "ST_UNIT_UOP": 100, "L1D_CACHE_MISS_LD": 6, "L1D_CACHE_MISS_ST": 2},
            "cache.l1.miss_rate",
            2.0,
        ),
        ({"L1I_CACHE_MISS_DEMAND": 5, "FIXED_INSTRUCTIONS": 10_000}, "cache.l1i.mpki", 0.5),
        ({"INST_SIMD_ALU_VEC": 75, "INST_SIMD_ALU": 100}, "simd.utilization", 75.0),
        ({"L1D_TLB_MISS": 1, "L1D_TLB_ACCESS": 50}, "tlb.data.miss_rate", 2.0),
    ],
)
def test_apple_events_tell_a_metric(counts, metric, value):
    assert readings("apple", **counts)[metric].value == pytest.approx(value)
    assert readings(None, **counts)[metric].value == pytest.approx(value)


def test_the_share_of_vectors_is_not_guessed_from_the_floating_point_unit():
    told = readings("apple", INST_SIMD_ALU=100, FIXED_INSTRUCTIONS=1000)["simd.utilization"]
    assert told.value is None
    assert "INST_SIMD_ALU_VEC" in spoken(told.reason)


@pytest.mark.parametrize("metric", ["cache.l2.miss_rate", "cache.l3.miss_rate", "dram.bytes", "flops"])
def test_what_no_apple_core_counts_says_why(metric):
    told = readings("apple", FIXED_CYCLES=1)[metric]
    assert told.quality == "unavailable"
    assert len(spoken(told.reason).split()) > 6


def test_of_a_mac_that_is_not_known_the_reason_speaks_of_both():
    assert "Apple silicon" in spoken(readings(None, FIXED_CYCLES=1)["cache.l3.miss_rate"].reason)


def test_fixed_cycles_that_count_nothing_are_no_clock():
    assert readings("apple", FIXED_CYCLES=0, FIXED_INSTRUCTIONS=5)["ipc"].value is None
