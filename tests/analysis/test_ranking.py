"""Who wins where: by hand on a few results."""

from __future__ import annotations

from dataclasses import replace
from math import sqrt

import pytest

from profkit.analysis.ranking import (
    ImplementationRanking,
    comparison_groups,
    efficiency,
    geometric_mean,
    guide_record,
    leaders,
    rank_implementations,
    results_by_shape,
    whole_sweep,
)
from profkit.core.statistics import median
from profkit.core.types import CaseResult, GridPoint, MeasuredCeilings, SweepDocument
from tests.sweep_documents import ROOFS, case, of, sweep, without

A, B = GridPoint("GELU", 1, 1, 8), GridPoint("GELU", 1, 1, 16)


def _case(
    point: GridPoint, name: str, median: float | None, half: float = 0.0, state: str = "measured"
) -> CaseResult:
    return CaseResult(point, name, state, median=median, half_width=half, bytes=1e6, flops=1e6, memory=100)  # type: ignore[arg-type]


def _document(*results: CaseResult) -> SweepDocument:
    return SweepDocument("2026-01-01T00:00:00+00:00", "a device", results, ROOFS)


def test_the_mean_of_speedups_is_the_geometric_one() -> None:
    document = _document(
        _case(A, "PyTorch", 2e-6), _case(A, "mine", 1e-6), _case(B, "PyTorch", 1e-6), _case(B, "mine", 2e-6)
    )
    (panel,) = comparison_groups(document)
    mine = rank_implementations(panel, ROOFS)[1]
    assert mine.speedup == pytest.approx(1.0)
    assert mine.compared == 2


def test_those_whose_intervals_overlap_win_together() -> None:
    document = _document(
        _case(A, "PyTorch", 1.00e-6, 0.02), _case(A, "mine", 1.03e-6, 0.02), _case(A, "slow", 2e-6, 0.02)
    )
    (panel,) = comparison_groups(document)
    assert results_by_shape(panel)[A].winners == ("PyTorch", "mine")


@pytest.mark.parametrize(
    ("seconds", "alone"),
    [
        ((1.2e-6,), False),
        ((3.5e-6,), True),
        ((1.2e-6, 1.3e-6, 1.4e-6), True),
        ((1.0e-6, 1.3e-6, 1.4e-6), False),
    ],
)
def test_who_has_too_few_samples_for_an_interval_is_told_apart_by_what_they_show(
    seconds: tuple[float, ...], alone: bool
) -> None:
    slow = replace(_case(A, "mine", median(seconds)), half_width=None, seconds=seconds)
    first = replace(
        _case(A, "PyTorch", 1.0e-6), half_width=None, seconds=(1.0e-6,) * (1 if len(seconds) < 2 else 3)
    )
    (panel,) = comparison_groups(_document(first, slow))
    assert (results_by_shape(panel)[A].alone == "PyTorch") == alone


def test_nobody_wins_alone_where_nobody_else_was_timed() -> None:
    (panel,) = comparison_groups(_document(_case(A, "PyTorch", 1e-6), _case(A, "mine", None, state="wrong")))
    assert results_by_shape(panel) == {}


def test_what_was_not_measured_is_in_no_mean() -> None:
    document = _document(_case(A, "PyTorch", 1e-6), _case(A, "mine", None, state="crashed"))
    (panel,) = comparison_groups(document)
    mine = rank_implementations(panel, ROOFS)[1]
    assert (mine.time, mine.speedup, mine.efficiency, mine.measured, mine.cases) == (None, None, None, 0, 1)


def test_efficiency_is_the_least_time_by_the_roofline_over_the_measured_one() -> None:
    by_memory = _case(A, "mine", 4e-6)
    assert efficiency(by_memory, ROOFS) == pytest.approx(0.25)  # 1 MB at 1 TB/s is 1 µs
    by_arithmetic = CaseResult(A, "mine", "measured", median=4e-6, bytes=1.0, flops=2e7)
    assert efficiency(by_arithmetic, ROOFS) == pytest.approx(0.5)  # 20 MFLOP at 10 TFLOP/s are 2 µs
    assert efficiency(by_memory, MeasuredCeilings()) is None


def test_the_guides_record_computes_each_field_as_its_name_says() -> None:
    told = guide_record(_case(A, "mine", 4e-6, 0.01), _document())
    assert told["time_ms"] == pytest.approx(0.004)
    assert told["inference_speed"] == pytest.approx(1000 / told["time_ms"])
    assert told["throughput_gbps"] == pytest.approx(250.0)
    assert told["gpu_efficiency"] == pytest.approx(25.0)
    assert told["memory_mb"] == pytest.approx(1e-4)
    missing = guide_record(_case(A, "mine", None, state="crashed"), _document())
    keys = ("time_ms", "inference_speed", "throughput_gbps", "gpu_efficiency")
    assert [missing[key] for key in keys] == [None] * 4


def test_a_geometric_mean_of_nothing_is_none() -> None:
    assert geometric_mean([]) is None
    assert geometric_mean([2.0, 1.0]) == pytest.approx(sqrt(2))


def test_the_lead_is_that_over_the_first_who_is_really_behind() -> None:
    point = GridPoint("GELU", 16, 256, 8)
    document = of(
        case(point, "PyTorch", 2.0), case(point, "a", 1.0), case(point, "b", 1.005), case(point, "c", 1.5)
    )
    place = results_by_shape(comparison_groups(document)[0])[point]
    assert place.winners == ("a", "b")
    assert place.alone is None
    assert place.lead == pytest.approx(1.5)


def test_where_all_are_alike_nobody_leads() -> None:
    (panel,) = comparison_groups(sweep(factors={"PyTorch": 1.0, "mine": 1.0}))
    assert {(place.alone, place.lead) for place in results_by_shape(panel).values()} == {(None, None)}


def test_times_are_compared_over_shapes_that_all_of_them_have() -> None:
    document = sweep()
    large = [
        n for n, r in enumerate(document.results) if r.point.dimension == 512 and r.implementation == "CUDA"
    ]
    cut = without(document, "too large", "CUDA", "too large", among=large)
    (panel,) = comparison_groups(cut)
    eager, *_, cuda = rank_implementations(panel, ROOFS)
    assert eager.time is not None
    assert cuda.time == pytest.approx(0.4 * eager.time)  # and not a hundredth, as over its own small shapes


def ranked(document: SweepDocument) -> tuple[ImplementationRanking, ...]:
    return rank_implementations(whole_sweep(document), ROOFS)


def test_over_all_panels_each_shape_counts_once() -> None:
    document = sweep("GELU", "MSE")
    assert len(results_by_shape(whole_sweep(document))) == 24
    cuda = next(score for score in ranked(document) if score.implementation == "CUDA")
    assert (cuda.speedup, cuda.compared, cuda.wins) == pytest.approx((2.5, 24, 24))


@pytest.mark.parametrize(
    ("factors", "names"),
    [
        ({"PyTorch": 1.0, "CUDA": 0.4, "Triton": 0.5}, ["CUDA"]),
        ({"PyTorch": 1.0, "CUDA": 2.0}, ["PyTorch"]),
        ({"PyTorch": 1.0, "CUDA": 0.998, "Triton": 1.2}, ["CUDA", "PyTorch"]),  # alike
        ({"Triton": 1.0, "CUDA": 0.5}, []),  # without the baseline nobody has a speed-up
    ],
)
def test_those_lead_whose_mean_is_largest(factors: dict[str, float], names: list[str]) -> None:
    assert [score.implementation for score in leaders(ranked(sweep(factors=factors)))] == names
