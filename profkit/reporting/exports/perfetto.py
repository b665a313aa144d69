"""A run or a report on a time line, as trace events in JSON: opens at ui.perfetto.dev and in chrome://tracing."""

from __future__ import annotations

import contextlib
import gzip
import json
import shlex
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from typing import IO

from profkit.analysis.timeline.trace_events import TraceEvents, microseconds
from profkit.core.codec import valid_text
from profkit.core.errors import UnreadableReport, UsageError
from profkit.core.progress import Progress
from profkit.core.types import RunDocument, Timing
from profkit.profilers.files import check_unpacked
from profkit.reporting.exports.sources import XCTRACE, Sources

PIECE = 1 << 20  # bytes
EVERY = 1 << 17  # events after which it is said how far it has come
_PASSES, _SAMPLES = 1, 2  # numbers of the two processes of a run without a trace


def pieces(sources: Sources, document: Callable[[], RunDocument], progress: Progress) -> Iterator[str]:
    """The trace events in pieces; memory does not grow with the trace. `document` is asked for where there is none.

    Of a device's trace: kernels, copies, the host's calls, ranges; of exports of xctrace what the GPU did for each
    process, what the host encoded and drove, states, CPU samples. Torch's own trace is such a file already, and is
    given as it is. A run without either has its passes, and the samples of the timing pass. Raises UsageError where
    there is no time at all.
    """
    time_line = sources.time_line
    if time_line is not None and time_line.form == "torch-chrome-trace":
        return _copy_trace(time_line.path)
    if time_line is not None and time_line.form in XCTRACE:
        return _of_xctrace(time_line.path, sources.records, progress)
    if time_line is not None:
        return _of_nsys(time_line.path, progress)
    run = document()
    if not any(done.seconds for done in run.passes) and not run.timings:
        raise UsageError(f"{sources.name} has no times to put on a line: it holds sums", _line_for(run))
    return _of_passes(run)


def _line_for(document: RunDocument) -> str:
    words = document.workload.command
    command = shlex.join(words) if words else "COMMAND"
    return f"profkit profile --backend {document.backend} --passes timing,trace -- {command}"


def _of_nsys(path: Path, progress: Progress) -> Iterator[str]:
    from profkit.profilers.nsys.sqlite import open_recording

    progress.begin("time line", str(path))
    reached = 0

    def told(events: int) -> None:
        nonlocal reached
        if events - reached >= EVERY:
            reached = events
            progress.note(f"{events:,} events")

    with open_recording(path) as recording:
        yield from TraceEvents(recording, told).pieces()
    progress.end("written")


def _of_xctrace(path: Path, noted: Sequence[Path], progress: Progress) -> Iterator[str]:
    from profkit.analysis.timeline.trace_events import mark_events
    from profkit.profilers.xctrace.time_line import open_time_line
    from profkit.runtime.passes.read_records import read_record

    records = []
    for event in noted:
        with contextlib.suppress(UnreadableReport):  # the trace is worth showing without
            records.append(read_record(event))
    marks = open_time_line(path, records)  # here: what has no times is told before anything is written

    def pieces() -> Iterator[str]:
        progress.begin("time line", str(path))
        yield from mark_events(marks, "xctrace", lambda events: progress.note(f"{events:,} events"))
        progress.end("written")

    return pieces()


def _copy_trace(path: Path) -> Iterator[str]:
    """Torch's trace, unpacked."""
    import codecs

    decode = codecs.getincrementaldecoder("utf-8")("replace").decode
    try:
        with path.open("rb") as raw:
            packed = raw.read(2) == b"\x1f\x8b"
            raw.seek(0)
            file: IO[bytes] = gzip.GzipFile(fileobj=raw) if packed else raw  # type: ignore[assignment]
            unpacked = 0
            while piece := file.read(PIECE):
                unpacked += len(piece)
                if packed:
                    check_unpacked(unpacked, raw)
                yield decode(piece)
    except (OSError, EOFError) as error:
        raise UnreadableReport(f"{path} is damaged or cut short: {error}") from error


def _of_passes(document: RunDocument) -> Iterator[str]:
    """Passes one after the other, and the timing samples of each process: how long is known, the pauses are not."""
    events: list[dict[str, object]] = [
        _metadata_event("process_name", _PASSES, 0, f"passes of {document.name}"),
        _metadata_event("thread_name", _PASSES, 1, "one after the other; pauses are not known"),
    ]
    at = 0.0
    for done in document.passes:
        if done.seconds <= 0:
            continue
        args: dict[str, object] = {"tool": done.tool, "state": done.state, "reason": done.reason}
        events.append(_event(done.name, at, done.seconds, _PASSES, 1, args))
        at += done.seconds
    for timing in document.timings:
        events += _samples(timing)
    note = "passes and samples are laid end to end: their order and length are known, the pauses between them are not"
    lines = ",\n".join(_to_json(event) for event in events)
    metadata = json.dumps({"note": note, "started": document.started})
    yield f'{{"displayTimeUnit": "ms", "otherData": {metadata}, "traceEvents": [\n{lines}\n]}}\n'


def _samples(timing: Timing) -> list[dict[str, object]]:
    events = [_metadata_event("process_name", _SAMPLES, 0, "samples of the timing pass")]
    for number, process in enumerate(timing.processes, 1):
        track = f"{timing.name}, process {number}" + (f" (pid {process.pid})" if process.pid else "")
        events.append(_metadata_event("thread_name", _SAMPLES, number, track))
        lengths = [*process.warmup, *(seconds * process.loops for seconds in process.seconds)]
        starts = [0.0, *accumulate(lengths)]
        for index, (start, seconds) in enumerate(zip(starts, lengths, strict=False)):
            warm = index >= len(process.warmup)
            loops = process.loops if warm else 1
            args: dict[str, object] = {"iterations": loops, "s per iteration": seconds / loops}
            events.append(_event("sample" if warm else "warm-up", start, seconds, _SAMPLES, number, args))
    return events


def _event(
    name: str, start: float, seconds: float, process: int, track: int, args: dict[str, object]
) -> dict[str, object]:
    begin, end = round(start * 1e9), round((start + seconds) * 1e9)
    known = {key: value for key, value in args.items() if value is not None}
    return {
        "ph": "X",
        "name": name,
        "ts": begin,
        "dur": end - begin,
        "pid": process,
        "tid": track,
        "args": known,
    }


def _metadata_event(what: str, process: int, track: int, name: str) -> dict[str, object]:
    return {"ph": "M", "name": what, "pid": process, "tid": track, "args": {"name": valid_text(name)}}


def _to_json(event: dict[str, object]) -> str:
    """The event with its times, which are whole ns here, in µs."""
    times = {
        key: microseconds(value) for key in ("ts", "dur") if isinstance(value := event.pop(key, None), int)
    }
    text = json.dumps({key: valid_text(v) if isinstance(v, str) else v for key, v in event.items()})
    extra = "".join(f', "{key}": {value}' for key, value in times.items())
    return f"{text[:-1]}{extra}}}"
