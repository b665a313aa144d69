"""A copy of a report without what is private, which its reader still takes."""

from __future__ import annotations

import gzip
import re
import shlex
import zlib
from pathlib import Path

from profkit.core.errors import MachineError, UnreadableReport, UsageError
from profkit.core.files.regular import open_regular, open_regular_text
from profkit.core.files.safe_folder import bring, private_place
from profkit.profilers.files import HEAD_BYTES, check_unpacked
from profkit.profilers.private_forms import without_keys
from profkit.profilers.redact import Redactor, RemovedText
from profkit.profilers.registry import recognise_format

LEARNT_PIECE = 1 << 20  # bytes
LONGEST_LINE = 16 << 20  # characters: a longer one is cut there


def scrub_report(
    source: Path, output: Path, redactor: Redactor | None = None, name: str | None = None
) -> tuple[RemovedText, ...]:
    """Write a copy of the report at `source` to `output` without what is private, and return what was taken out.

    What `redactor` knows to be private is taken out as well; it notes what kinds of text stay, in the file that is
    called `name`. Raises UnreadableReport for what is no report, UsageError
    for a format out of which nothing can be taken, MachineError where the copy cannot be written. Where it raises, it
    leaves nothing at `output`.
    """
    form = recognise_format(source)
    if form.scrub is None:
        raise UsageError(
            f"{source} is {form.title}: nothing can be taken out of it without breaking it",
            form.scrub_fix.format(name=shlex.quote(source.name)),
        )
    redactor = redactor or Redactor()
    learn_report(source, redactor)
    try:
        with private_place(output) as copy:
            form.scrub(source, copy, redactor)
            bring(copy, output)
    except FileExistsError as error:
        raise UsageError(f"{output} is there already", "--output ANOTHER") from error
    except OSError as error:
        raise MachineError(f"cannot write {output}: {error.strerror or error}", "--output PATH") from error
    redactor.note_remaining(name or source.name, form.texts)
    return redactor.removed()


def learn_report(path: Path, redactor: Redactor) -> None:
    """Read the report once for the private words in it, which may stand anywhere else in it too; no more than that.

    Binary reports are read so by what scrubs them. What cannot be read is left to whoever reads it next.
    """
    try:
        with open_regular(path) as raw:
            packed = raw.read(2) == b"\x1f\x8b"
            raw.seek(0)
            if not packed and not is_text(path):
                return
            content = gzip.GzipFile(fileobj=raw) if packed else raw
            while piece := content.read(LEARNT_PIECE):
                if packed:
                    check_unpacked(content.tell(), raw)
                piece += content.readline(LONGEST_LINE)
                redactor.learn_text(re.sub(r"(?<!\\)\\/", "/", piece.decode("utf-8", "replace")))
    except (OSError, EOFError, zlib.error, UnreadableReport):
        return


def is_text(path: Path) -> bool:
    """Whether a file begins as UTF-8 text does."""
    with open_regular(path) as file:
        head = file.read(HEAD_BYTES)
    if b"\0" in head:
        return False
    try:
        head.decode("utf-8")
    except UnicodeDecodeError as error:
        return error.start > len(head) - 4  # only the last character is cut off
    return True


def scrub_text(source: Path, output: Path, redactor: Redactor) -> None:
    """Copy text line by line without what is private."""
    with (
        open_regular_text(source, encoding="utf-8", errors="surrogateescape", newline="") as lines,
        output.open("x", encoding="utf-8", errors="surrogateescape", newline="") as copy,
    ):
        for line in without_keys(iter(lambda: lines.readline(LONGEST_LINE), "")):
            copy.write(redactor.text(line))
