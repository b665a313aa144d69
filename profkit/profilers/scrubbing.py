"""Which scrubber takes the private parts out of a report: found by the format's tool, as its faults are.

A tool's folder that can do it has a `scrub.py` with `scrub(source, output, format, redactor)`, which writes a copy of
`source` that the tool itself still opens. Formats that are plain text need none: they are gone through line by line.
"""

from __future__ import annotations

import os
import shutil
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from profkit.core.errors import MachineError, UsageError
from profkit.profilers.formats import Format, sniff
from profkit.profilers.redact import Redactor, Removed

TEXT_SNIFF = 64 * 1024
LONGEST_LINE = 16 << 20  # characters: a longer one is no text


def scrub_report(source: Path, output: Path, redactor: Redactor | None = None) -> tuple[Removed, ...]:
    """Write a copy of the report at `source` to `output` without what is private, and tell what that was.

    What `redactor` knows to be private is taken out as well. Raises UnreadableReport for what is no report, UsageError
    for a format out of which nothing can be taken, MachineError where the copy cannot be written. Where it raises, it
    leaves nothing at `output`.
    """
    found = sniff(source)
    mine = redactor or Redactor()
    temporary = output.with_name(f".{output.name}.{os.getpid()}.tmp")
    try:
        _scrub(found, source, temporary, mine)
        try:
            _place(temporary, output)
        except FileExistsError as error:
            raise UsageError(f"{output} is there already", "--output ANOTHER") from error
        except OSError:  # a file system without links
            os.replace(temporary, output)
    except OSError as error:
        raise MachineError(f"cannot write {output}: {error.strerror or error}", "--output PATH") from error
    finally:
        if temporary.is_dir():  # a folder of exports
            shutil.rmtree(temporary, ignore_errors=True)
        else:
            temporary.unlink(missing_ok=True)
    return mine.removed()


def _place(temporary: Path, output: Path) -> None:
    if temporary.is_dir():
        temporary.rename(output)  # a folder replaces none that holds anything
    else:
        os.link(temporary, output)  # unlike rename it never replaces what came there meanwhile


def _scrub(found: Format, source: Path, output: Path, redactor: Redactor) -> None:
    module = f"profkit.profilers.{found.tool}.scrub"
    if find_spec(module) is not None:
        scrubber = import_module(module)
        if found.name in scrubber.FORMATS:
            scrubber.scrub(source, output, found.name, redactor)
            return
    if found.convert is not None or not is_text(source):
        raise UsageError(
            f"{source} is {found.title}: nothing can be taken out of it without breaking it",
            f"turn it into a form that can be read without {found.tool}, and scrub that",
        )
    scrub_text(source, output, redactor)


def is_text(path: Path) -> bool:
    """Whether a file begins as UTF-8 text does."""
    with path.open("rb") as file:
        head = file.read(TEXT_SNIFF)
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
        source.open(encoding="utf-8", errors="surrogateescape", newline="") as lines,
        output.open("x", encoding="utf-8", errors="surrogateescape", newline="") as copy,
    ):
        while line := lines.readline(LONGEST_LINE):
            copy.write(redactor.text(line))
