"""Copies a report in text without what is private, so that its reader still takes it."""

from __future__ import annotations

import csv
import gzip
import io
import re
import shlex
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, cast

from profkit.core.errors import MachineError, UnreadableReport, UsageError
from profkit.core.files.regular import open_regular
from profkit.core.files.safe_folder import arriving, bring, remember
from profkit.profilers.files import HEAD_BYTES, check_unpacked, lines_of
from profkit.profilers.redact import HOST, PROCESS, Redactor, RemovedText, without_keys
from profkit.profilers.registry import recognise_format

_GZIP = b"\x1f\x8b"
# A table of Instruments has all that ran on the machine: `<process id="12" fmt="Firefox (900)">`.
_RAN = re.compile(r'<process\b[^>]*? fmt="(?!python)([^"()]{1,80}) \(\d{1,10}\)"')


def scrub_report(source: Path, output: Path, redactor: Redactor | None = None) -> tuple[RemovedText, ...]:
    """Write a copy of the report at `source` to `output` without what is private, and return what was taken out.

    What `redactor` knows to be private is taken out as well. Raises UnreadableReport for what is no report or
    damaged, UsageError for a binary one, MachineError where the copy cannot be written; it then leaves nothing.
    """
    form = recognise_format(source)
    if form.as_text is not None:
        raise UsageError(
            f"{source} is {form.title}: only text can be scrubbed",
            form.as_text.format(name=shlex.quote(source.name), stem=shlex.quote(source.stem)),
        )
    redactor = redactor or Redactor()
    files = sorted(path for path in source.iterdir() if path.is_file()) if source.is_dir() else [source]
    files = [path for path in files if is_text(path)]
    if not files:
        raise UnreadableReport(f"{source} is damaged: it begins as {form.title}, but is not text")
    with copied_to(output) as copy:
        try:
            for file in files:
                learn_report(file, redactor)
            if source.is_dir():
                copy.mkdir()
            for file in files:
                scrub_text(file, copy / file.name if source.is_dir() else copy, redactor)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            why = f"{source} is damaged, so nothing can be taken out of it: {error}"
            raise UnreadableReport(why) from error
    return redactor.removed()


@contextmanager
def copied_to(output: Path) -> Iterator[Path]:
    """Yield a path for a copy that is moved to `output` once it is complete.

    Raises UsageError where `output` exists, MachineError where it cannot be written.
    """
    try:
        with arriving(output.parent) as private:
            yield private / output.name
            bring(private / output.name, output)
        if output.is_dir():
            remember(output)
    except FileExistsError as error:
        raise UsageError(f"{output} exists already", "--output ANOTHER") from error
    except OSError as error:
        raise MachineError(f"cannot write {output}: {error.strerror or error}", "--output PATH") from error


def learn_report(path: Path, redactor: Redactor) -> None:
    """Read the text once for the private words in it, which may stand anywhere else in it too."""
    columns: dict[int, str] = {}  # of a table: number -> kind
    with _lines(path) as lines:
        for line in lines:
            redactor.learn_text(line)
            for name in _RAN.findall(line):
                redactor.learn(name, PROCESS)
            if "Process Name" in line or "Host Name" in line:
                kinds = {"Process Name": PROCESS, "Host Name": HOST}
                titles = next(csv.reader([line]))
                columns = {n: kinds[title] for n, title in enumerate(titles) if title in kinds}
            elif columns:
                with suppress(csv.Error):
                    cells = next(csv.reader([line]), [])
                    for number in columns.keys() & range(len(cells)):
                        redactor.learn(cells[number], columns[number])


_PLACEHOLDER = re.compile(r"<(removed|token|mail|address|host)>")


def scrub_text(source: Path, output: Path, redactor: Redactor) -> None:
    """Copy text, packed as `source` is, line by line without what is private."""
    opened = gzip.open if _is_packed(source) else open
    with (
        _lines(source) as lines,
        opened(output, "xt", encoding="utf-8", errors="surrogateescape", newline="") as copy,
    ):
        is_xml = source.suffix == ".xml"
        for line in without_keys(lines):
            text = redactor.text(line)
            # Unescaped it would be a tag, and the XML could not be parsed any more.
            copy.write(_PLACEHOLDER.sub(r"&lt;\1&gt;", text) if is_xml else text)


def is_text(path: Path) -> bool:
    """Return whether a file begins as UTF-8 text does, packed or not."""
    if _is_packed(path):
        return True
    with open_regular(path) as file:
        head = file.read(HEAD_BYTES)
    if b"\0" in head:
        return False
    try:
        head.decode("utf-8")
    except UnicodeDecodeError as error:
        return error.start > len(head) - 4  # only the last character is cut off
    return True


def _is_packed(path: Path) -> bool:
    with open_regular(path) as file:
        return file.read(2) == _GZIP


@contextmanager
def _lines(path: Path) -> Iterator[Iterator[str]]:
    """Open a text and yield its lines, with slashes that JSON escapes unescaped, so that paths are seen."""
    with open_regular(path) as raw:
        packed = _is_packed(path)
        content = cast("BinaryIO", gzip.GzipFile(fileobj=raw)) if packed else raw
        text = io.TextIOWrapper(content, encoding="utf-8", errors="surrogateescape", newline="")

        def lines() -> Iterator[str]:
            unpacked = 0
            for line in lines_of(text, path):
                unpacked += len(line)
                if packed:
                    check_unpacked(unpacked, raw)
                yield re.sub(r"(?<!\\)\\/", "/", line)

        yield lines()
