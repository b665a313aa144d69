"""torch's MPS device in the workload's own process: whether it is in use, waiting for it, the switch for Instruments.

Nothing is imported for the device, and nothing is made on it: a process whose torch holds no memory of it has launched
nothing there, and is left alone. The functions are torch's public ones (`torch.mps`, from torch 2.0 on).

- torch hands its work to Metal late: a command buffer is committed when it is full, or waited for. `synchronize`
  commits and waits, so behind it everything that was launched has run.
- A forked child of a process that used Metal hangs or crashes there (github.com/pytorch/pytorch/pull/178037): there the
  device is never asked.
- A trace of Instruments cannot be switched on and off: what it saw of a region is cut out of it afterwards. For that
  each entry leaves its begin and end in ns of mach absolute time (CLOCK_UPTIME_RAW, clock_gettime(3) on macOS).
- The signpost is for people who look at the trace, and a second way to find the region: `kdebug_signpost_start` and
  `_end` of libSystem (sys/kdebug_signpost.h). Its arguments are the number of the entry, MARK, 0 and a colour.
  os_signpost would show the region's name, but takes it from a compiled image.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any


def mps_is_available() -> bool:
    """Return whether torch is loaded and could use the device, though it may not have begun to."""
    torch = sys.modules.get("torch")
    try:
        return bool(torch is not None and torch.backends.mps.is_available())
    except Exception:  # a torch without MPS, one half imported, or something else of that name
        return False


def mps_in_use() -> Any:
    """Return the module `torch.mps` where this process uses the device, else None."""
    if not mps_is_available():
        return None
    try:
        mps: Any = sys.modules["torch"].mps
        bad_fork = getattr(mps, "_is_in_bad_fork", None)
        if bad_fork is not None and bad_fork():
            return None
        # the second also counts memory of deleted tensors that torch keeps, on which work may still be running
        used = mps.current_allocated_memory() > 0 or mps.driver_allocated_memory() > 0
    except Exception:
        return None
    return mps if used else None


MAX_SPANS = 20_000  # of one process, some 40 bytes each in its record; later entries are counted, not kept
MARK = 0x70726F66  # the second argument of each signpost of ours: "prof"
CODE, COLOUR = 1, 1  # of all regions; green
# CLOCK_MONOTONIC stands in elsewhere, where no trace is on it: for tests.
CLOCK: int = getattr(time, "CLOCK_UPTIME_RAW", getattr(time, "CLOCK_MONOTONIC", 0))

SignpostFunction = Callable[[int, int, int, int, int], object]  # code and four arguments


class SignpostSwitch:
    """Records the span of each entry, and sets signposts around it; does not change what Instruments records."""

    def __init__(self, device: Any) -> None:
        """Wait for `device` at both ends."""
        self.left_out = 0
        # begin and end of each entry that has ended, in ns of mach absolute time
        self.spans: list[tuple[int, int]] = []
        self._wait = device
        self._entry = 0
        self._begin: int | None = None
        self._start, self._end = _load_signposts()

    def enter(self, name: str) -> None:  # noqa: ARG002
        """Wait for the device, note the time, and set the signpost."""
        self._wait.wait()
        self._entry += 1
        self._begin = time.clock_gettime_ns(CLOCK)
        if self._start is not None:
            self._start(CODE, self._entry, MARK, 0, COLOUR)

    def exit(self, name: str) -> None:  # noqa: ARG002
        """Wait for the region's own work, end the signpost, and note the time."""
        if self._begin is None:
            return
        self._wait.wait()
        begin, self._begin = self._begin, None
        if self._end is not None:
            self._end(CODE, self._entry, MARK, 0, COLOUR)
        if len(self.spans) < MAX_SPANS:
            self.spans.append((begin, time.clock_gettime_ns(CLOCK)))
        else:
            self.left_out += 1

    def forget(self) -> None:
        """Forget the spans in a forked child: they and Metal are the parent's."""
        self.spans, self.left_out, self._begin = [], 0, None
        self._wait.forget()


def _load_signposts() -> tuple[SignpostFunction | None, SignpostFunction | None]:
    """Return libSystem's two functions; they keep Python's lock, since releasing it costs more than they do."""
    try:
        import ctypes

        library = ctypes.PyDLL(None)
        functions: list[Any] = [library.kdebug_signpost_start, library.kdebug_signpost_end]
    except (ImportError, OSError, AttributeError, TypeError):  # no ctypes, or not a Mac
        return None, None
    for function in functions:
        function.argtypes = (ctypes.c_uint32, *(4 * (ctypes.c_size_t,)))
        function.restype = ctypes.c_int
    return functions[0], functions[1]
