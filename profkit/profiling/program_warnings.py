"""Reads the warnings that a program printed by itself through Python's `warnings`."""

from __future__ import annotations

import re
from pathlib import Path

from profkit.core.files.regular import open_regular
from profkit.core.types import ProgramWarning

MAX_BYTES = 1 << 20  # of the output that is read
MAX_WARNINGS, LONGEST = 50, 600  # warnings that are kept; characters of each
# The format of `warnings.formatwarning`: `path.py:8: PerformanceWarning: text`
_WARNING = re.compile(
    r"^(?P<file>[^\n:]{1,400}\.(?:py|ipynb)):(?P<line>\d{1,7}): (?P<category>\w{0,60}Warning): (?P<text>[^\n]+)",
    re.MULTILINE,
)
# torch warns at the Python frame that called it, which is this package's where it looks at the calls. The timed run,
# which nothing looks at, has the program's own line for the same text.
_OWN_FRAME = re.compile(r"(?:^|/)profkit/runtime/passes/host/")
_INSIDE = re.compile(r"\s*\(Triggered internally at [^)]*\)\s*$")  # where in torch's own source


def read_warnings(log: Path) -> tuple[ProgramWarning, ...]:
    """Return the warnings in a program's output, each once; none where there is no such file."""
    if not log.is_file():
        return ()
    with open_regular(log) as file:
        printed = file.read(MAX_BYTES).decode("utf-8", "replace")
    warnings = dict.fromkeys(
        ProgramWarning(
            match["file"],
            int(match["line"]),
            match["category"],
            _INSIDE.sub("", match["text"].strip())[:LONGEST],
        )
        for match in _WARNING.finditer(printed)
        if not _OWN_FRAME.search(match["file"].replace("\\", "/"))
    )
    return tuple(warnings)[:MAX_WARNINGS]
