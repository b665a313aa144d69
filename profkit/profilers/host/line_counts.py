"""Reads how often lines of the program ran, as counted by the pass that counts calls."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from profkit.core.codec import is_finite_number
from profkit.core.errors import UnreadableReport
from profkit.core.files.regular import read_bounded
from profkit.core.types import ArrayForm, LineCount

MAX_APART = 1 << 62  # bytes
MAX_LINES, MAX_NAMES, MAX_FORMS, MAX_DIMENSIONS = 200, 100, 10, 64
PARTS = 8


def read_line_counts(path: Path) -> tuple[LineCount, ...]:
    """Return the lines whose executions were counted completely; none where the file cannot be read."""
    try:
        document = json.loads(read_bounded(path))
        rows, entries = document["rows"], int(document["entries"])
        return tuple(_line_count(row, entries) for row in rows[:MAX_LINES] if row[3] > 0)
    except (OSError, ValueError, TypeError, LookupError, AttributeError, RecursionError, UnreadableReport):
        return ()


def _line_count(row: Any, entries: int) -> LineCount:
    file, line, function, executions, looks, forms, parts = row
    read = {
        str(name)[:200]: tuple(_form(form) for form in seen[:MAX_FORMS])
        for name, seen in list(forms.items())[:MAX_NAMES]
    }
    seconds = tuple(float(part) for part in parts)
    if len(seconds) not in (0, PARTS) or not all(is_finite_number(spent) and spent >= 0 for spent in seconds):
        raise ValueError("times of a loop's parts that are none")
    return LineCount(
        str(file), int(line), str(function)[:200], int(executions), int(looks), read, seconds, entries
    )


def _form(form: Any) -> ArrayForm:
    if isinstance(form, str):
        return ArrayForm(form[:20])
    type_, shape, order, *apart = form
    sizes = tuple(int(size) for size in shape[:MAX_DIMENSIONS])
    if min(sizes, default=0) < 0:
        raise ValueError("a shape that is none")
    bytes_apart = int(apart[0]) if apart else 0
    if not 0 <= bytes_apart < MAX_APART:
        raise ValueError("a distance that is none")
    return ArrayForm(str(type_)[:20], sizes, str(order)[:1], bytes_apart)
