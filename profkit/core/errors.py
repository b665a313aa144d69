"""Exceptions that carry their exit code and the line that fixes them.

And the interface that reports progress. Only the top of the command line catches these; everything below
raises and never prints.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


MORE_TIME = "--timeout SECONDS"


class ProfkitError(Exception):
    """A fault that a user can act on: one sentence, an exit code and, if there is one, the line that fixes it."""

    exit_code = 2

    def __init__(self, message: str, fix: str | None = None, code: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.fix = fix
        self.code = code  # where somebody asks which fault it is
        self.run: Path | None = None  # the folder of the run that met it, which holds what was measured


class UsageError(ProfkitError):
    """Wrong usage, or an input that cannot be read (exit 2)."""


class UnreadableReport(UsageError):
    """A report file that is truncated, empty, foreign or hostile (exit 2)."""


class NotANumber(ValueError):
    """A value that is NaN or infinite: what was computed with cannot have been measured."""


class MachineError(ProfkitError):
    """The machine lacks what is needed: a tool, a permission or the hardware (exit 3)."""

    exit_code = 3


class WorkloadError(ProfkitError):
    """The workload failed by itself: its own exit code or signal is in the message (exit 4)."""

    exit_code = 4


class Interrupted(ProfkitError):
    """The user or the terminal ended the run; what was finished is on disk (exit 130)."""

    exit_code = 130


@contextlib.contextmanager
def writing(path: Path, fix: str, remark: str = "") -> Iterator[None]:
    """Turn an OSError raised inside the block into a MachineError that names `path`."""
    try:
        yield
    except OSError as error:
        raise MachineError(f"cannot write {path}: {error.strerror or error}{remark}", fix) from error


@dataclass(frozen=True)
class Fault:
    """The meaning of a tool's error text, in words, and the line that fixes it."""

    reason: str
    fix: str | None = None
    consequence: bool = False  # where the workload failed, this may be no more than what follows from that
    code: str | None = None  # where somebody asks which fault it is


class Progress:
    """Receives the progress of each piece of work: `begin`, `tick` and `move`, then `end` or `fail`.

    By itself it shows nothing.
    """

    def tell(self, call: str, *words: str | float) -> None:
        """Handle any call of the methods below, given by its name; a subclass may override this alone."""

    def begin(self, title: str, detail: str = "") -> None:
        """Report that a piece of work starts."""
        self.tell("begin", title, detail)

    def tick(self, seconds: float) -> None:
        """Report that it is still going on, `seconds` after it began."""
        self.tell("tick", seconds)

    def move(self, detail: str) -> None:
        """Report how far it is: a terminal shows this at once, a log only now and then."""
        self.tell("move", detail)

    def end(self, result: str) -> None:
        """Report that it ended, with its result in a few words."""
        self.tell("end", result)

    def fail(self, result: str) -> None:
        """Report that it ended without its result, with the reason in a few words."""
        self.end(result)

    def note(self, text: str) -> None:
        """Report something that is worth a line of its own."""
        self.tell("note", text)


Silent = Progress  # nobody watches
