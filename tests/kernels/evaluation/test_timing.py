"""Times: fresh values, pairs, the gate, processes that are alike, luck, and what else bears witness of them."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from math import exp, log
from statistics import fmean
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest

pytest.importorskip("torch")

import torch

from profkit.analysis.evaluation.witnesses import (
    STORED_PER_SECOND,
    describe_witnesses,
    impossible_rate,
)
from profkit.core.types import Fact, Speedup, SpeedWord
from profkit.kernels.evaluation.candidate.arguments import Encoder, decode
from profkit.kernels.evaluation.candidate.process import TINY_KERNEL
from profkit.kernels.evaluation.judging import trial as alike
from profkit.kernels.evaluation.judging.fresh_values import FreshValues, choose_values
from profkit.kernels.evaluation.judging.pairs import (
    Pair,
    PairedBatches,
    PairedTimes,
    Unlaunched,
    find_speedup,
    undisturbed,
)
from profkit.kernels.evaluation.judging.reference import count_written
from profkit.kernels.evaluation.judging.trial import (
    TrialTimer,
    may_be_chance,
    start_alike,
)
from profkit.kernels.evaluation.request import PairOptions
from tests.spoken import spoken


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


LUCK = (Fact("difference-of-processes"),)


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
    bench._secret, bench._gated, bench._count = random.SystemRandom(), True, 1
    bench._empty, bench._staged, bench._kept = math.inf, torch.zeros(1), []
    bench._call, bench._staged_slots = MagicMock(outputs=1), [[]]
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
            process.load(TINY_KERNEL)
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


def times_of(median: float, word: SpeedWord, *, disturbed: bool = False) -> PairedTimes:
    speedup = Speedup(median, median - 0.01, median + 0.01, word, 40)
    return PairedTimes(speedup, 1.0 / median, 1.0, 5, disturbed, 1.0, 1.0, 1.0)


class Replaced:
    memory = SimpleNamespace(gate=None)

    def __init__(self) -> None:
        self.done: list[str] = []

    def kill(self) -> None:
        self.done.append("kill")

    def load(self, operation: str) -> None:
        self.done.append(operation)


def confirmed(
    first: PairedTimes, again: PairedTimes | None, device: str = "cpu"
) -> tuple[PairedTimes, tuple[str, ...], list[str]]:
    """What comes of a first answer where new processes give the other one; None: they are not to be asked."""
    candidate, reference = Replaced(), Replaced()
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
    found, remarks, done = confirmed(times_of(1.12, "FASTER"), times_of(1.09, "FASTER"))
    assert (found.speedup.word, found.speedup.median, remarks) == ("FASTER", 1.09, ())
    assert found.verified == 10
    assert done == ["kill", "relu.default"]


def test_one_that_they_do_not_show_is_ambiguous_and_said_to_be_luck() -> None:
    found, remarks, _ = confirmed(times_of(1.12, "FASTER"), times_of(1.01, "SAME"))
    assert (found.speedup.word, found.speedup.median, remarks) == ("AMBIGUOUS", 1.01, LUCK)


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
    first = times_of(median, word)
    assert may_be_chance(first.speedup) is asks
    if not asks:
        assert confirmed(first, None) == (first, (), [])


def test_on_a_gpu_less_may_be_luck_and_a_new_process_is_called_before_it_is_timed() -> None:
    first = times_of(1.2, "FASTER")
    assert confirmed(first, None, device="cuda") == (first, (), [])
    found, remarks, done = confirmed(times_of(1.08, "FASTER"), times_of(0.99, "SAME"), device="cuda")
    assert (found.speedup.word, remarks) == ("AMBIGUOUS", LUCK)
    assert done == ["kill", "relu.default", "first call"]


def test_only_what_no_processor_can_write_is_impossible() -> None:
    size = 1 << 26
    quickest = size / (2 * STORED_PER_SECOND)
    assert impossible_rate(size, 1.01 * quickest, 2) is None
    assert "ended before their results could have been written" in spoken(
        impossible_rate(size, 0.9 * quickest, 2)
    )
    assert impossible_rate(0, 1e-9, 1) is None  # a view
    h100 = 132
    assert impossible_rate(4 << 20, 2e-6, h100, on_gpu=True) is None  # 2 TB/s
    too_fast = impossible_rate(4 << 20, 5e-8, h100, on_gpu=True)
    assert "before their results could have been written" in spoken(too_fast)
    old, new = torch.ones(8), torch.ones(16)
    known = {old.untyped_storage().data_ptr()}
    assert count_written([old[2:], new, new[1:], torch.ones(1).expand(1000), torch.zeros(9)], known) == 64 + 4


def test_a_time_below_measured_peaks_and_more_threads_are_remarks() -> None:
    assert describe_witnesses(1.5, 2.0, 1.0, 1.0) == ()
    assert "2.0 times as fast as the measured peaks" in spoken(describe_witnesses(1.0, 2.0, 1.0, 1.0)[0])
    assert "keeps 2.0 threads busy, and PyTorch's own 1.0" in spoken(
        describe_witnesses(1.0, None, 2.0, 1.0)[0]
    )
    assert describe_witnesses(1.0, None, 1.9, 1.5) == ()
    assert describe_witnesses(1.0, None, 1.6, 1.0, allowed=1) == ()
    assert "keeps 1.9 processors busy although --threads allows 1" in spoken(
        describe_witnesses(1.0, None, 1.9, 1.9, 1)[0]
    )
