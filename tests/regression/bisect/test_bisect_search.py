"""The search for the commit that changed a time, simulated: wrong tests, probabilities that hold, several parts."""

from __future__ import annotations

import random
from collections.abc import Sequence
from math import log

import pytest

from profkit.core.types.comparison import CERTAINTY
from profkit.regression.bisect.search import Found, Move, Observation, next_move, stretches

FLOOR = log(1.02)
NOBODY: frozenset[int] = frozenset()
SLOWER = log(1.2)


def one_step(n: int, change: int, size: float = SLOWER) -> list[float]:
    return [size if commit >= change else 0.0 for commit in range(n + 1)]


def observe(
    levels: Sequence[float], move: Move, draw: random.Random, error: float, wrong: float
) -> Observation:
    """A test of commits with these levels; a wrong one says what would be true had the change been elsewhere."""
    true, whole = levels[move.later] - levels[move.earlier], levels[-1]
    if draw.random() < wrong:
        true = whole - true
    error = min(error, move.error or error)
    return Observation(move.earlier, move.later, true + draw.gauss(0, error), error)


def search(
    levels: Sequence[float],
    seed: int,
    wrong: float = 0.0,
    error: float = 0.01,
    skipped: frozenset[int] = NOBODY,
) -> tuple[tuple[Found, ...], list[Observation]]:
    draw, n = random.Random(seed), len(levels) - 1
    seen = [Observation(0, n, levels[-1] + draw.gauss(0, error / 2), error / 2)]
    while isinstance(move := next_move(n, skipped, seen, FLOOR), Move):
        assert not {move.earlier, move.later} & skipped
        seen.append(observe(levels, move, draw, error, wrong))
    return move, seen


@pytest.mark.parametrize(
    ("wrong", "size", "least", "tests"),
    [
        (0.0, SLOWER, 100, 8),
        (0.02, SLOWER, 98, 8.5),
        (0.02, log(1.06), 96, 11),
        (0.1, SLOWER, 90, 13),  # more than is allowed for
    ],
)
def test_the_commit_is_found_though_some_tests_are_wrong(
    wrong: float, size: float, least: int, tests: float
) -> None:
    draw, right, said, made = random.Random(3), 0, 0.0, 0
    for seed in range(100):
        change = draw.randint(1, 20)
        found, seen = search(one_step(20, change, size), seed, wrong)
        right += [(one.high, one.rest) for one in found] == [(change, False)]
        said += found[0].probability
        made += len(seen)
    assert right >= least
    assert said / 100 >= 0.95
    assert made / 100 <= tests


def test_the_probability_of_a_commit_is_how_often_it_was_that_one() -> None:
    """Of all states that a search goes through: those in which the likeliest commit has 10 to 20 %, 20 to 30 %, ..."""
    draw = random.Random(5)
    told: dict[int, list[tuple[float, bool]]] = {}
    for seed in range(200):
        change = draw.randint(1, 12)
        _, seen = search(one_step(12, change), 1000 + seed, error=0.07)  # a test decides little
        for count in range(1, len(seen)):
            whole = stretches(12, NOBODY, seen[:count], FLOOR)
            weights = whole[0].weights
            if len(whole) == 1:
                likeliest = max(range(12), key=weights.__getitem__)
                tenth = int(10 * weights[likeliest])
                told.setdefault(tenth, []).append((weights[likeliest], likeliest + 1 == change))
    frequent = {tenth: rows for tenth, rows in told.items() if len(rows) >= 20}
    assert frequent.keys() >= {1, 3, 5, 7, 9}
    for rows in frequent.values():
        stated = sum(p for p, _ in rows) / len(rows)
        true = sum(hit for _, hit in rows) / len(rows)
        assert stated - 0.05 <= true <= stated + 0.2  # a doubt is kept, though no test here is wrong


@pytest.mark.parametrize(
    ("places", "part", "error", "wrong", "least"),
    [
        ((7, 14), SLOWER / 2, 0.01, 0.0, 20),
        ((7, 14), SLOWER / 2, 0.01, 0.1, 18),
        ((4, 9, 14), log(1.05), 0.01, 0.0, 18),
        ((4, 12), log(1.05), 0.03, 0.0, 8),  # the noise of a test nearly hides it
    ],
)
def test_changes_in_several_commits_are_found_as_parts(
    places: tuple[int, ...], part: float, error: float, wrong: float, least: int
) -> None:
    levels = [part * sum(commit >= place for place in places) for commit in range(21)]
    found = [search(levels, seed, wrong, error)[0] for seed in range(20)]
    assert sum([(o.high, o.rest) for o in one] == [(p, False) for p in places] for one in found) >= least


def test_a_change_that_creeps_in_is_given_to_no_single_commit() -> None:
    levels = [commit * log(1.2) / 40 for commit in range(41)]
    for seed in range(2):
        found, seen = search(levels, seed, error=0.004)
        assert all(one.rest for one in found)
        assert sum(one.size for one in found) == pytest.approx(log(1.2), abs=0.02)
        assert len(seen) < 120


def test_commits_that_do_not_run_are_named_together() -> None:
    skipped = frozenset({9, 10})
    for change in (9, 10, 11):
        (found,), _ = search(one_step(20, change), change, skipped=skipped)
        assert (found.low, found.high, found.rest) == (8, 11, False)
    (found,), _ = search(one_step(20, 12), 0, skipped=skipped)
    assert (found.low, found.high) == (11, 12)
    (found,), _ = search(one_step(5, 2), 0, skipped=frozenset({1, 2, 3, 4}))
    assert (found.low, found.high) == (0, 5)


def test_the_answer_is_tested_against_the_commit_before_it() -> None:
    _, seen = search(one_step(20, 13), 4)
    assert (seen[-1].earlier, seen[-1].later) == (12, 13)
    refuted = [*seen[:-1], Observation(12, 13, 0.0, 0.01)]
    (stretch,) = stretches(20, NOBODY, refuted, FLOOR)
    assert stretch.weights[12] < CERTAINTY
    assert isinstance(next_move(20, NOBODY, refuted, FLOOR), Move)
