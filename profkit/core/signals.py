"""A killed terminal and a polite `kill` end a run the way Ctrl-C does, so that what was measured is kept."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType

_ENDINGS = ("SIGTERM", "SIGHUP")


@contextlib.contextmanager
def raise_on_signals() -> Iterator[None]:
    """Turn SIGTERM and SIGHUP into KeyboardInterrupt inside the block (main thread only; elsewhere: as before)."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    former = {}
    for name in _ENDINGS:
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN:  # nohup stays nohup
            former[number] = signal.signal(number, _interrupt)
    try:
        yield
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)


def _interrupt(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
    raise KeyboardInterrupt


@contextlib.contextmanager
def defer_interrupts() -> Iterator[threading.Event]:
    """Inside the block Ctrl-C, SIGTERM and SIGHUP only set the event: for what must be brought to its end.

    Main thread only; elsewhere no signal arrives and the event stays unset.
    """
    hurry = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield hurry
        return
    former = {}
    for name in ("SIGINT", *_ENDINGS):
        number = getattr(signal, name, None)
        if number is not None and callable(signal.getsignal(number)):  # what would end it as it should
            former[number] = signal.signal(number, lambda *_: hurry.set())
    try:
        yield hurry
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)
