"""Pairs of runs: their order, when they end, and what is taken out, with runs that are made up."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from profkit.core.errors import Silent, WorkloadError
from profkit.core.pairs import _alpha_share, confirm, rounds_of_looks
from profkit.core.types import RUN, Scope
from profkit.profiling.plain_run import OneRun
from profkit.regression.detection.rules import NightRule, rule_for
from profkit.regression.paired import interleave
from profkit.regression.paired.checkout import Version
from profkit.regression.paired.interleave import PairedOptions, PairedResult, PairedRuns
from tests.spoken import spoken_lines

Runs = Callable[[str], OneRun]


def process(seconds: float, waited: float | None = 0.0, rss: int | None = None) -> OneRun:
    """A run of an unmarked program whose own work takes `seconds`."""
    return OneRun({RUN: seconds + (waited or 0.0)}, seconds + (waited or 0.0), waited, rss, False)


@pytest.fixture
def in_pairs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[Callable[..., tuple[PairedResult, list[str]]]]:
    """Run pairs of `old` and `new`, whose runs `make` gives by their name; the result, and the order of the runs."""
    order: list[str] = []

    def run(make: Runs, **options: object) -> tuple[PairedResult, list[str]]:
        order.clear()

        def run_once(version: Version, *_: object) -> OneRun:
            order.append(version.name)
            return make(version.name)

        monkeypatch.setattr(interleave, "run_once", run_once)
        old, new = Version("old", ("x",), tmp_path), Version("new", ("x",), tmp_path)
        usual = {"budget": 5.0, "most": 40, "seed": 1, "counts": "never", **options}
        paired = PairedOptions(**usual)  # type: ignore[arg-type]
        return PairedRuns(old, new, paired, tmp_path, Silent()).run(), order

    return run


def noisy(factor: float, sigma: float, seed: int = 0) -> Runs:
    """Runs of a tenth of a second with noise, the new ones longer by `factor`."""
    draw = random.Random(seed)
    return lambda name: process(0.1 * (factor if name == "new" else 1.0) * draw.lognormvariate(0, sigma))


def test_a_slower_version_is_different_and_worse(
    in_pairs: Callable[..., tuple[PairedResult, list[str]]],
) -> None:
    result, _ = in_pairs(noisy(1.2, 0.01))
    (change,) = result.changes
    assert (change.word, change.course) == ("different", "worse")
    assert change.ratio == pytest.approx(1.2, abs=0.02)
    assert result.pairing.pairs < 10  # a fifth is seen at once


def test_waiting_for_a_processor_is_taken_out_of_every_run(
    in_pairs: Callable[..., tuple[PairedResult, list[str]]],
) -> None:
    """Beside a neighbour a run takes up to three times as long; its own work says the same in four pairs."""
    draw = random.Random(3)
    own = noisy(1.2, 0.005)

    def make(name: str) -> OneRun:
        return process(own(name).wall, waited=draw.uniform(0, 0.2))

    result, _ = in_pairs(make)
    assert result.changes[0].ratio == pytest.approx(1.2, abs=0.02)
    assert result.pairing.waited == pytest.approx(0.5, abs=0.15)


def test_a_version_that_fails_ends_the_pairs(
    in_pairs: Callable[..., tuple[PairedResult, list[str]]],
) -> None:
    calls = itertools.count()

    def make(name: str) -> OneRun:
        if next(calls) == 6:
            raise WorkloadError(f"{name} exited with 1")
        return noisy(1.2, 0.01)(name)

    with pytest.raises(WorkloadError):
        in_pairs(make, floor=0.15)


def test_ctrl_c_keeps_what_there_is(in_pairs: Callable[..., tuple[PairedResult, list[str]]]) -> None:
    calls, own = itertools.count(), noisy(1.3, 0.01)

    def make(name: str) -> OneRun:
        if next(calls) == 11:
            raise KeyboardInterrupt
        return own(name)

    result, _ = in_pairs(make, floor=0.28)
    assert result.interrupted
    assert result.pairing.pairs == 5
    assert result.changes[0].ratio == pytest.approx(1.3, abs=0.05)


def test_each_of_several_regions_is_decided_and_one_that_only_one_version_has_is_named(
    in_pairs: Callable[..., tuple[PairedResult, list[str]]],
) -> None:
    draw = random.Random(5)

    def make(name: str) -> OneRun:
        times = {Scope("region", "load"): 0.1 * draw.lognormvariate(0, 0.005)}
        times[Scope("region", "parse")] = (0.15 if name == "new" else 0.1) * draw.lognormvariate(0, 0.005)
        if name == "new":
            times[Scope("region", "extra")] = 1.0
        return OneRun(times, 1.0, None, None, True)

    result, _ = in_pairs(make)
    words = {change.scope.name: change.word for change in result.changes}
    assert words == {"load": "same", "parse": "different"}
    assert any("extra" in note for note in spoken_lines(result.notes))


def test_equal_versions_are_called_different_in_fewer_than_two_of_a_hundred(
    in_pairs: Callable[..., tuple[PairedResult, list[str]]],
) -> None:
    """However often it is looked at: with noise that has a heavy tail, and a floor of nothing."""
    wrong = 0
    for seed in range(100):
        draw = random.Random(seed)

        def make(name: str, draw: random.Random = draw) -> OneRun:
            return process(0.1 * (1 + draw.expovariate(30)))

        result, _ = in_pairs(make, floor=0.0, most=30, seed=seed)
        wrong += result.changes[0].word == "different"
    assert wrong <= 4  # 2 % are 2; more than 4 of 100 are less likely than 1 in 20


# ---------------------------------------------------------------- the word on pairs


RULE = rule_for("time.median")


def rounds(count: int, ratio: float, sigma: float, seed: int = 0) -> list[tuple[float, float]]:
    rng = random.Random(seed)
    return [(ratio * (1 + rng.gauss(0, sigma)), 1 + rng.gauss(0, sigma)) for _ in range(count)]


def to_the_end(ratio: float, sigma: float, seed: int, rule: NightRule = RULE) -> tuple[str, int]:
    all_rounds = rounds(20, ratio, sigma, seed)
    looks = (confirm(all_rounds[:count], rule) for count in rounds_of_looks(20))
    for count, told in zip(rounds_of_looks(20), looks, strict=True):
        if told is not None and told.word != "ambiguous":
            return told.word, count
    return "ambiguous", 20


def test_what_all_looks_spend_adds_up() -> None:
    assert sum(_alpha_share(n, 20) for n in rounds_of_looks(20)) == pytest.approx(1)
    assert sum(_alpha_share(n, 5) for n in rounds_of_looks(5)) == pytest.approx(1)
