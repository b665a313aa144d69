"""What the views of a sweep show, counted by hand: places of the grid, lines along an axis, all panels together."""

from __future__ import annotations

from dataclasses import replace

import pytest

from profkit.analysis.ranking.grid import results_by_shape, series_along, winners_by_size
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


def test_shapes_with_as_many_vectors_share_a_row_and_most_of_them_decide() -> None:
    points = [GridPoint("GELU", b, s, 8) for b, s in ((1, 16), (2, 8), (4, 4))]
    fast = {points[0]: "CUDA", points[1]: "CUDA", points[2]: "Triton"}
    results = [case(p, n, 0.5 if fast[p] == n else 1.0) for p in points for n in ("CUDA", "Triton")]
    (panel,) = comparison_groups(of(*results))
    (row,) = winners_by_size(panel, (8, 16))
    assert row.batch_x_sequence == 16
    assert row.cells == (("CUDA",), None)
    tied = [replace(r, median=1e-6) if r.point == points[1] else r for r in results]
    (row,) = winners_by_size(comparison_groups(of(*tied))[0], (8,))
    assert set(row.cells[0] or ()) == {"CUDA", "Triton"}


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


def test_speedups_along_an_axis_are_geometric_means_over_all_shapes_with_that_size() -> None:
    points = [GridPoint("GELU", b, 8, 8) for b in (1, 2)]
    results = [case(p, "PyTorch", 1.0, 0.0) for p in points]
    results += [
        replace(case(p, "mine"), median=(r.median or 0) / f)
        for p, r, f in zip(points, results, (9.0, 0.25), strict=True)
    ]
    results += [case(GridPoint("GELU", 1, 8, 16), n) for n in ("PyTorch", "mine")]
    view = series_along(comparison_groups(of(*results))[0], "dimension")
    assert view is not None
    (line,) = view.speedups
    first = line.points[0]
    assert (first.value, first.low, first.high, first.count) == pytest.approx((1.5, 0.25, 9.0, 2))


def test_an_axis_of_one_size_is_none() -> None:
    assert series_along(comparison_groups(sweep(batches=(4,)))[0], "batch") is None


def test_an_implementation_without_a_time_at_a_size_has_no_stop_there() -> None:
    document = without(sweep(), "too large", "CUDA", "too large")
    view = series_along(comparison_groups(document)[0], "batch")
    assert view is not None
    assert "CUDA" not in [line.implementation for line in (*view.times, *view.speedups)]


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
    assert [best.implementations for best in found.best] == [("CUDA",), ("CUDA",)]
    assert [score.implementation for score in leaders(found.scores)] == ["CUDA"]


def test_the_baseline_leads_where_all_others_are_slower() -> None:
    found = rank_overall(sweep(factors={"PyTorch": 1.0, "CUDA": 2.0}))
    assert [score.implementation for score in leaders(found.scores)] == ["PyTorch"]
    assert found.best[0].implementations == ("PyTorch",)


def test_means_that_are_nearer_than_their_medians_are_known_tell_nobody_apart() -> None:
    found = rank_overall(sweep(factors={"PyTorch": 1.0, "CUDA": 0.998, "Triton": 1.2}))
    assert [score.implementation for score in leaders(found.scores)] == ["CUDA", "PyTorch"]
    assert found.best[0].implementations == ("CUDA", "PyTorch")


def test_without_the_baseline_nobody_has_a_speedup_but_somebody_is_best() -> None:
    found = rank_overall(sweep(factors={"Triton": 1.0, "CUDA": 0.5}))
    assert leaders(found.scores) == ()
    assert found.best[0].implementations == ("CUDA",)
    assert found.best[0].speedup is None
