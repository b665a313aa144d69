"""How long work tells somebody that it goes on. Packages report to this; only the command line knows a screen."""

from __future__ import annotations


class Progress:
    """Told of each piece of work in turn: `begin`, `tick` and `move`, then `end`; this one says nothing."""

    def begin(self, title: str, detail: str = "") -> None:
        """A piece of work starts."""

    def tick(self, seconds: float) -> None:
        """It goes on, `seconds` after it began."""

    def move(self, detail: str) -> None:
        """How far it is: a line that moves says it at once, a log now and then."""

    def end(self, result: str) -> None:
        """It ended: `result` in a few words."""

    def note(self, text: str) -> None:
        """Something worth a line of its own."""


Silent = Progress  # nobody watches
