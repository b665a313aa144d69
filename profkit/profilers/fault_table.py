"""A tool's error texts as a table: what each text means, and the line that fixes it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from profkit.core.errors import Fault


@dataclass(frozen=True)
class KnownFault:
    """`reason` says in words what `pattern` found means; {0}, {1} in it are the pattern's groups that matched."""

    pattern: re.Pattern[str]
    reason: str
    fix: str | None = None
    consequence: bool = False


def known(pattern: str, reason: str, fix: str | None = None, *, consequence: bool = False) -> KnownFault:
    """A row of the table. Case does not matter: it differs between versions."""
    return KnownFault(re.compile(pattern, re.IGNORECASE), reason, fix, consequence)


def first_known(table: Iterable[KnownFault], text: str) -> Fault | None:
    """What the first row of the table that stands in `text` means; None where none does."""
    for row in table:
        if (match := row.pattern.search(text)) is not None:
            groups = [group for group in match.groups() if group]
            return Fault(row.reason.format(*(groups or [""])), row.fix, row.consequence)
    return None
