"""Reads JSON of unknown origin as a stream: value by value, in bounded memory, and as far as it goes."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from typing import IO

from profkit.core.errors import UnreadableReport
from profkit.profilers.chrome.json_repair import repaired

CHUNK = 1 << 18
MAX_VALUE = 1 << 24  # characters of one value that is held whole; a sample or an event has some thousand
_BLANKS = " \t\n\r"
_SPACE = re.compile(f"[{_BLANKS}]*")
MAX_SPACE = 1 << 26  # characters between two signs; a report is not made of blanks
MAX_KEYS = 1 << 16  # of an object whose values are taken one by one


class TruncatedJson(Exception):
    """The text ends within a value."""


class JsonStream:
    """A cursor over one JSON document.

    Raises UnreadableReport for what is not JSON, TruncatedJson where the text ends. `fix` is the command that
    shows where the text is not valid JSON.
    """

    def __init__(self, file: IO[bytes], fix: str | None = None) -> None:
        self._file = file
        self._fix = fix
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._scan = json.JSONDecoder(strict=False).raw_decode  # tools let control characters through
        self._text = ""
        self._at = 0
        self.repairs = 0  # how often what its tool wrote was no JSON, and could be read all the same

    def at_array(self) -> bool:
        """Return whether an array is under the cursor."""
        return self._peek() == "["

    def at_end(self) -> bool:
        """Return whether nothing but blanks is left."""
        try:
            self._peek()
        except TruncatedJson:
            return True
        return False

    def items(self) -> Iterator[str]:
        """Yield the keys of the object under the cursor; take each value before the next key."""
        yield from self._sequence("{", "}", keyed=True)

    def elements(self) -> Iterator[object]:
        """Yield the elements of the array under the cursor, one after the other."""
        for _ in self._sequence("[", "]", keyed=False):
            yield self.value()

    def value(self) -> object:
        """Read the whole value under the cursor."""
        self._peek()
        while True:
            try:
                value, end = self._scan(self._text, self._at)
            except json.JSONDecodeError as error:
                # Wrong, or only not all there yet? More text tells; an error far from the end is an error now.
                if len(self._text) - error.pos > 64 and not error.msg.startswith("Unterminated string"):
                    if self._repair():
                        continue
                    raise UnreadableReport(f"not valid JSON: {error.msg}", self._fix) from error
                self._more_or_repair()
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
        count = 0
        while self._peek() != closing:
            if count:
                self._take(",")
                if self._peek() == closing:  # a comma behind the last one, which viewers of traces take, too
                    break
            count += 1
            if keyed and count > MAX_KEYS:
                raise UnreadableReport(f"not a report: a JSON object with more than {MAX_KEYS} keys")
            key = self.value() if keyed else ""
            if not isinstance(key, str):
                raise UnreadableReport("not valid JSON: a key is not a string", self._fix)
            if keyed:
                self._take(":")
            yield key
        self._at += 1

    def _take(self, expected: str) -> None:
        if (sign := self._peek()) != expected:
            raise UnreadableReport(
                f"not the JSON that was expected: {sign!r} where {expected!r} should be", self._fix
            )
        self._at += 1

    def _peek(self) -> str:
        """Return the next character that is not a blank, and move the cursor to it."""
        sign = self._text[self._at : self._at + 1]
        if sign and sign not in _BLANKS:  # most of them, four times for each event
            return sign
        passed = 0
        while True:
            matched = _SPACE.match(self._text, self._at)
            end = matched.end() if matched is not None else self._at
            passed, self._at = passed + end - self._at, end
            if end < len(self._text):
                return self._text[end]
            if passed > MAX_SPACE:
                raise UnreadableReport("not a report: JSON with more than 64 MB of blanks in one place")
            self._more()

    def _repair(self) -> bool:
        """Repair what has not been scanned yet, and return whether that changed anything."""
        text = repaired(self._text[self._at :])
        if text == self._text[self._at :]:
            return False
        self._text, self._at = text, 0
        self.repairs += 1
        return True

    def _more_or_repair(self) -> None:
        """Read on; at the end of the file, repair what seemed to be cut, as it may be invalid JSON."""
        try:
            self._more()
        except TruncatedJson:
            if not self._repair():
                raise

    def _more(self) -> None:
        if len(self._text) - self._at > MAX_VALUE:
            raise UnreadableReport("one value of this JSON is larger than 16 MB: not a report")
        if not self._fill():
            raise TruncatedJson

    def _fill(self) -> bool:
        # At least doubled while one value does not fit, so that a long one is not scanned again for every piece.
        chunk = self._file.read(max(CHUNK, len(self._text) - self._at))
        self._text = self._text[self._at :] + self._decode(chunk, final=not chunk)
        self._at = 0
        return bool(chunk)
