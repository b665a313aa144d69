"""A few tests hold what was sampled to what really took place, while other programs hold the machine's cores."""

from __future__ import annotations

from collections.abc import Callable

TRIES = 3


def hold_once(attempt: Callable[[], None]) -> None:
    """Call until nothing is raised, three times at most; the last failure is the test's.

    For what chance may spoil once in a hundred times, and what a wrong sampler would spoil each time.
    """
    for _ in range(TRIES - 1):
        try:
            return attempt()
        except (AssertionError, LookupError):
            pass
    return attempt()
