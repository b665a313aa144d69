"""Processes that draw how long their launches take: equal kernels come out equal, and no kernel has a part in it."""

from __future__ import annotations

import random
from math import exp, log
from pathlib import Path
from statistics import fmean
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("torch")

from profkit.kernels.evaluation.candidate.arguments import Encoder
from profkit.kernels.evaluation.candidate.process import LEAST
from profkit.kernels.evaluation.judging import trial as alike
from profkit.kernels.evaluation.judging.judge import Judge
from profkit.kernels.evaluation.judging.pairs import Unlaunched
from profkit.kernels.evaluation.judging.trial import start_alike
from tests.kernels.evaluation.judging import judge_of, judge_operation

TIME_LAUNCHES = alike._time_launches
OPERATIONS = [4.2, 4.9, 5.1, 5.2, 6.0, 6.1, 6.2, 6.3, 6.5, 6.6, 7.3, 7.8, 9.8]  # µs of a launch


class Simulated:
    """A process that draws how many µs more each of its launches takes: by chance 0.2, beside what all differ by."""

    memory = SimpleNamespace(gate=object())

    def __init__(self, chance: random.Random, *, gated: bool = True) -> None:
        self._chance, self.gated = chance, gated
        self.running, self.operation, self.offset = False, "", 0.0
        self.asked: list[str] = []
        self.starts = 0

    @property
    def pid(self) -> int:
        return id(self) + self.starts

    def start(self) -> None:
        if not self.running:
            self.running, self.starts = True, self.starts + 1
            self.offset = 0.2 * (self._chance.random() < 0.3) + self._chance.gauss(0, 0.015)

    def kill(self) -> None:
        self.running, self.operation = False, ""
        self.asked.append("kill")

    def load(self, operation: str) -> None:
        self.start()
        self.operation = operation
        self.asked.append(operation)


@pytest.fixture(autouse=True)
def simulated_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """Launches of 3 µs, whose difference is seen to 0.015 µs."""

    def time_launches(candidate: Simulated, reference: Simulated) -> tuple[float, float]:
        for process in (candidate, reference):
            process.load(LEAST)
        if not candidate.gated:
            raise Unlaunched
        difference = (
            candidate.offset - reference.offset + random.Random(str(candidate.offset)).gauss(0, 0.015)
        )
        return 1e-6 * difference, 1e-6 * (3 + reference.offset)

    monkeypatch.setattr(alike, "_time_launches", time_launches)


def geometric_means(*, chosen: bool, exchanged: bool) -> list[float]:
    """Of equal operations, each with processes of its own draw."""
    means = []
    for seed in range(60):
        chance = random.Random(seed)
        both = Simulated(chance), Simulated(chance)
        if chosen:
            start_alike(*both)  # type: ignore[arg-type]
        for process in both:
            process.start()
        over, under = both if exchanged else both[::-1]
        means.append(exp(fmean(log((each + over.offset) / (each + under.offset)) for each in OPERATIONS)))
    return means


@pytest.mark.parametrize("exchanged", [False, True])
def test_equal_operations_come_out_equal_whatever_their_processes_have_drawn(exchanged: bool) -> None:
    drawn = geometric_means(chosen=False, exchanged=exchanged)
    assert max(abs(log(mean)) for mean in drawn) > 0.02  # what there is to be mended
    found = geometric_means(chosen=True, exchanged=exchanged)
    assert max(abs(log(mean)) for mean in found) < 0.0065
    assert sum(abs(log(mean)) < 0.005 for mean in found) >= 57
    assert abs(fmean(map(log, found))) < 0.001


def test_no_process_is_measured_in_which_a_kernel_may_have_changed_what_a_launch_takes() -> None:
    chance = random.Random(3)
    candidate, reference = Simulated(chance), Simulated(chance)
    start_alike(candidate, reference)  # type: ignore[arg-type]
    candidate.load("relu.default")
    before = len(candidate.asked)
    start_alike(candidate, reference)  # type: ignore[arg-type]
    assert len(candidate.asked) == before  # both run: nothing is asked of them
    reference.kill()
    start_alike(candidate, reference)  # type: ignore[arg-type]
    assert candidate.asked[before] == "kill"


def test_the_process_that_drew_what_few_draw_is_the_one_that_is_replaced() -> None:
    candidate, reference = Simulated(random.Random(1)), Simulated(random.Random(2))
    reference.start()
    reference.offset = -0.4  # no candidate will ever be like it
    start_alike(candidate, reference)  # type: ignore[arg-type]
    assert reference.starts > 1
    assert abs(candidate.offset - reference.offset) < 0.08


def test_a_machine_that_is_never_steady_gets_what_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        alike, "_time_launches", lambda *both: ([each.start() for each in both], (1e-6, 3e-6))[1]
    )
    seconds = iter(range(0, 1000, 20))
    monkeypatch.setattr(alike, "perf_counter", lambda: next(seconds))
    candidate, reference = Simulated(random.Random(1)), Simulated(random.Random(2))
    start_alike(candidate, reference)  # type: ignore[arg-type]
    assert candidate.asked.count("kill") + reference.asked.count("kill") == 4


@pytest.mark.parametrize("correctness_only", [False, True])
def test_processes_are_made_alike_before_a_kernel_is_loaded_where_times_are_asked_for(
    correctness_only: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded: list[str] = []

    def note(candidate: Any, reference: Any) -> None:
        loaded.append(candidate.operation + reference.operation)
        raise RuntimeError  # nothing else is of interest

    monkeypatch.setattr(f"{Judge.__module__}.start_alike", note)
    with judge_of("cheats.py", tmp_path, correctness_only=correctness_only) as judge:
        judge_operation(judge, "relu.default")
    assert loaded == [] if correctness_only else [""]


def test_a_small_gpu_gets_no_more_launches_than_its_memory_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []

    def batches(*arguments: Any, **_: Any) -> Any:
        asked.append(arguments[5])
        raise Unlaunched

    monkeypatch.setattr(alike, "Encoder", lambda _: Encoder())
    monkeypatch.setattr(alike, "PairedBatches", batches)
    with judge_of("cheats.py", tmp_path) as judge:
        assert judge._candidate is not None
        assert judge._reference is not None
        judge._candidate.memory.size = 10 * 4 * alike.ELEMENTS
        with pytest.raises(Unlaunched):
            TIME_LAUNCHES(judge._candidate, judge._reference)
    assert asked == [10]
