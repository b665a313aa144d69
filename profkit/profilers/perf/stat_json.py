"""Reads `perf stat -j` (perf 5.17 and newer): a JSON object a line, with the CSV's fields by name."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from profkit.core.codec import is_finite_number
from profkit.core.types import CounterState, Report
from profkit.profilers.numbers import NumberStyle
from profkit.profilers.perf.stat_counters import StatRow
from profkit.profilers.perf.stat_csv import STATES, StatReader, head_lines, iter_lines

FORMAT = "perf-stat-json"
_EVENT, _VALUE = "event", "counter-value"
_PLACES = (
    "cpu",
    "core",
    "die",
    "socket",
    "node",
    "cluster",
    "cache",
    "thread",
)  # fields that distinguish rows of one event


def looks_like_stat_json(head: bytes) -> bool:
    """Return whether the beginning of a file is perf stat's JSON."""
    lines = (line for line in head_lines(head)[:60] if line and not line.startswith("#"))
    return any(line.startswith("{") and f'"{_VALUE}"' in line and f'"{_EVENT}"' in line for line in lines)


def read_stat_json(path: Path) -> Report:
    """Read the counters of the file at `path`, summed over intervals, CPUs and threads.

    Raises UnreadableReport where there is no count in it.
    """
    reader, style = StatReader(path, FORMAT), NumberStyle()
    for line in iter_lines(path):
        text = line.text.strip()
        if text.startswith("#"):
            reader.comment(text)
        elif text:
            entry = _object(text)
            row = _row(entry, style) if isinstance(entry, dict) else None
            if row is not None:
                reader.sums.add(row)
            elif not line.whole:
                reader.cut_off()
            elif not isinstance(entry, dict) or _EVENT in entry:  # a metric of the row above has no event
                reader.foreign += 1
    return reader.report()


# Outside of quotes a comma with a digit on both sides is a decimal one: behind a value's comma stands a key.
_DECIMAL_COMMA = re.compile(r'(?<=\d),(?=\d{1,20}\s{0,8}(?:,\s{0,8}"|\}))')


def _object(text: str) -> Any:
    """Parse the object in a line, also with the decimal comma of a locale; None where it is not JSON."""
    for attempt in (text, _DECIMAL_COMMA.sub(".", text)):
        with contextlib.suppress(ValueError, RecursionError):
            return json.loads(attempt)
    return None


def _row(entry: Mapping[str, Any], style: NumberStyle) -> StatRow | None:
    event, printed = entry.get(_EVENT), entry.get(_VALUE)
    if not isinstance(event, str) or not event.strip() or not isinstance(printed, str):
        return None
    digits, value = printed.strip(), None
    state: CounterState = STATES.get(digits, "measured")
    if digits not in STATES:
        style.see(digits)
        value = style.value(digits)
        if value is not None and "variance" in entry and not entry.get("unit"):
            value = float(round(value))  # the mean of several runs, which the CSV rounds
    runtime, percent = entry.get("event-runtime"), entry.get("pcnt-running")
    if value == 0 and runtime == 0:
        value, state = None, "not-counted"  # a count of 0 of an event that never ran
        digits = ""
    unit, cgroup = entry.get("unit"), entry.get("cgroup")
    interval = entry.get("interval")
    places = [f"{name} {entry[name]}" for name in _PLACES if isinstance(entry.get(name), str | int)]
    return StatRow(
        event=event.strip(),
        value=value,
        state=state,
        unit=unit.strip() if isinstance(unit, str) and unit != "(null)" else "",
        runtime=float(runtime) if is_finite_number(runtime) else None,
        percent=float(percent) if is_finite_number(percent) else None,
        interval=str(interval) if is_finite_number(interval) else None,
        aggregate=", ".join(places)[:200] or None,
        cgroup=cgroup if isinstance(cgroup, str) and cgroup else None,
        printed="" if digits in STATES else digits,
    )
