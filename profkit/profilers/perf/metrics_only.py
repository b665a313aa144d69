"""Recognises the output of `perf stat --metric-only` or `--topdown`: a row of ratios without any counts.

perf names the columns of its own ratios (builtin-stat.c, `print_metric_headers`), those of -M as the chip's
file does.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from profkit.core.errors import UnreadableReport

_HEADER = re.compile(r"\s*Performance counter stats for .+:?\s*\Z")
_TIME = re.compile(r"#\s+time\s+(?!.*\bcounts\b)\S")  # above intervals; with counts it names them
# perf's names for its own ratios; one of them is in every file that was recorded without -M.
_OWN = re.compile(
    r"GHz|(?:insn|stalled cycles) per (?:cycle|insn)|CPUs utilized|(?:% *)?tma_\w+|% *\w+ bound|"
    r"[\w-]*(?: +of)? all [\w -]+|retiring|bad speculation|(?:frontend|backend)(?:_| )bound|metric-value"
)
_COLUMNS = re.compile(r"\s*[A-Za-z%][^\d\s]*\S*(?: \S+)*(?:\s{2,}\S+(?: \S+)*)*\s*\Z")
_VALUES = re.compile(r"\s*(?:\S+\s+)?(?:\d+\s+)?(?:-?\d+[.,]\d+ ?%?\s*)+\Z")
_NAMES_IN_JSON = re.compile(r'"([^"]{1,80})"\s*:\s*"?-?[\d.,]*"?')
_SEPARATORS = ",;|\t"


def has_metrics_alone(lines: Sequence[str]) -> bool:
    """Return whether the lines are such a report: text, text of intervals, CSV (-x), or JSON (-j)."""
    first = next((line for line in lines if line.strip() and not line.startswith("# started on")), "")
    if first.startswith("{"):
        return '"event"' not in first and any(map(_OWN.fullmatch, _NAMES_IN_JSON.findall(first)))
    if _TIME.match(first) is not None:
        return any(map(_VALUES.match, lines))
    begin = next((number for number, line in enumerate(lines) if _HEADER.match(line)), None)
    if begin is not None:
        table = [line for line in lines[begin + 1 :] if line.strip()]
        return len(table) > 1 and _COLUMNS.match(table[0]) is not None and _VALUES.match(table[1]) is not None
    return _is_csv(first, lines)


def _is_csv(first: str, lines: Sequence[str]) -> bool:
    """Return whether a row of names precedes one of numbers, each with a separator behind its last column."""
    separator = first.rstrip("\r")[-1:]
    if separator not in _SEPARATORS or not separator:
        return False
    names = [name.strip() for name in first.split(separator)]
    values = next(iter(lines[lines.index(first) + 1 :]), "").split(separator)
    started = lines[0].startswith("# started on")
    return (
        len(values) >= len(names)
        and not any(re.fullmatch(r"-?[\d.,]+%?", name) for name in names)
        and any(re.fullmatch(r"\s*-?\d+[.,]\d+", value) for value in values)
        and (started or any(map(_OWN.fullmatch, names)))
    )


def no_counts(name: str) -> UnreadableReport:
    """Return the error for such a file, with the command that prints the counts."""
    return UnreadableReport(
        f"{name} is from perf stat with --metric-only or --topdown: it has perf's own ratios, but not their counts",
        "perf stat -x';' -- COMMAND   (without --metric-only; of --topdown with --no-metric-only)",
    )
