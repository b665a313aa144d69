"""A set of time slice by slice: nothing of it is lost, and nothing is added."""

from __future__ import annotations

import pytest

from profkit.analysis.timeline.spans import empty_spans, slice_shares, slice_states, spans_of


def test_each_slice_has_its_part_of_the_set() -> None:
    busy = spans_of([(0, 50), (150, 200), (250, 400)])
    assert slice_shares(busy, 0, 400, 4) == (0.5, 0.5, 0.5, 1.0)
    assert slice_shares(busy, 300, 300, 4) == ()
    assert slice_shares(empty_spans(), 0, 400, 2) == (0.0, 0.0)


def test_all_slices_together_are_the_set() -> None:
    busy = spans_of([(3, 11), (40, 977), (1003, 1004)])
    told = slice_shares(busy, 0, 1009, 120)
    assert sum(told) / 120 * 1009 == pytest.approx(busy.total, rel=0.02)


def test_the_state_of_a_slice_is_that_of_most_of_it_and_none_where_none_is_told() -> None:
    named = {"Minimum": spans_of([(0, 130)]), "Maximum": spans_of([(130, 300)])}
    assert slice_states(named, 0, 400, 4) == ("Minimum", "Maximum", "Maximum", "")
    assert slice_states({}, 0, 400, 4) == ()
    assert slice_states(named, 400, 400, 4) == ()
