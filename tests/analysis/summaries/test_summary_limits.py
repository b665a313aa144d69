"""Bandwidth and roofline: formulas, qualities, and which peaks a workload is held against."""

from __future__ import annotations

from dataclasses import replace

import pytest

from profkit.analysis.summaries.readings import mixed_quality
from profkit.analysis.summaries.roofline import (
    Work,
    bandwidth_readings,
    choose_ceilings,
    roofline_readings,
)
from profkit.core.types import RUN, Peaks, Quality, Reading
from tests.documents import peaks, reading
from tests.spoken import spoken


def work(**changes: object) -> Work:
    """10 ms for 1 MB and 100 MFLOP: 100 MB/s, 10 GFLOP/s, 100 FLOP/B."""
    base = Work(
        RUN,
        reading("time.median", 0.01, "s", quality="measured", scope=RUN),
        reading("dram.bytes", 1e6, "B", scope=RUN),
        reading("flops", 1e8, "FLOP", scope=RUN),
    )
    return replace(base, **changes)  # type: ignore[arg-type]


def told(readings: tuple[Reading, ...]) -> dict[str, Reading]:
    return {r.metric: r for r in readings}


def test_bandwidth_is_bytes_per_iteration_over_the_median_against_the_measured_peak() -> None:
    found = told(bandwidth_readings(work(), choose_ceilings(peaks(), 100.0, RUN)))
    assert found["bandwidth.dram"].value == pytest.approx(1e8)
    assert found["bandwidth.dram.share"].value == pytest.approx(100 * 1e8 / 15.2e9)


def test_simulated_bytes_over_a_measured_time_are_an_estimate() -> None:
    assert (
        told(bandwidth_readings(work(), choose_ceilings(peaks(), None, RUN)))["bandwidth.dram"].quality
        == "estimated"
    )
    counted = work(dram=reading("dram.bytes", 1e6, "B", quality="measured", scope=RUN))
    assert (
        told(bandwidth_readings(counted, choose_ceilings(peaks(), None, RUN)))["bandwidth.dram"].quality
        == "measured"
    )


@pytest.mark.parametrize(
    ("qualities", "result"),
    [
        (["measured", "measured"], "measured"),
        (["simulated", "simulated"], "simulated"),
        (["measured", "simulated"], "estimated"),
        (["multiplexed", "measured"], "multiplexed"),
        (["multiplexed", "simulated"], "estimated"),
        (["estimated", "measured"], "estimated"),
        (["measured", "unavailable"], "unavailable"),
    ],
)
def test_a_derived_reading_is_as_good_as_its_inputs_allow(qualities: list[Quality], result: Quality) -> None:
    assert mixed_quality(qualities) == result


@pytest.mark.parametrize(
    ("busy", "threads", "bandwidth"),
    [(95.0, 1, 15.2e9), (110.0, 1, 15.2e9), (111.0, 2, 20.7e9), (200.0, 2, 20.7e9), (None, 2, 20.7e9)],
)
def test_the_peak_is_that_of_as_many_threads_as_were_busy(
    busy: float | None, threads: int, bandwidth: float
) -> None:
    limit = choose_ceilings(peaks(), busy, RUN)
    assert (limit.threads, limit.bandwidth.value) == (threads, bandwidth)


@pytest.mark.parametrize(
    ("flops", "attainable"),
    [
        (1e8, 60e9),  # 100 FLOP/B: 1520 GFLOP/s by bandwidth, so the flat roof
        (1e6, 15.2e9),  # 1 FLOP/B: one times the bandwidth
    ],
)
def test_the_roofline_is_the_lower_of_both_roofs(flops: float, attainable: float) -> None:
    limit = choose_ceilings(peaks(), 100.0, RUN)
    found = told(roofline_readings(work(flops=reading("flops", flops, "FLOP", scope=RUN)), limit))
    assert found["roofline.attainable"].value == pytest.approx(attainable)
    assert found["roofline.share"].value == pytest.approx(100 * flops / 0.01 / attainable)


def test_without_counted_flops_the_declared_ones_serve_and_it_is_said() -> None:
    blind = work(flops=reading("flops", None, "FLOP", scope=RUN), declared_flops=2e8)
    found = told(roofline_readings(blind, choose_ceilings(peaks(), 100.0, RUN)))
    assert found["flops.rate"].value == pytest.approx(2e10)
    assert found["flops.rate"].quality == "estimated"
    assert spoken(found["flops.rate"].reason) == "declared by the workload"


def test_what_is_missing_leaves_unavailable_with_the_first_reason() -> None:
    blind = work(dram=reading("dram.bytes", None, "B", scope=RUN, reason="no such counter", fix="do this"))
    limit = choose_ceilings(peaks(), 100.0, RUN)
    found = told((*bandwidth_readings(blind, limit), *roofline_readings(blind, limit)))
    for name in ("bandwidth.dram", "bandwidth.dram.share", "arithmetic_intensity", "roofline.share"):
        assert found[name].value is None
        assert spoken(found[name].reason) == "it needs dram.bytes: no such counter"
        assert found[name].fix == "do this"
    assert found["flops.rate"].value == pytest.approx(1e10)


def test_no_traffic_at_all_has_no_intensity() -> None:
    found = told(
        roofline_readings(
            work(dram=reading("dram.bytes", 0.0, "B", scope=RUN)), choose_ceilings(peaks(), None, RUN)
        )
    )
    assert found["arithmetic_intensity"].value is None
    assert found["roofline.share"].value is None


@pytest.mark.parametrize("limit", [None, Peaks(None, None, None, None, 2, "x")])
def test_without_peaks_the_rates_stay_and_the_shares_say_why(limit: Peaks | None) -> None:
    roofs_ = choose_ceilings(limit, 200.0, RUN)
    found = told((*bandwidth_readings(work(), roofs_), *roofline_readings(work(), roofs_)))
    assert found["bandwidth.dram"].value == pytest.approx(1e8)
    for name in ("bandwidth.dram.share", "flops.share", "roofline.share"):
        assert "peaks of this machine were not measured" in (spoken(found[name].reason) or "")


@pytest.mark.parametrize(
    ("quality", "cause", "other"),
    [("simulated", "stores stream past the caches", None), ("measured", "the machine was busy", "stream")],
)
def test_more_than_the_whole_bandwidth_is_no_fact_and_says_what_it_means(
    quality: Quality, cause: str, other: str | None
) -> None:
    """19 GB/s where 15.2 GB/s are the peak."""
    busy = work(dram=reading("dram.bytes", 1.9e8, "B", quality=quality, scope=RUN))
    limit = choose_ceilings(peaks(), 100.0, RUN)
    found = bandwidth_readings(busy, limit)
    share = told(found)["bandwidth.dram.share"]
    assert share.value == pytest.approx(125)
    assert share.quality == "estimated"
    assert cause in str(spoken(share.reason))
    assert other is None or other not in str(spoken(share.reason))
    assert (
        told(bandwidth_readings(work(dram=reading("dram.bytes", 1.55e8, "B")), limit))[
            "bandwidth.dram.share"
        ].reason
        is None
    )  # 102 %: as near as a peak is known


def test_more_arithmetic_than_the_peak_names_the_peak_and_the_type_as_causes() -> None:
    fast = work(flops=reading("flops", 1e12, "FLOP", scope=RUN))
    share = told(roofline_readings(fast, choose_ceilings(peaks(), None, RUN)))["roofline.share"]
    assert share.value is not None
    assert share.value > 105
    assert "float16" in str(spoken(share.reason))
    assert "busy" in str(spoken(share.reason))
