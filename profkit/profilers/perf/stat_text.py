"""Reads what `perf stat` prints for people, and its JSON (`perf stat -j`)."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

from profkit.core.types import CounterState, Report
from profkit.profilers.perf.stat_counters import StatRow
from profkit.profilers.perf.stat_csv import StatReader, head_lines, iter_lines, parse_number

TEXT_FORMAT = "perf-stat-text"
_HEADER = re.compile(r"\s*Performance counter stats for (?P<what>.+?):?\s*\Z")
_INTERVALS = re.compile(r"#\s+time\s+.*\bcounts\b.*\bevents\b")
_LONGEST = 600  # perf's lines end before column 200; the pattern below is quadratic in a line's length
_COUNT = re.compile(
    r"(?P<before>.*?)(?P<value><not supported>|<not counted>|(?<![^\s])\d[\d.,'’\u202f\xa0]*)\s+"
    r"(?:(?P<unit>msec|ns|usec|sec|Joules|[KMG]i?B|Bytes)\s+)?"
    r"(?P<event>[A-Za-z_][^\s#()]*)(?:\s+\((?P<old_unit>msec|ns)\))?\s*(?P<rest>[#(].*)?\Z"
)
_SHARE = re.compile(r"\(\s*(\d+[.,]\d+)\s*%\)\s*\Z")
_CLOCK = re.compile(
    r"\s*(?P<value>\d+[.,]\d+)\s*(?:\+-\s*[\d.,]+)?\s+seconds (?P<what>time elapsed|user|sys)\b"
)
_CLOCKS = {"time elapsed": "duration_time", "user": "user_time", "sys": "system_time"}
_AGGREGATE = re.compile(r"(?P<interval>\d+[.,]\d{6,9})?\s*(?P<id>\S.*?)?(?:\s+\d+)?\s*\Z")


def looks_like_stat_text(head: bytes) -> bool:
    """Whether the beginning of a file holds perf stat's table for people."""
    return any(_HEADER.match(text) or _INTERVALS.match(text) for text in head_lines(head))


def read_stat_text(path: Path) -> Report:
    """Counters of the file at `path`; what the program printed around them is passed over.

    perf prints here no run times: the share of a multiplexed event is perf's own percentage.
    Raises UnreadableReport where there is no count in it.
    """
    reader = StatReader(path, TEXT_FORMAT)
    inside = False
    for line in iter_lines(path):
        text = line.text
        if _HEADER.match(text) or _INTERVALS.match(text):
            inside = True
        elif text.lstrip().startswith("#"):
            reader.comment(text)
        elif inside and len(text) <= _LONGEST and (row := _parse_row(text)) is not None:
            reader.sums.add(row)
    return reader.report()


def _parse_row(text: str) -> StatRow | None:
    if (clock := _CLOCK.match(text)) is not None:
        nanoseconds = float(clock["value"].replace(",", ".")) * 1e9
        return StatRow(_CLOCKS[clock["what"]], nanoseconds, "measured", "ns", None, 100.0)
    match = _COUNT.match(text)
    if match is None:
        return None
    state: CounterState = "measured"
    value = _parse_grouped(match["value"])
    if match["value"].startswith("<"):
        state = "not-supported" if "supported" in match["value"] else "not-counted"
    elif value is None:
        return None
    share = _SHARE.search(match["rest"] or "")
    percent = float(share[1].replace(",", ".")) if share else 100.0
    before = _AGGREGATE.match(match["before"].strip())
    return StatRow(
        event=match["event"],
        value=value,
        state=state,
        unit=match["unit"] or match["old_unit"] or "",
        runtime=percent if value is not None else None,  # only its ratio to 100 % is known
        percent=percent,
        interval=before["interval"] if before else None,
        aggregate=before["id"] if before else None,
    )


def _parse_grouped(text: str) -> float | None:
    """A number that may have its thousands grouped as the user's locale does; None where it is a state.

    Counts have no decimals, msec two and seconds nine: so three digits after every sign are groups.
    """
    if text.startswith("<"):
        return None
    bare = re.sub(r"['’\u202f\xa0]", "", text).rstrip(".,")
    if re.fullmatch(r"\d{1,3}([.,]\d{3})+", bare):
        bare = bare.replace(",", "").replace(".", "")
    else:
        whole, sign, decimals = bare.replace(",", ".").rpartition(".")
        bare = f"{whole.replace('.', '')}.{decimals}" if sign else decimals
    try:
        value = float(bare)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


JSON_FORMAT = "perf-stat-json"
_AGGREGATES = ("cpu", "core", "die", "socket", "node", "cluster", "cache", "thread")
_NUMBER = re.compile(r"\s*-?\d+(?:[.,]\d+)?(?:[eE][+-]?\d+)?\s*\Z")
# perf 6.6 to 6.12 on a metric without its event: `"pcnt-running" : 100.00, }`.
_LOOSE_COMMA = re.compile(r",\s*}")
# Under a French locale `"pcnt-running" : 100,00`; in valid JSON a comma after a number is never followed by a
# digit, since the next thing is a key in quotes.
_DECIMAL_COMMA = re.compile(r"(:\s*-?\d+),(\d+)(?=\s*[,}])")
_OURS = re.compile(r'"(counter-value|pcnt-running|metric-value|event-runtime)"\s*:')


def looks_like_stat_json(head: bytes) -> bool:
    """Whether the beginning of a file is perf stat's JSON."""
    for text in head_lines(head):
        stripped = text.strip().lstrip("[").lstrip()
        if not stripped or stripped.startswith("#"):
            continue
        return stripped.startswith("{") and _OURS.search(stripped) is not None
    return False


def read_stat_json(path: Path) -> Report:
    """Counters of the file at `path`. Raises UnreadableReport where there is no count in it."""
    reader = StatReader(path, JSON_FORMAT)
    for line in iter_lines(path):
        text = line.text.strip()
        if not text or text.startswith("#"):
            reader.comment(text)
            continue
        content = _object(text)
        if content is not None:
            row = _json_row(content)
            if row is not None:
                reader.sums.add(row)
            elif not (content.keys() & {"metric-value", "metricgroup", "event-runtime"}):
                reader.foreign += 1  # a metric's continuation has no event and is perf's own
        elif text not in ("[", "]") and not line.whole:
            reader.cut_off()
        elif text not in ("[", "]"):
            reader.foreign += 1
    return reader.report()


def _object(text: str) -> dict[str, Any] | None:
    """The object of one line, mended where perf wrote invalid JSON; None where it is none."""
    for mended in (text, _mend_json(text)):
        try:
            content = json.loads(mended)
        except (ValueError, RecursionError):  # RecursionError: a line of ten thousand brackets
            continue
        if isinstance(content, dict):
            return content
    return None


def _mend_json(text: str) -> str:
    """Without the brackets of an array around the lines, and with perf's own slips put right."""
    bare = text.lstrip("[").rstrip("]").rstrip().rstrip(",")
    return _DECIMAL_COMMA.sub(r"\1.\2", _LOOSE_COMMA.sub("}", bare))


def _json_row(content: dict[str, Any]) -> StatRow | None:
    """The row of one object; None where it speaks of a metric and not of an event, or of a time below 0."""
    event, printed = content.get("event"), content.get("counter-value")
    if not isinstance(event, str) or not event.strip() or printed is None or isinstance(printed, bool):
        return None
    value: float | None = None
    state: CounterState = "measured"
    text = str(printed)[:64]
    if "not supported" in text:
        state = "not-supported"
    elif _NUMBER.match(text):
        value = parse_number(text)
    if value is None and state == "measured":
        state = "not-counted"  # `<not counted>`, `nan`, or what is no number
    runtime, percent = _float(content.get("event-runtime")), _float(content.get("pcnt-running"))
    if (runtime or 0) < 0 or (percent or 0) < 0:
        return None
    if value == 0 and runtime == 0:
        value, state = None, "not-counted"
    unit = content.get("unit")
    aggregate = next((str(content[key]) for key in _AGGREGATES if key in content), None)
    interval, cgroup = content.get("interval"), content.get("cgroup")
    return StatRow(
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
    return parse_number(text) if _NUMBER.match(text) else None
