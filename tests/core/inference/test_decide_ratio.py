"""One decision for a ratio with its interval."""

from __future__ import annotations

import pytest

from profkit.core.inference import Interval, decide


@pytest.mark.parametrize(
    ("interval", "word"),
    [
        (Interval(1.1, 1.2, 1.3), "DIFFERENT"),
        (Interval(0.7, 0.8, 0.9), "DIFFERENT"),
        (Interval(1.001, 1.01, 1.02), "SAME"),
        (Interval(1 / 1.03, 1.0, 1.03), "SAME"),
        (Interval(1.001, 1.02, 1.04), "AMBIGUOUS"),  # surely more, and perhaps by less than counts
        (Interval(0.9, 1.2, 1.5), "AMBIGUOUS"),
        (Interval(0.6, 0.8, 1.0), "AMBIGUOUS"),
        (None, "AMBIGUOUS"),
    ],
)
def test_a_ratio_is_different_same_or_ambiguous_by_its_interval(interval: Interval | None, word: str) -> None:
    assert decide(interval, 0.03) == word
