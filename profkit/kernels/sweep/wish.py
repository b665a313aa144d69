"""How well a case is to be timed."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Wish:
    """`precision`: half-width of the median's 95 % interval as a share; `budget`: most seconds of timing per case.

    `cold`: on a device each call finds a flushed L2. `threads` are torch's on the CPU; 0: as many as it takes itself.
    """

    precision: float = 0.01
    budget: float = 1.0
    cold: bool = True
    threads: int = 0
