"""Reads `perf script` text of any size in bounded memory into merged stacks and tables.

Tables are by function, library and thread.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import IO

from profkit.analysis.stacks.merge import FrameTable
from profkit.core.errors import UnreadableReport
from profkit.core.files.regular import open_regular
from profkit.core.types import Fact, Frame, Profile, Report
from profkit.profilers.files import reading
from profkit.profilers.perf.samples import MAX_THREADS, MergedEvents, frame_of

CHUNK = 1 << 20
# The thread of our own sampler in a Python program (runtime/passes/host/stacks): no part of that program.
OWN_THREAD = b"profkit-sampler"
MAX_UNBROKEN = 1 << 24  # a sample is some kilobytes; 16 MiB without an end is another kind of file


class ScriptBlocks:
    """Splits one text into blocks. `ending` says afterwards what is wrong with the text's end, if anything."""

    def __init__(self) -> None:
        self.ending: Fact | None = None

    def blocks(self, file: IO[bytes]) -> Iterator[bytes]:
        """Yield the text between blank lines; without any, pieces that end before a sample begins.

        Raises UnreadableReport for a binary file, and for one that is no text of perf script.
        """
        pending = b""
        blank = False
        while chunk := file.read(CHUNK):
            if b"\0" in chunk:
                raise UnreadableReport("this is a binary file, not the text of perf script")
            data = pending + chunk
            if b"\r\n" in data:
                data = data.replace(b"\r\n", b"\n")
            cut = data.rfind(b"\n\n")
            if cut < 0 and len(data) >= CHUNK:
                cut = _last_start(data) - 1
                blocks = [data[:cut]] if cut > 0 else []
                pending = data[cut + 1 :] if cut > 0 else data
            elif cut < 0:
                blocks, pending = [], data
            else:
                blank = True
                blocks, pending = data[:cut].split(b"\n\n"), data[cut + 2 :]
            if len(pending) > MAX_UNBROKEN:
                raise UnreadableReport("16 MiB without the end of a sample: not the text of perf script")
            yield from blocks
        if pending.strip():
            yield self._tail(pending, blank)

    def _tail(self, rest: bytes, blank: bool) -> bytes:
        """Return the last block, without a sample that is cut short: it would have the wrong callers."""
        if rest.endswith(b"\n"):
            if blank and b"\n\t" in rest:
                self.ending = Fact("no-last-sample")
            return rest
        if rest.endswith(b")"):
            self.ending = Fact("ends-in-the-middle")
            return rest
        self.ending = Fact("ends-in-a-line")
        return rest[: _last_start(rest)]


def _last_start(data: bytes) -> int:
    """Return where the last line begins that is no line of a stack; 0 where only the first can be."""
    position = data.rfind(b"\n")
    while position >= 0 and data[position + 1 : position + 2] in (b"\t", b""):
        position = data.rfind(b"\n", 0, position)
    return position + 1


# comm is at most 15 bytes for a thread, a bit more where perf makes one up; the bound keeps the match linear
# on hostile lines. The event ends at the first colon that is followed by a space or the end of the line.
_HEADER = re.compile(
    rb"\s{0,64}(?P<comm>.{0,64}?)\s{1,64}"
    rb"(?P<pid>-?\d{1,10})(?:/\s{0,10}(?P<tid>-?\d{1,10}))?\s{1,64}"
    rb"(?:\[(?P<cpu>\d{1,6})\]\s{1,64})?"
    rb"(?P<time>\d{1,12}\.\d{6,9}):"
    rb"(?:\s{1,64}(?P<period>\d{1,20})(?=\s))?"
    rb"(?:\s{1,64}(?P<event>\S{1,512}?):(?=\s|$))?"
    rb"(?P<rest>(?(event).*|(?:\s*$|\s{1,64}[0-9a-f]{1,16}\s.*)))",
    re.DOTALL,
)
# Without the column of times, as perf before 4.0 and `-F` print it: its stack has to follow, and so nothing else.
_TIMELESS = re.compile(
    rb"\s{0,64}(?P<comm>\S.{0,63}?)\s{1,64}(?P<pid>-?\d{1,10})(?:/\s{0,10}(?P<tid>-?\d{1,10}))?\s{1,64}"
    rb"(?:\[(?P<cpu>\d{1,6})\]\s{1,64})?(?P<time>)(?:(?P<period>\d{1,20})\s{1,64})?"
    rb"(?P<event>[A-Za-z]\S{0,511}):\s{0,64}(?P<rest>)$"
)
_ADDRESS = re.compile(rb"\s*([0-9a-f]{1,16})(?:\s+|$)")
_OFFSET = re.compile(rb"\+0x[0-9a-f]+$")
_ONE_LINE = re.compile(rb"\s{1,64}[0-9a-f]{1,16} \S")


def parse_header(line: bytes) -> re.Match[bytes] | None:
    """Match a sample's first line, with the groups comm, pid, tid, cpu, time, period, event, rest; else None."""
    if line.startswith((b"\t", b"#")):
        return None
    return _HEADER.match(line) or (_TIMELESS.match(line) if line.rstrip().endswith(b":") else None)


@lru_cache(maxsize=1 << 16)  # samples of one place have the same lines
def parse_frame(line: bytes) -> Frame | None:
    """Parse one line of a stack; None for a source line, a note, or a function that was inlined."""
    match = _ADDRESS.match(line)
    if match is None:
        return None
    symbol, dso = _split_dso(line[match.end() :].rstrip())
    if dso == b"inlined":
        return None
    return frame_of(_decode_text(_OFFSET.sub(b"", symbol)), _decode_text(dso) if dso else None)


def one_line_frame(rest: bytes) -> Frame | None:
    """Parse the frame on the sample's own line where no stacks were recorded; None for anything else."""
    return parse_frame(rest) if _ONE_LINE.match(rest) else None


def _split_dso(text: bytes) -> tuple[bytes, bytes]:
    """Split `operator()(int)+0x1 (/tmp/a (deleted))` into symbol and dso, which is the last balanced group."""
    if not text.endswith(b")"):
        return text, b""
    depth = 0
    end = position = len(text)
    while True:
        opening, closing = text.rfind(b"(", 0, position), text.rfind(b")", 0, position)
        position = max(opening, closing)
        if position < 0:
            break
        depth += 1 if closing > opening else -1
        if depth == 0:
            break
    if position < 0:  # unbalanced: a dso with a lone parenthesis in its name
        position = text.rfind(b" (") + 1
        if position == 0:
            return text, b""
    elif position > 0 and text[position - 1 : position] != b" ":
        return text, b""  # the argument list of a symbol: this output has no dso column
    return text[:position].rstrip(), _OFFSET.sub(b"", text[position + 1 : end - 1])


MAX_LINES = 1 << 17  # parsed lines kept, some 300 bytes each
MAX_TEXT = 1 << 25  # bytes of stack text kept
MAX_DEPTH = 1 << 14  # frames of one stack; perf itself stops at a few thousand

RawSample = tuple["re.Match[bytes]", tuple[int, ...]]
_PLAIN = re.compile(rb"\t *[0-9a-f]{1,16} ([^\n]*)\n?")
# What `-F srcline` puts under a frame, and a function that was inlined into the next one.
_NO_FRAME = re.compile(rb"^\s+\S.*:\d+\s*$|\(inlined\)\s*$")
_LOST = re.compile(rb"PERF_RECORD_LOST(?:_SAMPLES)?\b.*?lost (\d{1,18})")
_COMMENT = re.compile(rb"#\s*(perf version|arch|cpudesc)\s*:\s*(.{1,200})")


class ScriptStream:
    """Reads the samples of one text. `table` numbers the frames of `samples`, innermost first."""

    def __init__(self) -> None:
        self.table = FrameTable()
        self.version: str | None = None
        self.facts: dict[str, str] = {}
        self._lines: dict[bytes, int | None] = {}
        self._symbols: dict[bytes, int] = {}  # the same without the address
        self._stacks: dict[bytes, tuple[int, ...]] = {}
        self._text = 0  # bytes of the keys of _stacks
        self._odd = 0
        self.lost = 0
        self._blocks = ScriptBlocks()

    def warnings(self) -> Iterator[Fact]:
        """Yield what to know about the samples, once they are read."""
        if self._blocks.ending:
            yield self._blocks.ending
        if self.lost:
            yield Fact.of("lost-samples", count=self.lost)
        if self._odd:
            yield Fact.of("lines-left-out", count=self._odd)

    def samples(self, file: IO[bytes]) -> Iterator[RawSample]:
        """Yield every sample as its header (a match of `parse_header`) and its stack."""
        stacks = self._stacks
        for block in self._blocks.blocks(file):
            if not block:
                continue
            header, _, body = block.partition(b"\n")
            match = parse_header(header)
            if match is None or not body:
                yield from self._lines_of(block)
                continue
            inner, _, callers = body.partition(b"\n")
            first = stacks.get(inner)
            if first is None and (first := self._parse(inner)) is None:
                yield from self._lines_of(block)
                continue
            outer = stacks.get(callers)
            if outer is None and (outer := self._parse(callers)) is None:
                yield from self._lines_of(block)
                continue
            yield match, first + outer

    def _parse(self, text: bytes) -> tuple[int, ...] | None:
        """Return the frames of `text`, and keep them; None where a line of it begins another sample."""
        ids = None if b"(inlined)" in text else self._plain_frames(text)
        if ids is None:
            lines = text.split(b"\n") if text else []
            if any(line[:1] == b"#" or (line[:1] != b"\t" and parse_header(line)) for line in lines):
                return None
            ids = self._frames(lines)
        return self._keep(text, ids)

    def _plain_frames(self, text: bytes) -> tuple[int, ...] | None:
        """Return the frames, by symbol and dso, of lines that are all of the plain shape; else None.

        All lines are matched at once, and the address is left out of the key: most stacks that are new differ from
        known ones in addresses only.
        """
        symbols = _PLAIN.findall(text)
        if len(symbols) != text.count(b"\n") + 1 or len(symbols) > MAX_DEPTH:
            return None
        numbers = self._symbols
        try:
            return tuple([numbers[symbol] for symbol in symbols])
        except KeyError:
            pass
        for symbol in symbols:
            if symbol not in numbers:
                parsed = parse_frame(b"0 " + symbol)
                if parsed is None:
                    return None
                if len(numbers) >= MAX_LINES:
                    numbers.clear()
                    return None
                numbers[symbol] = self.table.add(parsed)
        return tuple([numbers[symbol] for symbol in symbols])

    def _frames(self, lines: list[bytes]) -> tuple[int, ...]:
        return tuple(n for text in lines[:MAX_DEPTH] if (n := self._line(text)) is not None)

    def _line(self, text: bytes) -> int | None:
        """Return the number of the frame in a line; None if there is none."""
        if text in self._lines:
            return self._lines[text]
        if len(self._lines) >= MAX_LINES:
            self._lines.clear()
        frame = parse_frame(text)
        number = self.table.add(frame) if frame is not None else None
        if number is None and text.strip() and not _NO_FRAME.search(text):
            self._odd += 1
        if len(text) < 4096:
            self._lines[text] = number
        return number

    def _lines_of(self, block: bytes) -> Iterator[RawSample]:
        """Read a block line by line: comments, samples without a blank line between them, other records."""
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
            elif (header := parse_header(line)) is not None:
                if match is not None:
                    yield match, self._stack_of(match, body)
                match, body = header, []
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
        text: bytes = match["rest"]
        ids = self._stacks.get(text)
        if ids is None:
            if one_line_frame(text) is None:  # what a trace event has to say: new each time
                return ()
            ids = self._keep(text, self._frames([text]))
        return ids

    def _keep(self, text: bytes, ids: tuple[int, ...]) -> tuple[int, ...]:
        if self._text > MAX_TEXT:
            self._stacks.clear()
            self._text = 0
        self._stacks[text] = ids
        self._text += len(text) + 8 * len(ids) + 100
        return ids

    def _comment(self, line: bytes) -> None:
        """Read a line of `perf script --header`. The host's name, which is there too, is never kept."""
        if match := _COMMENT.match(line):
            name, value = match[1].decode(), match[2].decode("utf-8", "replace").strip()
            if name == "perf version":
                self.version = value
            else:
                self.facts["cpu" if name == "cpudesc" else name] = value


_FRAME = re.compile(rb" *[0-9a-f]{5,16} \S")


def looks_like_script(head: bytes) -> bool:
    """Return whether `head` has a sample of `perf script` in its first lines that are no comments."""
    if b"\0" in head:
        return False
    lines = [line for line in head.splitlines()[:2000] if line.strip() and not line.startswith(b"#")][:50]
    for line, following in zip(lines, [*lines[1:], b""], strict=False):
        match = parse_header(line)
        # A tab before a frame is gone once a text went through an editor or a mail.
        framed = following.startswith(b"\t") or _FRAME.match(following) is not None
        if match is not None and not match["time"]:
            framed = parse_frame(following) is not None and following.rstrip().endswith(b")")
        if match is not None and (framed or (match["time"] and match["event"])):
            return True
    return False


MAX_OVER = 10.0  # a sample stands for the time before it, and a clock of a virtual machine stutters
MIN_WINDOW = 1.0  # s


def read_script(path: Path) -> Report:
    """Read a `perf script` text into merged stacks and, per event, tables by function, library and thread.

    The unit is `s` for cpu-clock and task-clock (their period is in nanoseconds), the event's name for another
    event with a period, and `samples` if there is none. Raises UnreadableReport for a file without samples.
    """
    reader = ScriptStream()
    events = MergedEvents(reader.table)
    window = SampledWindow()
    own_samples = 0
    with reading(path, named=False), open_regular(path) as file:
        for match, ids in reader.samples(file):
            comm, period, event = match.group("comm", "period", "event")
            if match["time"]:
                window.add(match["time"], (match["tid"] or match["pid"], match["cpu"]))
            if comm == OWN_THREAD:
                own_samples += 1
                continue
            events.add(event or b"", None if period is None else int(period), comm, ids)
    if not events.samples:
        if reader.lost:
            raise UnreadableReport(
                f"{path} holds no sample: perf lost all of them ({reader.lost}) while recording",
                "record less: a lower frequency, frame pointers instead of copies of the stack",
            )
        raise UnreadableReport(f"{path} holds no sample of perf script")
    stacks, profiles = events.answer()
    window.check(profiles, path)
    return Report(
        "perf",
        "perf-script",
        reader.version,
        {**reader.facts, **events.facts()},
        profiles=profiles,
        stacks=stacks,
        warnings=(*reader.warnings(), *events.warnings(), *_own_samples(own_samples, events.samples)),
    )


@dataclass
class SampledWindow:
    """The time from the first sample to the last, in seconds, and the threads on each of their processors.

    The idle thread runs on all processors at once.
    """

    first: float = math.inf
    last: float = -math.inf
    threads: set[tuple[bytes, bytes | None]] = field(default_factory=set)

    def add(self, time: bytes, thread: tuple[bytes, bytes | None]) -> None:
        """Add one sample."""
        seconds = float(time)
        self.first, self.last = min(self.first, seconds), max(self.last, seconds)
        if len(self.threads) < MAX_THREADS:
            self.threads.add(thread)

    def check(self, profiles: Iterable[Profile], path: Path) -> None:
        """Raise UnreadableReport if the samples of a clock add up to far more than the threads can run."""
        if not self.threads:
            return  # the times were left away
        room = max(self.last - self.first, MIN_WINDOW) * len(self.threads)
        spent = max((profile.total for profile in profiles if profile.unit == "s"), default=0.0)
        if spent > MAX_OVER * room:
            raise UnreadableReport(
                f"{path}: its samples add up to {spent:.6g} s, more than {len(self.threads)} threads can run "
                f"within {self.last - self.first:.6g} s: their periods are wrong"
            )


def _own_samples(sampler: int, program: int) -> list[Fact]:
    return [Fact.of("own-samples", share=sampler / (sampler + program))] if sampler else []


def _decode_text(data: bytes) -> str:
    return data.decode("utf-8", "replace")
