"""Reads traces in Chrome's format, plain or gzip, event by event and as far as they go."""

from __future__ import annotations

import gzip
import re
import shlex
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import IO

from profkit.core.errors import UnreadableReport
from profkit.core.files.regular import open_regular
from profkit.profilers.chrome.json_stream import JsonStream, TruncatedJson
from profkit.profilers.files import check_unpacked, reading

_GZIP = b"\x1f\x8b"
# The direction of a copy, by what stands in its name.
DIRECTIONS = {
    "HtoD": "host to device",
    "DtoH": "device to host",
    "DtoD": "device to device",
    "HtoH": "host to host",
    "PtoP": "peer to peer",
}


def unpacked_head(head: bytes) -> bytes:
    """Return the beginning of a file, unpacked if it is gzip; empty where the gzip data is damaged."""
    if head.startswith(_GZIP):
        try:
            head = zlib.decompressobj(31).decompress(head, 1 << 16)
        except zlib.error:
            return b""
    return head.removeprefix(b"\xef\xbb\xbf")


class ChromeTrace:
    """Hands each event of a trace to `take`.

    `top` holds the other values of the document, `seen` the number of events, `repairs` how often the text was
    not valid JSON and had to be repaired.
    """

    def __init__(self, take: Callable[[object], None]) -> None:
        self._take = take
        self.top: dict[str, object] = {}
        self.cut_short = False
        self.seen = 0
        self.repairs = 0
        self.more_behind = False  # text behind the end of the document, which was not read

    def read(self, path: Path, tool: str) -> None:
        """Read the file, as far as it goes. Raises UnreadableReport where it holds no event of `tool`."""
        named = shlex.quote(str(path))
        with reading(path, named=False), open_regular(path) as raw:
            packed = raw.read(2) == _GZIP
            raw.seek(0)
            text = f"gzip -dc {named} | python -m json.tool" if packed else f"python -m json.tool {named}"
            fix = f"{text} > /dev/null   (names the line)"
            stream = JsonStream(_GzipReader(raw) if packed else raw, fix)  # type: ignore[arg-type]
            try:
                self._read(stream)
                self.more_behind = not stream.at_end()
            except TruncatedJson:
                self.cut_short = True
            self.repairs = stream.repairs
            if not self.seen:
                raise UnreadableReport(
                    "it ends before the first event" if self.cut_short else f"no trace of {tool}: no events"
                )

    def _read(self, stream: JsonStream) -> None:
        if stream.at_array():
            self._take_events(stream)
            return
        for key in stream.items():
            if key == "traceEvents":
                self._take_events(stream)
            else:
                self.top[key] = stream.value()

    def _take_events(self, stream: JsonStream) -> None:
        for event in stream.elements():
            self.seen += 1
            self._take(event)


_EXACT = float(1 << 53)
_LONGEST = 4 * 10**15  # microseconds: what is more is in no century, or not finite
_DECIMAL = re.compile(r"(?P<sign>-?)(?P<whole>\d{1,16})(?:\.(?P<fraction>\d{1,32}))?", re.ASCII)


def to_nanoseconds(microseconds: object) -> int | None:
    """Convert a time of the trace, in microseconds, to whole nanoseconds; None for what is no time.

    Whole and fraction are converted apart: of microseconds since 1970 as one float the fractions would be lost.
    """
    if type(microseconds) is float and -_EXACT < microseconds < _EXACT:  # what tools write
        whole = int(microseconds)
        return whole * 1000 + round((microseconds - whole) * 1000)
    if isinstance(microseconds, str) and (written := _DECIMAL.fullmatch(microseconds.strip())) is not None:
        # Ascend's profiler writes times as texts
        nanoseconds = int(written["whole"]) * 1000 + round(float(f"0.{written['fraction'] or 0}") * 1000)
        if nanoseconds >= _LONGEST * 1000:
            return None
        return -nanoseconds if written["sign"] else nanoseconds
    if isinstance(microseconds, bool) or not isinstance(microseconds, int | float):
        return None
    if not abs(microseconds) < _LONGEST:
        return None
    whole = int(microseconds)
    return whole * 1000 + round((microseconds - whole) * 1000)


_WHOLE = 1 << 62


def whole_number(value: object, default: int) -> int:
    """Return `value` as an int if it is a whole number below 2^62, else `default`."""
    if type(value) is int:
        return value if -_WHOLE < value < _WHOLE else default
    if isinstance(value, float) and value == value and abs(value) < 1 << 53:
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < _WHOLE:
        return value
    return default


class _GzipReader:
    """Reads a gzip file as bytes; one that is cut short or damaged ends where it breaks off."""

    def __init__(self, raw: IO[bytes]) -> None:
        self._raw, self._file = raw, gzip.GzipFile(fileobj=raw)
        self._over = False
        self._unpacked = 0

    def read(self, size: int) -> bytes:
        """Return the next bytes, at most `size`; none at the end."""
        if self._over:
            return b""
        try:
            piece = self._file.read1(size)
        except (EOFError, zlib.error, gzip.BadGzipFile):
            self._over = True
            return b""
        self._unpacked += len(piece)
        check_unpacked(self._unpacked, self._raw)
        return piece
