"""A sample whose process waited for a processor is no measurement: it is taken again, or the result says so."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from profkit.runtime.passes import timing
from profkit.runtime.passes.processor import ProcessorWatch

TRUE = 15e-6  # seconds of one call, and
DISTURBED = 6.4e-3  # of a sample in which another program had the processor


class BusyMachine(ProcessorWatch):
    """A clock on which a call takes 15 us, and longer in samples that `disturbs` names by their number."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, disturbs: Callable[[int], bool]) -> None:
        super().__init__()
        self.now, self.count, self._disturbs, self._delay = 0.0, 0, disturbs, 0.0
        monkeypatch.setattr(timing, "perf_counter", lambda: self.now)
        monkeypatch.setattr(timing, "clock_step", lambda: 1e-7)

    def call(self) -> None:
        """The function that is timed."""
        self.now += TRUE * (1 + 0.001 * (self.count % 3)) + self._delay
        self._delay = 0.0

    def begin(self) -> None:
        self.count += 1
        self._delay = DISTURBED if self._disturbs(self.count) else 0.0

    def waited(self, seconds: float) -> bool:
        return self._disturbs(self.count)


def timed(machine: BusyMachine, budget: float = 3.0) -> timing.SampleSet:
    calls = timing.TimedCalls(machine.call)
    calls.watch = machine
    return timing.time_calls(calls, precision=0.01, budget=budget)


def test_on_a_busy_machine_the_time_is_that_of_the_samples_that_had_a_processor(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    samples = timed(BusyMachine(monkeypatch, lambda number: number % 10 != 0))
    assert max(samples.seconds) < 1.01 * TRUE
    assert samples.loops >= 64  # so many make a sample of a millisecond: the disturbed ones did not decide it
    assert samples.remarks == (timing.OFTEN_WAITED,)


def test_where_the_waiting_never_ends_the_result_says_so_and_is_not_called_precise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    samples = timed(BusyMachine(monkeypatch, lambda _: True), budget=30.0)
    assert samples.seconds
    assert samples.remarks == (timing.ALWAYS_WAITED,)
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
    assert counted(monkeypatch, before, after).waited(0.01) is waited
