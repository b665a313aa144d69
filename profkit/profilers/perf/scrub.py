"""Takes the command line, the host and the folders out of what perf prints."""

from __future__ import annotations

import re
from pathlib import Path

from profkit.profilers.files import copy_lines
from profkit.profilers.redact import COMMAND, HOST, Redactor

# What follows the pattern is private: the kind, what is written instead.
_PRIVATE = (
    (re.compile(r"\s*#\s*(?:hostname|nodename)\s*:\s*"), HOST, "host"),
    (re.compile(r"\s*#\s*cmdline\s*:\s*"), COMMAND, "perf"),
    (re.compile(r"\s*Performance counter stats for (?=.*:\s*$)"), COMMAND, "'program':"),
)


def scrub(source: Path, output: Path, redactor: Redactor) -> None:
    """Copy the text line by line to `output`, which must not be there yet."""

    def changed(line: str) -> str:
        for pattern, kind, instead in _PRIVATE:
            if (match := pattern.match(line)) is not None:
                redactor.note(kind)
                return match[0] + instead + line[len(line.rstrip("\r\n")) :]
        return redactor.text(line)

    copy_lines(source, output, changed)
