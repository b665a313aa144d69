"""Times: fresh values, pairs, and processes that are alike. No process is started."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from contextlib import ExitStack
from math import exp, log
from statistics import fmean
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest

pytest.importorskip("torch")

import torch
from judge_documents import BY_CHANCE, times_of

from profkit.core.types import Fact
from profkit.execution.child import JobStatus, WorkerEnded
from profkit.kernels.evaluation import timing
from profkit.kernels.evaluation.batches import FreshCall, PairedBatches, Unlaunched
from profkit.kernels.evaluation.devices import BatchLimits
from profkit.kernels.evaluation.fresh_values import FreshValues, choose_values
from profkit.kernels.evaluation.judging.judge import Judge, MachineLimits, PairedTimes, find_speedup
from profkit.kernels.evaluation.request import JudgeSettings, PairOptions
from profkit.kernels.evaluation.timing import PairTimer, start_alike
from profkit.kernels.evaluation.worker.arguments import Encoder, decode
from profkit.kernels.evaluation.worker.server import TINY_KERNEL
from profkit.kernels.evaluation.worker.worker import TimedBatch


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
    monkeypatch: pytest.MonkeyPatch, first: float, baseline: float, candidate: float
) -> float:
    """Of processes that take so many times 3 ms, who runs first `first` times that; one is slow to do nothing."""
    bench = PairedBatches.__new__(PairedBatches)
    seconds: dict[Any, float] = {}
    bench._baseline, bench._candidate = bench._both = (MagicMock(), MagicMock())
    bench._secret, bench._latched, bench._count = random.SystemRandom(), True, 1
    bench._empty, bench._staged, bench._kept = math.inf, torch.zeros(1), []
    bench._call, bench._staged_slots = MagicMock(outputs=1), [[]]
    bench._slots = {each: [[]] for each in bench._both}
    bench.whole = {each: [] for each in bench._both}

    def launch(run: Sequence[Any]) -> None:
        own = {bench._baseline: baseline, bench._candidate: candidate}
        bench._launched = dict.fromkeys(bench._both, ())
        seconds.update({each: 1e-3 + 3e-3 * own[each] * (first if each is run[0] else 1) for each in run})

    for name, value in {
        "_lay_out": lambda _: None,
        "_stage": lambda: None,
        "_empty_batch_seconds": lambda each: 1e-3 if each is bench._baseline else 1.015e-3,
        "_launch": launch,
        "_time_latched": lambda each, _: TimedBatch(seconds[each], ()),
    }.items():
        monkeypatch.setattr(bench, name, value)
    bench.renew(pinned=False)
    pairs = [pair for number in range(8) for pair in bench.run_pairs(number)]
    return find_speedup(pairs, PairOptions()).median


@pytest.mark.parametrize("failure", [None, WorkerEnded(JobStatus.crash, "it crashed")], ids=["busy", "crash"])
def test_what_waits_at_a_latch_is_let_go_where_the_other_process_cannot_launch(
    failure: Exception | None,
) -> None:
    baseline, candidate = MagicMock(), MagicMock()
    both = {baseline: (1e-3, [4096]), candidate: (1e-3, [8192])}
    first, second = both
    with ExitStack() as cleanup:
        call = FreshCall(MagicMock(), [], MagicMock(), 1)
        batches = PairedBatches(candidate, baseline, call, 1, cleanup, latched=True)
        first.launch.return_value = both[first]
        second.launch.return_value, second.launch.side_effect = None, failure
        with pytest.raises(Unlaunched if failure is None else WorkerEnded):
            batches._run_pair(0, (first, second), (first, second))
    first.time.assert_called_once_with(1, launched=[4096])
    second.time.assert_not_called()


@pytest.mark.parametrize("kind", ["weak", "strong", "sorted", "whole"])
def test_values_of_many_calls_at_once_are_as_fresh_as_those_of_one(kind: str) -> None:
    makes = {"sorted": lambda: torch.linspace(-3, 7, 50), "whole": lambda: torch.randperm(500)}
    x = makes.get(kind, lambda: torch.randn(30, 40).half())()
    encoder = Encoder()
    recipe = encoder.encode((x, torch.randint(0, 9, (11,))), {})
    region = torch.full((20 * recipe.slot_bytes,), 77, dtype=torch.uint8)
    FreshValues(encoder, recipe, strong=kind == "strong").write_rows(region, recipe)
    seen = set()
    for begin in range(0, region.numel(), recipe.slot_bytes):
        places = zip(recipe.storages, recipe.sizes, strict=True)
        slot = [region[begin + at :][:size].clone() for at, size in places]
        (first, index), _ = decode(recipe.body, slot)
        seen.add(slot[0].numpy().tobytes())
        if kind == "whole":
            assert torch.equal(first.sort().values, x.sort().values)
        else:
            assert torch.equal(index, encoder.contents[1].view(torch.int64))
        if kind == "sorted":
            assert bool((first.diff() >= 0).all())
        if kind == "weak":
            assert torch.equal(first.sign(), x.sign())
            assert bool((first.abs() >= 0.87 * x.abs()).all())
    assert len(seen) > 10


OPERATIONS = [4.2, 4.9, 5.1, 5.2, 6.0, 6.1, 6.2, 6.3, 6.5, 6.6, 7.3, 7.8, 9.8]  # µs of a launch


class Simulated:
    """A process that draws how many µs more each of its launches takes: by chance 0.2, beside what all differ by."""

    memory = SimpleNamespace(latch=object())

    def __init__(self, chance: random.Random, *, latched: bool = True) -> None:
        self._chance, self.latched = chance, latched
        self.running, self.operation, self.offset = False, "", 0.0
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

    def load(self, operation: str) -> None:
        self.start()
        self.operation = operation


@pytest.fixture(autouse=True)
def simulated_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """TracedLaunches of 3 µs, whose difference is seen to 0.015 µs."""

    def time_launches(candidate: Simulated, baseline: Simulated) -> tuple[float, float]:
        for worker in (candidate, baseline):
            worker.load(TINY_KERNEL)
        if not candidate.latched:
            raise Unlaunched
        difference = candidate.offset - baseline.offset + random.Random(str(candidate.offset)).gauss(0, 0.015)
        return 1e-6 * difference, 1e-6 * (3 + baseline.offset)

    monkeypatch.setattr(timing, "_time_launches", time_launches)


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


class Replaced:
    """A worker of which only starts and calls are noted."""

    memory = SimpleNamespace(latch=None)

    def __init__(self) -> None:
        self.done: list[str] = []

    def kill(self) -> None:
        self.done.append("kill")

    def load(self, operation: str) -> None:
        self.done.append(operation)


def measured(
    first: PairedTimes, again: PairedTimes | None, device: str = "cpu"
) -> tuple[PairedTimes, tuple[Fact, ...], list[str]]:
    """What is measured where the first processes give the one answer and new ones the other; None: there are none."""
    candidate, baseline = Replaced(), Replaced()
    trial = MagicMock(call_bytes=64)
    trial.test.operation = "relu.default"
    trial.first_call = lambda worker: worker.done.append("first call")
    where = MagicMock(batch=BatchLimits(0.002, 256, 1 << 20))
    where.device.type = device
    judge = Judge(PairOptions(), MachineLimits(on_gpu=device == "cuda"))
    parts: Any = (trial, None, candidate, baseline, where, JudgeSettings(), judge)
    timer = PairTimer(*parts)
    answers = iter([first, again])

    def time() -> PairedTimes:
        answer = next(answers)
        assert answer is not None
        return answer

    timer._time = time  # type: ignore[method-assign]
    timer._estimate = lambda: 1e-3  # type: ignore[method-assign]
    times, remarks = timer.measure()
    assert candidate.done == baseline.done
    return times, remarks, candidate.done


def test_a_small_difference_is_measured_again_in_new_processes() -> None:
    times, remarks, done = measured(times_of(1.12, "FASTER"), times_of(1.09, "FASTER"))
    assert (times.speedup.word, times.speedup.median, remarks) == ("FASTER", 1.09, ())
    assert done == ["kill", "relu.default"]


def test_a_large_difference_is_not_measured_again() -> None:
    first = times_of(1.3, "FASTER")
    assert measured(first, None) == (first, (), [])
    first = times_of(1.2, "FASTER")
    assert measured(first, None, device="cuda") == (first, (), [])


def test_on_a_gpu_a_new_process_is_called_before_it_is_timed() -> None:
    times, remarks, done = measured(times_of(1.08, "FASTER"), times_of(0.99, "SAME"), device="cuda")
    assert (times.speedup.word, remarks) == ("AMBIGUOUS", BY_CHANCE)
    assert done == ["kill", "relu.default", "first call"]
