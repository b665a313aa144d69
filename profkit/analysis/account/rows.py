"""Rows of an account, whatever they were measured on."""

from __future__ import annotations

from collections.abc import Iterable

from profkit.core.types import AccountRow

MIN_SHARE = 0.005  # of the step: smaller rows are part of the rest
MAX_ROWS = 20


def with_rest(rows: Iterable[AccountRow], seconds: float) -> tuple[AccountRow, ...]:
    """Return the largest rows, and one of all others; what they lack to the step is in it, too."""
    ordered = sorted(rows, key=lambda row: -row.seconds)
    shown = [row for row in ordered[:MAX_ROWS] if row.seconds >= MIN_SHARE * seconds]
    rest = seconds - sum(row.seconds for row in shown)
    if rest < 1e-3 * seconds:
        return tuple(shown)
    small = ordered[len(shown) :]
    left = rest - sum(row.seconds for row in small)
    known = all(row.least is not None for row in small) and left < 1e-3 * seconds
    return (*shown, AccountRow("rest", rest, least=sum(row.least or 0.0 for row in small) if known else None))
