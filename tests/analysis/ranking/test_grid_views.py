"""What the views of a sweep show, counted by hand: places of the grid, lines along an axis, all panels together."""

from __future__ import annotations

import pytest

from profkit.analysis.ranking.grid import results_by_shape, series_along
from profkit.analysis.ranking.ranking import comparison_groups, leaders, rank_implementations, rank_overall
from profkit.core.types import GridPoint
from tests.sweep_documents import ROOFS, case, of, sweep, without


def test_the_lead_is_that_over_the_first_who_is_really_behind() -> None:
    point = GridPoint("GELU", 16, 256, 8)
    document = of(
        case(point, "PyTorch", 2.0), case(point, "a", 1.0), case(point, "b", 1.005), case(point, "c", 1.5)
    )
    place = results_by_shape(comparison_groups(document)[0])[point]
    assert place.winners == ("a", "b")
    assert place.alone is None
    assert place.lead == pytest.approx(1.5)
    assert [result.implementation for result in place.timed] == ["a", "b", "c", "PyTorch"]


def test_where_all_are_alike_nobody_leads() -> None:
    (panel,) = comparison_groups(sweep(factors={"PyTorch": 1.0, "mine": 1.0}))
    assert {(place.alone, place.lead) for place in results_by_shape(panel).values()} == {(None, None)}


def test_times_along_an_axis_are_those_at_the_largest_of_the_others_with_their_intervals() -> None:
    (panel,) = comparison_groups(sweep(half=0.1))
    view = series_along(panel, "dimension")
    assert view is not None
    assert view.fixed == (("batch", 32), ("sequence", 512))
    (eager, *_) = view.times
    assert [stop.at for stop in eager.points] == [8, 64, 512]
    last = eager.points[-1]
    assert last.value == pytest.approx(1e-6 + 1e-11 * 32 * 512 * 512)
    assert (last.low, last.high) == pytest.approx((0.9 * last.value, 1.1 * last.value))


def test_an_axis_of_one_size_is_none() -> None:
    assert series_along(comparison_groups(sweep(batches=(4,)))[0], "batch") is None


def test_an_implementation_without_a_time_at_a_size_has_no_stop_there() -> None:
    document = without(sweep(), "too large", "CUDA", "too large")
    view = series_along(comparison_groups(document)[0], "batch")
    assert view is not None
    assert "CUDA" not in [line.implementation for line in view.times]


def test_times_are_compared_over_shapes_that_all_of_them_have() -> None:
    document = sweep()
    large = [
        n for n, r in enumerate(document.results) if r.point.dimension == 512 and r.implementation == "CUDA"
    ]
    cut = without(document, "too large", "CUDA", "too large", among=large)
    (panel,) = comparison_groups(cut)
    eager, *_, cuda = rank_implementations(panel, ROOFS)
    assert eager.shared == cuda.shared == 8
    assert eager.time is not None
    assert cuda.time == pytest.approx(0.4 * eager.time)  # and not a hundredth, as over its own small shapes


def test_over_all_panels_each_shape_counts_once() -> None:
    found = rank_overall(sweep("GELU", "MSE"))
    assert found.shapes == 24
    cuda = next(score for score in found.scores if score.implementation == "CUDA")
    assert (cuda.speedup, cuda.compared, cuda.wins) == pytest.approx((2.5, 24, 24))
    assert [score.implementation for score in leaders(found.scores)] == ["CUDA"]


def test_the_baseline_leads_where_all_others_are_slower() -> None:
    found = rank_overall(sweep(factors={"PyTorch": 1.0, "CUDA": 2.0}))
    assert [score.implementation for score in leaders(found.scores)] == ["PyTorch"]


def test_means_that_are_nearer_than_their_medians_are_known_tell_nobody_apart() -> None:
    found = rank_overall(sweep(factors={"PyTorch": 1.0, "CUDA": 0.998, "Triton": 1.2}))
    assert [score.implementation for score in leaders(found.scores)] == ["CUDA", "PyTorch"]


def test_without_the_baseline_nobody_has_a_speedup() -> None:
    found = rank_overall(sweep(factors={"Triton": 1.0, "CUDA": 0.5}))
    assert leaders(found.scores) == ()
