"""Cuts `perf script` text into samples as it streams by, in bounded memory.

Callers repeat: the lines of a stack are looked up as two pieces of bytes (the innermost frame; all its
callers) before anything is looked at line by line, and a line is parsed once. This makes reading faster
than perf's writing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import IO, NamedTuple

from profkit.analysis.stacks.merge import FrameTable
from profkit.core.types import Frame
from profkit.profilers.perf.script_blocks import ScriptBlocks
from profkit.profilers.perf.script_text import one_line_frame, parse_frame, parse_header

MOST_LINES = 1 << 17  # parsed lines kept, some 300 bytes each
MOST_TEXT = 1 << 25  # bytes of stack text kept
MOST_DEPTH = 1 << 14  # frames of one stack; perf itself stops at a few thousand

RawSample = tuple["re.Match[bytes]", tuple[int, ...]]
_PLAIN = re.compile(rb"\t *[0-9a-f]{1,16} ([^\n]*)\n?")
_SOURCE_LINE = re.compile(rb"\s+\S.*:\d+\s*$")  # what `-F srcline` puts under a frame
_LOST = re.compile(rb"PERF_RECORD_LOST(?:_SAMPLES)?\b.*?lost (\d{1,18})")
_COMMENT = re.compile(rb"#\s*(perf version|arch|cpudesc)\s*:\s*(.{1,200})")


class _Line(NamedTuple):
    number: int  # in the frame table
    address: bytes
    library: str | None
    inlined: str | None  # the function, where its library is that of the frame it was inlined into


class ScriptStream:
    """One pass over one text. `table` numbers the frames that `samples` speaks of, innermost first."""

    def __init__(self) -> None:
        self.table = FrameTable()
        self.version: str | None = None
        self.facts: dict[str, str] = {}
        self._lines: dict[bytes, _Line | None] = {}
        self._symbols: dict[bytes, int] = {}  # the same without the address
        self._stacks: dict[bytes, tuple[int, ...]] = {}
        self._text = 0  # bytes of the keys of _stacks
        self._odd = 0
        self.lost = 0
        self._blocks = ScriptBlocks()

    def warnings(self) -> Iterator[str]:
        """What is to be known about the samples that were read, once they are read."""
        if self._blocks.ending:
            yield self._blocks.ending
        if self.lost:
            yield f"perf lost {self.lost} samples while recording"
        if self._odd:
            yield f"{self._odd} lines were not understood and left out"

    def samples(self, file: IO[bytes]) -> Iterator[RawSample]:
        """Every sample as its header (a match of script_text.parse_header) and its stack."""
        stacks = self._stacks
        for block in self._blocks.blocks(file):
            if not block:
                continue
            header, _, body = block.partition(b"\n")
            match = parse_header(header)
            if match is None or not body:
                yield from self._lines_of(block)
                continue
            # The innermost frame is one line, or several where functions were inlined into it.
            end = body.find(b"\n")
            while end >= 0 and body.endswith(b"(inlined)", 0, end):
                end = body.find(b"\n", end + 1)
            inner, callers = (body, b"") if end < 0 else (body[:end], body[end + 1 :])
            first = stacks.get(inner)
            if first is None and (first := self._parse(inner)) is None:
                yield from self._lines_of(block)
                continue
            others = stacks.get(callers)
            if others is None and (others := self._parse(callers)) is None:
                yield from self._lines_of(block)
                continue
            yield match, first + others

    def _parse(self, text: bytes) -> tuple[int, ...] | None:
        """The frames of `text`, kept for next time; None where a line of it begins another sample."""
        ids: tuple[int, ...] | None = None
        if b"(inlined)" not in text:
            ids = self._plain_frames(text)
        if ids is None:
            lines = text.split(b"\n") if text else []
            if any(line[:1] == b"#" or (line[:1] != b"\t" and parse_header(line)) for line in lines):
                return None
            ids = self._frames(lines)
        return self._keep(text, ids)

    def _plain_frames(self, text: bytes) -> tuple[int, ...] | None:
        """The frames of lines that are all of the plain shape, by symbol and dso; None where one is not.

        One look for all lines, and the address left out of the key: most stacks that are new differ from
        known ones in addresses only.
        """
        symbols = _PLAIN.findall(text)
        if len(symbols) != text.count(b"\n") + 1 or len(symbols) > MOST_DEPTH:
            return None
        known = self._symbols
        try:
            return tuple([known[symbol] for symbol in symbols])
        except KeyError:
            pass
        for symbol in symbols:
            if symbol not in known:
                parsed = parse_frame(b"0 " + symbol)
                if parsed is None:
                    return None
                if len(known) >= MOST_LINES:
                    known.clear()
                    return None
                known[symbol] = self.table.add(parsed.frame)
        return tuple([known[symbol] for symbol in symbols])

    def _frames(self, lines: list[bytes]) -> tuple[int, ...]:
        cache = self._lines
        ids = []
        outer: _Line | None = None
        for text in reversed(lines[:MOST_DEPTH]):
            try:
                line = cache[text]
            except KeyError:
                line = self._line(text)
            if line is None:
                continue
            if line.inlined is None:
                outer = line
                ids.append(line.number)
            else:
                library = outer.library if outer and outer.address == line.address else None
                ids.append(self.table.add(Frame(line.inlined, library)))
        ids.reverse()
        return tuple(ids)

    def _line(self, text: bytes) -> _Line | None:
        if len(self._lines) >= MOST_LINES:
            self._lines.clear()
        parsed = parse_frame(text)
        line = None
        if parsed is None:
            if text.strip() and not _SOURCE_LINE.match(text):
                self._odd += 1
        elif parsed.inlined:
            line = _Line(-1, parsed.address, None, parsed.frame.function)
        else:
            line = _Line(self.table.add(parsed.frame), parsed.address, parsed.frame.library, None)
        if len(text) < 4096:
            self._lines[text] = line
        return line

    def _lines_of(self, block: bytes) -> Iterator[RawSample]:
        """A block line by line: comments, samples without a blank line between them, other records."""
        match: re.Match[bytes] | None = None
        body: list[bytes] = []
        for line in block.split(b"\n"):
            if not line:
                continue
            if line[:1] == b"\t":
                if match is not None:
                    body.append(line)
                elif line.strip():
                    self._odd += 1
            elif (found := parse_header(line)) is not None:
                if match is not None:
                    yield match, self._stack_of(match, body)
                match, body = found, []
            elif line[:1] == b"#":
                self._comment(line)
            elif b"PERF_RECORD_" in line:
                if lost := _LOST.search(line):
                    self.lost += int(lost[1])
            elif match is not None:
                body.append(line)
            elif line.strip():
                self._odd += 1
        if match is not None:
            yield match, self._stack_of(match, body)

    def _stack_of(self, match: re.Match[bytes], body: list[bytes]) -> tuple[int, ...]:
        if body:
            return self._frames(body)
        rest: bytes = match["rest"]
        found = self._stacks.get(rest)
        if found is None:
            if one_line_frame(rest) is None:  # what a trace event has to say: new each time
                return ()
            found = self._keep(rest, self._frames([rest]))
        return found

    def _keep(self, text: bytes, ids: tuple[int, ...]) -> tuple[int, ...]:
        if self._text > MOST_TEXT:
            self._stacks.clear()
            self._text = 0
        self._stacks[text] = ids
        self._text += len(text) + 8 * len(ids) + 100
        return ids

    def _comment(self, line: bytes) -> None:
        """`perf script --header` says what was used; the host's name is there too and is never kept."""
        if found := _COMMENT.match(line):
            name, value = found[1].decode(), found[2].decode("utf-8", "replace").strip()
            if name == "perf version":
                self.version = value
            else:
                self.facts["cpu" if name == "cpudesc" else name] = value
