"""Corrections for many looks, against the examples of their authors and by simulation."""

from __future__ import annotations

import random

import pytest

from profkit.core.inference import benjamini_hochberg, coverage_of_selected

# The fifteen p-values of Benjamini and Hochberg's own example (1995, section 3.2): four are rejected at 0.05.
THEIRS = (
    0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344,
    0.0459, 0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1.0000,
)  # fmt: skip


def test_the_example_of_the_authors_rejects_four() -> None:
    assert [p <= 0.05 for p in benjamini_hochberg(THEIRS)] == [True] * 4 + [False] * 11


def test_adjusted_values_keep_their_order_and_their_place() -> None:
    shuffled = list(THEIRS)
    random.Random(1).shuffle(shuffled)
    adjusted = dict(zip(shuffled, benjamini_hochberg(shuffled), strict=True))
    assert [adjusted[p] for p in THEIRS] == sorted(adjusted.values())
    assert adjusted[0.0001] == pytest.approx(0.0015)
    assert adjusted[0.0095] == pytest.approx(0.0095 * 15 / 4)


def test_nothing_looked_at_gives_nothing_and_what_is_no_p_is_refused() -> None:
    assert benjamini_hochberg(()) == ()
    with pytest.raises(ValueError):
        benjamini_hochberg((0.1, float("nan")))


def test_of_what_is_called_different_no_more_than_a_twentieth_is_false() -> None:
    source, shares = random.Random(2), []
    for _ in range(400):
        p = [source.random() * (1e-4 if place < 10 else 1.0) for place in range(40)]
        called = [place for place, value in enumerate(benjamini_hochberg(p)) if value <= 0.05]
        shares.append(sum(place >= 10 for place in called) / max(1, len(called)))
    assert sum(shares) / len(shares) <= 0.05


def test_intervals_of_what_was_selected_are_wider() -> None:
    assert coverage_of_selected(1, 1) == 0.95
    assert coverage_of_selected(1, 10) == pytest.approx(0.995)
    assert coverage_of_selected(10, 10) == pytest.approx(0.95)
    assert coverage_of_selected(0, 10) == pytest.approx(0.995)
