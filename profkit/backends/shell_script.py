"""Finds the lines of a shell's script that start programs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from profkit.core.files.regular import read_start
from profkit.core.types import StartedProgram, Workload
from profkit.profilers.perf.tasks import SHELLS

MAX_SCRIPT = 1 << 20  # bytes
_COMMENT = re.compile(r"(^|\s)#.*")


def script_of(workload: Workload) -> Path | None:
    """Return the script that a shell runs as the workload; None for any other program."""
    command = workload.command
    if not command:
        return None
    if Path(command[0]).name in SHELLS:
        words = [word for word in command[1:] if not word.startswith("-")]
        path = Path(workload.folder, words[0]) if words and "-c" not in command else None
    else:
        path = Path(workload.folder, command[0])
        try:
            first = read_start(path, 200).partition(b"\n")[0].decode("utf-8", "replace")
        except OSError:
            return None
        names = [Path(word).name for word in first.removeprefix("#!").split()]
        path = path if first.startswith("#!") and SHELLS.intersection(names[:2]) else None
    return path if path is not None and path.is_file() else None


def with_lines(programs: tuple[StartedProgram, ...], script: Path | None) -> tuple[StartedProgram, ...]:
    """Return the programs with the line of the script that starts each, where exactly one line can."""
    if script is None:
        return programs
    try:
        text = read_start(script, MAX_SCRIPT).decode("utf-8", "replace")
    except OSError:
        return programs
    found = []
    for program in programs:
        lines = list(_lines_with(text, program)) if program.command else []
        at = lines[0] if len(lines) == 1 else None
        found.append(replace(program, file=str(script), line=at) if at is not None else program)
    return tuple(found)


def _lines_with(text: str, program: StartedProgram) -> Iterator[int]:
    """Yield the numbers of the lines that have the script of the program, or else its command, as a word."""
    for words in dict.fromkeys((program.name, program.command)):
        word = re.compile(rf"(?<![\w.$-]){re.escape(words)}(?![\w.=-])")
        lines = [
            number for number, line in enumerate(text.splitlines(), 1) if word.search(_COMMENT.sub("", line))
        ]
        if lines:
            yield from lines
            return
