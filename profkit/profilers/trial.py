"""Runs a small command and tells how it went in few words; the doctor's only way to touch a tool."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from profkit.core import process
from profkit.core.errors import UsageError


@dataclass(frozen=True)
class Trial:
    """A command that was tried: did it end well, what did it print, and in words how it ended."""

    ok: bool
    output: str
    ending: str
    returncode: int

    @property
    def first_line(self) -> str:
        """The first line that says something."""
        return next((line.strip() for line in self.output.splitlines() if line.strip()), "it printed nothing")

    @property
    def last_line(self) -> str:
        """The last line that says something: where a Python program tells its error."""
        lines = self.output.splitlines()[::-1]
        return next((line.strip() for line in lines if line.strip()), "it printed nothing")


def attempt(argv: Sequence[str], env: Mapping[str, str] | None = None, seconds: float = 10.0) -> Trial:
    """Run `argv` for at most `seconds`, in plain English; never raises for a command that fails."""
    try:
        outcome = process.run(argv, env={"LC_ALL": "C", **(env or {})}, timeout=seconds)
    except UsageError as error:
        return Trial(False, error.message, error.message, 127)
    return Trial(outcome.ok, outcome.output_tail, outcome.ending(), outcome.returncode)
