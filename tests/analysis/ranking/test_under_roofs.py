"""Cases by what they reach of the roofline."""

from __future__ import annotations

from dataclasses import replace

import pytest

from profkit.analysis.ranking.grid import efficiency_by_traffic, roofline_points
from profkit.core.types import GridPoint, MeasuredCeilings
from tests import sweep_documents as sweeps


def test_a_size_has_the_median_share_of_each_implementation() -> None:
    """8 bytes per element at 1 TB/s: 1.024 µs of 128 Ki elements at the least, whoever does it."""
    points = [GridPoint("GELU", 128, 256, d) for d in (4, 4, 5)]
    cases = [replace(sweeps.case(p, "A"), median=1e-5 * (n + 1)) for n, p in enumerate(points)]
    (size,) = efficiency_by_traffic(sweeps.of(*cases, sweeps.case(points[0], "B", 2.0)))
    assert size.low <= 8 * 128 * 256 * 4 < size.high
    assert size.shares["A"] == pytest.approx(8 * 128 * 256 * 4 / 1e12 / 2e-5)
    assert set(size.shares) == {"A", "B"}


def test_sizes_come_in_their_order() -> None:
    sizes = efficiency_by_traffic(sweeps.sweep(dimensions=(512, 8, 64)))
    assert [size.low for size in sizes] == sorted(size.low for size in sizes)
    assert len(sizes) > 2


def test_without_roofs_or_times_there_is_no_share() -> None:
    document = sweeps.sweep()
    assert efficiency_by_traffic(replace(document, roofs=MeasuredCeilings())) == ()
    assert efficiency_by_traffic(sweeps.odd()["nothing measured"]) == ()
    assert roofline_points(sweeps.odd()["nothing measured"]) == {}


def test_a_case_has_its_place_by_its_declared_work() -> None:
    case = sweeps.case(GridPoint("GELU", 1, 1, 1000), "A")
    assert case.flops
    assert case.bytes
    assert case.median
    (place,) = roofline_points(sweeps.of(case))["A"]
    assert place == pytest.approx((case.flops / case.bytes, case.flops / case.median))
