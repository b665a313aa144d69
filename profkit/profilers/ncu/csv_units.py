"""Numbers and units as ncu prints them, back to base units: `1,179.22`, `Gbyte/s`, `usecond`, `cycle/nsecond`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

# Prefixes are decimal: 102,400 bytes of shared memory are printed as 102.400000 Kbyte.
_PREFIXES = {"": 1.0, "K": 1e3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
_NANOSECONDS = {
    **dict.fromkeys(("ns", "nsecond", "nanosecond"), 1.0),
    **dict.fromkeys(("us", "usecond", "microsecond"), 1e3),
    **dict.fromkeys(("ms", "msecond", "millisecond"), 1e6),
    **dict.fromkeys(("s", "second", "sec"), 1e9),
}
_SCALED = re.compile(r"([KkMGTP]?)(byte|hz|Hz)")
_NAN = {"nan", "-nan", "nan(ind)", "-nan(ind)"}
_SPACES = str.maketrans("", "", "\u202f\u00a0' ")  # what other locales put between thousands
_FRACTION = re.compile(r"-?(?:\d{1,3}(?:[.,]\d{3})*|\d+)([.,])(\d+)")


@lru_cache(maxsize=512)
def base_unit(unit: str) -> tuple[float, str]:
    """By how much a value in `unit` is to be multiplied, and the base unit that it then has.

    Times become nanoseconds, rates per second, `cycle/nsecond` hertz: as `units.unit_of` names them.
    """
    over, slash, under = unit.strip().partition("/")
    factor, name = _plain(over)
    if not slash:
        return factor, name
    if under in _NANOSECONDS:
        factor *= 1e9 / _NANOSECONDS[under]
        return factor, "hz" if name == "cycle" else f"{name}/s"
    return factor, f"{name}/{under}"


def _plain(unit: str) -> tuple[float, str]:
    if unit in _NANOSECONDS:
        return _NANOSECONDS[unit], "ns"
    scaled = _SCALED.fullmatch(unit)
    if scaled is not None:
        return _PREFIXES[scaled[1]], scaled[2].lower()
    return 1.0, unit


def number(cell: str, decimal: str = ".") -> float | None:
    """The number in a cell, or None where it is text. NaN and infinity are numbers here: the tool said them."""
    stripped = cell.strip()
    if stripped.lower() in _NAN:
        return float("nan")
    if decimal == ",":
        stripped = stripped.replace(".", "").replace(",", ".")
    else:
        stripped = stripped.replace(",", "")
    if "_" in stripped:  # Python's own digit separator, which no tool prints
        return None
    try:
        return float(stripped.translate(_SPACES))
    except ValueError:
        return None


def decimal_sign(cells: Iterable[str]) -> str | None:
    """Which sign parts the fraction, where a cell tells: one before other than three digits, or behind the other sign.

    ncu prints by the user's locale, so 1.179,22 and 1,179.22 are both its own; 1.179 alone tells nothing.
    """
    for cell in cells:
        matched = _FRACTION.fullmatch(cell.strip())
        if matched is None:
            continue
        sign, digits = matched[1], matched[2]
        before = cell.strip()[: matched.start(1)]
        if (len(digits) != 3 and sign not in before) or ("," if sign == "." else ".") in before:
            return sign
    return None
