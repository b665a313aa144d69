"""Takes the command line and the folders out of callgrind's and cachegrind's files, which are text."""

from __future__ import annotations

from pathlib import Path

from profkit.profilers.bounds import lines_of
from profkit.profilers.redact import COMMAND, Redactor

FORMATS = ("callgrind", "cachegrind")


def scrub(source: Path, output: Path, form: str, redactor: Redactor) -> None:  # noqa: ARG001 - both are alike
    """Copy the file line by line to `output`, which must not be there yet."""
    with (
        source.open(encoding="utf-8", errors="surrogateescape", newline="") as lines,
        output.open("x", encoding="utf-8", errors="surrogateescape", newline="") as copy,
    ):
        for line in lines_of(lines, source):
            if line.startswith("cmd:"):
                redactor.note(COMMAND)
                copy.write("cmd: program\n")
            else:
                copy.write(redactor.text(line))
