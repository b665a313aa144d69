"""What an interleaved re-run says, as a type of its own: the walk through the nights reads it, too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from profkit.core.types import Change

# `more`: not decided, and rounds are left; `ambiguous`: not decided, and the rounds are spent.
ConfirmWord = Literal["different", "same", "ambiguous", "more"]


@dataclass(frozen=True)
class Confirmation:
    """The word after `rounds` rounds; `change` has the ratio of candidate over last good with its interval.

    `wanted`: how many rounds there should be before it is asked again (0 where it is decided).
    """

    word: ConfirmWord
    reason: str
    rounds: int
    wanted: int = 0
    change: Change | None = None
