"""Arguments reach another process as they are: strides, offsets and shared storages too."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest

pytest.importorskip("torch")

import torch

from profkit.kernels.evaluation.candidate.arguments import Encoder, NotPortable, decode, storage_views
from profkit.kernels.evaluation.candidate.memory import JudgeMemory, KernelMemory


def through_arena(*args: Any, **kwargs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments as the other process makes them."""
    encoder = Encoder()
    recipe = encoder.encode(args, kwargs)
    memory = JudgeMemory(1 << 20)
    (fd,) = memory.inherited
    other = KernelMemory({"fd": os.dup(fd), "size": memory.size})
    for view, content in zip(storage_views(recipe, memory.bytes_at, 4096), encoder.contents, strict=True):
        view.copy_(content)
    return decode(json.loads(json.dumps(recipe.body)), storage_views(recipe, other.bytes_at, 4096))


def test_tensors_keep_their_strides_offsets_dtypes_and_values() -> None:
    base = torch.arange(60.0)
    tensors = (
        base[7:47].view(5, 8)[:, ::2],
        base.view(6, 10).t(),
        torch.tensor(3, dtype=torch.int64),
        torch.zeros(0, 4),
        torch.randn(3, dtype=torch.complex64),
        torch.ones(1, 3).expand(4, 3),
        torch.tensor([True, False]),
    )
    args, _ = through_arena(*tensors)
    for mine, other in zip(tensors, args, strict=True):
        assert torch.equal(mine, other)
        assert (mine.dtype, mine.stride(), mine.storage_offset()) == (
            other.dtype,
            other.stride(),
            other.storage_offset(),
        )


def test_tensors_that_share_memory_share_it_there_too() -> None:
    x = torch.zeros(10)
    (first, second), _ = through_arena(x[:5], x[3:])
    first[4] = 7.0
    assert float(second[1]) == 7.0


def test_values_that_json_has_no_word_for_arrive() -> None:
    args, kwargs = through_arena(
        [torch.ones(2), None],
        float("inf"),
        2 + 1j,
        (1, 2),
        dtype=torch.bfloat16,
        layout=torch.strided,
        device=torch.device("cpu"),
        memory_format=torch.channels_last,
        text="quotes ' \" and <script>",
        flag=True,
    )
    assert torch.equal(args[0][0], torch.ones(2))
    assert args[0][1] is None
    assert args[1:] == (float("inf"), 2 + 1j, [1, 2])
    assert kwargs == {
        "dtype": torch.bfloat16,
        "layout": torch.strided,
        "device": torch.device("cpu"),
        "memory_format": torch.channels_last,
        "text": "quotes ' \" and <script>",
        "flag": True,
    }


@pytest.mark.parametrize(
    "value",
    [torch.zeros(2, 2).to_sparse(), torch.randn(2, dtype=torch.complex64).conj(), object()],
    ids=["sparse", "conjugated", "object"],
)
def test_what_cannot_be_given_to_another_process_is_refused(value: Any) -> None:
    with pytest.raises(NotPortable):
        Encoder().encode((value,), {})
