"""The unit of a GPU counter, as the label of its samples says it: per cent on one chip, GB/s on another.

Labels read "78.9400% (Percentage of ...)", "8.8599 GB/s", "0.0148% (9.Texture Write Limiter)". The column `value` holds
the number of the label (recordings of an M1, an M3 and an M3 Ultra); that is checked on each counter, not believed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_LABEL = re.compile(
    r"\s*([-+]?\d[\d.,]*(?:[eE][-+]?\d+)?)\s*([^\s()\d][^\s()]*)?\s*(?:\((.*)\))?\s*", re.DOTALL
)
_BINARY = {"KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30, "TiB": 2.0**40}
_DECIMAL = {"B": 1.0, "bytes": 1.0, "kB": 1e3, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12}
_BYTES = _BINARY | _DECIMAL
_LOOKED_AT = 256  # samples of a counter whose labels are compared with their values
_CLOSE = 0.02
_LAST_DIGIT = 0.6e-4  # half of it, and a little: labels are rounded to four decimals
PER_CENT = "%"


@dataclass(frozen=True)
class Label:
    """What the label of a sample says. `unit` in base units ("%", "B/s", "B"), "" where there is none."""

    value: float  # in that unit
    unit: str
    scale: float  # of the unit as it is written
    note: str  # in brackets behind it


def read_label(text: str) -> Label | None:
    """The number, unit and note of a label; None where it begins with no number."""
    found = _LABEL.fullmatch(text)
    if found is None:
        return None
    digits, unit, note = found[1], found[2] or "", (found[3] or "").strip()
    try:
        value = float(digits.replace(",", "") if "." in digits else digits.replace(",", "."))
    except ValueError:
        return None
    size, slash, per = unit.partition("/")
    if size in _BYTES and (not slash or per in ("s", "sec", "second")):
        scale = _BYTES[size]
        return Label(value * scale, "B/s" if slash else "B", scale, note)
    return Label(value, unit, 1.0, note)


class UnitOfCounter:
    """Learns from the samples of one counter what its values are to be multiplied with to be in the base unit."""

    def __init__(self) -> None:
        self.unit = ""
        self.note = ""
        self._seen = 0
        self._largest = 0.0
        self._ratio: float | None = None  # of what the label says, in the base unit, to the value
        self._scale = 1.0

    def look(self, value: float, label: str) -> None:
        """One sample; those of 0 tell the unit, others also how it is written."""
        if self._seen >= _LOOKED_AT or (self._seen and value == 0):
            return
        told = read_label(label)
        if told is None:
            return
        self._seen += 1
        if abs(value) > self._largest or self._seen == 1:
            self.unit, self.note, self._scale = told.unit, self.note or told.note, told.scale
            if value != 0 and told.value != 0:  # else it was rounded to nothing
                self._largest, self._ratio = abs(value), told.value / value

    def per_cent(self) -> None:
        """The table says that the values are percentages, and no label was there."""
        if not self._seen:
            self.unit = PER_CENT

    @property
    def factor(self) -> float | None:
        """What to multiply a value with; None where label and value have nothing to do with each other."""
        if self._ratio is None:
            return self._scale
        for candidate in (self._scale, 100.0, *_BYTES.values()):
            rounded = _LAST_DIGIT * self._scale / self._largest
            if abs(self._ratio - candidate) <= max(_CLOSE * candidate, rounded):
                return candidate
        return None
