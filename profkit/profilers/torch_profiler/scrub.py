"""Takes what is private out of torch.profiler's Chrome traces, compressed or not: text in, text out, event by event."""

from __future__ import annotations

import gzip
import io
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, TextIO, cast

from profkit.core.errors import UnreadableReport
from profkit.profilers.files import check_unpacked
from profkit.profilers.redact import COMMAND, HOST, PROCESS, USER, Redactor

BATCH = 1 << 20  # characters that are gone through at a time, up to the end of an event
LONGEST = 64 << 20  # a trace in one line is cut here, in the middle of whatever stands there
_PROCESS = re.compile(
    r'("name"\s*:\s*"(?:process_name|thread_name)"[^{}]*"args"\s*:\s*\{\s*"name"\s*:\s*")((?!stream )[^"\\]*)'
)
_NAMED = re.compile(
    r'("(?P<key>host_?name|node_?name|user_?name|user|cmd_?line|command_?line|argv|working_?dir|cwd)"\s*:\s*")'
    r'((?:[^"\\]|\\.)*)',
    re.IGNORECASE,
)
_KINDS = (("host", HOST), ("node", HOST), ("user", USER))


def scrub(source: Path, output: Path, redactor: Redactor) -> None:
    """Write the trace to `output`, compressed as `source` is. Raises UnreadableReport for a damaged one or a bomb."""
    with source.open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    try:
        with source.open("rb") as raw, _open_lines(raw, packed) as lines, _open_copy(output, packed) as copy:
            unpacked = 0
            for batch in _batches(lines):
                unpacked += len(batch)
                if packed:
                    check_unpacked(unpacked, raw)
                copy.write(_clean(batch, redactor))
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise UnreadableReport(f"{source} is damaged, so nothing can be taken out of it: {error}") from error


def _open_lines(raw: BinaryIO, packed: bool) -> TextIO:
    content = cast("BinaryIO", gzip.GzipFile(fileobj=raw)) if packed else raw
    return io.TextIOWrapper(content, encoding="utf-8", errors="surrogateescape", newline="")


def _open_copy(path: Path, packed: bool) -> TextIO:
    if packed:
        return cast("TextIO", gzip.open(path, "xt", encoding="utf-8", errors="surrogateescape", newline=""))
    return path.open("x", encoding="utf-8", errors="surrogateescape", newline="")


def _batches(lines: TextIO) -> Iterator[str]:
    batch: list[str] = []
    size = 0
    while line := lines.readline(LONGEST):
        batch.append(line)
        size += len(line)
        if size >= LONGEST or (size >= BATCH and line.rstrip().endswith(("}", "},"))):
            yield "".join(batch)
            batch, size = [], 0
    yield "".join(batch)


def _clean(text: str, redactor: Redactor) -> str:
    text = re.sub(r"(?<!\\)\\/", "/", text)  # the same in JSON, and a path is then seen

    def process(found: re.Match[str]) -> str:
        redactor.note(PROCESS, int(bool(found[2])), "process")
        return f"{found[1]}process" if found[2] else found[0]

    def named(found: re.Match[str]) -> str:
        kind = next((kind for word, kind in _KINDS if word in found["key"].lower()), COMMAND)
        redactor.note(kind, int(bool(found[3])))
        return found[1]

    text = _PROCESS.sub(process, text)
    text = _NAMED.sub(named, text)
    return redactor.text(text)
