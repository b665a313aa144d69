"""A small difference between two kernels counts where new processes show it, too."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("torch")

from profkit.core.types import Speedup, SpeedWord
from profkit.kernels.evaluation.judging.pairs import PairedTimes
from profkit.kernels.evaluation.judging.trial import LUCK, TrialTimer, may_be_luck


def times(median: float, word: SpeedWord, *, disturbed: bool = False) -> PairedTimes:
    speedup = Speedup(median, median - 0.01, median + 0.01, word, 40)
    return PairedTimes(speedup, 1.0 / median, 1.0, 5, disturbed, 1.0, 1.0, 1.0)


class Process:
    memory = SimpleNamespace(gate=None)

    def __init__(self) -> None:
        self.done: list[str] = []

    def kill(self) -> None:
        self.done.append("kill")

    def load(self, operation: str) -> None:
        self.done.append(operation)


def confirm(
    first: PairedTimes, again: PairedTimes | None, device: str = "cpu"
) -> tuple[PairedTimes, tuple[str, ...], list[str]]:
    """What comes of a first answer where new processes give the other one; None: they are not to be asked."""
    candidate, reference = Process(), Process()
    trial = SimpleNamespace(
        test=SimpleNamespace(operation="relu.default"),
        first_call=lambda process: process.done.append("first call"),
    )
    where = SimpleNamespace(device=SimpleNamespace(type=device))
    parts: Any = (trial, None, candidate, where, None)
    timer = TrialTimer(*parts)

    def time(_: object) -> PairedTimes:
        assert again is not None
        return again

    timer.time = time  # type: ignore[method-assign, assignment]
    asked: Any = reference
    found, remarks = timer.confirm(first, asked)
    assert candidate.done == reference.done
    return found, remarks, candidate.done


def test_a_difference_that_new_processes_show_too_is_kept_as_the_smaller_of_both() -> None:
    found, remarks, done = confirm(times(1.12, "FASTER"), times(1.09, "FASTER"))
    assert (found.speedup.word, found.speedup.median, remarks) == ("FASTER", 1.09, ())
    assert found.verified == 10
    assert done == ["kill", "relu.default"]


@pytest.mark.parametrize("word", ["SAME", "AMBIGUOUS", "SLOWER"])
def test_one_that_they_do_not_show_is_ambiguous_and_said_to_be_luck(word: SpeedWord) -> None:
    found, remarks, _ = confirm(times(1.12, "FASTER"), times(1.01, word))
    assert (found.speedup.word, found.speedup.median, remarks) == ("AMBIGUOUS", 1.01, (LUCK,))


def test_where_the_machine_was_busy_nothing_is_said_of_luck() -> None:
    found, remarks, _ = confirm(times(0.9, "SLOWER"), times(0.95, "AMBIGUOUS", disturbed=True))
    assert (found.speedup.word, remarks) == ("AMBIGUOUS", ())
    assert found.speedup.high == 1.0  # it may be equal: so no mean of it is SLOWER


@pytest.mark.parametrize(
    ("median", "word", "asks"),
    [
        (1.24, "FASTER", True),
        (1.26, "FASTER", False),
        (0.82, "SLOWER", True),
        (0.78, "SLOWER", False),
        (1.02, "SAME", False),
        (1.1, "AMBIGUOUS", False),
    ],
)
def test_only_a_small_difference_may_be_luck(median: float, word: SpeedWord, asks: bool) -> None:
    first = times(median, word)
    assert may_be_luck(first.speedup) is asks
    if not asks:
        assert confirm(first, None) == (first, (), [])


def test_on_a_gpu_less_may_be_luck_and_a_new_process_is_called_before_it_is_timed() -> None:
    first = times(1.2, "FASTER")
    assert confirm(first, None, device="cuda") == (first, (), [])
    found, remarks, done = confirm(times(1.08, "FASTER"), times(0.99, "SAME"), device="cuda")
    assert (found.speedup.word, remarks) == ("AMBIGUOUS", (LUCK,))
    assert done == ["kill", "relu.default", "first call"]
