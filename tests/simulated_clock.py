"""A simulated clock in place of the real one, so that no test depends on how busy this machine is."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable

import pytest


class SimulatedClock:
    """Moved by `sleep`, and by 50 ns for each reading, so that a loop that waits for the next step ends."""

    def __init__(self) -> None:
        self.now = 0.0

    def read(self) -> float:
        """Seconds."""
        self.now += 50e-9
        return self.now

    def sleep(self, seconds: float) -> None:
        """What takes the host so long."""
        self.now += seconds


# A program's first lines: in its process only `time.sleep` and the readings themselves move the clock.
SIMULATED = f"""
{inspect.getsource(SimulatedClock)}
import time
clock = SimulatedClock()
time.perf_counter, time.sleep = clock.read, clock.sleep
from profkit.runtime.passes.processor import ProcessorWatch
from profkit.runtime.passes.processor import ReferenceLoop
ProcessorWatch.waited = lambda *_: False
ReferenceLoop.run_if_due = lambda _: None  # arithmetic takes no simulated time
"""


def put_in_place(monkeypatch: pytest.MonkeyPatch, clock: Callable[[], float]) -> None:
    """Let every module of profkit that has been imported read `clock` (seconds) as its perf_counter."""
    for name, module in list(sys.modules.items()):
        if name.startswith("profkit.") and hasattr(module, "perf_counter"):
            monkeypatch.setattr(module, "perf_counter", clock)
