"""Reads `perf stat -x SEP` of perf 4 to 7, whoever recorded it and with whichever options."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from profkit.core.errors import UnreadableReport
from profkit.core.types import Report
from profkit.profilers.perf.stat_lines import head_lines, lines
from profkit.profilers.perf.stat_report import Gathering
from profkit.profilers.perf.stat_rows import DecimalComma, RowParser

FORMAT = "perf-stat-csv"
# `-x` takes any text; these are the ones people use. Told by which of them makes most lines rows, so a comma
# inside of a raw event does not matter.
_SEPARATORS = ("|", ";", "\t", ",", ":", "#", "^", "~", "@", "!")
_LOOKED_AT = 60  # lines that are enough to tell the separator


def looks_like(head: bytes) -> bool:
    """Whether the beginning of a file is perf stat's CSV."""
    try:
        return _separator(head_lines(head)[:_LOOKED_AT]) is not None
    except DecimalComma:
        return True


def read_stat_csv(path: Path) -> Report:
    """Counters of the file at `path`, summed over intervals, CPUs and threads.

    Raises UnreadableReport where there is no count in it, or where a decimal comma and a comma between
    columns cannot be told apart.
    """
    gathering = Gathering(path.name, FORMAT)
    first: list[str] = []
    for line in lines(path):
        first.append(line.text)
        if len(first) == _LOOKED_AT:
            break
    try:
        separator = _separator(first)
        if separator is None:
            raise gathering.nothing(first)
        parser = RowParser(separator)
        for line in lines(path):
            text = line.text
            if not text or text[0] == "#":
                gathering.comment(text)
            elif (row := parser.parse(text)) is not None:
                gathering.tally.add(row)
            elif not line.whole:
                gathering.cut_off()
            elif not text.startswith(separator):  # `,,,,,70.1,%  tma_backend_bound` continues the row above
                gathering.foreign += 1
    except DecimalComma:
        raise UnreadableReport(
            f"{path.name}: written under a locale with a decimal comma, which cannot be told from the comma "
            "between its columns",
            "record it again with LC_ALL=C, or with -x '|'",
        ) from None
    return gathering.report(first)


def _separator(first: Iterable[str]) -> str | None:
    """The separator under which most lines are rows; None where there is none."""
    candidates = [text for text in first if text and not text.startswith("#")]
    best, most = None, 0
    comma: DecimalComma | None = None
    for separator in _SEPARATORS:
        parser = RowParser(separator)
        rows = 0
        for text in candidates:
            try:
                rows += parser.parse(text) is not None
            except DecimalComma as error:
                comma = error
                break
        if rows > most:
            best, most = separator, rows
    if best is None and comma is not None:
        raise comma
    return best
