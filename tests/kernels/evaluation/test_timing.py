"""Fresh values stay in their domain, and the words of a speed-up follow from its interval."""

from __future__ import annotations

import math
import os
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest

pytest.importorskip("torch")

import torch

from profkit.kernels.evaluation.candidate.arguments import Encoder, decode
from profkit.kernels.evaluation.judging.fresh_values import FreshValues, choose_values
from profkit.kernels.evaluation.judging.judge import Judge
from profkit.kernels.evaluation.judging.pairs import (
    Pair,
    PairedBatches,
    find_speedup,
    speed_word,
    undisturbed,
)
from profkit.kernels.evaluation.request import WAIT_POLICY, PairOptions
from profkit.kernels.evaluation.run import judge_command


@pytest.mark.parametrize(
    ("value", "low", "high", "word"),
    [
        (1.0, 0.97, 1.03, "SAME"),
        (1.04, 1.02, 1.049, "SAME"),
        (1.5, 1.2, 1.8, "FASTER"),
        (1.04, 1.01, 1.08, "AMBIGUOUS"),
        (1.5, 0.9, 2.0, "AMBIGUOUS"),
        (0.5, 0.4, 0.6, "SLOWER"),
        (0.97, 0.93, 0.99, "AMBIGUOUS"),
    ],
)
def test_the_word_follows_from_the_interval(value: float, low: float, high: float, word: str) -> None:
    assert speed_word(value, low, high, 0.05) == word


def test_fresh_values_differ_in_every_number_and_keep_sign_range_and_indices() -> None:
    x, index = torch.randn(300, 300), torch.randint(0, 300, (50,))
    encoder = Encoder()
    recipe = encoder.encode((x, index), {})
    fresh = FreshValues(encoder, recipe)
    storages = [torch.empty_like(content) for content in encoder.contents]
    seen = []
    for _ in range(2):
        fresh.write(storages)
        (first, second), _ = decode(recipe.body, storages)
        assert torch.equal(second, index)
        assert torch.equal(first.sign(), x.sign())
        assert bool((first.abs() <= x.abs()).all())
        assert bool((first.abs() >= 0.87 * x.abs()).all())
        seen.append(first.clone())
    assert float((seen[0] == seen[1]).float().mean()) < 0.01


def test_whole_numbers_alone_change_their_places() -> None:
    x = torch.randperm(1000)
    fresh = write_fresh(x)
    assert not torch.equal(fresh, x)
    assert torch.equal(fresh.sort().values, x.sort().values)
    fresh = write_fresh(x, strong=True)
    assert int(fresh.sum()) != int(x.sum())
    assert set(fresh.tolist()) <= set(x.tolist())


def test_what_is_sorted_stays_sorted() -> None:
    x = torch.linspace(-3, 7, 50).repeat(4, 1)
    fresh = write_fresh(x)
    assert not torch.equal(fresh, x)
    assert bool((fresh.diff(dim=-1) >= 0).all())


@pytest.mark.parametrize("shape", [(1024, 1024), (1100, 2000)])
def test_no_part_of_a_large_tensor_has_the_same_values_again(shape: tuple[int, int]) -> None:
    encoder = Encoder()
    recipe = encoder.encode((torch.ones(shape),), {})
    fresh, (storage,) = FreshValues(encoder, recipe), [torch.empty_like(each) for each in encoder.contents]
    seen = set()
    for _ in range(12):
        fresh.write([storage])
        seen.add(storage[:8].numpy().tobytes())
    assert len(seen) == 12


@pytest.mark.parametrize(
    ("operation", "x", "chosen"),
    [
        (torch.sin, torch.randn(50), "weak"),
        (torch.sign, torch.randn(50), "strong"),
        (torch.sum, torch.randint(0, 99, (50,)), "strong"),
        (torch.linalg.cholesky, torch.eye(8) * 3 + torch.ones(8, 8), "weak"),
        (torch.zeros_like, torch.randn(50), "none"),
    ],
)
def test_values_are_chosen_so_that_the_result_changes(operation: Any, x: torch.Tensor, chosen: str) -> None:
    encoder = Encoder()
    recipe = encoder.encode((x,), {})
    values = choose_values(encoder, recipe, lambda contents: [operation(*decode(recipe.body, contents)[0])])
    assert (chosen == "none") == (values is None)
    assert values is None or values._strong == (chosen == "strong")


def write_fresh(x: torch.Tensor, *, strong: bool = False) -> torch.Tensor:
    encoder = Encoder()
    recipe = encoder.encode((x,), {})
    storages = [torch.empty_like(content) for content in encoder.contents]
    FreshValues(encoder, recipe, strong=strong).write(storages)
    (x,), _ = decode(recipe.body, storages)
    return x


def test_pairs_in_which_a_process_waited_are_left_out_while_enough_others_are_there() -> None:
    quiet = [Pair(number, 1.0, 1.0, waited=False) for number in range(6)]
    disturbed = [Pair(number, 9.0, 1.0, waited=True) for number in range(6)]
    assert list(undisturbed([*disturbed, *quiet])) == quiet
    assert len(undisturbed([*disturbed, *quiet[:3]])) == 9


def test_a_round_is_one_answer_however_many_pairs_it_has() -> None:
    lucky = [Pair(0, 1.2, 1.0, waited=False)] * 100
    others = [Pair(number, 1.0, 1.0, waited=False) for number in range(1, 7)]
    speedup = find_speedup([*lucky, *others], PairOptions())
    assert (speedup.median, speedup.word, speedup.pairs) == (1.0, "AMBIGUOUS", 106)
    assert speedup.high == pytest.approx(1.2**0.5)


def test_faster_is_what_a_thousand_equal_pairs_would_hardly_show() -> None:
    def word(*ratios: float) -> str:
        pairs = [Pair(number, ratio, 1.0, waited=False) for number, ratio in enumerate(ratios)]
        return find_speedup(pairs, PairOptions()).word

    assert word(*[1.5, 1.6] * 6) == "FASTER"
    assert word(*[0.6, 0.7] * 6) == "SLOWER"
    assert word(*[1.5, 1.6] * 3) == "FASTER"  # so few are enough where each of them is beyond the floor
    assert word(1.03, *[1.5, 1.6] * 3) == "AMBIGUOUS"
    assert word(*[0.95, 1.3, 1.4, 1.2] * 4) == "AMBIGUOUS"
    assert word(*[1.02, 0.98] * 6) == "SAME"
    assert word(*[1.0] * 5) == "AMBIGUOUS"


def test_each_process_is_first_and_written_first_once_in_two_pairs() -> None:
    bench, seen = PairedBatches.__new__(PairedBatches), []
    bench._secret, bench._both = random.SystemRandom(), ("reference", "candidate")  # type: ignore[assignment]

    def run_pair(number: int, written: Sequence[Any], run: Sequence[Any]) -> Pair:
        seen.append((*written, *run))
        return Pair(number, 1.0, 1.0, waited=len(seen) == 1)

    bench._run_pair = run_pair  # type: ignore[method-assign]
    pairs = bench.run_pairs(3)
    assert [pair.waited for pair in pairs] == [True, True]
    assert seen[1] == (*seen[0][1::-1], *seen[0][:1:-1])


@pytest.mark.parametrize("first", [0.9, 1.3])
@pytest.mark.parametrize("slow", [1.0, 1.04, 2.0])
def test_exchanged_roles_give_the_reciprocal_whoever_is_first_and_whose_empty_batch_was_slow(
    monkeypatch: pytest.MonkeyPatch, first: float, slow: float
) -> None:
    normal, exchanged = (
        made_up_speedup(monkeypatch, first, slow, 1),
        made_up_speedup(monkeypatch, first, 1, slow),
    )
    assert normal * exchanged == pytest.approx(1)
    assert slow > 1 or normal == pytest.approx(1)


def made_up_speedup(
    monkeypatch: pytest.MonkeyPatch, first: float, reference: float, candidate: float
) -> float:
    """Of processes that take so many times 3 ms, who runs first `first` times that; one is slow to do nothing."""
    bench = PairedBatches.__new__(PairedBatches)
    seconds: dict[Any, float] = {}
    bench._reference, bench._candidate = bench._both = (MagicMock(), MagicMock())
    bench._secret, bench._gated, bench._count, bench._outputs = random.SystemRandom(), True, 1, 1
    bench._empty, bench._staged, bench._kept = math.inf, torch.zeros(1), []
    bench._fresh, bench._recipe, bench._staged_slots = MagicMock(), MagicMock(), [[]]
    bench._slots = {each: [[]] for each in bench._both}
    bench._watches = {each: MagicMock(longest_wait=lambda _: 0.0) for each in bench._both}
    bench.whole = {each: [] for each in bench._both}
    bench._launched = dict.fromkeys(bench._both, ())
    for each in bench._both:
        each.cpu_seconds.return_value = 0.0

    def launch(run: Sequence[Any]) -> None:
        own = {bench._reference: reference, bench._candidate: candidate}
        seconds.update({each: 1e-3 + 3e-3 * own[each] * (first if each is run[0] else 1) for each in run})

    for name, value in {
        "_lay_out": lambda _: None,
        "_stage": lambda: None,
        "_empty_batch_seconds": lambda each: 1e-3 if each is bench._reference else 1.015e-3,
        "_launch": launch,
        "_run_launched": seconds.__getitem__,
    }.items():
        monkeypatch.setattr(bench, name, value)
    bench.renew(pinned=False)
    pairs = [pair for number in range(8) for pair in bench.run_pairs(number)]
    return find_speedup(pairs, PairOptions()).median


@pytest.mark.parametrize("kind", ["weak", "strong", "sorted", "whole"])
def test_values_of_many_calls_at_once_are_as_fresh_as_those_of_one(kind: str) -> None:
    x = torch.linspace(-3, 7, 50) if kind == "sorted" else torch.randn(30, 40).half()
    x = torch.randperm(500) if kind == "whole" else x
    y = torch.randn(7, dtype=torch.complex64)
    index = torch.randint(0, 9, (11,))
    encoder = Encoder()
    recipe = encoder.encode((x, index) if kind == "whole" else (x, y, index, torch.empty(0)), {})
    region = torch.full((20 * recipe.slot_bytes,), 77, dtype=torch.uint8)
    FreshValues(encoder, recipe, strong=kind == "strong").write_rows(region, recipe)
    seen = set()
    for begin in range(0, region.numel(), recipe.slot_bytes):
        slot = [
            region[begin + at :][:size].clone()
            for at, size in zip(recipe.storages, recipe.sizes, strict=True)
        ]
        (first, *others), _ = decode(recipe.body, slot)
        seen.add(slot[0].numpy().tobytes())
        if kind == "whole":
            assert torch.equal(first.sort().values, x.sort().values)
            continue
        second, third, empty = others
        assert kind == "strong" or bool((second.abs() <= y.abs()).all())
        assert torch.equal(third, index)
        assert not empty.numel()
        if kind == "sorted":
            assert bool((first.diff() >= 0).all())
        if kind == "weak":
            assert torch.equal(first.sign(), x.sign())
            assert bool((first.abs() >= 0.87 * x.abs()).all())
    assert len(seen) > (10 if kind == "whole" else 19)


def test_threads_of_the_judge_wait_asleep_and_those_of_kernels_as_the_user_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(WAIT_POLICY, raising=False)
    command = judge_command(tmp_path, {})
    assert command.env == {WAIT_POLICY: "passive"}
    monkeypatch.setenv(WAIT_POLICY, "passive")  # as in the judge's process
    Judge(*command.arguments)
    assert WAIT_POLICY not in os.environ
    monkeypatch.setenv(WAIT_POLICY, "active")
    command = judge_command(tmp_path, {})
    assert command.env == {}
    Judge(*command.arguments)
    assert os.environ[WAIT_POLICY] == "active"
