"""Lets torch's own profiler look at the operations of a program without a GPU for a second, by the lines that call.

The window opens once the program computes steadily, in the run whose stacks are sampled. Which operations take a
line's time is known by it, and by their shapes what they need; a sample tells neither.
"""

from __future__ import annotations

import math
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from .operation_lines import VARIABLE, OperationLines

SECONDS = 1.0  # that the window is open
AFTER, AFTER_CALLS = 0.5, 20  # seconds and calls of torch before: the first ones load and allocate
MAX_CALLS = 1500  # in the window: to read some ten thousand events takes half a second
UNIT = "profkit-unit"  # marks where an entry of a region begins, and where an iteration of a benchmark ends


@contextmanager
def unsampled() -> Iterator[None]:
    """Leave out what is sampled meanwhile: what the profiler takes to write is no time of the program's line."""
    switch = getattr(sys.modules[str(__package__)], "switch", None)
    samplers = [sampler for sampler in getattr(switch, "members", ()) if hasattr(sampler, "paused_until")]
    for sampler in samplers:
        sampler.paused_until = math.inf
    try:
        yield
    finally:
        for sampler in samplers:
            sampler.paused_until = time.perf_counter()


class OperationWindow(OperationLines):
    """The lines around calls of torch, as annotations of its profiler instead of ranges for another program."""

    def __init__(self, out: str) -> None:
        super().__init__(out)
        self._trace = f"{os.path.splitext(out)[0]}.operations.json"
        self._first: float | None = None
        self._until = 0.0
        self._profiler: Any = None
        self._opening = False
        self._annotations: list[Any] = []
        self._annotation: Any = None  # torch's class of an annotation

    def _is_wanted(self) -> bool:
        """Return whether no tracer outside looks at the operations already."""
        return not os.environ.get(VARIABLE)

    def finish(self) -> None:
        """Write, as the process ends, what the window saw."""
        self._stop(None)

    def _install(self, torch: Any) -> None:
        super()._install(torch)
        annotation = self._annotation = torch.autograd.profiler.record_function

        def push(text: str) -> None:
            entered = annotation(text)
            entered.__enter__()
            self._annotations.append(entered)

        def pop() -> None:
            self._annotations.pop().__exit__(None, None, None)

        self._push, self._pop = push, pop

    def _begin(self) -> None:
        """Do nothing as torch initialises CUDA, whose kernels belong to another pass."""
        self._stop(None)

    def _follow_memory(self, torch: Any) -> None:
        """Leave a device's memory to the pass that is about it."""

    def _look_at_memory(self) -> None:
        """Do nothing: the memory of a device belongs to another pass."""

    def call(self, function: Any, args: Any, kwargs: Any) -> Any:
        """Return the call of a function of torch, with its line around it while the window is open."""
        if self._ended:
            return function(*args, **kwargs)
        if not self._on:
            self._open_when_steady()
            return function(*args, **kwargs)
        result = super().call(function, args, kwargs)
        if self._depth == 0 and (time.monotonic() > self._until or self._calls > MAX_CALLS):
            self._stop(None)
        return result

    def enter(self, _region: str) -> None:
        """Mark that an entry of a region begins: what one entry calls lies between two marks."""
        self._mark_unit("entry")

    def iteration(self, _index: int) -> None:
        """Mark that an iteration of a benchmark has ended."""
        self._mark_unit("iteration")

    def _mark_unit(self, kind: str) -> None:
        if self._on and self._depth == 0 and threading.get_ident() == self._main:
            with suppress(Exception), self._annotation(f"{UNIT} {kind}"):
                pass

    def _open_when_steady(self) -> None:
        self._calls += 1
        now = time.monotonic()
        if self._first is None:
            self._first = now
        if self._calls < AFTER_CALLS or now < self._first + AFTER:
            return
        torch = sys.modules["torch"]
        if torch.autograd._profiler_enabled():
            self._stop(None)
            return
        self._opening = True
        try:
            # One process has the window: of a pool, whoever comes first.
            os.close(os.open(self._trace, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
            # Not torch.profiler's, whose start imports the compiler: 900 modules, some seconds.
            with unsampled():
                self._profiler = torch.autograd.profiler.profile(record_shapes=True)
                self._profiler.__enter__()
            self._calls, self._until, self._on = 0, time.monotonic() + SECONDS, True
        except Exception:  # the file is another's, or torch was built without its profiler
            self._profiler = None
        finally:
            self._opening = False
        if not self._on:
            self._stop(None)

    def _stop(self, reason: str | None) -> None:
        """Close the window, and write what it saw, before another profiler of the program begins."""
        if self._opening:  # our own profiler is made
            return
        profiler, self._profiler = self._profiler, None
        super()._stop(reason)
        if profiler is not None:
            with suppress(Exception), unsampled():
                profiler.__exit__(None, None, None)
                profiler.export_chrome_trace(self._trace)

    def _forget(self) -> None:
        super()._forget()
        self._profiler = None
