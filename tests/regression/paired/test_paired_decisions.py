"""The interleaved re-run: three words, an error that is spent, and what wild rounds may do."""

import random
from dataclasses import replace

import pytest

from profkit.regression.detection.rules import NightRule, rule_for
from profkit.regression.paired.interleave import _alpha_share, confirm, rounds_of_looks

RULE = rule_for("time.median")


def rounds(count: int, ratio: float, sigma: float, seed: int = 0) -> list[tuple[float, float]]:
    rng = random.Random(seed)
    return [(ratio * (1 + rng.gauss(0, sigma)), 1 + rng.gauss(0, sigma)) for _ in range(count)]


def to_the_end(ratio: float, sigma: float, seed: int, rule: NightRule = RULE) -> tuple[str, int]:
    all_rounds = rounds(20, ratio, sigma, seed)
    told = confirm([], rule)
    while told.word == "more":
        told = confirm(all_rounds[: told.wanted], rule)
    return told.word, told.rounds


def test_it_asks_for_four_rounds_and_then_for_half_as_many_again() -> None:
    assert rounds_of_looks(20) == (4, 6, 9, 14, 20)
    assert rounds_of_looks(3) == (3,)
    told = confirm(rounds(4, 1.05, 0.05), RULE)
    assert (told.word, told.wanted) == ("more", 6)


def test_what_all_looks_spend_adds_up() -> None:
    assert sum(_alpha_share(n, 20) for n in rounds_of_looks(20)) == pytest.approx(1)
    assert sum(_alpha_share(n, 5) for n in rounds_of_looks(5)) == pytest.approx(1)


def test_the_same_code_is_hardly_ever_called_different() -> None:
    no_floor = replace(RULE, relative=1e-9, absolute=0.0)
    words = [to_the_end(1.0, 0.02, seed, no_floor)[0] for seed in range(600)]
    assert 2 <= words.count("different") <= 20  # 2 % of 600 are 12
    words = [to_the_end(1.0, 0.01, seed)[0] for seed in range(300)]
    assert (words.count("different"), words.count("same") > 280) == (0, True)


def test_five_per_cent_are_found_in_noise_of_one_and_in_few_rounds() -> None:
    told = [to_the_end(1.05, 0.01, seed) for seed in range(200)]
    assert sum(word == "different" for word, _ in told) >= 198
    assert sorted(n for _, n in told)[100] <= 9


def test_one_wild_round_of_nine_does_not_hide_a_change() -> None:
    wild = rounds(9, 1.08, 0.004)
    wild[3] = (1.9, 1.0)
    assert confirm(wild, RULE).word == "different"


def test_values_of_zero_are_compared_by_their_difference() -> None:
    rule = NightRule("launch.count", absolute=1)
    assert confirm([(5.0, 0.0)] * 4, rule).word == "different"
    assert confirm([(0.0, 0.0)] * 4, rule).word == "same"
    told = confirm([(5.0, 0.0)] * 4, rule)
    assert told.change is not None
    assert told.change.ratio is None


def test_an_interval_of_times_never_falls_below_nothing_and_is_wider_upwards() -> None:
    told = confirm([(3.0, 1.0), (1.0, 3.0), (2.0, 1.0), (1.0, 2.1)], RULE, spent=True)
    assert told.change is not None
    assert told.change.low is not None
    assert told.change.high is not None
    assert 0 < told.change.low < 1 < told.change.high
    assert told.change.low * told.change.high == pytest.approx((told.change.ratio or 0) ** 2)
