"""Where a GPU's time goes, in words: how much of it the devices worked, what they waited for, copies, ranges, calls."""

from __future__ import annotations

from collections.abc import Iterator

from profkit.analysis.summaries.gpu import has_only_copies, lacks_timeline
from profkit.core.formatting import format_percent, format_quantity, plural, shorten
from profkit.core.types import GpuTrace, RunDocument, Transfer
from profkit.reporting.view import DataTable, Section
from profkit.reporting.views.summaries.parts import (
    NOTHING,
    absence_notes,
    concern_section,
    named_table,
    readings_of,
    share_text,
    timeline_table,
    unknown_section,
)

_AHEAD = 10  # times the cost of a launch call: a kernel that starts so much later waits in a queue
_MAX_DEVICES = 8  # that are shown separately
_MIN_WAIT = 0.1  # of the time: a wait that the headline tells
_MAX_ROWS = 6  # ranges and calls in a table: the largest are what anybody looks for


def gpu_section(document: RunDocument) -> Section | None:
    """Return how busy the devices were and what the rest was; launches, copies, ranges, the host's calls."""
    trace, readings = document.trace, readings_of(document, "gpu")
    if trace is None or (lacks_timeline(trace) and not trace.transfers and not trace.api):
        is_run = document.plan is not None or document.passes
        return unknown_section("gpu", "Where the GPU's time goes is", readings) if is_run else None
    tables = [
        timeline_table(readings, _further_times(trace)),
        _copies_table(trace),
        _range_table(trace),
        _call_table(trace),
    ]
    notes = (*_notes(trace), *absence_notes(readings))
    return concern_section("gpu", _headline(trace), tables, notes)


def _headline(trace: GpuTrace) -> str:
    total = format_quantity(sum(kernel.total for kernel in trace.kernels), "s")
    if has_only_copies(trace) or not (trace.kernels or trace.busy):
        return "No kernel is in the report."
    if not trace.span or trace.busy is None:
        counted = plural(len(trace.kernels), "launch configuration")
        return f"{counted}, {total} in all; how busy the GPU was is not in the report."
    busy = f"{share_text(min(trace.span, trace.busy), trace.span)} of {format_quantity(trace.span, 's')}"
    text = f"The GPU is busy {busy}."
    if trace.device_busy:
        ends = (format_percent(100 * min(1.0, end(trace.device_busy))) for end in (min, max))
        text = f"The {len(trace.device_busy)} GPUs are busy {busy} ({' to '.join(dict.fromkeys(ends))} %)."
    idle = max(0.0, trace.span - trace.busy) / trace.span
    starved, known = idle * (trace.starved or 0.0), trace.starved is not None
    waits = {
        "Host-bound: {} of the time no work was queued.": starved,
        "For {} of the time it waits although work is queued: for copies, events or other streams.": idle
        - starved
        if known
        else 0.0,
        "{} of the time it is idle; what it waits for is not in the report.": 0.0 if known else idle,
        "For {} of the time it only copies.": (trace.copying or 0.0) / trace.span,
    }
    words, part = max(waits.items(), key=lambda wait: wait[1])
    return f"{text} {words.format(f'{format_percent(100 * part)} %')}" if part >= _MIN_WAIT else text


def _further_times(trace: GpuTrace) -> Iterator[tuple[str, float | None]]:
    """Yield what no reading holds, in seconds."""
    yield "Traced", trace.span
    yield "Longest gap", trace.largest_gap
    yield "A launch call on the host, median", trace.launch_call
    yield (
        "A repetition under the tracer, mean",
        trace.span / trace.repeats if trace.span and trace.repeats else None,
    )
    yield "Kernels before it (set-up), left out", trace.setup_seconds or None


def _range_table(trace: GpuTrace) -> DataTable:
    marked = sorted(
        (marked_range for marked_range in trace.ranges if not marked_range.operation),
        key=lambda marked_range: -marked_range.seconds,
    )
    rows = [
        (
            shorten(entry.name, 60),
            str(entry.entries),
            format_quantity(entry.seconds, "s"),
            str(entry.kernels),
            format_quantity(entry.gpu_seconds, "s"),
        )
        for entry in marked[:_MAX_ROWS]
    ]
    more = len(marked) - _MAX_ROWS
    note = f"and {plural(more, 'further range')}" if more > 0 else ""
    return named_table("Marked ranges", ("range", "entries", "wall time", "kernels", "GPU time"), rows, note)


def _call_table(trace: GpuTrace) -> DataTable:
    rows = [
        (shorten(call.name, 40), str(call.calls), format_quantity(call.seconds, "s"))
        for call in sorted(trace.api, key=lambda call: -call.seconds)[:_MAX_ROWS]
    ]
    return named_table("The host's calls", ("function", "calls", "time"), rows)


def _copies_table(trace: GpuTrace) -> DataTable:
    """Return copies and memsets by kind, those with the most time first."""

    def row(copies: Transfer) -> tuple[str, ...]:
        size, seconds = copies.bytes, copies.seconds  # AMD's traces do not tell bytes
        return (
            copies.kind,
            str(copies.count),
            format_quantity(float(size), "B") if size > 0 else NOTHING,
            format_quantity(seconds, "s"),
            format_quantity(size / seconds, "B/s") if seconds > 0 and size > 0 else NOTHING,
            ", ".join(memory.kind for memory in copies.memory) or NOTHING,
        )

    rows = list(map(row, sorted(trace.transfers, key=lambda copies: -copies.seconds)))
    titles = ("kind", "count", "bytes", "time", "rate", "host memory")
    return named_table("Copies", titles, rows, words=("host memory",))


def _notes(trace: GpuTrace) -> Iterator[str]:
    if not trace.span:
        return
    late = (trace.launch_latency or 0.0) > _AHEAD * (trace.launch_call or 0.0)
    if late and trace.busy is not None and trace.busy >= trace.span / 2:
        yield "Kernels start late since the host is that far ahead: no latency."
    if trace.marked:
        yield "Only what the marked region launched is counted."
    elif trace.repeats is not None:
        times = plural(trace.repeats, "time")
        yield f"No region is marked: the part that repeats counts as the workload ({times}), the rest as set-up."
    else:
        yield "No region is marked and no loop takes most of it: the whole trace counts, set-up included."
    each = trace.communication.by_device if trace.communication is not None else ()
    for device in each[:_MAX_DEVICES] if len(each) > 1 else ():
        seconds, exposed = format_quantity(device.seconds, "s"), format_quantity(device.exposed, "s")
        waits = (
            f", {format_quantity(device.waiting, 's')} waiting for another GPU"
            if device.waiting is not None
            else ""
        )
        yield f"GPU {device.device}: {seconds} in NCCL, {exposed} of it beside no other kernel{waits}."
    if any(kernel.graph for kernel in trace.kernels):
        yield "Some kernels were launched by a CUDA graph: one launch call starts many of them."
