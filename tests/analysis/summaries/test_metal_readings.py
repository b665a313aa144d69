"""What a Metal trace and its counters say in numbers, and why a number is not there."""

from __future__ import annotations

from dataclasses import replace

import pytest

from profkit.analysis.metrics.catalogue import all_metrics, metal_counter_names
from profkit.analysis.summaries.metal import metal_trace_readings
from profkit.core.types import (
    RUN,
    Fact,
    Gpu,
    MetalAbsent,
    MetalTrace,
    Reading,
    RunDocument,
)
from profkit.hardware.macos import chip_table, find_chip
from profkit.profiling.summarize import enrich_document as enrich
from profkit.profiling.summarize import judge_document, targets_for
from profkit.profiling.summarize import summarize_document as summarize
from tests import metal_documents as metal
from tests.reporting.shown import sections_of
from tests.spoken import spoken


def told(document: RunDocument) -> dict[str, Reading]:
    return {r.metric: r for r in enrich(document).readings if r.scope == RUN}


def values(trace: MetalTrace, **changes: object) -> dict[str, float | None]:
    return {name: r.value for name, r in told(metal.run(trace, **changes)).items()}


def test_the_process_is_told_with_and_without_what_it_waited_for() -> None:
    found = values(metal.metal())
    assert found["gpu.utilization"] == pytest.approx(70.0)
    assert found["gpu.utilization.alone"] == pytest.approx(72.5)  # 50 ms its work waited for others


def test_an_unmarked_process_is_held_against_its_own_window() -> None:
    found = values(metal.metal(marked=False, entries=0, span=10.0, window=2.0))
    assert found["gpu.utilization"] == pytest.approx(70.0)
    assert found["gpu.window"] == 2.0
    assert "gpu.entries" not in found
    assert values(metal.metal(marked=False, window=None, span=10.0))["gpu.utilization"] == pytest.approx(14.0)


def test_idle_time_is_told_by_what_it_waited_for() -> None:
    found = values(metal.metal())
    assert found["time.gpu.idle"] == pytest.approx(0.6)
    assert found["gpu.starved"] == pytest.approx(75.0)


def test_the_starved_share_of_the_generic_trace_stands_in() -> None:
    document = metal.report(metal.metal(unsubmitted=None))
    assert document.trace is not None
    assert told(document)["gpu.starved"].value is None
    document = replace(document, trace=replace(document.trace, starved=0.25))
    assert told(document)["gpu.starved"].value == pytest.approx(25.0)


def test_command_buffers_are_counted() -> None:
    assert values(metal.metal())["buffer.count"] == 300


def test_a_run_that_was_not_asked_to_count_says_that_and_not_how_to_set_up_a_trace() -> None:
    reason = "it was recorded with Counter Set: (null)"
    why = Fact.of("no-counter-set", setting="(null)")
    absent = (MetalAbsent("metal-gpu-counter-intervals", why, "xctrace record ..."),)
    whole = metal.run(metal.metal(counters=(), absent=absent))
    gate = replace(whole, plan=replace(metal.plan(), passes=metal.plan().passes[:2]), passes=whole.passes[:2])
    found = told(gate)["gpu.occupancy"]
    assert (spoken(found.reason), found.fix) == (
        "the counters pass was not requested",
        "--passes timing,trace,counters",
    )
    assert spoken(told(gate)["bandwidth.gpu"].reason) == (
        "the counters pass was not requested; the workload declares no bytes"
    )
    assert spoken(told(whole)["gpu.occupancy"].reason) == reason


def test_the_longest_is_an_encoder() -> None:
    assert told(metal.report())["gpu.longest"].value == pytest.approx(100 * 0.9 / 1.4)
    assert spoken(told(metal.report())["gpu.longest"].reason) == "encoder MPSMatrixMultiplication"


def test_an_empty_trace_invents_nothing() -> None:
    for reading in told(metal.report(MetalTrace())).values():
        assert reading.value is None, reading.metric
        assert spoken(reading.reason)


def test_a_trace_of_nothing_divides_by_nothing() -> None:
    nothing = MetalTrace(span=0.0, device_busy=0.0, process_busy=0.0, others=0.0, window=0.0, unsubmitted=0.0)
    found = told(metal.report(nothing))
    assert found["gpu.utilization"].value is None
    assert spoken(found["gpu.utilization"].reason) == "the process ran nothing on the GPU"
    assert spoken(found["gpu.starved"].reason) == "the GPU was never idle"


def test_each_reading_names_its_table_and_every_metric_is_in_the_catalogue() -> None:
    known = {info.name: info.unit for info in all_metrics()}
    for reading in metal_trace_readings(metal.metal()):
        assert reading.unit == known[reading.metric]
        assert reading.source.tool == "xctrace"
        assert reading.source.counter
        assert reading.source.formula
    assert set(metal_counter_names()["counters"]) <= set(known)


def test_a_table_that_is_missing_gives_its_reason_and_the_way_to_get_it() -> None:
    found = told(metal.report())["gpu.occupancy"]
    assert spoken(found.reason) == spoken(metal.NO_COUNTERS.reason)
    assert found.fix == metal.NO_COUNTERS.fix


# ---------------------------------------------------------------- counters


def test_counters_at_work_are_measured_and_read_and_write_add_up() -> None:
    found = told(metal.run(metal.metal(counters=metal.counters())))
    assert found["gpu.occupancy"].value == 40.0
    assert found["gpu.occupancy"].quality == "measured"
    assert found["bandwidth.gpu"].value == pytest.approx(150e9)
    assert found["bandwidth.gpu.share"].value == pytest.approx(100 * 150 / 273)
    assert found["bandwidth.gpu.share"].quality == "measured"


def test_a_mean_over_all_time_is_not_that_at_work() -> None:
    counter = metal.counter("Compute Occupancy", None, mean=30.0, most=90.0)
    found = told(metal.run(metal.metal(counters=(counter,))))["gpu.occupancy"]
    assert found.value is None
    assert (spoken(found.reason) or "").startswith("Compute Occupancy covers a time")


def test_samples_that_are_longer_than_the_work_in_them_decide_nothing() -> None:
    counters = tuple(replace(one, filled=0.3) for one in metal.counters(read=160e9))
    document = metal.run(metal.metal(counters=counters))
    for name in ("gpu.occupancy", "gpu.limiter", "bandwidth.gpu.share"):
        assert "work for only 30.0 % of the time of its samples" in (spoken(told(document)[name].doubt) or "")
    words = {v.target: v for v in judge_document(document, targets_for("mps")).verdicts}
    assert words["occupancy"].verdict == words["memory-bandwidth"].verdict == "unknown"
    nearly = tuple(replace(one, filled=0.9) for one in metal.counters())
    assert told(metal.run(metal.metal(counters=nearly)))["gpu.occupancy"].doubt is None


def test_percentages_are_of_the_chips_bandwidth_and_estimates() -> None:
    counters = metal.counters(read=32.0, unit="%")
    found = told(metal.run(metal.metal(counters=counters)))
    assert found["bandwidth.gpu"].value == pytest.approx(0.40 * 273e9)
    assert found["bandwidth.gpu.share"].value == pytest.approx(40.0)
    assert found["bandwidth.gpu.share"].quality == "estimated"
    assert "(estimated)" in sections_of(metal.run(metal.metal(counters=counters)))["bandwidth"].headline
    unknown = told(metal.run(metal.metal(counters=counters), gpus=()))
    assert unknown["bandwidth.gpu"].value is None
    assert unknown["bandwidth.gpu.share"].value == pytest.approx(40.0)


@pytest.mark.parametrize("unit", ["", "ms"])
def test_a_counter_in_a_unit_of_its_own_is_no_bandwidth(unit: str) -> None:
    found = told(metal.run(metal.metal(counters=metal.counters(unit=unit))))
    assert found["bandwidth.gpu"].value is None
    assert found["bandwidth.gpu.share"].value is None
    assert "is counted in" in (spoken(found["bandwidth.gpu"].reason) or "")


def test_half_of_the_traffic_is_no_bandwidth() -> None:
    found = told(metal.run(metal.metal(counters=(metal.counter("GPU Read Bandwidth", 1e9, "B/s"),))))
    assert found["bandwidth.gpu"].value is None
    assert "none of the recorded counters measures it (GPU write bandwidth)" in (
        spoken(found["bandwidth.gpu"].reason) or ""
    )


def test_declared_work_stands_in_for_a_counter_of_no_use() -> None:
    document = metal.run(metal.metal(counters=metal.counters(unit="")), timings=(metal.timing(bytes=0.7e9),))
    found = told(document)["bandwidth.gpu"]
    assert found.value == pytest.approx(0.7e9 * 300 / 1.4)
    assert found.quality == "estimated"


def test_tables_that_differ_by_a_hair_make_no_more_than_the_whole() -> None:
    found = values(metal.metal(process_busy=2.0000001, device_busy=2.0000002))
    assert found["gpu.utilization"] == 100.0
    assert found["time.gpu.idle"] == 0.0


def test_a_counter_that_is_always_zero_is_a_hard_zero_and_no_value() -> None:
    zero = metal.counter("Compute Occupancy", 0.0, mean=0.0, most=0.0)
    found = told(metal.run(metal.metal(counters=(zero,))))["gpu.occupancy"]
    assert found.value is None
    assert spoken(found.reason) == "Compute Occupancy does not work here: it is 0 in all 1000 samples"


def test_the_largest_limiter_stands_for_the_top_one_but_not_that_of_launches() -> None:
    counters = (
        metal.counter("Compute Shader Launch Limiter", 99.0),
        metal.counter("ALU Limiter", 61.0),
        metal.counter("LLC Limiter", 12.0),
    )
    found = told(metal.run(metal.metal(counters=counters)))["gpu.limiter"]
    assert (found.value, spoken(found.reason)) == (61.0, "ALU Limiter")


def test_without_counters_declared_bytes_give_an_estimate() -> None:
    document = metal.run(timings=(metal.timing(bytes=0.7e9),))
    found = told(document)
    assert found["bandwidth.gpu"].value == pytest.approx(0.7e9 * 300 / 1.4)
    assert found["bandwidth.gpu"].quality == "estimated"
    counted = told(metal.run(metal.metal(counters=metal.counters()), timings=document.timings))
    assert counted["bandwidth.gpu"].value == pytest.approx(150e9)  # what is counted is not estimated


def test_of_an_unmarked_trace_nobody_knows_how_often_the_work_was_done() -> None:
    document = metal.run(metal.metal(marked=False, entries=0), timings=(metal.timing(bytes=0.7e9),))
    found = told(document)
    assert "how many iterations were traced" in (spoken(found["bandwidth.gpu"].reason) or "")


def test_the_chip_is_known_by_the_name_in_the_trace() -> None:
    counters = metal.counters(read=20e9)
    found = told(metal.report(metal.metal(counters=counters, device="Apple M1")))
    assert found["bandwidth.gpu.share"].value == pytest.approx(100 * 25 / 68)
    several = told(metal.report(metal.metal(counters=counters, device="Apple M3 Max")))["bandwidth.gpu.share"]
    assert several.value is None
    assert "GPU cores" in (spoken(several.reason) or "")
    foreign = told(metal.report(metal.metal(counters=counters), gpus=(Gpu("AMD Radeon Pro 5500M"),)))
    assert "not in profkit's table" in (spoken(foreign["bandwidth.gpu.share"].reason) or "")


def test_a_figure_of_one_report_makes_an_estimate() -> None:
    doubtful = [name for name in chip_table() if _bandwidth_is_one_reports(name)]
    counters = metal.counters(read=20e9)
    for name in doubtful[:1]:
        gpu = Gpu(name, cores=_cores(name))
        found = told(metal.report(metal.metal(counters=counters), gpus=(gpu,)))["bandwidth.gpu.share"]
        assert (found.quality, spoken(found.reason)) == (
            "estimated",
            "the figure for this chip comes from a single report",
        )
    assert doubtful


def _bandwidth_is_one_reports(name: str) -> bool:
    return not find_chip(name, _cores(name)).checked


def _cores(name: str) -> int:
    return int(chip_table()[name]["configurations"][0]["cores"])


# ---------------------------------------------------------------- again, and with more


def test_doing_it_again_changes_nothing() -> None:
    for document in (metal.run(), metal.report(), metal.run(metal.metal(counters=metal.counters()))):
        once = enrich(document)
        once = replace(once, summaries=summarize(once))
        assert enrich(once) == once
        assert summarize(once) == once.summaries


def test_what_a_later_pass_counted_takes_the_place_of_an_estimate() -> None:
    before = enrich(metal.run(timings=(metal.timing(bytes=0.7e9),)))
    after = told(replace(before, metal=metal.metal(counters=metal.counters())))
    assert after["bandwidth.gpu"].quality == "measured"
    assert [r.metric for r in enrich(before).readings].count("bandwidth.gpu") == 1


# As the counter set of Instruments 26.0 names them on an M1.
M1_COUNTERS = {
    "ALU Limiter",
    "ALU Utilization",
    "Buffer Load Utilization",
    "Buffer Read Limiter",
    "Buffer Store Utilization",
    "Buffer Write Limiter",
    "Compute Occupancy",
    "F16 Utilization",
    "F32 Utilization",
    "Fragment Interp Limiter",
    "Fragment Interp Utilization",
    "Fragment Occupancy",
    "GPU Read Bandwidth",
    "GPU Write Bandwidth",
    "LLC Limiter",
    "LLC Utilization",
    "MMU Limiter",
    "MMU Utilization",
    "Partial Renders",
    "TG/IB Load Limiter",
    "TG/IB Load Utilization",
    "TG/IB Store Limiter",
    "TG/IB Store Utilization",
    "Texture Cache Limiter",
    "Texture Filtering Limiter",
    "Texture Sample Limiter",
    "Texture Sample Utilization",
    "Texture Write Limiter",
    "Texture Write Utilization",
    "Top Performance Limiter",
    "Total Occupancy",
    "Vertex Occupancy",
}


def test_the_names_of_the_table_are_those_of_a_recorded_m1() -> None:
    names = metal_counter_names()["counters"]
    known = {metric for metric, ways in names.items() if M1_COUNTERS & set(ways)}
    assert known == set(names) - {"gpu.occupancy.target"}  # that came with the M3
