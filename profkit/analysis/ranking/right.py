"""Which cases of a sweep are not right, and which of them somebody has to answer for."""

from __future__ import annotations

from profkit.core.types import CaseResult, CaseState, SweepDocument

BAD: tuple[CaseState, ...] = ("wrong", "failed", "crashed", "timed out")
# What the framework itself brings: a sweep holds others against it, and nobody who sweeps can mend it.
FRAMEWORK = ("PyTorch", "torch.compile")


def not_right(document: SweepDocument) -> tuple[CaseResult, ...]:
    """The cases that are wrong, failed, crashed or hung, in the order of the sweep."""
    return tuple(result for result in document.results if result.state in BAD)


def excused(result: CaseResult) -> bool:
    """Whether a case is wrong by the framework's own arithmetic: it is told as any other, and fails no sweep.

    The gradient of a mean over 2^26 elements is less than float16 can hold: PyTorch gives 0 there. What failed,
    crashed or hung is a fault of the machine or of the sweep, whoever's implementation it is.
    """
    return result.state == "wrong" and result.implementation in FRAMEWORK


def faulty(document: SweepDocument) -> tuple[CaseResult, ...]:
    """The cases for which a sweep fails: all that are not right but those that are excused."""
    return tuple(result for result in not_right(document) if not excused(result))
