"""Is the device idle? Asked with work of the judge's own, which needs no word of anybody.

Without MPS a device works for one process at a time: while another one has work on it, a tiny piece of work of ours
waits for the end of that, or of a time slice of milliseconds. On an idle device it is done in some 10 us. So the time
of such a piece tells, and nobody can forge it.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter

CALIBRATIONS = 50
TIMES_IDLE, ABOVE_IDLE = (
    5.0,
    150e-6,
)  # slower than so many times an idle device's answer, and seconds above it: busy
WAITING = 1.5e-3  # seconds that an answer may take while processes wait at a gate: the device looks after them in turn
IN_A_ROW = 2  # fast answers: one alone may have come between two time slices
LOOKS = 3  # slow answers in a row: a single one is a judge that waited for a processor
STILL_BUSY = 0.02  # seconds of slow answers alone, of a process that stands still: ten time slices
PATIENCE = 5.0  # seconds for work that was launched before the process was stopped
RECOVERY = 30.0  # seconds for a process that was killed inside of a kernel


class BusyDevice(Exception):
    """The device works, although the process that may use it stands still."""


class IdleProbe:
    """`ask` has the device do a tiny piece of work, and waits for it."""

    def __init__(self, ask: Callable[[], object], clock: Callable[[], float] = perf_counter) -> None:
        self._ask, self._clock = ask, clock
        self.idle_seconds = 0.0  # of an answer
        self.overruns = 0  # how often work went on after its process had said that it was done
        self.checks = self.early = 0  # before a process is woken, and how often there was work already
        self.waiting: set[int] = set()  # processes with work that waits at a gate
        self.calibrate()

    def calibrate(self) -> None:
        """Measure how fast an idle device answers; nothing of ours may run on it."""
        self._ask()
        answers = sorted(self._answer_seconds() for _ in range(CALIBRATIONS))
        self.idle_seconds = answers[len(answers) // 2]

    @property
    def busy_seconds(self) -> float:
        """An answer that takes longer is that of a device that works."""
        least = WAITING if self.waiting else self.idle_seconds + ABOVE_IDLE
        return max(TIMES_IDLE * self.idle_seconds, least)

    @property
    def is_idle(self) -> bool:
        """Whether some answers in a row are fast, now or soon."""
        fast = 0
        for _ in range(LOOKS + IN_A_ROW):
            fast = fast + 1 if self._answer_seconds() <= self.busy_seconds else 0
            if fast == IN_A_ROW:
                return True
        return False

    def check(self) -> None:
        """Raises BusyDevice where it works, and does not stop at once."""
        self.checks += 1
        slow: list[float] = []
        while len(slow) < LOOKS or sum(slow) < STILL_BUSY:
            seconds = self._answer_seconds()
            if seconds <= self.busy_seconds:
                self.early += len(slow) > 0
                return
            slow.append(seconds)
        median = sorted(slow)[len(slow) // 2]
        raise BusyDevice(
            f"the GPU works although the process of the kernels stands still: it takes {median * 1e6:.0f} us to do "
            f"nothing, and {self.idle_seconds * 1e6:.0f} us when it is idle"
        )

    def wait(self, patience: float = PATIENCE) -> None:
        """Until it is idle. Raises BusyDevice where it is not within `patience` seconds."""
        end = self._clock() + patience
        fast = slow = 0
        while fast < IN_A_ROW:
            if self._answer_seconds() > self.busy_seconds:
                fast, slow = 0, slow + 1
                if self._clock() > end:
                    raise BusyDevice(f"the GPU goes on working for more than {patience:g} s")
            else:
                fast += 1
        self.overruns += slow >= LOOKS

    def recover(self) -> bool:
        """Whether the device becomes idle after its process was killed; waits for that."""
        try:
            self.wait(RECOVERY)
        except BusyDevice:
            return False
        return True

    def _answer_seconds(self) -> float:
        begin = self._clock()
        self._ask()
        return self._clock() - begin
