"""What a bisection says on its way: of its progress, of what cannot be tested, and of how to go on."""

from __future__ import annotations

import shlex
from pathlib import Path

from profkit.core.errors import ProfkitError, UsageError
from profkit.core.progress import Progress
from profkit.core.types import BisectDocument, Change
from profkit.regression.paired.checkout import NoCheckout

SHORT = 10  # digits of a commit


def resume_line(document: BisectDocument, folder: Path) -> str:
    """What is typed to go on."""
    words = ["profkit", "bisect", document.good, document.bad, "--resume", str(folder)]
    words += ["--setup", document.setup] if document.setup is not None else []
    return shlex.join([*words, "--", *document.command])


def reason_of(fault: Exception) -> tuple[str, str | None]:
    """Why a commit cannot be tested, on one line, and what would fix that."""
    if isinstance(fault, NoCheckout):
        log = shlex.join(["cat", str(fault.log)]) if fault.log is not None else None
        return fault.reason, fault.fix or log
    if isinstance(fault, ProfkitError):
        lines = [line.strip() for line in fault.message.splitlines()] or [""]
        return " ".join(dict.fromkeys([lines[0], lines[-1]])), fault.fix
    return "it marks other regions than the commit it is compared with", None


def as_usage(fault: Exception) -> ProfkitError:
    """The fault of an end, without which nothing can be searched."""
    return fault if isinstance(fault, ProfkitError) else UsageError(*reason_of(fault))


class Beside:
    """Tells how far a test is, and beside it which commits are the likeliest."""

    def __init__(self, inner: Progress, likeliest: str) -> None:
        self._inner, self._likeliest = inner, likeliest

    def begin(self, title: str, detail: str = "") -> None:
        """As it is."""
        self._inner.begin(title, detail)

    def tick(self, seconds: float) -> None:
        """As it is."""
        self._inner.tick(seconds)

    def move(self, detail: str) -> None:
        """With the likeliest commits behind it."""
        self._inner.move(f"{detail}; {self._likeliest}")

    def end(self, result: str) -> None:
        """As it is."""
        self._inner.end(result)

    def note(self, text: str) -> None:
        """As it is."""
        self._inner.note(text)


def percent(change: Change) -> str:
    """The change with its interval: `+5.0 % [+4.1, +5.9]`."""
    if change.ratio is None or change.low is None or change.high is None:
        return "no ratio"
    sizes = [100 * (value - 1) for value in (change.ratio, change.low, change.high)]
    return f"{sizes[0]:+.1f} % [{sizes[1]:+.1f}, {sizes[2]:+.1f}]"
