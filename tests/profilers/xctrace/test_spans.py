"""Sets of time against brute force: each ns of a short time asked one by one."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from profkit.profilers.xctrace.spans import (
    IntervalSet,
    longest_span,
    overlap_lengths,
    spans_of,
    union,
)

END = 40
intervals = st.lists(st.tuples(st.integers(0, END), st.integers(0, END)), max_size=12)
Pairs = list[tuple[int, int]]


def columns(pairs: Pairs) -> tuple[np.ndarray, np.ndarray]:
    table = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    return table[:, 0], table[:, 1]


def moments(pairs: Pairs) -> set[int]:
    """Each ns that one of the intervals covers, by the time at which it begins."""
    return {moment for begin, end in pairs for moment in range(begin, end)}


def moments_of(spans: IntervalSet) -> set[int]:
    return moments(list(zip(spans.begins.tolist(), spans.ends.tolist(), strict=True)))


def well_formed(spans: IntervalSet) -> bool:
    """In order, none empty, a gap before each but the first."""
    return bool((spans.ends > spans.begins).all() and (spans.begins[1:] > spans.ends[:-1]).all())


@given(intervals)
def test_a_union_holds_what_any_interval_holds_and_nothing_else(pairs: Pairs) -> None:
    made = union(*columns(pairs))
    assert moments_of(made) == moments(pairs)
    assert well_formed(made)
    assert made.total == len(moments(pairs))
    assert made.holds(np.arange(END)).tolist() == [moment in moments(pairs) for moment in range(END)]


@given(intervals, intervals)
def test_sets_are_combined_as_sets(one: Pairs, other: Pairs) -> None:
    left, right = spans_of(one), spans_of(other)
    for made, expected in (
        (left & right, moments(one) & moments(other)),
        (left - right, moments(one) - moments(other)),
        (left | right, moments(one) | moments(other)),
    ):
        assert moments_of(made) == expected
        assert well_formed(made)


@given(intervals, intervals)
def test_an_interval_is_cut_at_the_edges_of_what_counts(pairs: Pairs, bounds: Pairs) -> None:
    within = moments(bounds)
    parts = overlap_lengths(*columns(pairs), spans_of(bounds)).tolist()
    assert parts == [len(moments([pair]) & within) for pair in pairs]


def test_gaps_end_with_what_counts() -> None:
    busy, within = spans_of([(0, 2), (5, 6), (90, 95)]), spans_of([(1, 10), (20, 30)])
    assert moments_of(within - busy) == {*range(2, 5), *range(6, 10), *range(20, 30)}
    assert longest_span(within - busy) == 10
    assert longest_span(spans_of([])) == 0


def test_an_empty_set_has_no_extent() -> None:
    assert spans_of([]).extent is None
    assert spans_of([(7, 7)]).total == 0
    assert spans_of([(9, 4), (3, 8)]).extent == (3, 8)
