"""Reads `perf script` text: merged stacks, and tables by function, library and thread.

Any size in flat memory: samples are merged as they stream by (script_stream, profkit.analysis.stacks.merge).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import IO, NamedTuple

from profkit.core.errors import UnreadableReport
from profkit.core.types import Frame, Report
from profkit.profilers.perf.merged_events import MergedEvents
from profkit.profilers.perf.script_stream import ScriptStream
from profkit.profilers.perf.script_text import parse_frame, parse_header

_FRAME = re.compile(rb" *[0-9a-f]{5,16} \S")


class Sample(NamedTuple):
    """One sample. `time` in seconds of perf's clock; `period` in the event's unit; frames outermost first."""

    comm: str
    pid: int
    tid: int | None
    cpu: int | None
    time: float | None
    period: int | None
    event: str | None
    stack: tuple[Frame, ...]


def looks_like(head: bytes) -> bool:
    """True where `head` has a sample of `perf script` within its first lines that are no comment."""
    if b"\0" in head:
        return False
    lines = [line for line in head.splitlines()[:2000] if line.strip() and not line.startswith(b"#")][:50]
    for line, following in zip(lines, [*lines[1:], b""], strict=False):
        match = parse_header(line)
        # A tab before a frame is gone once a text went through an editor or a mail.
        framed = following.startswith(b"\t") or _FRAME.match(following) is not None
        if match is None or not (match["event"] or framed):
            continue
        if match["time"] or (framed and parse_frame(following)):
            return True
    return False


def iter_samples(file: IO[bytes]) -> Iterator[Sample]:
    """Every sample of a `perf script` text, in its order. Raises UnreadableReport for something else."""
    reader = ScriptStream()
    frames = reader.table.frames
    for match, ids in reader.samples(file):
        tid, cpu, time, period, event = match.group("tid", "cpu", "time", "period", "event")
        yield Sample(
            _text(match["comm"]),
            int(match["pid"]),
            int(tid) if tid else None,
            int(cpu) if cpu else None,
            float(time) if time else None,
            int(period) if period else None,
            _text(event) if event else None,
            tuple([frames[index] for index in reversed(ids)]),
        )


def read_script(path: Path) -> Report:
    """Read a `perf script` text into merged stacks and, per event, tables by function, library and thread.

    The unit is `s` for cpu-clock and task-clock (their period is in nanoseconds), the event's name for
    another event with a period, and `samples` where there is none. Raises UnreadableReport for a file without
    samples.
    """
    reader = ScriptStream()
    events = MergedEvents(reader.table)
    try:
        with path.open("rb") as file:
            for match, ids in reader.samples(file):
                comm, period, event = match.group("comm", "period", "event")
                events.add(event or b"", None if period is None else int(period), comm, ids)
    except OSError as error:
        raise UnreadableReport(f"{path} cannot be read: {error.strerror}") from error
    except UnreadableReport as error:
        raise UnreadableReport(f"{path}: {error.message}") from error
    if not events.samples:
        if reader.lost:
            raise UnreadableReport(
                f"{path} holds no sample: perf lost all of them ({reader.lost}) while recording",
                "record less: a lower frequency, frame pointers instead of copies of the stack",
            )
        raise UnreadableReport(f"{path} holds no sample of perf script")
    stacks, profiles = events.answer()
    return Report(
        "perf",
        "perf-script",
        reader.version,
        {**reader.facts, **events.facts()},
        profiles=profiles,
        stacks=stacks,
        warnings=(*reader.warnings(), *events.warnings()),
    )


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")
