"""An unpooling has one right result: no place of a plane gets two values."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

import torch

from profkit.kernels.evaluation.judging.trial import separate_places

unpool = torch.ops.aten.max_unpool2d.default


def test_a_place_that_comes_twice_becomes_a_free_one_in_its_own_plane() -> None:
    places = torch.tensor([[[0, 5], [5, 3]], [[1, 2], [3, 4]], [[7, 7], [7, 7]]])
    assert separate_places(unpool, ((torch.randn(3, 2, 2), places, [2, 4]), {}))
    assert places.tolist() == [[[0, 5], [1, 3]], [[1, 2], [3, 4]], [[7, 0], [1, 2]]]


def test_a_plane_with_fewer_places_than_values_has_none_of_its_own_for_each() -> None:
    arguments = (torch.randn(1, 2, 2), torch.zeros(1, 2, 2, dtype=torch.int64), [1, 3])
    assert not separate_places(unpool, (arguments, {}))
