"""One decision for a change with its interval."""

from __future__ import annotations

import pytest

from profkit.core.inference import Interval, course_of, decide

SAME, DIFFERENT, AMBIGUOUS = "same", "different", "ambiguous"


@pytest.mark.parametrize(
    ("interval", "word", "by_middle"),
    [
        (Interval(1.1, 1.2, 1.3), DIFFERENT, DIFFERENT),
        (Interval(0.7, 0.8, 0.9), DIFFERENT, DIFFERENT),
        (Interval(1.001, 1.01, 1.02), SAME, SAME),
        (Interval(1 / 1.03, 1.0, 1.03), SAME, SAME),
        (Interval(1.001, 1.02, 1.04), AMBIGUOUS, AMBIGUOUS),  # surely more, and perhaps by less than counts
        (Interval(1.01, 1.05, 1.09), AMBIGUOUS, DIFFERENT),
        (Interval(0.9, 1.2, 1.5), AMBIGUOUS, AMBIGUOUS),
        (Interval(0.6, 0.8, 1.0), AMBIGUOUS, AMBIGUOUS),
        (None, AMBIGUOUS, AMBIGUOUS),
    ],
)
def test_a_ratio_is_different_same_or_ambiguous(interval: Interval | None, word: str, by_middle: str) -> None:
    assert decide(interval, 0.03) == word
    assert decide(interval, 0.03, by_middle=True) == by_middle


@pytest.mark.parametrize(
    ("interval", "word"),
    [
        (Interval(3.1, 4, 5), DIFFERENT),
        (Interval(-5, -4, -3.1), DIFFERENT),
        (Interval(-3, 0, 3), SAME),
        (Interval(-1, 2, 4), AMBIGUOUS),
    ],
)
def test_so_is_a_difference(interval: Interval, word: str) -> None:
    assert decide(interval, 3.0, around=0) == word


def test_the_course_follows_what_is_good_for_the_metric() -> None:
    assert [course_of(1, 2, better) for better in ("lower", "higher", "none")] == [
        "worse",
        "better",
        "neither",
    ]
    assert course_of(2, 2, "lower") == "neither"
