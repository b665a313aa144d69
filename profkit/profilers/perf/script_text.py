"""The grammar of `perf script` text, one line at a time, on bytes. Pure.

    comm pid[/tid] [cpu] seconds: [period] event: [rest]      a sample
    <tab>address symbol+offset (dso)                          its frames, innermost first
    <blank>                                                   its end, where stacks were recorded

Fields come and go with `-F`; comm and dso may hold spaces and parentheses, a symbol nearly anything.
Source: tools/perf/builtin-script.c and util/evsel_fprintf.c of Linux 5.0 to 6.12.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from profkit.core.types import Frame
from profkit.profilers.perf.frames import frame_of

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
_TIMELESS = re.compile(
    rb"\s{0,64}(?P<comm>.{0,64}?)\s{1,64}"
    rb"(?P<pid>-?\d{1,10})(?:/\s{0,10}(?P<tid>-?\d{1,10}))?\s{1,64}"
    rb"(?:\[(?P<cpu>\d{1,6})\]\s{1,64})?"
    rb"(?P<time>)"
    rb"(?:(?P<period>\d{1,20})\s{1,64})?"
    rb"(?P<event>[^\s\d]\S{0,512}?):(?=\s|$)(?P<rest>.*)",
    re.DOTALL,
)
_ADDRESS = re.compile(rb"\s*([0-9a-f]{1,16})(?:\s+|$)")
_OFFSET = re.compile(rb"\+0x[0-9a-f]+$")
_ONE_LINE = re.compile(rb"\s{1,64}[0-9a-f]{1,16} \S")


class FrameLine(NamedTuple):
    """One line of a stack. An inlined frame has no dso: it is part of the frame it was inlined into."""

    address: bytes
    frame: Frame
    inlined: bool


def parse_header(line: bytes) -> re.Match[bytes] | None:
    """A sample's first line, with the groups comm, pid, tid, cpu, time, period, event, rest; or None."""
    if line.startswith((b"\t", b"#")):
        return None
    return _HEADER.match(line) or _TIMELESS.match(line)


def parse_frame(line: bytes) -> FrameLine | None:
    """One line of a stack, or None where it is something else (a source line, a note)."""
    match = _ADDRESS.match(line)
    if match is None:
        return None
    symbol, dso = _split_dso(line[match.end() :].rstrip())
    symbol = _OFFSET.sub(b"", symbol)
    return FrameLine(match[1], frame_of(_text(symbol), _text(dso) if dso else None), dso == b"inlined")


def one_line_frame(rest: bytes) -> FrameLine | None:
    """The frame on the sample's own line where no stacks were recorded; None for anything else."""
    return parse_frame(rest) if _ONE_LINE.match(rest) else None


def _split_dso(text: bytes) -> tuple[bytes, bytes]:
    """`operator()(int)+0x1 (/tmp/a (deleted))` -> symbol and dso. The dso is the last balanced group."""
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


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")
