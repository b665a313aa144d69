"""Single samples of a function that leaves its work to a CUDA device, each taken in one of three ways.

- *Back to back*: events around calls as the workload makes them, the wall clock beside them.
- *Alone*: the same with the stream held until the host has launched every call, so that only the device is timed.
  Launch overhead is out of it without a CUDA graph: nothing is captured, no memory moves, the function is called as
  ever. Where the host cannot get that far ahead (it waits for the device inside), there is no such sample.
- *Singly*: one call between two events, many such calls behind one hold, with a flush of the L2 or a `setup` before
  each. So triton's do_bench and nvbench's cold measurement take theirs.

Blocks of single calls, the next one launched while the device is still at the last one.

A block of `DeviceCalls.singly` costs the host's time to launch it and then the device's to carry it out. Here the two
go side by side: half the time where they are alike (H200: 0.08 ms a sample and not 0.17). What is believed is the same:
a block counts where its first event was still pending when its last call had been launched.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import repeat
from time import perf_counter
from typing import NamedTuple

from profkit.runtime.passes.device_clock import LONGEST_HOLD, DeviceClock

# A driver takes some 1,000 launches before it makes the host wait (between 1,000 and 1,500: H200, driver 580).
MOST_AHEAD = 200  # calls launched behind one hold, and
MOST_AHEAD_SECONDS = 10e-3  # what that may take the host
MOST_SINGLY, MOST_SINGLY_SECONDS = 32, 20e-3
# What a kernel takes depends on how many kernels ran before it, modulo four: GELU of 1 MB 4.75, 5.15, 5.15 or 5.86 us
# on an H200, the same at every fourth launch. A call of one kernel behind a flush of one sees two of the four; which
# two is chance. So a flush is written in 1 to 4 pieces, a kernel each: by these numbers eight calls one after the other
# see every state twice, however many kernels each of them launches. (The pieces beyond the first add up to triangular
# numbers, and j (j - 1) / 2 + j n modulo 4 takes each value twice over eight j, whatever n.)
PIECES = (1, 1, 2, 3, 4, 1, 2, 3)
HOLD_LEAST, HOLD_MARGIN = 200e-6, 1.5  # seconds; times what the host needed before
SLOWED = (
    1.25  # a host that took so much longer than before was made to wait: by a full queue, or inside the call
)
TRIES = 12
MOST_HURRIED = 8  # calls in a block without a hold


class Sample(NamedTuple):
    """Seconds per call: between the events, by the wall clock, and of the host until all was launched."""

    device: float
    wall: float
    host: float
    ahead: bool  # everything was launched before the device began
    rest: float = 0.0  # what else the devices still had to do after the last event: seconds, not per call


class DeviceCalls:
    """`fn`, timed by events on the stream of `clock`. `loops` calls make a sample back to back."""

    def __init__(
        self,
        fn: Callable[[], object],
        clock: DeviceClock,
        setup: Callable[[], object] | None = None,
        *,
        cold: bool = False,
        graph: bool = False,
    ) -> None:
        self.fn, self.setup, self.clock, self.cold, self.graph = fn, setup, clock, cold, graph
        self.loops = 1
        self.host = float("inf")  # seconds that a call takes the host, the least that was seen
        self.ahead = MOST_SINGLY  # calls in one block of `singly`
        self.hold = LONGEST_HOLD  # what such a block waits for
        self._missed = 0  # blocks one after the other in which the host was too late
        self.hurried = False  # the host could not be kept out of `singly`
        self.queued = 1  # calls in one sample of `alone`

    def back_to_back(self, calls: int, hold: float = 0.0) -> Sample:
        """One sample of that many calls; with a setup, which runs before them, of one."""
        fn, clock = self.fn, self.clock
        first, last = clock.event(0), clock.event(1)
        if self.setup is not None:
            self.setup()
        clock.wait()
        held = hold > 0 and clock.hold(hold)
        begin = perf_counter()
        clock.record(first)
        for _ in repeat(None, calls):
            fn()
        launched = perf_counter()
        clock.record(last)
        ahead = held and clock.pending(first)
        clock.reach(last)
        reached = perf_counter()
        clock.wait()
        end = perf_counter()
        return Sample(
            device=clock.between(first, last) / calls,
            wall=(end - begin) / calls,
            host=(launched - begin) / calls,
            ahead=ahead,
            rest=end - reached,
        )

    def expect(self, like: Sample) -> None:
        """Fit blocks and holds to calls that take so long."""
        self.host = like.host
        within = min(MOST_SINGLY_SECONDS / max(like.wall, 1e-9), MOST_AHEAD_SECONDS / max(like.host, 1e-9))
        self.ahead = max(1, min(MOST_SINGLY, int(within)))
        if self.ahead > len(PIECES):
            self.ahead -= self.ahead % len(PIECES)
        self.hold = self._hold(self.ahead)

    def alone(self, count: int) -> list[Sample]:
        """`count` samples of the device alone; empty where there are none."""
        calls = max(1, min(MOST_AHEAD, self.loops, int(MOST_AHEAD_SECONDS / max(self.host, 1e-9))))
        hold = self._hold(calls)
        found: list[Sample] = []
        for _ in range(count + TRIES):
            sample = self.back_to_back(calls, hold)
            if sample.ahead:
                found.append(sample)
                if len(found) == count:
                    break
                continue
            longer = self._longer(calls, hold, sample.host)
            if longer is None and calls == 1:
                break
            calls, hold = (calls // 2, self._hold(calls // 2)) if longer is None else (calls, longer)
        self.queued = calls
        return found

    def singly(self) -> list[float]:
        """Seconds of each call of one block; empty where the host did not get ahead of the device."""
        fn, clock, setup, calls = self.fn, self.clock, self.setup, self.ahead
        clock.wait()
        if self.cold and not clock.can_flush:
            clock.flush()  # makes the buffer
            clock.wait()
        held = not self.hurried and clock.hold(self.hold)
        begin = perf_counter()
        for index in range(calls):
            if setup is not None:
                setup()
            if self.cold:
                clock.flush(PIECES[index % len(PIECES)])
            clock.record(clock.event(2 * index))
            fn()
            clock.record(clock.event(2 * index + 1))
        launched = perf_counter() - begin
        ahead = held and clock.pending(clock.event(0))
        clock.wait()
        seconds = [clock.between(clock.event(2 * i), clock.event(2 * i + 1)) for i in range(calls)]
        if ahead or self.hurried:
            self._missed = 0
            return seconds
        self._missed += 1
        longer = self._longer(calls, self.hold, launched / calls)
        if not held or self._missed > TRIES:
            self.hurried, self.ahead = True, MOST_HURRIED
            return seconds
        if longer is not None:
            self.hold = longer
        else:
            self.ahead = max(1, calls // 2)
            self.hold = self._hold(self.ahead)
        return []

    # ------------------------------------------------------------ how long to hold

    def _hold(self, calls: int) -> float:
        return min(LONGEST_HOLD, HOLD_LEAST + HOLD_MARGIN * calls * self.host)

    def _longer(self, calls: int, hold: float, host: float) -> float | None:
        """A hold for a host that took that long per call; None where fewer calls would help, and no longer hold."""
        waited = host > SLOWED * self.host
        self.host = min(self.host, host)
        if waited or calls * host <= hold or hold >= LONGEST_HOLD:
            return None
        return min(LONGEST_HOLD, HOLD_MARGIN * calls * host)


SPARE_SECONDS = 4e-3  # a block as short as that is launched before it is known whether anybody needs it
SHORTEST_HOLD = 20e-6
MOST_MISSES = 3  # blocks one after the other in which the host was too late: from then on one at a time


class _Block(NamedTuple):
    bank: int  # which half of the events is its own
    calls: int
    ahead: bool


class PipelinedBlocks:
    """Single calls of `calls`, which have no setup, with one block on its way where that pays."""

    def __init__(self, calls: DeviceCalls) -> None:
        self._calls = calls
        self._flying: _Block | None = None
        self._device = 0.0  # seconds that the device needed for the last block
        self._host = 0.0  # and the host for each call, the least that was seen: a full queue makes it wait
        self._misses = 0

    def block(self, wanted: int) -> list[float]:
        """Seconds of each call of one block; empty where the host did not get ahead of the device.

        `wanted` is how many samples are needed before anybody decides whether there are enough.
        """
        if self._misses >= MOST_MISSES:
            return self.rest() or self._calls.singly()
        block = self._flying or self._launch(0, busy=False)
        more = wanted > block.calls or 0.0 < self._device < SPARE_SECONDS
        self._flying = self._launch(1 - block.bank, busy=True) if more else None
        return self._land(block)

    def rest(self) -> list[float]:
        """The block that is on its way, if there is one."""
        block, self._flying = self._flying, None
        return self._land(block) if block is not None else []

    def _launch(self, bank: int, *, busy: bool) -> _Block:
        timed, clock = self._calls, self._calls.clock
        calls, first = timed.ahead, 2 * MOST_SINGLY * bank
        if not busy:
            clock.wait()
            if timed.cold and not clock.can_flush:
                clock.flush()  # makes the buffer
                clock.wait()
        hold = HOLD_LEAST + HOLD_MARGIN * calls * max(timed.host, self._host)
        if busy:  # what the device is at holds it, too
            hold -= self._device
        held = hold < SHORTEST_HOLD or clock.hold(hold)
        begin = perf_counter()
        for index in range(calls):
            if timed.cold:
                clock.flush(PIECES[index % len(PIECES)])
            clock.record(clock.event(first + 2 * index))
            timed.fn()
            clock.record(clock.event(first + 2 * index + 1))
        spent = (perf_counter() - begin) / calls
        self._host = min(self._host or spent, spent)
        ahead = held and clock.pending(clock.event(first))
        self._misses = 0 if ahead else self._misses + 1
        return _Block(bank, calls, ahead)

    def _land(self, block: _Block) -> list[float]:
        clock = self._calls.clock
        first = 2 * MOST_SINGLY * block.bank
        last = first + 2 * block.calls - 1
        clock.reach(clock.event(last))
        self._device = clock.between(clock.event(first), clock.event(last))
        if not block.ahead:
            return []
        places = range(first, last, 2)
        return [clock.between(clock.event(place), clock.event(place + 1)) for place in places]
