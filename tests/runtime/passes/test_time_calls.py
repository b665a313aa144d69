"""The stopping rule, the timing loop on a clock of its own, and what several processes' records add up to."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from profkit.core.errors import UnreadableReport
from profkit.core.types import Fact, SampleSet
from profkit.runtime.passes import timing
from profkit.runtime.passes.benchmark import BenchmarkResult
from profkit.runtime.passes.processor import MAX_WAITING_SHARE, ProcessorWatch
from profkit.runtime.passes.read import judge_growth, read_tracemalloc, region_timings
from profkit.runtime.region.record import BenchmarkTimes, RegionRecord, RegionTimes

RNG = random.Random(1)
QUIET = [RNG.gauss(1.0, 0.002) for _ in range(64)]
NOISY = [RNG.gauss(1.0, 0.2) for _ in range(64)]


@pytest.mark.parametrize(
    ("samples", "elapsed", "answer"),
    [
        (QUIET, 1.0, True),
        (QUIET[:15], 1.0, False),  # too few to tell correlation from noise
        (NOISY, 1.0, False),
        (NOISY, 30.0, True),  # the budget is spent
        ([], 1.0, False),
        ([], 31.0, True),
        ([1 + i / 100 for i in range(64)], 1.0, False),  # still drifting
    ],
)
def test_enough(samples: list[float], elapsed: float, answer: bool) -> None:
    assert timing.is_enough(samples, 0.01, elapsed, 30.0) is answer


def test_correlated_samples_are_not_enough_although_their_interval_is_narrow() -> None:
    believed = 0
    for seed in range(60):
        rng = random.Random(seed)
        wave, values = rng.gauss(0, 0.008), []
        for _ in range(60):
            values.append(1 + wave)
            wave = 0.9 * wave + rng.gauss(0, 0.008 * 0.19**0.5)
        believed += timing.is_enough(values, 0.01, 1.0, 30.0)
    assert believed <= 6


class Clock:
    """Time that passes only where the measured function says so."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self.calls = 0.0, 0
        monkeypatch.setattr(timing, "perf_counter", lambda: self.now)

    def function(self, *costs: float, then: float, noise: float = 0.001) -> timing.TimedCalls:
        rng, first = random.Random(2), list(costs)

        def fn() -> None:
            self.calls += 1
            self.now += first.pop(0) if first else then * rng.gauss(1.0, noise)

        return timing.TimedCalls(fn)


def test_noise_ends_with_the_budget_and_says_not_precise(monkeypatch: pytest.MonkeyPatch) -> None:
    samples = timing.time_calls(
        Clock(monkeypatch).function(then=0.05, noise=0.5), precision=0.001, max_seconds=3.0
    )
    assert 2.5 < samples.spent <= 3.1
    assert not samples.precise


# ---------------------------------------------------------------- records of several processes


def bench(pid: int, name: str, *seconds: float, flops: float | None = None) -> RegionRecord:
    samples = SampleSet(seconds, pid=pid)
    return RegionRecord(pid, "timing", benchmarks=(BenchmarkTimes(name, samples, flops),), precision=0.02)


def region(pid: int, name: str, *seconds: float) -> RegionRecord:
    return RegionRecord(pid, "timing", (RegionTimes(name, len(seconds), len(seconds), seconds),))


def test_one_sample_set_for_each_process() -> None:
    (found,) = region_timings([bench(1, "a", 1.0, 2.0, flops=5.0), bench(2, "a", 3.0)])
    assert (found.kind, found.flops, found.precision) == ("benchmark", 5.0, 0.02)
    assert [(s.pid, s.seconds) for s in found.processes] == [(1, (1.0, 2.0)), (2, (3.0,))]


# ---------------------------------------------------------------- tracemalloc results

RESULT = {
    "schema": "profkit.tracemalloc/2",
    "python": "3.11.7",
    "peak": 100,
    "end": 50,
    "region": {"start": 10, "peak": 90},
    "points": [[0, 10], [1, 20]],
    "top": [{"file": "x.py", "line": 3, "size": 40, "count": 2}],
    "growth": [],
    "notes": [{"code": "ended-early"}],
}


def test_what_stopped_before_a_region_does_not_say_that_none_was_marked(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    for notes, code in ([{"code": "ended-early"}], "ended-before-region"), ([], "no-iterations"):
        path.write_text(json.dumps({**RESULT, "region": None, "points": [], "notes": notes}))
        assert read_tracemalloc(path).growth.reason.code == code


@pytest.mark.parametrize(
    "content",
    [
        b"\0\xff",
        b"[]",
        json.dumps({**RESULT, "schema": "profkit.region/2"}).encode(),
        json.dumps({**RESULT, "peak": -1}).encode(),
        json.dumps({**RESULT, "points": [[1]]}).encode(),
        json.dumps({**RESULT, "top": [{}]}).encode(),
        json.dumps({key: value for key, value in RESULT.items() if key != "notes"}).encode(),
        b"[" * 100_000,
    ],
)
def test_a_damaged_tracemalloc_result_is_refused_by_its_name(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "t.json"
    path.write_bytes(content)
    with pytest.raises(UnreadableReport, match=r"t\.json: "):
        read_tracemalloc(path)


@pytest.mark.parametrize(
    ("points", "leak"),
    [
        ([(i, 1000 + 100 * i) for i in range(40)], True),
        ([(i, 1000 + 7 * i) for i in range(40)], False),  # less than a pointer per iteration
        ([(i, 1000 + 64 * (i // 16)) for i in range(64)], False),
        ([(i, 1000 + 500 * (i % 5)) for i in range(40)], False),  # a saw tooth
        ([(i, 1000 + (5000 if i >= 3 else 0)) for i in range(40)], False),  # a cache filled once
        ([(i, 9000 - 100 * i) for i in range(40)], False),
        ([(i, 1000 + 100 * i) for i in range(6)], None),
        ([], None),
    ],
)
def test_what_grows_is_a_leak_and_what_does_not_is_none(
    points: list[tuple[int, int]], leak: bool | None
) -> None:
    assert judge_growth(points).leak is leak


# ------------------------------------------------------------ test_processor_wait

TRUE = 15e-6  # seconds of one call, and
DISTURBED = 6.4e-3  # of a sample in which another program had the processor


class BusyMachine(ProcessorWatch):
    """A clock on which a call takes 15 us, and longer in samples that `disturbs` names by their number."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, disturbs: Callable[[int], bool]) -> None:
        super().__init__()
        self.now, self.count, self._disturbs, self._delay = 0.0, 0, disturbs, 0.0
        monkeypatch.setattr(timing, "perf_counter", lambda: self.now)

    def call(self) -> None:
        """The function that is timed."""
        self.now += TRUE * (1 + 0.001 * (self.count % 3)) + self._delay
        self._delay = 0.0

    def begin(self) -> None:
        self.count += 1
        self._delay = DISTURBED if self._disturbs(self.count) else 0.0

    def longest_wait(self, only: int | None = None) -> float:
        return DISTURBED if self._disturbs(self.count) else 0.0


def timed(machine: BusyMachine, budget: float = 3.0) -> timing.SampleSet:
    calls = timing.TimedCalls(machine.call)
    calls.watch = machine
    return timing.time_calls(calls, precision=0.01, max_seconds=budget)


def test_on_a_busy_machine_the_time_is_that_of_the_samples_that_had_a_processor(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    samples = timed(BusyMachine(monkeypatch, lambda number: number % 10 != 0))
    assert max(samples.seconds) < 1.01 * TRUE
    assert samples.loops >= 64  # so many make a sample of a millisecond: the disturbed ones did not decide it
    assert samples.remarks == (timing.WAITED_IN_MOST_SAMPLES,)


def test_where_the_waiting_never_ends_the_result_says_so_and_is_not_called_precise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    samples = timed(BusyMachine(monkeypatch, lambda _: True), budget=30.0)
    assert samples.seconds
    assert samples.remarks == (timing.ALWAYS_WAITED,)
    other = replace(samples, remarks=(*samples.remarks, Fact.message("each call is waited for")))
    said = str(BenchmarkResult("a", other, 0.01))
    assert "nearly every sample waited for a processor; each call is waited for)" in said
    assert not samples.precise
    assert samples.spent < 10.0  # it does not hope until the budget ends


def counted(monkeypatch: pytest.MonkeyPatch, *looks: dict[int, tuple[int, int]]) -> ProcessorWatch:
    turns = iter(looks)
    monkeypatch.setattr(ProcessorWatch, "_read_waits", lambda _: next(turns))
    watch = ProcessorWatch()
    watch.begin()
    return watch


MS = 1_000_000


@pytest.mark.parametrize(
    ("before", "after", "waited"),
    [
        ({1: (5 * MS, 9)}, {1: (8 * MS, 10)}, True),  # three of ten milliseconds
        ({1: (5 * MS, 9)}, {1: (5 * MS + 200_000, 10)}, False),  # 2 %
        ({1: (0, 0)}, {1: (3 * MS, 100)}, False),  # woken a hundred times: 30 us each
        ({1: (0, 0)}, {1: (0, 0), 2: (4 * MS, 1)}, True),  # a thread that began meanwhile
        ({1: (0, 0), 2: (9 * MS, 1)}, {1: (0, 0)}, False),  # one that ended
        (
            dict.fromkeys(range(64), (0, 0)),
            dict.fromkeys(range(64), (400000, 1)),
            False,
        ),  # each 4 %, side by side
    ],
)
def test_what_one_thread_waited_counts_against_the_time_of_the_sample(
    monkeypatch: pytest.MonkeyPatch,
    before: dict[int, tuple[int, int]],
    after: dict[int, tuple[int, int]],
    waited: bool,
) -> None:
    assert (counted(monkeypatch, before, after).longest_wait() > MAX_WAITING_SHARE * 0.01) is waited
