"""A sweep along an axis: means over the same other points, whoever has no time somewhere."""

from __future__ import annotations

from dataclasses import replace

import pytest

from profkit.analysis.axes import means_along, varied_axes
from profkit.analysis.ranking import comparison_groups, whole_sweep
from profkit.core.statistics import geometric_mean
from profkit.core.types import GridPoint, MeasuredCeilings, SweepDocument
from tests import sweep_documents as sweeps

TWO = {"PyTorch": 1.0, "CUDA": 0.4}


def times(document: SweepDocument, axis: str, name: str) -> dict[object, float]:
    means = means_along(whole_sweep(document), axis, document.roofs)
    return dict(zip(means.values, means.times[name], strict=True))


def test_each_cell_is_the_geometric_mean_over_the_other_axes() -> None:
    document = sweeps.sweep(factors=TWO)
    found = times(document, "sequence", "CUDA")
    wanted = {
        sequence: geometric_mean(
            [
                r.median or 0.0
                for r in document.results
                if r.implementation == "CUDA" and r.point.sequence == sequence
            ]
        )
        for sequence in (256, 512)
    }
    assert found == pytest.approx(wanted)
    means = means_along(whole_sweep(document), "sequence", document.roofs)
    assert means.speedups("CUDA") == pytest.approx((2.5, 2.5))
    assert (means.compared, means.left_out) == (6, 0)


def test_a_case_that_is_missing_for_one_does_not_bend_the_mean_of_another() -> None:
    whole = sweeps.sweep(factors=TWO)
    large = [n for n, r in enumerate(whole.results) if r.point.elements == 32 * 512 * 512]
    document = sweeps.without(whole, "too large", "CUDA", "no room", among=large)
    means = means_along(whole_sweep(document), "sequence", document.roofs)
    # Of the pair (batch 32, dimension 512) the row 256 has a time in both; it is left out with that of 512.
    assert (means.compared, means.left_out) == (5, 2)
    assert means.speedups("CUDA") == pytest.approx((2.5, 2.5))
    smaller = replace(
        whole,
        results=tuple(r for r in whole.results if (r.point.batch, r.point.dimension) != (32, 512)),
    )
    for name in TWO:
        assert times(document, "sequence", name) == pytest.approx(times(smaller, "sequence", name))


def test_a_value_where_one_has_no_time_costs_that_row_alone() -> None:
    whole = sweeps.sweep(factors=TWO)
    small = [n for n, r in enumerate(whole.results) if r.point.dimension == 8]
    document = sweeps.without(whole, "failed", "CUDA", "no", among=small)
    means = means_along(whole_sweep(document), "dimension", document.roofs)
    assert (means.values, means.without) == ((64, 512), (8,))
    assert (means.compared, means.left_out) == (4, 4)
    assert times(document, "dimension", "CUDA")[64] == times(whole, "dimension", "CUDA")[64]


def test_an_implementation_of_one_operation_alone_does_not_take_the_others_away() -> None:
    both = sweeps.sweep("GELU", "Swish", factors=TWO)
    own = [sweeps.case(GridPoint("Swish", 16, s, 8), "mine", 0.1) for s in (256, 512)]
    document = sweeps.of(*both.results, *own)
    means = means_along(whole_sweep(document), "batch", document.roofs)
    assert (tuple(means.times), means.elsewhere) == (("PyTorch", "CUDA"), ("mine",))
    assert means.compared == 12
    swish = comparison_groups(document)[1]
    assert "mine" in means_along(swish, "sequence", document.roofs).times


def test_what_was_timed_nowhere_together_has_no_means() -> None:
    points = [GridPoint("GELU", 1, s, 8) for s in (1, 2)]
    apart = sweeps.of(sweeps.case(points[0], "PyTorch"), sweeps.case(points[1], "CUDA"))
    assert means_along(whole_sweep(apart), "sequence", apart.roofs).values == ()


def test_the_roof_is_the_least_time_of_the_same_shapes_where_the_device_was_measured() -> None:
    document = sweeps.sweep(factors=TWO)
    means = means_along(whole_sweep(document), "dimension", document.roofs)
    assert means.least is not None
    assert means.least[1] / means.least[0] == pytest.approx(8)  # 64 over 8: eight times the bytes
    assert means_along(whole_sweep(document), "dimension", MeasuredCeilings()).least is None


def test_words_are_axes_too_in_the_order_of_the_sweep() -> None:
    document = sweeps.sweep(factors=TWO, dtypes=("float32", "bfloat16"))
    assert varied_axes(whole_sweep(document)) == ("batch", "sequence", "dimension", "dtype")
    assert means_along(whole_sweep(document), "dtype", document.roofs).values == ("float32", "bfloat16")


def test_the_interval_of_a_mean_is_that_of_times_that_err_independently() -> None:
    document = sweeps.sweep("GELU", batches=(16, 32, 64, 128), sequences=(256,), half=0.04)
    means = means_along(whole_sweep(document), "dimension", document.roofs)
    assert means.compared == 4
    for widths in means.half_widths.values():
        assert widths == pytest.approx((0.02,) * 3)  # of four times half as much as of one


def test_a_mean_of_a_time_without_an_interval_has_none() -> None:
    document = sweeps.sweep("GELU")
    first, *others = document.results
    document = replace(document, results=(replace(first, half_width=None), *others))
    means = means_along(whole_sweep(document), "dimension", document.roofs)
    assert means.half_widths[first.implementation][0] is None
    assert None not in means.half_widths[first.implementation][1:]
