"""One run of a workload under an instrument, whose result is written however the workload ends."""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import signal
import sys
import threading
from typing import Protocol

from . import program

KINDS = {
    "cprofile": "calls",
    "tracemalloc": "allocations",
    "tracemalloc-region": "region_allocations",
    "torch": "device_trace",
}
USAGE = f"usage: python HOST {'|'.join(KINDS)} OUT [--] script|-m module|-c code [arguments]"


class Instrument(Protocol):
    """What a pass of this folder is: also the switch that `profkit.region` calls."""

    def start(self) -> None:
        """Measure from here; the workload's imports come next."""

    def finish(self) -> None:
        """Stop and write the result."""

    def forget(self) -> None:
        """In a forked child: stop, write nothing."""


class Session:
    """Sees to it that `instrument.finish` runs once, in the first process only, also on SIGTERM."""

    def __init__(self, instrument: Instrument) -> None:
        self._instrument = instrument
        self._pid = os.getpid()
        self._state = "running"
        self._ended_by: int | None = None
        os.register_at_fork(after_in_child=self._forget)

    def run(self, words: list[str]) -> None:
        """Run the program in `words`; however it ends passes through."""
        if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            signal.signal(signal.SIGTERM, self._terminate)
        try:
            self._instrument.start()
            program.run(words)
        except BaseException:
            program.hide_host()
            raise
        finally:
            self.finish()

    def finish(self) -> None:
        """Write the result, once, in the first process."""
        if self._state != "running" or os.getpid() != self._pid:
            return
        self._state = "finishing"
        try:
            self._instrument.finish()
        except Exception as error:  # the workload's own result and exit code come first
            print(f"profkit: the result of this pass is lost: {error}", file=sys.stderr)
        self._state = "finished"
        if self._ended_by is not None:
            self._die(self._ended_by)

    def _forget(self) -> None:
        self._instrument.forget()
        # A child that waits in a system call would not get to a handler in Python; one that is terminated by its
        # parent, as multiprocessing does it, would then never end.
        if signal.getsignal(signal.SIGTERM) == self._terminate:
            with contextlib.suppress(ValueError):
                signal.signal(signal.SIGTERM, signal.SIG_DFL)

    def _terminate(self, number: int, _: object) -> None:
        if self._state == "finishing":
            self._ended_by = number
            return
        self.finish()
        self._die(number)

    def _die(self, number: int) -> None:
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)


class Threads:
    """Counts the threads that the `threading` module starts, at the cost of one event in each."""

    def __init__(self) -> None:
        self.started = 0
        threading.setprofile(self._first_event)

    def _first_event(self, *_: object) -> None:
        sys.setprofile(None)
        self.started += 1


def write_whole(path: str, data: bytes) -> None:
    """Write a file whole or not at all."""
    partial = f"{path}.tmp"
    with open(partial, "wb") as file:
        file.write(data)
    os.replace(partial, path)


def write_json(path: str, data: dict[str, object]) -> None:
    """Write one JSON document."""
    write_whole(path, json.dumps(data, allow_nan=False).encode())


def is_own(path: str) -> bool:
    """Whether a source file belongs to what measures, and so to no workload."""
    return path.startswith(_OWN)


_HERE = os.path.dirname(os.path.abspath(__file__))
_OWN = tuple(os.path.join(os.path.dirname(os.path.dirname(_HERE)), room, "") for room in ("passes", "region"))


def main(arguments: list[str]) -> None:
    """`KIND OUT [--] program`; exits with 2 when that is not what was given."""
    if arguments[2:3] == ["--"]:
        del arguments[2]
    if len(arguments) < 3 or arguments[0] not in KINDS:
        print(USAGE, file=sys.stderr)
        sys.exit(2)
    if arguments[2] in ("-m", "-c") and len(arguments) < 4:
        print(f"{arguments[2]} needs an argument; {USAGE}", file=sys.stderr)
        sys.exit(2)
    instrument = importlib.import_module(f"{__package__}.{KINDS[arguments[0]]}").Instrument(
        os.path.abspath(arguments[1])
    )
    sys.modules[str(__package__)].switch = instrument  # type: ignore[attr-defined]
    Session(instrument).run(arguments[2:])
