"""The switch for `perf stat` and `perf record`: their control channel, two fifos.

perf, started with `--delay=-1 --control fifo:CONTROL,ACK`, reads `enable` and `disable` lines and answers
each with `ack`, a newline and a NUL byte (perf 6.1; tools/perf/util/evlist.c writes sizeof the tag, which
includes the NUL). A round trip takes 0.1 to 0.3 ms.
"""

from __future__ import annotations

import fcntl
import os
import select
import time

from profkit.core.types import Fact

# Perf answers within a millisecond; a busy machine is granted much more, a dead perf not
ANSWER_SECONDS = 2.0


class PerfControl:
    """Turns perf's counting on and off. After the first failure every method does nothing; `reason` says why.

    One process at a time may hold the switch: perf counts the whole tree of processes together, so a second
    one's `disable` would end the first one's region. Who enters first holds it until it ends (a lock on `lock`).
    """

    def __init__(self, control: str, ack: str | None, lock: str) -> None:
        self.reason: Fact | None = None
        self._paths = (control, ack)
        self._lock_path = lock
        self._control = self._ack = self._lock = -1
        self._opened = False

    def enter(self, name: str) -> None:  # noqa: ARG002
        """Count from here."""
        if not self._opened:
            self._open()
        self._say(b"enable\n")

    def exit(self, name: str) -> None:  # noqa: ARG002
        """Count no further."""
        self._say(b"disable\n")

    def forget(self) -> None:
        """Leave the channel to the parent, in a forked child."""
        for descriptor in (self._control, self._ack, self._lock):
            if descriptor >= 0:
                os.close(descriptor)
        self._control = self._ack = self._lock = -1
        self._opened = False

    def _open(self) -> None:
        self._opened = True
        control, ack = self._paths
        if not self._take_lock():
            self.reason = Fact("other-process-in-region")
            return
        try:
            # non-blocking: if perf does not read the other end, this fails instead of waiting for ever
            self._control = os.open(control, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            if ack is not None:
                self._ack = os.open(ack, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            self.reason = Fact.of("perf-does-not-listen", said=error.strerror or "")

    def _take_lock(self) -> bool:
        try:
            self._lock = os.open(self._lock_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError:
            return True  # no place for a lock is no reason not to measure
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._lock)
            self._lock = -1
            self._opened = False  # try again at the next entry: the process that held it may have ended
            return False
        self.reason = None
        return True

    def _say(self, command: bytes) -> None:
        if self._control < 0:
            return
        try:
            self._drain()
            os.write(self._control, command)
            if self._ack >= 0 and not self._answered():
                self._fail(Fact.of("perf-does-not-answer", seconds=ANSWER_SECONDS))
        except OSError as error:  # perf has ended: the fifo has no reader any more
            self._fail(Fact.of("perf-left", said=error.strerror or ""))

    def _drain(self) -> None:
        """Throw away answers nobody waited for, so that the next one belongs to the next command."""
        while self._ack >= 0 and select.select([self._ack], [], [], 0)[0]:
            if not os.read(self._ack, 4096):
                break

    def _answered(self) -> bool:
        until, heard = time.monotonic() + ANSWER_SECONDS, b""
        while b"ack" not in heard:
            left = until - time.monotonic()
            if left <= 0 or not select.select([self._ack], [], [], left)[0]:
                return False
            piece = os.read(self._ack, 4096)
            if not piece:
                raise BrokenPipeError(32, "the other end is closed")
            heard += piece
        return True

    def _fail(self, reason: Fact) -> None:
        self.reason = reason
        self.forget()
        self._opened = True  # do not try again: each try would cost the time-out
