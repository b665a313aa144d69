"""Let SIGTERM and SIGHUP end a run the way Ctrl-C does, so that what was measured is kept."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

_ENDINGS = (signal.SIGTERM, signal.SIGHUP)


@contextlib.contextmanager
def raise_on_signals() -> Iterator[None]:
    """Turn SIGTERM and SIGHUP into KeyboardInterrupt inside the block (main thread only; no effect elsewhere)."""
    interrupt = signal.default_int_handler
    with _handled_by(interrupt, _ENDINGS, lambda former: former is not signal.SIG_IGN):  # nohup stays nohup
        yield


@contextlib.contextmanager
def defer_interrupts() -> Iterator[threading.Event]:
    """Make Ctrl-C, SIGTERM and SIGHUP only set the event inside the block, for work that must reach its end.

    Main thread only; elsewhere no signal arrives and the event stays unset.
    """
    arrived = threading.Event()
    # Only what would end the process
    with _handled_by(lambda *_: arrived.set(), (signal.SIGINT, *_ENDINGS), callable):
        yield arrived


@contextlib.contextmanager
def _handled_by(
    handler: Callable[[int, FrameType | None], None],
    numbers: tuple[int, ...],
    replaces: Callable[[Any], bool],
) -> Iterator[None]:
    """Install the handler during the block in place of those that it `replaces`, in the main thread only."""
    former = {}
    if threading.current_thread() is threading.main_thread():
        for number in numbers:
            if replaces(signal.getsignal(number)):
                former[number] = signal.signal(number, handler)
    try:
        yield
    finally:
        for number, before in former.items():
            signal.signal(number, before)
