"""Fresh values stay in their domain, and the words of a speed-up follow from its interval."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

import torch

from profkit.kernels.evaluation.candidate.arguments import Encoder, decode
from profkit.kernels.evaluation.timing import FreshValues, _Pair, _undisturbed, speed_word


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
    fresh = FreshValues(encoder, recipe, seed=1)
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
    x = torch.arange(1000)
    encoder = Encoder()
    recipe = encoder.encode((x,), {})
    fresh = FreshValues(encoder, recipe, seed=1)
    storages = [torch.empty_like(content) for content in encoder.contents]
    fresh.write(storages)
    ((moved,), _) = decode(recipe.body, storages)
    assert not torch.equal(moved, x)
    assert torch.equal(moved.sort().values, x)


def test_pairs_in_which_a_process_waited_are_left_out_while_enough_others_are_there() -> None:
    quiet, disturbed = [_Pair(1.0, 1.0, False)] * 8, [_Pair(9.0, 1.0, True)] * 5
    assert list(_undisturbed([*disturbed, *quiet])) == quiet
    assert len(_undisturbed([*disturbed, *quiet[:3]])) == 8
