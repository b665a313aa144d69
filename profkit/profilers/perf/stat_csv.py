"""Reads `perf stat -x SEP`, and its text for people, of perf 4 to 7, whatever its options."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from profkit.core.errors import UnreadableReport
from profkit.core.files.regular import open_regular
from profkit.core.types import CounterState, Fact, Report
from profkit.profilers.files import reading
from profkit.profilers.numbers import NumberStyle, whole_number
from profkit.profilers.perf.command import explain
from profkit.profilers.perf.metrics_only import has_metrics_alone, no_counts
from profkit.profilers.perf.stat_counters import CounterSums, StatRow

# perf prints intervals as seconds with nine decimals and nothing else so.
_INTERVAL = re.compile(r"\s*\d+[.,]\d{9}\Z")
_NUMBER = re.compile(r"-?\d+(?:[.,]\d+)?(?:[eE][+-]?\d+)?\Z")
_WHOLE = re.compile(r"\d+\Z")
_PERCENT = re.compile(r"\d{1,3}[.,]\d\d\Z")
_VARIANCE = re.compile(r"\d+[.,]\d+%\Z")
_UNIT = re.compile(r"(?:[A-Za-z%/().µ ]*)\Z")
STATES: dict[str, CounterState] = {
    "<not supported>": "not-supported",
    "<not counted>": "not-counted",
    "nan": "not-counted",
    "-nan": "not-counted",
}


class RowParser:
    """Parses lines that have one separator."""

    def __init__(self, separator: str) -> None:
        self.separator = separator

    def parse(self, line: str) -> StatRow | None:
        """Parse the row of `line`; None where it is a comment, a metric's continuation or no row at all."""
        fields = line.split(self.separator)
        places = self._layout(fields) if len(fields) >= 5 else None
        return None if places is None else self._row(fields, *places)

    def _layout(self, fields: list[str]) -> tuple[int, int] | None:
        """Return the places of the value and of the run time; None where the line has none."""
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

    def _row(self, fields: list[str], value_at: int, run_at: int) -> StatRow | None:
        """Return the row at these places, or None where this line does not fit them."""
        run_text = fields[run_at]
        percent = _percent(fields[run_at + 1])
        unit = _unit(fields[value_at + 1])
        if percent is None or unit is None or not _WHOLE.match(run_text):
            return None
        value_text = fields[value_at].strip()
        state: CounterState = "measured"
        value: float | None = None
        if value_text in STATES:
            state = STATES[value_text]
        elif _NUMBER.match(value_text):
            value = parse_number(value_text)
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
        interval, aggregate = _parse_prefix(fields[:value_at], self.separator)
        return StatRow(event, value, state, unit, runtime, percent, interval, aggregate, cgroup)

    def _event(self, parts: list[str]) -> tuple[str, str | None]:
        """Return the event's name and its cgroup.

        A raw event may hold the separator: cpu/event=0x29,umask=0x7/.
        """
        if parts and _VARIANCE.match(parts[-1]):
            parts = parts[:-1]
        if not parts:
            return "", None
        name_parts = 1
        if "/" in parts[0]:
            while name_parts < len(parts) and self.separator.join(parts[:name_parts]).count("/") < 2:
                name_parts += 1
        cgroup_parts = parts[name_parts:]
        return self.separator.join(parts[:name_parts]).strip(), (
            self.separator.join(cgroup_parts).strip() or None
        )


def parse_number(text: str) -> float | None:
    """Parse a number with a point or a comma; None where it is too large to be one."""
    value = float(text.replace(",", "."))
    return value if math.isfinite(value) else None


@lru_cache(maxsize=1024)
def _percent(text: str) -> float | None:
    return parse_number(text) if _PERCENT.match(text) else None


@lru_cache(maxsize=1024)
def _unit(text: str) -> str | None:
    """Return the unit, or None where the text cannot be one. `(null)` is a failed printf of perf."""
    if not _UNIT.match(text):
        return None
    return "" if text == "(null)" else text.strip()


def _is_value(text: str) -> bool:
    stripped = text.strip()
    return stripped in STATES or _NUMBER.match(stripped) is not None


def _parse_prefix(parts: list[str], separator: str) -> tuple[str | None, str | None]:
    """Parse interval and aggregation id before the value; the count of CPUs after the id is not kept."""
    interval: str | None = None
    if parts and _INTERVAL.match(parts[0]):
        interval, parts = parts[0].strip(), parts[1:]
    if len(parts) > 1 and _WHOLE.match(parts[-1].strip()):
        parts = parts[:-1]
    return interval, (separator.join(parts).strip() or None)


# perf's own longest line is an event with its metrics, some hundred bytes. What is longer is none of perf's.
LONGEST_LINE = 64 * 1024


class TextLine(NamedTuple):
    """One line without its end. `whole` is False for a last line without a newline."""

    text: str
    whole: bool


def iter_lines(path: Path) -> Iterator[TextLine]:
    """Yield the lines of `path`. Raises UnreadableReport where it is unreadable, binary, or a line has no end."""
    with reading(path), open_regular(path) as file:
        while line := file.readline(LONGEST_LINE + 1):
            if b"\0" in line:
                raise UnreadableReport(f"{path.name} is binary, not a text report of perf stat")
            if len(line) > LONGEST_LINE:
                raise UnreadableReport(f"{path.name}: a line is longer than {LONGEST_LINE // 1024} KiB")
            text = line.decode("utf-8", "replace").lstrip("\ufeff").rstrip("\r\n")
            yield TextLine(text, line.endswith(b"\n"))


def head_lines(head: bytes) -> list[str]:
    """Return the whole lines at the beginning of a file, for telling its format; none of a binary file."""
    if b"\0" in head:
        return []
    return head.decode("utf-8", "replace").lstrip("\ufeff").splitlines()


_HEAD_LINES = 60  # enough to tell the separator, and to find an error of perf
_STARTED = re.compile(r"# started on (?P<when>\S.{5,60})")


class StatReader:
    """One file while it is being read: its first lines, its sums, its facts and warnings."""

    def __init__(self, path: Path, format: str) -> None:
        self.name = path.name
        self.format = format
        self.head = [line.text for line in islice(iter_lines(path), _HEAD_LINES)]
        self.sums = CounterSums()
        self.foreign = 0
        self.facts: dict[str, str] = {}
        self.warnings: list[Fact] = []

    def comment(self, text: str) -> None:
        """Take the start time from a comment line."""
        if (match := _STARTED.match(text)) is not None:
            self.facts.setdefault("started-on", match["when"].strip())

    def cut_off(self) -> None:
        """Note that the file ends in the middle of a line."""
        self.warnings.append(Fact("last-line-cut"))

    def explain_emptiness(self) -> UnreadableReport:
        """Return why the file has no count: perf's own error in it, emptiness, or another format."""
        text = "\n".join(self.head)
        if not text.strip():
            return UnreadableReport(f"{self.name} is empty: perf stat counted nothing, or was killed")
        if any(map(_BOTH_COMMAS.match, self.head)):
            return UnreadableReport(
                f"{self.name} is perf stat -x, with a decimal comma: columns and decimals cannot be told apart",
                "LC_ALL=C perf stat -x, -- COMMAND   (or perf stat -x';' -- COMMAND)",
            )
        if (fault := explain(text, 1)) is not None:
            return UnreadableReport(f"{self.name} holds an error and no counts: {fault.reason}", fault.fix)
        return UnreadableReport(f"{self.name} holds no counts of perf stat", "record it with LC_ALL=C")

    def report(self) -> Report:
        """Return the report. Raises UnreadableReport where nothing was counted in the file."""
        if self.sums.rows == 0:
            raise self.explain_emptiness()
        counters, warnings, facts = self.sums.finish()
        if self.foreign:
            self.warnings.append(Fact.of("foreign-lines", count=self.foreign))
        return Report(
            tool="perf",
            format=self.format,
            facts={**self.facts, **facts},
            counters=counters,
            warnings=(*self.warnings, *warnings),
        )


CSV_FORMAT = "perf-stat-csv"
# `-x` takes any text; these are the ones people use. Told by which of them makes most lines rows, so a comma
# inside of a raw event does not matter.
_SEPARATORS = ("|", ";", "\t", ",", ":")
# Any other text may be a separator, of which a single sign behind the value is tried. A log has lines of that form,
# too (`0.25 s epoch 3 99.50`), so one of them has to be of an event that perf counts by default.
_SIGN_BEHIND_VALUE = re.compile(r"\s*(?:<not \w+>|\d+(?:[.,]\d+)?)([^\w.,<>-])")
# Those of people with something around them: quotes that no shell took off, blanks.
_WITH_MORE = tuple(
    f"{before}{sign}{behind}"
    for sign in _SEPARATORS
    for before, behind in ("''", '""', (" ", ""), (" ", " "))
)
_COUNTED_BY_DEFAULT = re.compile(
    r"(?:task-clock|cpu-clock|context-switches|cpu-migrations|page-faults|cycles|instructions|branches|branch-misses)\b"
)


# `1234,56,msec,task-clock,306721,100,00,0,99,CPUs utilized`: columns and decimals parted by the same sign
_BOTH_COMMAS = re.compile(r"\d+(?:,\d+)?,[A-Za-z]*,[A-Za-z][\w.:/-]*,\d+,\d{1,3},\d\d(?:,|\Z)")


def looks_like_stat_csv(head: bytes) -> bool:
    """Return whether a file begins as perf stat's CSV, or would with another separator."""
    lines = head_lines(head)[:_HEAD_LINES]
    return _separator(lines) is not None or any(map(_BOTH_COMMAS.match, lines))


def read_stat_csv(path: Path) -> Report:
    """Read the counters of the file at `path`, summed over intervals, CPUs and threads.

    Raises UnreadableReport where there is no count in it, as where a decimal comma and a comma between columns
    cannot be told apart.
    """
    reader = StatReader(path, CSV_FORMAT)
    separator = _separator(reader.head)
    if separator is None:
        raise reader.explain_emptiness()
    parser = RowParser(separator)
    for line in iter_lines(path):
        text = line.text
        if not text or text[0] == "#":
            reader.comment(text)
        elif (row := parser.parse(text)) is not None:
            reader.sums.add(row)
        elif not line.whole:
            reader.cut_off()
        elif not text.startswith(separator):  # `,,,,,70.1,%  tma_backend_bound` continues the row above
            reader.foreign += 1
    return reader.report()


def _separator(first: Iterable[str]) -> str | None:
    """Return the separator under which most lines are rows; None if there is none."""
    candidates = [text for text in first if text and not text.startswith("#")]
    signs = {match[1] for match in map(_SIGN_BEHIND_VALUE.match, candidates) if match is not None}
    signs |= {sign for sign in _WITH_MORE if any(sign in text for text in candidates)}
    separators = (*_SEPARATORS, *sorted(signs.difference(_SEPARATORS)))
    rows = {
        separator: [row for row in map(RowParser(separator).parse, candidates) if row is not None]
        for separator in separators
    }
    best = max(separators, key=lambda separator: len(rows[separator]))
    is_trusted = best.strip("'\" ") in _SEPARATORS or any(
        _COUNTED_BY_DEFAULT.match(row.event) for row in rows[best]
    )
    return best if rows[best] and is_trusted else None


TEXT_FORMAT = "perf-stat-text"
_HEADER = re.compile(r"\s*Performance counter stats for (?P<what>.+?):?\s*\Z")
_INTERVALS = re.compile(r"#\s+time\s+.*\bcounts\b.*\bevents\b")
_LONGEST = 600  # perf's lines end before column 200; the pattern below is quadratic in a line's length
_COUNT = re.compile(
    r"(?P<before>.*?)(?P<value><not supported>|<not counted>|"
    r"(?<![^\s])-?\d[\d.,'’٬]*(?:[ \xa0\u2009\u202f]\d{2,3})*(?:[.,]\d+)?)\s+"
    r"(?:(?P<unit>msec|ns|usec|sec|Joules|[KMG]i?B|Bytes)\s+)?"
    r"(?P<event>[A-Za-z_][^\s#()]*)(?:\s+\((?P<old_unit>msec|ns)\))?\s*(?P<rest>[#(].*)?\Z"
)
_BESIDE = re.compile(r"\d+[.,]\d+")  # a metric, a deviation, a share of the time
_SHARE = re.compile(r"\(\s*(\d+[.,]\d+)\s*%\)\s*\Z")
_CLOCK = re.compile(
    r"\s*(?P<value>\d+[.,]\d+)\s*(?:\+-\s*[\d.,]+)?\s+seconds (?P<what>time elapsed|user|sys)\b"
)
_CLOCKS = {"time elapsed": "duration_time", "user": "user_time", "sys": "system_time"}
_AGGREGATE = re.compile(r"(?P<interval>\d+[.,]\d{6,9})?\s*(?P<id>\S.*?)?(?:\s+\d+)?\s*\Z")


def looks_like_stat_text(head: bytes) -> bool:
    """Return whether the beginning of a file holds perf stat's table for people."""
    return any(_HEADER.match(text) or _INTERVALS.match(text) for text in head_lines(head))


def read_stat_text(path: Path) -> Report:
    """Read the counters of the file at `path`; what the program printed around them is skipped.

    This format has no run times: the share of a multiplexed event is perf's own percentage. Raises
    UnreadableReport where there is no count in it.
    """
    reader = StatReader(path, TEXT_FORMAT)
    style = NumberStyle()
    unclear: list[StatRow] = []
    inside = counted = False
    for line in iter_lines(path):
        text = line.text
        if _HEADER.match(text) or _INTERVALS.match(text):
            inside = True
        elif text.lstrip().startswith("#"):
            reader.comment(text)
        elif inside and len(text) <= _LONGEST and (row := _parse_row(text, style)) is not None:
            counted = counted or row.event not in _CLOCKS.values()
            if row.printed and row.value is None and len(unclear) < _MAX_UNCLEAR:
                unclear.append(row)
            else:
                reader.sums.add(row)
    if not counted and has_metrics_alone(reader.head):
        raise no_counts(reader.name)
    for row in unclear:  # what the whole report tells may decide what a line did not
        reader.sums.add(row._replace(value=style.value(row.printed)))
    return reader.report()


_MAX_UNCLEAR = 10_000


def _parse_row(text: str, style: NumberStyle) -> StatRow | None:
    """Parse the row of a line, and let `style` learn from its numbers.

    Where the value could be two numbers, or is none, the row has only `printed`.
    """
    if (clock := _CLOCK.match(text)) is not None:
        style.see(clock["value"])
        nanoseconds = float(clock["value"].replace(",", ".")) * 1e9
        return StatRow(_CLOCKS[clock["what"]], nanoseconds, "measured", "ns", None, 100.0)
    match = _COUNT.match(text)
    if match is None:
        return None
    rest, digits = match["rest"] or "", match["value"].rstrip(".,")
    for beside in _BESIDE.findall(rest):
        style.see(beside)
    unit = match["unit"] or match["old_unit"] or ""
    state: CounterState = "measured"
    value, printed = None, ""
    if digits.startswith("<"):
        state = "not-supported" if "supported" in digits else "not-counted"
    else:
        printed = digits
        style.see(digits)
        value = style.value(digits) if unit else whole_number(digits)
    share = _SHARE.search(rest)
    percent = float(share[1].replace(",", ".")) if share else 100.0
    before = _AGGREGATE.match(match["before"].strip())
    return StatRow(
        event=match["event"],
        value=value,
        state=state,
        unit=unit,
        runtime=percent if not digits.startswith("<") else None,  # only its ratio to 100 % is known
        percent=percent,
        interval=before["interval"] if before else None,
        aggregate=before["id"] if before else None,
        printed=printed,
    )
