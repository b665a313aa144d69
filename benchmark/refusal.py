"""The one way a workload says no: a sentence and an exit code, the same codes that profkit itself has."""

from __future__ import annotations

USAGE = 2  # wrong usage
MACHINE = 3  # this machine cannot do it
WRONG = 1  # it ran, and its result is wrong


class Refusal(Exception):
    """Ends the script with one sentence on standard error. Only `harness.main` catches it."""

    def __init__(self, exit_code: int, sentence: str) -> None:
        super().__init__(sentence)
        self.exit_code = exit_code
