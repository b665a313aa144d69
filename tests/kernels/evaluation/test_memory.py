"""Arguments reach another process as they are; what is told of a device that works, and of memory that is closed."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

import torch
from judging import evaluator_of, judge_operation

from profkit.kernels.evaluation.worker.arguments import Encoder, NotPortable, decode, storage_views
from profkit.kernels.evaluation.worker.cuda_memory import (
    ABOVE_IDLE,
    BusyDevice,
    IdleProbe,
    free_blocks,
)
from profkit.kernels.evaluation.worker.memory import JudgeMemory, WorkerMemory
from profkit.kernels.evaluation.worker.worker import Worker
from tests.spoken import spoken


def through_arena(*args: Any, **kwargs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments as the other process makes them."""
    encoder = Encoder()
    recipe = encoder.encode(args, kwargs)
    memory = JudgeMemory(1 << 20)
    (fd,) = memory.inherited
    other = WorkerMemory({"fd": os.dup(fd), "size": memory.size})
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


def test_blocks_that_nobody_uses_are_found_in_the_allocators_snapshot() -> None:
    blocks = [{"state": "active_allocated", "size": 512}, {"state": "inactive", "size": 1536}]
    later = [{"state": "inactive", "size": 2048, "address": 9000}]
    snapshot = [{"address": 4096, "blocks": blocks}, {"address": 9000, "blocks": later}]
    assert list(free_blocks(snapshot)) == [(4608, 1536), (9000, 2048)]


class Clock:
    """A clock that `ask` moves by what a device takes for its answer."""

    def __init__(self) -> None:
        self.now, self.answers = 0.0, iter(())

    def ask(self) -> None:
        self.now += next(self.answers, 10e-6)


def probe_of(*answers: float) -> IdleProbe:
    """A probe of a device that answers in 10 us, but its next answers take so many seconds."""
    clock = Clock()
    probe = IdleProbe(clock.ask, lambda: clock.now)
    clock.answers = iter(answers)
    return probe


def test_an_idle_device_is_told_from_one_that_works_and_one_late_judge_changes_nothing() -> None:
    for answers, early in (((), 0), ((3e-3,), 1)):
        probe = probe_of(*answers)
        probe.check()
        assert (probe.checks, probe.early, probe.is_idle) == (1, early, True)
    assert probe.busy_seconds == pytest.approx(10e-6 + ABOVE_IDLE)
    with pytest.raises(BusyDevice, match="is stopped"):
        probe_of(*[2e-3] * 10).check()
    assert not probe_of(2e-3, 10e-6, 2e-3, 10e-6, 2e-3).is_idle
    probe_of(2e-3, 2e-3, 10e-6, 2e-3).wait()  # one fast answer between two slices of time is none
    with pytest.raises(BusyDevice, match="still busy after 5 s"):
        probe_of(*[2e-3] * 10_000).wait()
    assert not probe_of(*[1.0] * 100).recover()
    assert probe_of(*[1.0] * 10).recover()


@pytest.mark.thorough
def test_a_kernel_whose_results_cannot_be_read_is_not_timed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the CPU, where all can be read: here the judge believes that what it has not asked for is closed to it."""
    asked: set[int] = set()
    opens = True
    introduce = Worker.introduce

    def introduced(process: Worker, addresses: Sequence[int]) -> None:
        introduce(process, addresses)
        asked.update(segment(address) for address in addresses if opens)

    def unknown(_: JudgeMemory, addresses: Sequence[int]) -> list[int]:
        return [address for address in addresses if segment(address) not in asked]

    monkeypatch.setattr(JudgeMemory, "unknown", unknown)
    monkeypatch.setattr(Worker, "introduce", introduced)
    with evaluator_of("cheats.py", tmp_path) as evaluator:
        opened = judge_operation(evaluator, "abs.default")
        asked.clear()
        opens = False
        closed = judge_operation(evaluator, "abs.default")
    assert (opened.status, closed.status) == ("passed", "passed")
    assert opened.speedup is not None
    assert closed.speedup is None
    assert "its results lie in new memory each time" in spoken(closed.remarks[-1])


def segment(address: int) -> int:
    """As a device's allocator has segments, of 256 MB here."""
    return address >> 28
