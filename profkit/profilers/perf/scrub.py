"""Takes the command line, the host and the folders out of what perf prints."""

from __future__ import annotations

import re
from pathlib import Path

from profkit.profilers.files import lines_of
from profkit.profilers.redact import COMMAND, HOST, Redactor

# `perf script --header`, `perf report`: "# hostname : vm"; `perf data convert --to-json`: "hostname": "vm",
_HOST = re.compile(r"(\s*(?:#\s*(?:hostname|nodename)\s*:\s*|\"(?:hostname|nodename)\"\s*:\s*\"))[^\"\n]*")
_COMMAND = re.compile(r"(\s*#\s*cmdline\s*:\s*).*")
_COUNTED = re.compile(r"(\s*Performance counter stats for ).*(:\s*)$")
_LIST = re.compile(r"\s*\"cmdline\"\s*:\s*\[")


def scrub(source: Path, output: Path, redactor: Redactor) -> None:
    """Copy the text line by line to `output`, which must not be there yet."""
    with (
        source.open(encoding="utf-8", errors="surrogateescape", newline="") as lines,
        output.open("x", encoding="utf-8", errors="surrogateescape", newline="") as copy,
    ):
        inside = False  # a command line, one word a line
        for line in lines_of(lines, source):
            end = line[len(line.rstrip("\r\n")) :]
            if inside:
                inside = "]" not in line
                copy.write("" if inside else line[line.index("]") :])
            elif found := _LIST.match(line):
                redactor.note(COMMAND)
                inside = "]" not in line
                copy.write(found[0] + ("" if inside else line[line.rindex("]") :]))
            elif found := _COMMAND.match(line):
                redactor.note(COMMAND)
                copy.write(found[1] + "perf" + end)
            elif found := _COUNTED.match(line.rstrip("\r\n")):
                redactor.note(COMMAND)
                copy.write(f"{found[1]}'program'{found[2]}{end}")
            elif found := _HOST.match(line):
                redactor.note(HOST)
                copy.write(found[1] + "host" + redactor.text(line[found.end() :]))
            else:
                copy.write(redactor.text(line))
