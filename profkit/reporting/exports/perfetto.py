"""A run or a report on a time line, as trace events in JSON: opens at ui.perfetto.dev and in chrome://tracing."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterator
from itertools import accumulate
from pathlib import Path

from profkit.analysis.timeline.trace_events import microseconds
from profkit.core.codec import valid_text
from profkit.core.errors import UsageError
from profkit.core.progress import Progress
from profkit.core.types import RunDocument, Timing
from profkit.profilers.profiler import TimeLine
from profkit.reporting.exports.sources import Sources
from profkit.reporting.views.run_text import place_option, stdin_option

EVERY = 1 << 17  # events after which it is said how far it has come
_PASSES, _SAMPLES = 1, 2  # numbers of the two processes of a run without a trace


def pieces(sources: Sources, document: Callable[[], RunDocument], progress: Progress) -> Iterator[str]:
    """The trace events in pieces; memory does not grow with the trace. `document` is asked for where there is none.

    A report with times gives what its profiler recorded. A run without one has its passes, and the samples of the
    timing pass. Raises UsageError where there is no time at all.
    """
    report = sources.time_line
    if report is not None and report.form.time_line is not None:
        return _of_report(report.path, report.form.time_line, progress)
    run = document()
    if not any(done.seconds for done in run.passes) and not run.timings:
        raise UsageError(f"{sources.name} has no times to put on a line: it holds sums", _line_for(run))
    return _of_passes(run)


def _line_for(document: RunDocument) -> str:
    words = document.workload.command
    command = shlex.join(words) if words else "COMMAND"
    on = place_option(document) + stdin_option(document)
    return f"profkit profile {on}--backend {document.backend} --passes timing,trace -- {command}"


def _of_report(path: Path, time_line: TimeLine, progress: Progress) -> Iterator[str]:
    reached = 0

    def counted(events: int) -> None:
        nonlocal reached
        if events - reached >= EVERY:
            reached = events
            progress.note(f"{events:,} events")

    events = time_line(path, counted)  # may say that there are no times, before anything is written

    def pieces() -> Iterator[str]:
        progress.begin("time line", str(path))
        yield from events
        progress.end("written")

    return pieces()


def _of_passes(document: RunDocument) -> Iterator[str]:
    """Passes one after the other, and the timing samples of each process: how long is known, the pauses are not."""
    events: list[dict[str, object]] = [
        _meta("process_name", _PASSES, 0, f"passes of {document.name}"),
        _meta("thread_name", _PASSES, 1, "one after the other; pauses are not known"),
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
    lines = ",\n".join(_dumped(event) for event in events)
    other = json.dumps({"note": note, "started": document.started})
    yield f'{{"displayTimeUnit": "ms", "otherData": {other}, "traceEvents": [\n{lines}\n]}}\n'


def _samples(timing: Timing) -> list[dict[str, object]]:
    events = [_meta("process_name", _SAMPLES, 0, "samples of the timing pass")]
    for number, process in enumerate(timing.processes, 1):
        track = f"{timing.name}, process {number}" + (f" (pid {process.pid})" if process.pid else "")
        events.append(_meta("thread_name", _SAMPLES, number, track))
        lengths = [*process.warmup, *(seconds * process.loops for seconds in process.seconds)]
        starts = [0.0, *accumulate(lengths)]
        for index, (start, seconds) in enumerate(zip(starts, lengths, strict=False)):
            warm = index >= len(process.warmup)
            loops = process.loops if warm else 1
            args: dict[str, object] = {"iterations": loops, "s per iteration": seconds / max(1, loops)}
            events.append(_event("sample" if warm else "warm-up", start, seconds, _SAMPLES, number, args))
    return events


def _event(
    name: str, start: float, seconds: float, process: int, track: int, args: dict[str, object]
) -> dict[str, object]:
    begin, end = round(start * 1e9), round((start + seconds) * 1e9)
    kept = {key: value for key, value in args.items() if value is not None}
    return {
        "ph": "X",
        "name": name,
        "ts": begin,
        "dur": end - begin,
        "pid": process,
        "tid": track,
        "args": kept,
    }


def _meta(what: str, process: int, track: int, name: str) -> dict[str, object]:
    return {"ph": "M", "name": what, "pid": process, "tid": track, "args": {"name": valid_text(name)}}


def _dumped(event: dict[str, object]) -> str:
    """The event with its times, which are whole ns here, in µs."""
    times = {
        key: microseconds(value) for key in ("ts", "dur") if isinstance(value := event.pop(key, None), int)
    }
    text = json.dumps({key: valid_text(v) if isinstance(v, str) else v for key, v in event.items()})
    extra = "".join(f', "{key}": {value}' for key, value in times.items())
    return f"{text[:-1]}{extra}}}"
