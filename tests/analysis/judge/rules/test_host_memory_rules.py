"""Caches, memory and branches are judged by what they cost in the measured time."""

from __future__ import annotations

from dataclasses import replace

import pytest

from profkit.analysis.judge.findings import find_insights
from profkit.analysis.metrics.catalogue import metric
from profkit.core.types import (
    RUN,
    CodeSpot,
    Hotspot,
    Insight,
    Place,
    Profile,
    Reading,
    SampleSet,
    Source,
    TimeSplit,
    Timing,
)
from tests import documents

MILLION = 1_000_000


def insights(
    values: dict[str, float], *profiles: Profile, timing: Timing | None = None, split: TimeSplit | None = None
) -> dict[str, Insight]:
    readings = tuple(
        Reading(name, value, metric(name).unit, "simulated", RUN, Source("valgrind"))
        for name, value in values.items()
    )
    document = replace(documents.empty(), readings=readings, profiles=profiles, time_split=split)
    document = replace(document, timings=(timing,) if timing is not None else ())
    return {insight.rule: insight for insight in find_insights(document)}


CHASE = {  # a linked list of 64 MB: a million loads of 90 ns, one after the other
    "time.median": 0.09,
    "dram.read": 64.0 * MILLION,
    "bandwidth.dram": 0.71e9,
    "bandwidth.dram.share": 3.5,
    "instructions": 4.0 * MILLION,
}
STREAM = {  # a sum over an array of 64 MB: the same lines in a twentieth of the time
    **CHASE,
    "time.median": 0.0045,
    "bandwidth.dram": 14.2e9,
    "bandwidth.dram.share": 71.0,
}


def test_loads_that_wait_for_each_other_are_found_by_the_time_that_they_take() -> None:
    found = insights(CHASE)
    assert set(found) == {"memory-latency"}
    gain = found["memory-latency"].gain
    assert gain is not None
    assert gain.at_most == pytest.approx(0.95, abs=0.02)


def test_a_stream_is_limited_by_bandwidth_and_not_by_latency() -> None:
    found = insights(STREAM)
    assert set(found) == {"memory-bandwidth"}
    assert found["memory-bandwidth"].gain is None


def test_of_a_stream_only_what_it_need_not_move_can_be_won() -> None:
    gain = insights({**STREAM, "bandwidth.declared": 7.1e9})["memory-bandwidth"].gain
    assert gain is not None
    assert gain.at_most == pytest.approx(0.5)


def test_memory_that_is_hardly_used_is_no_problem() -> None:
    assert insights({**CHASE, "dram.read": 1e6}) == {}


def test_time_without_a_processor_is_no_time_of_memory() -> None:
    """The same program beside others, four times as slow: it still follows pointers when it runs."""
    readings = {**CHASE, "time.median": 4 * CHASE["time.median"]}
    timing = Timing("process", "process", (SampleSet((0.36, 0.36)),), 0.01)
    split = TimeSplit(0.36, waiting=0.0, queued=0.27, cpu=0.09)
    assert "memory-latency" in insights(readings, timing=timing, split=split)
    assert "memory-latency" not in insights(readings)


@pytest.mark.parametrize("change", [{"flops.share": 64.0}, {"time.interval": 200.0}])
def test_a_program_that_computes_or_whose_time_is_noise_does_not_follow_pointers(
    change: dict[str, float],
) -> None:
    """A matrix product on a busy machine: by chance its time is that of its lines, one after the other."""
    assert "memory-latency" not in insights({**CHASE, **change})


def test_a_rate_that_no_machine_reaches_is_believed_by_no_rule() -> None:
    assert insights({**STREAM, "bandwidth.dram.share": 140.0}) == {}


BRANCHY = {
    "time.median": 0.01,
    "instructions": 10.0 * MILLION,
    "branch.count": 2.0 * MILLION,
    "branch.miss_rate": 25.0,
}


def branches_of(file: str | None) -> Profile:
    function = Hotspot("sort", 1.0, file=file, line=7 if file else None, counters={"Bcm": 0.5 * MILLION})
    return Profile("", "instructions", 1.0, (function,), "counted-functions")


def test_mispredictions_count_by_their_cycles() -> None:
    gain = insights(BRANCHY, branches_of("sort.c"))["mispredicted-branches"].gain
    assert gain is not None
    assert gain.at_most == pytest.approx(0.5e6 * 15 / 3e9 / 0.01)


@pytest.mark.parametrize(
    "change", [{"branch.miss_rate": 0.5}, {"branch.count": 1000.0}, {"time.median": 1.0}]
)
def test_mispredictions_that_cost_nothing_are_no_problem(change: dict[str, float]) -> None:
    assert "mispredicted-branches" not in insights({**BRANCHY, **change}, branches_of("sort.c"))


def test_a_simulated_predictor_is_not_believed_of_a_library_without_source() -> None:
    """64 calls of torch.clamp on small tensors: simulated, PyTorch's dispatcher mispredicts 10 % of its branches."""
    assert "mispredicted-branches" not in insights(BRANCHY, branches_of(None))


SCALAR = {
    "time.median": 0.01,
    "instructions": 10.0 * MILLION,
    "flops": 4.0 * MILLION,
    "simd.utilization": 3.0,
    "flops.share": 2.0,
}


def test_scalar_arithmetic_of_compiled_code_is_to_be_vectorised() -> None:
    found = insights(SCALAR)["scalar-arithmetic"]
    assert "-march=native" in found.change
    assert found.gain is not None
    assert found.gain.at_most == 0.75


@pytest.mark.parametrize(
    ("counters", "told"), [({"scalar": 4.0}, True), ({"serial": 1.0}, False), ({}, False)]
)
def test_arithmetic_is_to_be_vectorised_where_a_loop_of_the_program_can_be(
    counters: dict[str, float], told: bool
) -> None:
    loop = Hotspot("main", 8e6, file="halos.cpp", line=43, counters={"rounds": 1e5, **counters})
    loops = Profile("", "instructions", 1e7, (loop,), "counted-loops")
    assert ("scalar-arithmetic" in insights(SCALAR, loops)) == told


@pytest.mark.parametrize(
    "change", [{"simd.utilization": 95.0}, {"flops": 1000.0}, {"bandwidth.dram.share": 80.0}]
)
def test_vectorised_little_or_memory_bound_arithmetic_is_not(change: dict[str, float]) -> None:
    assert "scalar-arithmetic" not in insights({**SCALAR, **change})


def test_the_compiled_function_with_the_most_misses_is_named() -> None:
    counted = Profile(
        "functions",
        "Ir",
        1.0,
        (
            Hotspot("walk", 1.0, file="list.c", line=7, counters={"D1mr": 900.0}),
            Hotspot("main", 2.0, file="list.c", line=20, counters={"D1mr": 5.0}),
        ),
        "functions",
    )
    where = insights(CHASE, counted)["memory-latency"].where
    assert (where.function, where.file, where.line) == ("walk", "list.c", 7)


COLUMNS = {  # a matrix of 64 MB, walked six times by columns
    "time.median": 0.75,
    "dram.read": 6_509_740_160.0,
    "bandwidth.dram": 8.68e9,
    "bandwidth.dram.share": 37.0,
    "instructions": 1_241_897_266.0,
    "flops": 218_107_910.0,
    "simd.utilization": 2.04,
}


def counted(loads: float, misses: float) -> tuple[Profile, Profile]:
    """The function and its line, as callgrind counted columns.c."""
    counters = {"Ir": 302e6, "Dr": loads, "DLmr": misses}
    function = Hotspot("sum", 1.2e9, file="columns.c", library="columns", counters=counters)
    line = Hotspot("sum", 302e6, file="columns.c", line=9, library="columns", counters=counters)
    return (
        Profile("", "instructions", 1.24e9, (function,), "counted-functions"),
        Profile("", "instructions", 1.24e9, (line,), "counted-lines"),
    )


def test_a_walk_by_columns_is_found_at_its_line_and_not_told_to_vectorise() -> None:
    found = insights(COLUMNS, *counted(100_663_296.0, 100_663_296.0))
    assert found["strided-access"].where.line == 9
    assert "scalar-arithmetic" not in found


def test_a_walk_in_order_wastes_no_lines_whatever_it_misses() -> None:
    """One of 16 floats is the first of its line."""
    found = insights(COLUMNS, *counted(100_663_296.0, 100_663_296.0 / 16))
    assert "strided-access" not in found
    assert "scalar-arithmetic" in found


@pytest.mark.parametrize(("sampled", "known"), [(1.660, True), (2.2, False), (0.7, False)])
def test_of_a_run_that_others_slowed_down_the_sampled_one_counts_where_it_was_faster(
    sampled: float, known: bool
) -> None:
    """chase.c beside other programs: 2.2 s of processor time where 1.7 s are usual; the last has lost samples."""
    readings = {**CHASE, "time.median": 4.04, "dram.read": 614.5e6, "bandwidth.dram.share": 0.48}
    timing = Timing("process", "process", (SampleSet((4.04, 4.04)),), 0.01)
    split = TimeSplit(4.04, waiting=0.06, queued=1.755, cpu=2.225, threads=1.0)
    samples = Profile("cpu-clock", "s", sampled, (Hotspot("main", sampled, library="chase"),), "functions")
    assert ("memory-latency" in insights(readings, samples, timing=timing, split=split)) == known


def test_a_chain_of_loads_is_latency_and_not_wasted_lines() -> None:
    assert set(insights(CHASE, *counted(MILLION, MILLION))) == {"memory-latency"}


@pytest.mark.parametrize(("loads", "found"), [(49.0, False), (524_288.0, True)])
def test_lines_that_are_only_written_keep_no_load_waiting(loads: float, found: bool) -> None:
    """A C program that fills an array of 32 MB: 524,288 lines come in 0.1 s, and no instruction needs one of them."""
    spot = Hotspot("main", MILLION, counters={"DLmr": loads, "DLmw": 524_288.0 - min(loads, 524_287.0)})
    profile = Profile("functions", "Ir", MILLION, (spot,), "counted-functions")
    readings = {**CHASE, "time.median": 0.1, "dram.read": 33.6e6, "bandwidth.dram.share": 0.6}
    assert ("memory-latency" in insights(readings, profile)) == found


def test_misses_that_cost_little_are_none() -> None:
    assert "strided-access" not in insights(COLUMNS, *counted(1000.0, 1000.0))


GCC = "GNU C17 12.2.0 -mtune=generic -march=x86-64 -g"


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (f"{GCC} -O0 -fPIE", True),
        (GCC, True),
        (f"{GCC} -O2", False),
        (f"{GCC} -Og", False),
        (f"{GCC} -O", False),
        ("", False),
    ],
)
def test_a_build_without_optimisation_is_told_from_its_options(options: str, told: bool) -> None:
    document = replace(documents.empty(), facts={"compiler": options} if options else {})
    assert ("unoptimised-build" in {insight.rule for insight in find_insights(document)}) is told


def test_an_unoptimised_build_is_named_with_its_program_and_hottest_line() -> None:
    empty = documents.empty()
    workload = replace(empty.workload, command=("./columns_O0",))
    spot = CodeSpot(0.8, 1.5, "native", Place(function="sum_columns", file="columns.c", line=7))
    document = replace(empty, workload=workload, hot_spots=(spot,), facts={"compiler": f"{GCC} -O0"})
    insight = find_insights(document)[0]
    assert insight.rule == "unoptimised-build"
    assert "the debug information of columns_O0 says" in insight.evidence
    assert (insight.where.function, insight.where.line) == ("sum_columns", 7)
