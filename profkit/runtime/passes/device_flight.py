"""Blocks of single calls, the next one launched while the device is still at the last one.

A block of `DeviceCalls.singly` costs the host's time to launch it and then the device's to carry it out. Here the two
go side by side: half the time where they are alike (H200: 0.08 ms a sample and not 0.17). What is believed is the same:
a block counts where its first event was still pending when its last call had been launched.
"""

from __future__ import annotations

from time import perf_counter
from typing import NamedTuple

from profkit.runtime.passes.device_samples import HOLD_LEAST, HOLD_MARGIN, MOST_SINGLY, PIECES, DeviceCalls

SPARE_SECONDS = 4e-3  # a block as short as that is launched before it is known whether anybody needs it
SHORTEST_HOLD = 20e-6
MOST_MISSES = 3  # blocks one after the other in which the host was too late: from then on one at a time


class _Block(NamedTuple):
    bank: int  # which half of the events is its own
    calls: int
    ahead: bool


class Flight:
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
