"""Counts the exceptions that the program's functions raise or meet first, in the beginning of a run.

It traces calls, which costs a fifth of a microsecond each; so it goes along with a pass whose times count for nothing,
or for a short part of another one, and ends after so many calls.
"""

from __future__ import annotations

import sys
from types import CodeType, FrameType
from typing import Any

from .own_library import is_own

MAX_EVENTS = 200_000  # calls, returns and exceptions of the program's functions
MAX_CALLS = 1_000_000  # of all functions
MAX_LINES, MIN_EXCEPTIONS = 10, 100  # that are reported, and exceptions at each
_ENDS = (StopIteration, StopAsyncIteration, GeneratorExit)  # how a loop ends
_INSTALLED = ("site-packages", "dist-packages", "/lib/python")


class RaiseCounter:
    """Of the thread that starts it; not where the program or another tool traces."""

    def __init__(self, events: int = MAX_EVENTS) -> None:
        self._events, self._calls = events, MAX_CALLS
        self._functions: dict[int, tuple[CodeType, list[int]] | None] = {}  # None: not of the program
        self._raised: dict[tuple[int, int, str], int] = {}

    def start(self) -> None:
        """Count exceptions from here on."""
        if sys.gettrace() is None:
            sys.settrace(self._on_call)

    def stop(self) -> None:
        """Count no more exceptions."""
        if sys.gettrace() == self._on_call:
            sys.settrace(None)

    def rows(self) -> list[list[object]]:
        """Return function, file, line, exception, its number, and the function's calls, the most frequent first."""
        found = []
        for (key, line, kind), count in sorted(self._raised.items(), key=lambda item: -item[1])[:MAX_LINES]:
            known = self._functions[key]
            if known is not None and count >= MIN_EXCEPTIONS:
                code, calls = known
                name = getattr(code, "co_qualname", code.co_name)
                found.append([name, code.co_filename, line, kind, count, calls[0]])
        return found

    def _on_call(self, frame: FrameType, event: str, arg: object) -> Any:  # noqa: ARG002
        self._calls -= 1
        code = frame.f_code
        key = id(code)
        if key in self._functions:
            known = self._functions[key]
        else:
            file = code.co_filename
            users = not (file.startswith("<") or is_own(file) or any(part in file for part in _INSTALLED))
            known = self._functions[key] = (code, [0]) if users else None
        if known is None:
            if self._calls <= 0:
                self.stop()
            return None
        known[1][0] += 1
        frame.f_trace_lines = False
        return self._on_event

    def _on_event(self, frame: FrameType, event: str, arg: Any) -> Any:
        self._events -= 1
        if event == "exception" and not issubclass(arg[0], _ENDS):
            deeper = arg[2].tb_next if arg[2] is not None else None
            if deeper is None or self._functions.get(id(deeper.tb_frame.f_code)) is None:
                place = (id(frame.f_code), frame.f_lineno, arg[0].__name__)
                if place in self._raised or len(self._raised) < 1000:
                    self._raised[place] = self._raised.get(place, 0) + 1
        if self._events <= 0:
            self.stop()
        return self._on_event
