"""Reads `perf stat -j`: one JSON object per line, with the oddities of each perf since 6.1."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from profkit.core.types import CounterState, Report
from profkit.profilers.perf.stat_lines import head_lines, lines
from profkit.profilers.perf.stat_report import Gathering
from profkit.profilers.perf.stat_rows import number
from profkit.profilers.perf.stat_tally import Row

FORMAT = "perf-stat-json"
_AGGREGATES = ("cpu", "core", "die", "socket", "node", "cluster", "cache", "thread")
_NUMBER = re.compile(r"\s*-?\d+(?:[.,]\d+)?(?:[eE][+-]?\d+)?\s*\Z")
# perf 6.6 to 6.12 on a metric without its event: `"pcnt-running" : 100.00, }`.
_LOOSE_COMMA = re.compile(r",\s*}")
# Under a French locale `"pcnt-running" : 100,00`; in valid JSON a comma after a number is never followed by a
# digit, since the next thing is a key in quotes.
_DECIMAL_COMMA = re.compile(r"(:\s*-?\d+),(\d+)(?=\s*[,}])")
_OURS = re.compile(r'"(counter-value|pcnt-running|metric-value|event-runtime)"\s*:')


def looks_like(head: bytes) -> bool:
    """Whether the beginning of a file is perf stat's JSON."""
    for text in head_lines(head):
        stripped = text.strip().lstrip("[").lstrip()
        if not stripped or stripped.startswith("#"):
            continue
        return stripped.startswith("{") and _OURS.search(stripped) is not None
    return False


def read_stat_json(path: Path) -> Report:
    """Counters of the file at `path`. Raises UnreadableReport where there is no count in it."""
    gathering = Gathering(path.name, FORMAT)
    first: list[str] = []
    for line in lines(path):
        if len(first) < 60:
            first.append(line.text)
        text = line.text.strip()
        if not text or text.startswith("#"):
            gathering.comment(text)
            continue
        found = _object(text)
        if found is not None:
            row = _row(found)
            if row is not None:
                gathering.tally.add(row)
            elif not (found.keys() & {"metric-value", "metricgroup", "event-runtime"}):
                gathering.foreign += 1  # a metric's continuation has no event and is perf's own
        elif text not in ("[", "]") and not line.whole:
            gathering.cut_off()
        elif text not in ("[", "]"):
            gathering.foreign += 1
    return gathering.report(first)


def _object(text: str) -> dict[str, Any] | None:
    """The object of one line, mended where perf wrote invalid JSON; None where it is none."""
    for mended in (text, _mend(text)):
        try:
            found = json.loads(mended)
        except (ValueError, RecursionError):  # RecursionError: a line of ten thousand brackets
            continue
        if isinstance(found, dict):
            return found
    return None


def _mend(text: str) -> str:
    """Without the brackets of an array around the lines, and with perf's own slips put right."""
    bare = text.lstrip("[").rstrip("]").rstrip().rstrip(",")
    return _DECIMAL_COMMA.sub(r"\1.\2", _LOOSE_COMMA.sub("}", bare))


def _row(found: dict[str, Any]) -> Row | None:
    """The row of one object; None where it speaks of a metric and not of an event."""
    event, printed = found.get("event"), found.get("counter-value")
    if not isinstance(event, str) or not event.strip() or printed is None or isinstance(printed, bool):
        return None
    value: float | None = None
    state: CounterState = "measured"
    text = str(printed)[:64]
    if "not supported" in text:
        state = "not-supported"
    elif _NUMBER.match(text):
        value = number(text)
    if value is None and state == "measured":
        state = "not-counted"  # `<not counted>`, `nan`, or what is no number
    runtime, percent = _float(found.get("event-runtime")), _float(found.get("pcnt-running"))
    if value == 0 and runtime == 0:
        value, state = None, "not-counted"
    unit = found.get("unit")
    aggregate = next((str(found[key]) for key in _AGGREGATES if key in found), None)
    interval, cgroup = found.get("interval"), found.get("cgroup")
    return Row(
        event=event,
        value=value,
        state=state,
        unit=unit if isinstance(unit, str) and unit != "(null)" else "",
        runtime=runtime,
        percent=percent,
        interval=None if interval is None else str(interval),
        aggregate=aggregate,
        cgroup=cgroup if isinstance(cgroup, str) and cgroup else None,
    )


def _float(value: object) -> float | None:
    """A number of JSON, or one in quotes; None where it is neither."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    text = str(value)[:64]
    return number(text) if _NUMBER.match(text) else None
