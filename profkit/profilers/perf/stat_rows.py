"""One line of `perf stat -x SEP`, taken apart by content, since its columns come and go with perf's options.

[interval,] [aggregate, [count,]] value, unit, event, [cgroup,] [variance%,] run time, percent, [metric, unit]
"""

from __future__ import annotations

import math
import re
from functools import lru_cache

from profkit.core.types import CounterState
from profkit.profilers.perf.stat_tally import Row

# perf prints intervals as seconds with nine decimals and nothing else so.
_INTERVAL = re.compile(r"\s*\d+[.,]\d{9}\Z")
_NUMBER = re.compile(r"-?\d+(?:[.,]\d+)?(?:[eE][+-]?\d+)?\Z")
_WHOLE = re.compile(r"\d+\Z")
_PERCENT = re.compile(r"\d{1,3}[.,]\d\d\Z")
_VARIANCE = re.compile(r"\d+[.,]\d+%\Z")
_UNIT = re.compile(r"(?:[A-Za-z%/().µ ]*)\Z")
_STATES: dict[str, CounterState] = {
    "<not supported>": "not-supported",
    "<not counted>": "not-counted",
    "nan": "not-counted",
    "-nan": "not-counted",
}


class DecimalComma(ValueError):
    """The line was written under a locale with a decimal comma and the comma separates its columns too."""


class RowParser:
    """Reads lines with one separator. Lines of one file look alike, so the last layout is tried first."""

    def __init__(self, separator: str) -> None:
        self.separator = separator
        self._layouts: dict[int, tuple[int, int]] = {}
        self._before: list[str] = []
        self._prefix: tuple[str | None, str | None] = (None, None)

    def parse(self, line: str) -> Row | None:
        """The row of `line`; None where it is a comment, a metric's continuation or no row at all.

        Raises DecimalComma.
        """
        fields = line.split(self.separator)
        count = len(fields)
        layout = self._layouts.get(count)
        if layout is not None:
            row = self._row(fields, *layout)
            if row is not None:
                return row
        if count < 5:
            return None
        found = self._layout(fields)
        if found is None:
            if self.separator == "," and _has_decimal_comma(fields):
                raise DecimalComma
            return None
        row = self._row(fields, *found)
        if row is not None:
            self._layouts[count] = found
        return row

    def _layout(self, fields: list[str]) -> tuple[int, int] | None:
        """Places of the value and of the run time."""
        last = len(fields) - 1
        for value in range(min(last - 3, 32)):
            if not (
                _is_value(fields[value]) and _UNIT.match(fields[value + 1]) and fields[value + 2].strip()
            ):
                continue
            if _NUMBER.match(fields[value + 2].strip()):
                continue
            for run in range(value + 3, last):
                if _WHOLE.match(fields[run]) and _PERCENT.match(fields[run + 1]):
                    return value, run
        return None

    def _row(self, fields: list[str], value_at: int, run_at: int) -> Row | None:
        """The row at a layout, or None where this line does not fit it."""
        run_text = fields[run_at]
        percent = _percent(fields[run_at + 1])
        unit = _unit(fields[value_at + 1])
        if percent is None or unit is None or not _WHOLE.match(run_text):
            return None
        value_text = fields[value_at].strip()
        state: CounterState = "measured"
        value: float | None = None
        if value_text in _STATES:
            state = _STATES[value_text]
        elif _NUMBER.match(value_text):
            value = number(value_text)
            if value is None:
                return None
        else:
            return None
        if run_at == value_at + 3:
            event, cgroup = fields[value_at + 2].strip(), None
        else:
            event, cgroup = self._event(fields[value_at + 2 : run_at])
        if not event:
            return None
        runtime = float(run_text[:24])
        if value == 0 and runtime == 0:
            value, state = None, "not-counted"  # a count of 0 of an event that never ran
        before = fields[:value_at]
        if before != self._before:  # the same for all rows of an interval
            self._before, self._prefix = before, _prefix(before, self.separator)
        interval, aggregate = self._prefix
        return Row(event, value, state, unit, runtime, percent, interval, aggregate, cgroup)

    def _event(self, parts: list[str]) -> tuple[str, str | None]:
        """The event's name and its cgroup; a raw event may hold the separator: cpu/event=0x29,umask=0x7/."""
        if parts and _VARIANCE.match(parts[-1]):
            parts = parts[:-1]
        if not parts:
            return "", None
        taken = 1
        if "/" in parts[0]:
            while taken < len(parts) and self.separator.join(parts[:taken]).count("/") < 2:
                taken += 1
        rest = parts[taken:]
        return self.separator.join(parts[:taken]).strip(), (self.separator.join(rest).strip() or None)


def number(text: str) -> float | None:
    """A number with a point or a comma; None where it is too large to be one."""
    value = float(text.replace(",", "."))
    return value if math.isfinite(value) else None


@lru_cache(maxsize=1024)
def _percent(text: str) -> float | None:
    return number(text) if _PERCENT.match(text) else None


@lru_cache(maxsize=1024)
def _unit(text: str) -> str | None:
    """The unit, or None where the text cannot be one. `(null)` is a printf of perf's that went wrong."""
    if not _UNIT.match(text):
        return None
    return "" if text == "(null)" else text.strip()


def _is_value(text: str) -> bool:
    stripped = text.strip()
    return stripped in _STATES or _NUMBER.match(stripped) is not None


def _prefix(parts: list[str], separator: str) -> tuple[str | None, str | None]:
    """Interval and aggregation id before the value; the count of CPUs after the id is not kept."""
    interval: str | None = None
    if parts and _INTERVAL.match(parts[0]):
        interval, parts = parts[0].strip(), parts[1:]
    if len(parts) > 1 and _WHOLE.match(parts[-1].strip()):
        parts = parts[:-1]
    return interval, (separator.join(parts).strip() or None)


def _has_decimal_comma(fields: list[str]) -> bool:
    """`40665932,64,00` for a run time of 40665932 ns and 64.00 %."""
    for place in range(3, len(fields) - 2):
        run, whole, decimals = fields[place : place + 3]
        if (
            len(run) > 3
            and _WHOLE.match(run)
            and re.fullmatch(r"\d{1,3}", whole)
            and re.fullmatch(r"\d\d", decimals)
        ):
            return any(re.fullmatch(r"[a-zA-Z][\w\-./:=]*", field) for field in fields[1:place])
    return False
