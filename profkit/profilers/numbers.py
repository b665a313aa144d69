"""Parses numbers that tools print for people, with the decimal sign and the digit groups of any locale."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

# A point or a comma, where it is not the decimal sign; blanks of four widths, apostrophes, Arabic's own sign.
GROUP_SIGNS = ".,'\u2019\u066c \xa0\u2009\u202f"
DECIMAL_SIGNS = (".", ",")


def _pattern(decimal: str) -> re.Pattern[str]:
    """Return the pattern of a number with this decimal sign.

    Its whole part is bare, in groups of three, or as in India in twos before the last three digits. No group
    stands behind a zero: `0,123` is a fraction.
    """
    sign = re.escape(GROUP_SIGNS.replace(decimal, ""))
    whole = (
        rf"[1-9]\d{{0,2}}(?P<sign>[{sign}])\d{{3}}(?:(?P=sign)\d{{3}})*"
        rf"|[1-9]\d?(?P<indian>[{sign}])(?:\d{{2}}(?P=indian))+\d{{3}}|\d+"
    )
    return re.compile(rf"[-+]?(?:{whole})(?:{re.escape(decimal)}\d*)?(?:[eE][-+]?\d+)?", re.ASCII)


_PATTERNS = {decimal: _pattern(decimal) for decimal in DECIMAL_SIGNS}


def parse_number(text: str, decimal: str) -> float | None:
    """Parse `text` under one decimal sign, with groups or without; None where it is no number."""
    if _PATTERNS[decimal].fullmatch(text) is None:
        return None
    bare = text.translate({ord(sign): None for sign in GROUP_SIGNS if sign != decimal})
    value = float(bare.replace(decimal, "."))
    return value if math.isfinite(value) else None


class NumberStyle:
    """Finds the decimal sign of one report, by the numbers that make sense with one sign alone.

    `1,234` may be either. `0,5`, `12,34` and `1.234.567` have a decimal comma, `1,234,567` has none.
    """

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self.seen: set[str] = set()
        for text in texts:
            self.see(text)

    def see(self, text: str) -> None:
        """Learn from one number of the report."""
        fitting = [sign for sign in DECIMAL_SIGNS if parse_number(text, sign) is not None]
        if len(fitting) == 1:
            self.seen.update(fitting)

    def value(self, text: str) -> float | None:
        """Return the number; None for what is none, or what the report leaves ambiguous."""
        signs = self.seen if len(self.seen) == 1 else DECIMAL_SIGNS
        values = {parse_number(text, sign) for sign in signs}
        if values == {None}:  # it contradicts the others, and can be read in one way alone
            values = {parse_number(text, sign) for sign in DECIMAL_SIGNS}
        values -= {None}
        return values.pop() if len(values) == 1 else None


def whole_number(text: str) -> float | None:
    """Return a count, in which every sign parts groups since it has no decimals; None where it cannot be one."""
    values = {parse_number(text, sign) for sign in DECIMAL_SIGNS if sign not in text} - {None}
    return values.pop() if len(values) == 1 else None
