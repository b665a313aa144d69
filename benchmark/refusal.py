"""Refuse to run a workload with a sentence and an exit code; the codes are those of profkit."""

from __future__ import annotations

import sys
from shlex import quote

USAGE = 2  # wrong usage
MACHINE = 3  # this machine cannot run it
WRONG = 1  # it ran, and its result is wrong


def install(what: str) -> str:
    """Return the command that installs a package, or a folder, for this interpreter."""
    return f"{quote(sys.executable)} -m pip install {quote(what)}"


class Refusal(Exception):
    """End the script with one sentence on standard error. Only `harness.main` catches it."""

    def __init__(self, exit_code: int, sentence: str) -> None:
        super().__init__(sentence)
        self.exit_code = exit_code
