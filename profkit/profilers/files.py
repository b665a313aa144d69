"""Files of unknown origin: read up to a bound, so that a hostile one does not fill memory."""

from __future__ import annotations

import codecs
import json
import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TextIO

from profkit.core.errors import UnreadableReport
from profkit.core.files.regular import open_regular

HEAD_BYTES = 64 * 1024  # what is looked at to tell which format a file has
LONGEST_LINE = 32 << 20  # characters; eight thousand metrics of a launch are a quarter of a million
# Traces of torch's profiler pack to a tenth or a thirtieth, DEFLATE can do a thousandth: what unpacks to hundreds of
# times its size is one event again and again, or none.
MOST_RATIO = 250
LEAST_SUSPECT = 64 << 20  # bytes; below, it costs little whatever it is


@contextmanager
def reading(path: Path, fix: str | None = None, *, named: bool = True) -> Iterator[None]:
    """The one place where what is wrong with a file becomes an error that names it; not `named`: of its reader, too.

    `fix` is for errors without one.
    """
    if "\0" in str(path):
        raise UnreadableReport(f"{str(path)!r} is no file name: it has a null byte", "take the null byte out")
    try:
        yield
    except UnreadableReport as error:
        if named:
            raise
        raise UnreadableReport(f"{path}: {error.message}", error.fix or fix) from error
    except OSError as error:
        raise UnreadableReport(
            f"{path} cannot be read: {error.strerror or error}", f"ls -ld {shlex.quote(str(path))}"
        ) from error


def read_head(path: Path) -> bytes:
    """The first 64 KiB of `path`. Raises UnreadableReport with the reason where there is nothing to read."""
    with reading(path):
        if path.is_dir():
            raise UnreadableReport(
                f"{path} is a folder, but no run's folder and no report: there is no run.json in it",
                f"ls {shlex.quote(str(path))}",
            )
        if not path.is_file():
            kind = "is not a regular file" if path.exists() else "does not exist"
            raise UnreadableReport(f"{path} {kind}", f"ls -l {shlex.quote(str(path.parent))}")
        with open_regular(path) as file:
            head = file.read(HEAD_BYTES)
        if not head:
            raise UnreadableReport(f"{path} is empty", "let its tool write it again")
        return head


def lines_of(file: TextIO, path: Path) -> Iterator[str]:
    """The lines of a text. Raises UnreadableReport for a line that no report has: it is too long."""
    while line := file.readline(LONGEST_LINE):
        if len(line) >= LONGEST_LINE:
            raise UnreadableReport(
                f"{path} has a line of more than {LONGEST_LINE >> 20} MiB: no report in text"
            )
        yield line


def check_unpacked(unpacked: int, packed: IO[bytes]) -> None:
    """Raise UnreadableReport if so many bytes came out of what was read of `packed` that it is an archive bomb."""
    if unpacked > LEAST_SUSPECT and unpacked > MOST_RATIO * packed.tell():
        raise UnreadableReport(f"the archive unpacks to more than {MOST_RATIO} times its size: no trace does")


CHUNK = 1 << 18
MOST_VALUE = 1 << 24  # characters of one value that is held whole; a sample or an event has some thousand
_SPACE = re.compile(r"[ \t\n\r]*")
MOST_SPACE = 1 << 26  # characters between two signs; a report is not made of blanks
MOST_KEYS = 1 << 16  # of an object whose values are taken one by one


class TruncatedJson(Exception):
    """The text ends within a value."""


class JsonStream:
    """A cursor over one document. Raises UnreadableReport for no JSON, TruncatedJson where the text ends."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._scan = json.JSONDecoder(strict=False).raw_decode  # tools let control characters through
        self._text = ""
        self._at = 0

    def at_array(self) -> bool:
        """Whether an array is under the cursor."""
        return self._peek() == "["

    def items(self) -> Iterator[str]:
        """The keys of the object under the cursor; take each value before asking for the next key."""
        yield from self._sequence("{", "}", keyed=True)

    def elements(self) -> Iterator[object]:
        """The elements of the array under the cursor, one after the other."""
        for _ in self._sequence("[", "]", keyed=False):
            yield self.value()

    def value(self) -> object:
        """The value under the cursor, whole."""
        self._peek()
        while True:
            try:
                value, end = self._scan(self._text, self._at)
            except json.JSONDecodeError as error:
                # Wrong, or only not all there yet? More text tells; an error far from the end is an error now.
                if len(self._text) - error.pos > 64 and not error.msg.startswith("Unterminated string"):
                    raise UnreadableReport(f"not valid JSON: {error.msg}") from error
                self._more()
                continue
            except (RecursionError, ValueError) as error:  # nested without end, a number without end
                raise UnreadableReport("not a report: JSON nested too deeply or a number too long") from error
            # A number may go on in the next piece: `1`, `1.` and `1e-` all end with a whole number, 1.
            if (
                isinstance(value, int | float)
                and not self._text[end : end + 4].strip(".eE+-")
                and self._fill()
            ):
                continue
            self._at = end
            return value

    def _sequence(self, opening: str, closing: str, *, keyed: bool) -> Iterator[str]:
        self._take(opening)
        taken = 0
        while self._peek() != closing:
            if taken:
                self._take(",")
                self._peek()
            taken += 1
            if keyed and taken > MOST_KEYS:
                raise UnreadableReport(f"not a report: a JSON object with more than {MOST_KEYS} keys")
            key = self.value() if keyed else ""
            if not isinstance(key, str):
                raise UnreadableReport("not valid JSON: a key is no string")
            if keyed:
                self._take(":")
            yield key
        self._at += 1

    def _take(self, expected: str) -> None:
        if (found := self._peek()) != expected:
            raise UnreadableReport(f"not the JSON that was expected: {found!r} where {expected!r} should be")
        self._at += 1

    def _peek(self) -> str:
        """The next character that is no space; the cursor is moved to it."""
        passed = 0
        while True:
            matched = _SPACE.match(self._text, self._at)
            end = matched.end() if matched is not None else self._at
            passed, self._at = passed + end - self._at, end
            if end < len(self._text):
                return self._text[end]
            if passed > MOST_SPACE:
                raise UnreadableReport("not a report: JSON with more than 64 MB of blanks in one place")
            self._more()

    def _more(self) -> None:
        if len(self._text) - self._at > MOST_VALUE:
            raise UnreadableReport("one value of this JSON is larger than 16 MB: not a report")
        if not self._fill():
            raise TruncatedJson

    def _fill(self) -> bool:
        # At least doubled while one value does not fit, so that a long one is not scanned again for every piece.
        chunk = self._file.read(max(CHUNK, len(self._text) - self._at))
        self._text = self._text[self._at :] + self._decode(chunk, final=not chunk)
        self._at = 0
        return bool(chunk)
