"""The source of sampled lines: read from the program's files, where they are here."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from profkit.analysis.stacks.python_code import is_users_code
from profkit.analysis.stacks.source import MOST_BYTES, line_code
from profkit.core.files.regular import read_start
from profkit.core.types import LineCode, Report, SampledTime, Workload

MOST_SOURCES = 30  # lines of most time whose source is looked at


def with_source(report: Report, workload: Workload) -> SampledTime | None:
    """The lines with what their source says, where its file can be read."""
    sampled = report.sampled
    if sampled is None:
        return None
    texts: dict[str, str] = {}

    def code_of(file: str | None, line: int | None) -> LineCode | None:
        if file is None or line is None or not is_users_code(file):
            return None
        if file not in texts:
            texts[file] = _text_of(Path(workload.folder, file))
        return line_code(texts[file], line)

    lines = []
    for number, line in enumerate(sampled.lines):
        code = code_of(line.file, line.line) if number < MOST_SOURCES else None
        if (
            code is not None and code.loop is None and "await" in line.waits
        ):  # the loop is where it is awaited
            for caller in line.callers:
                outer = code_of(caller.file, caller.line)
                if outer is not None and outer.loop is not None:
                    line = replace(line, function=caller.function, line=caller.line)
                    code = outer
                    break
        lines.append(replace(line, code=code))
    imports = next((one for one in report.profiles if one.kind == "sampled-imports"), None)
    callers = [
        caller
        for one in sorted(
            imports.hotspots if imports is not None else (),
            key=lambda one: -one.counters.get("outermost", 0.0),
        )
        for caller in one.callers
        if is_users_code(caller.file)
    ]
    first = code_of(callers[0].file, callers[0].line) if callers else None
    return replace(sampled, lines=tuple(lines), import_code=first)


def _text_of(path: Path) -> str:
    """The text of a file; empty where it cannot be read."""
    try:
        return read_start(path, MOST_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""
