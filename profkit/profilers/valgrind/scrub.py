"""Takes the command line and the folders out of callgrind's and cachegrind's files, which are text."""

from __future__ import annotations

from pathlib import Path

from profkit.profilers.files import copy_lines
from profkit.profilers.redact import COMMAND, Redactor


def scrub(source: Path, output: Path, redactor: Redactor) -> None:
    """Copy the file line by line to `output`, which must not be there yet."""

    def changed(line: str) -> str:
        if not line.startswith("cmd:"):
            return redactor.text(line)
        redactor.note(COMMAND)
        return "cmd: program\n"

    copy_lines(source, output, changed)
