"""Reads what `perf stat` prints for people."""

from __future__ import annotations

import math
import re
from pathlib import Path

from profkit.core.types import CounterState, Report
from profkit.profilers.perf.stat_counters import StatRow
from profkit.profilers.perf.stat_csv import StatReader, head_lines, iter_lines

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
