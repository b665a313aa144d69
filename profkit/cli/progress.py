"""Progress on standard error: a line that moves on a terminal, a line per piece of work elsewhere."""

from __future__ import annotations

import shutil
import sys
import time
from typing import TextIO

from profkit.core.errors import Progress, Silent
from profkit.reporting.plain_text import disarm_commands, text_for_others

LOG_SECONDS = 30.0  # between two lines of a log that say how far it is


def progress_for(*, quiet: bool, stream: TextIO | None = None) -> Progress:
    """Return what suits the stream: nothing when quiet, a moving line on a terminal, plain lines in a log."""
    stream = stream if stream is not None else sys.stderr
    if quiet:
        return Silent()
    return _TerminalProgress(stream) if stream.isatty() else _LogProgress(stream)


class _LogProgress(Progress):
    """One line when a piece of work ends: what a CI log wants."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._spoken = 0.0

    def begin(self, title: str, detail: str = "") -> None:
        self._spoken = time.monotonic()
        self._write(f"{title}: {detail}" if detail else title)

    def move(self, detail: str) -> None:
        if time.monotonic() - self._spoken >= LOG_SECONDS:
            self._spoken = time.monotonic()
            self._write(f"  {detail}")

    def end(self, result: str) -> None:
        self._write(f"  {result}")

    def note(self, text: str) -> None:
        self._write(f"  {text}")

    def _write(self, line: str) -> None:
        self._stream.write(disarm_commands(text_for_others(line)) + "\n")
        self._stream.flush()


class _TerminalProgress(Progress):
    """The present piece of work on one line, with its seconds; finished ones stay above it."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._title = ""
        self._detail = ""

    def begin(self, title: str, detail: str = "") -> None:
        self._title, self._detail = title, detail
        self.tick(0.0)

    def tick(self, seconds: float) -> None:
        self._line(f"  … {self._title:<12} {seconds:5.0f} s  {self._detail}")

    def move(self, detail: str) -> None:
        self._detail = detail  # the next tick shows it

    def end(self, result: str) -> None:
        self._end("✓", result)

    def fail(self, result: str) -> None:
        self._end("✗", result)

    def _end(self, sign: str, result: str) -> None:
        self._line(f"  {sign} {self._title:<12} {result}")
        self._stream.write("\n")
        self._stream.flush()
        self._title = self._detail = ""

    def note(self, text: str) -> None:
        self._line(f"    {text}")
        self._stream.write("\n")
        self._stream.flush()

    def _line(self, text: str) -> None:
        width = shutil.get_terminal_size().columns - 1
        self._stream.write("\r\033[K" + text_for_others(text)[:width])
        self._stream.flush()
