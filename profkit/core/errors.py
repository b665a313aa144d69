"""What may go wrong, as exceptions that carry their exit code and the line that fixes it; how far work is.

Only the top of the command line catches these; everything below raises and never prints.
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
    """A fault a user can act on: one sentence, an exit code and, where there is one, the line that fixes it."""

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
    """This machine cannot do it: a tool, a permission or the hardware is missing (exit 3)."""

    exit_code = 3


class WorkloadError(ProfkitError):
    """The workload failed by itself: its own exit code or signal is in the message (exit 4)."""

    exit_code = 4


class Interrupted(ProfkitError):
    """The user or the terminal ended the run; what was finished is on disk (exit 130)."""

    exit_code = 130


@contextlib.contextmanager
def writing(path: Path, fix: str, remark: str = "") -> Iterator[None]:
    """What the system refuses inside of the block is a MachineError that names `path`."""
    try:
        yield
    except OSError as error:
        raise MachineError(f"cannot write {path}: {error.strerror or error}{remark}", fix) from error


@dataclass(frozen=True)
class Fault:
    """What a tool's error text means, in words, and the one line that fixes it."""

    reason: str
    fix: str | None = None
    consequence: bool = False  # where the workload failed, this may be no more than what follows from that
    code: str | None = None  # where somebody asks which fault it is


class Progress:
    """Told of each piece of work in turn: `begin`, `tick` and `move`, then `end` or `fail`; this one says nothing."""

    def tell(self, call: str, *words: str | float) -> None:
        """All that it is told, by the name of the method."""

    def begin(self, title: str, detail: str = "") -> None:
        """A piece of work starts."""
        self.tell("begin", title, detail)

    def tick(self, seconds: float) -> None:
        """It goes on, `seconds` after it began."""
        self.tell("tick", seconds)

    def move(self, detail: str) -> None:
        """How far it is: a line that moves says it at once, a log now and then."""
        self.tell("move", detail)

    def end(self, result: str) -> None:
        """It ended: `result` in a few words."""
        self.tell("end", result)

    def fail(self, result: str) -> None:
        """It ended without what it was for: why, in a few words."""
        self.end(result)

    def note(self, text: str) -> None:
        """Something worth a line of its own."""
        self.tell("note", text)


Silent = Progress  # nobody watches
