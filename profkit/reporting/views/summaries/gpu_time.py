"""Where a GPU's time goes, in words: how much of it the devices worked, what they waited for, copies, ranges, calls."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from profkit.analysis.summaries.gpu_time import (
    COPIES,
    HOST,
    IDLE,
    QUEUED,
    has_only_copies,
    lacks_timeline,
    starved_share,
    time_by_limit,
)
from profkit.analysis.summaries.kernels import BOTTLENECK_TITLES, KernelRow
from profkit.core.formatting import format_percent, format_quantity, joined, plural, shorten
from profkit.core.types import GpuTrace, StreamTime, Transfer
from profkit.reporting.view import DataTable
from profkit.reporting.views.summaries.parts import (
    NOTHING,
    ConcernFacts,
    SummaryText,
    absence_notes,
    named_table,
    share_text,
    summary_text,
    unknown_text,
)

DEVICES = 4  # of which each is told; of more the least and the most
LARGE_SHARE = 0.1  # of the span: below, naming the largest part as the cause explains nothing
AHEAD = 10  # times the cost of a launch call: a kernel that starts so much later waits in a queue
TOP_RANGES = 6  # ranges and calls in a table: the largest are what anybody looks for
LEAST_STREAM = 0.01  # of the time on all streams: less is not shown
TOLD = 0.001  # of the traced time: less is nothing to speak of
TIMELINE, COPIED = "Timeline", "Copies"


def gpu_text(facts: ConcernFacts) -> SummaryText | None:
    """How busy the devices were and what the rest was; launches, copies, ranges, the host's calls."""
    trace = facts.document.trace
    if trace is None or (lacks_timeline(trace) and not trace.transfers and not trace.api):
        is_run = facts.document.plan is not None or facts.document.passes
        return unknown_text("gpu", "Where the GPU's time goes is", facts.readings) if is_run else None
    tables = [_timeline_table(trace), _copies_table(trace), _range_table(trace), _call_table(trace)]
    notes = (*_notes(trace), *absence_notes(facts.readings))
    headline = _headline(trace, facts.rows)
    return summary_text("gpu", headline, facts.readings, tables, notes, brief=(TIMELINE, COPIED))


def _headline(trace: GpuTrace, rows: Sequence[KernelRow]) -> str:
    if trace.span is None or trace.busy is None:
        if not trace.kernels:
            return "No kernel is in the report."
        counted = plural(len(trace.kernels), "launch configuration")
        total = format_quantity(sum(kernel.total for kernel in trace.kernels), "s")
        what = "sums" if trace.transfers or trace.api else "counters"
        return f"{counted}, {total} in all; how busy the GPU was is not in a report of {what}."
    if has_only_copies(trace):
        moved = format_quantity(sum(copy.seconds for copy in trace.transfers), "s")
        return f"No kernel is in the report, only copies and memsets: {moved} of them."
    if not trace.kernels and trace.busy == 0:
        return f"No kernel ran in the {format_quantity(trace.span, 's')} that were traced."
    if trace.span <= 0:
        return "How busy the GPU was is not known: the trace spans no time."
    busy = f"{share_text(min(trace.span, trace.busy), trace.span)} of {format_quantity(trace.span, 's')}"
    text = f"The GPU is busy {busy}"
    if trace.device_busy:
        text = f"The {len(trace.device_busy)} GPUs are busy {busy} ({_device_shares(trace)})"
    if not trace.kernels:
        return f"{text}; which kernels ran is not in the trace."
    parts = time_by_limit(trace, rows)
    if not parts:
        return f"{text}."
    name, part = parts[0]
    return f"{text}{_lost_time_text(trace, name)}. {_largest_text(name, part)}"


def _lost_time_text(trace: GpuTrace, largest: str) -> str:
    """`, waiting for launches 15.1 %, only copying 0.3 %`, but for what is the largest part and told as that."""
    assert trace.span
    parts = [
        ("waiting for launches", starved_share(trace) if largest != HOST else 0.0),
        ("only copying", (trace.copying or 0.0) / trace.span if largest != COPIES else 0.0),
    ]
    return "".join(f", {what} {format_percent(100 * part)} %" for what, part in parts if part >= TOLD)


def _largest_text(name: str, part: float) -> str:
    share = f"{format_percent(100 * part)} %"
    if part < LARGE_SHARE:
        return f"No single cause: the largest part, {part_title(name)}, is {share}."
    if name == HOST:
        return f"Host-bound: {share} of the time no work was queued."
    if name == QUEUED:
        return (
            f"For {share} of the time it waits although work is queued: for copies, events or other streams."
        )
    if name == IDLE:
        return f"{share} of the time it is idle; what it waits for is not in the report."
    if name == COPIES:
        return f"Copies take the largest part of it, {share}."
    if name in BOTTLENECK_TITLES.values():
        return f"Kernels limited by {name} take the largest part of it, {share}."
    return f"{name} takes the largest part of it, {share}."


def part_title(name: str) -> str:
    """How a part of the time is called in a sentence."""
    return {HOST: "the host", QUEUED: "idle", IDLE: "nothing"}.get(name, name)


def _timeline_table(trace: GpuTrace) -> DataTable:
    return named_table(TIMELINE, ("what", "value"), list(_timeline_rows(trace)), words=("value",))


def _timeline_rows(trace: GpuTrace) -> Iterator[tuple[str, str]]:
    span, busy = trace.span, trace.busy
    if span is not None and busy is not None:
        idle = max(0.0, span - busy)
        yield "Traced", format_quantity(span, "s")
        if trace.device_busy:
            yield "Devices", f"{len(trace.device_busy)}, busy {_device_shares(trace)}; below, their mean"
        copying = ""
        if trace.copying is not None and trace.kernels and trace.copying >= TOLD * span:
            copying = f"; only copying {share_text(trace.copying, span)}"
        yield "Busy", f"{format_quantity(busy, 's')} ({share_text(busy, span)}{copying})"
        longest = trace.largest_gap
        gap = f"; longest gap {format_quantity(longest, 's')}" if longest is not None else ""
        yield "Idle", f"{format_quantity(idle, 's')} ({share_text(idle, span)}){gap}"
        if trace.starved is not None and idle > 0:
            starved = format_percent(100 * trace.starved)
            yield "Starved", f"{starved} % of the idle time: the host had launched nothing"
    launches = trace.launches or sum(kernel.launches for kernel in trace.kernels)
    if launches:
        total = format_quantity(sum(kernel.total for kernel in trace.kernels), "s")
        each = f", {_count_text(launches / trace.repeats)} in each repetition" if trace.repeats else ""
        yield "Kernels", f"{plural(launches, 'launch', 'launches')} in {total}{each}"
    if span is not None and trace.repeats:
        yield "A repetition", f"{format_quantity(span / trace.repeats, 's')} (mean, under the tracer)"
    yield from _stream_rows(trace)
    if trace.launch_latency is not None:
        yield (
            "Launch to start",
            f"{format_quantity(trace.launch_latency, 's')} (median){_queue_text(trace)}",
        )
    if trace.launch_call is not None:
        yield "A launch call", f"{format_quantity(trace.launch_call, 's')} on the host (median)"
    if trace.setup_seconds:
        yield "Set-up", f"{format_quantity(trace.setup_seconds, 's')} of kernels before it, left out"
    if trace.compile_seconds:
        yield (
            "Compiling",
            f"{format_quantity(trace.compile_seconds, 's')} before it (just in time), left out",
        )


def _stream_rows(trace: GpuTrace) -> Iterator[tuple[str, str]]:
    """Of a device whose kernels or copies are on several streams what each did, and how much of it overlaps."""
    for device in trace.streams:
        least = LEAST_STREAM * sum(one.kernel_seconds + one.copy_seconds for one in device.streams)
        streams = [one for one in device.streams if one.kernel_seconds + one.copy_seconds > least]
        if len(streams) < 2:
            continue
        of = f" of GPU {device.device}" if len(trace.streams) > 1 else ""
        if device.computing > 0:
            both = share_text(device.together, device.computing)
            words = f"kernels of two or more run at once for {both} of the kernels' time"
            yield f"Streams{of}", f"{len(streams)}; {words}"
        for one in streams[:TOP_RANGES]:
            yield f"Stream {one.stream}{of}", _stream_text(one)


def _stream_text(stream: StreamTime) -> str:
    """`8298 kernels 276 ms (28.1 % beside other streams), 666 copies 3.99 ms (16.5 % beside kernels)`."""
    parts = (
        ("kernel", "kernels", stream.kernels, stream.kernel_seconds, stream.kernels_beside, "other streams"),
        ("copy", "copies", stream.copies, stream.copy_seconds, stream.copies_beside, "kernels"),
    )
    return ", ".join(
        f"{plural(count, name, names)} {format_quantity(seconds, 's')} ({share_text(beside, seconds)} beside {what})"
        for name, names, count, seconds, beside, what in parts
        if count and seconds > 0
    )


def _count_text(number: float) -> str:
    """Three digits, and whole where it is larger: launches are counted, not measured."""
    return f"{number:.3g}" if number < 100 else f"{number:.0f}"


def _queue_text(trace: GpuTrace) -> str:
    """What a long way from launch to start means: a full queue, where the device is busy meanwhile."""
    working = trace.span and trace.busy is not None and trace.busy >= trace.span / 2
    late = (trace.launch_latency or 0.0) > AHEAD * (trace.launch_call or 0.0)
    return ": the host is that far ahead, no latency" if working and late else ""


def _device_shares(trace: GpuTrace) -> str:
    """How busy each device was: `84.9 and 80.2 %`, and of many the least and the most."""
    shares = [100 * min(1.0, share) for share in trace.device_busy]
    if len(shares) > DEVICES:
        return f"{format_percent(min(shares))} to {format_percent(max(shares))} %"
    return f"{joined([format_percent(share) for share in shares])} %"


def _range_table(trace: GpuTrace) -> DataTable:
    marked = sorted((one for one in trace.ranges if not one.operation), key=lambda one: -one.seconds)
    several = len({entry.domain for entry in marked}) > 1  # a domain that all have tells nothing
    rows = [
        (
            shorten(entry.name, 60) + (f" [{shorten(entry.domain, 12)}]" if entry.domain and several else ""),
            str(entry.entries),
            format_quantity(entry.seconds, "s"),
            str(entry.kernels),
            format_quantity(entry.gpu_seconds, "s"),
        )
        for entry in marked[:TOP_RANGES]
    ]
    more = len(marked) - TOP_RANGES
    note = f"and {plural(more, 'further range')}" if more > 0 else None
    return named_table("Marked ranges", ("range", "entries", "wall time", "kernels", "GPU time"), rows, note)


def _call_table(trace: GpuTrace) -> DataTable:
    rows = [
        (shorten(call.name, 40), str(call.calls), format_quantity(call.seconds, "s"))
        for call in sorted(trace.api, key=lambda call: -call.seconds)[:TOP_RANGES]
    ]
    return named_table("The host's calls", ("function", "calls", "time"), rows)


def _copies_table(trace: GpuTrace) -> DataTable:
    """Copies and memsets by kind, most time first."""

    def row(copies: Transfer) -> tuple[str, ...]:
        size, seconds = copies.bytes, copies.seconds  # AMD's traces do not tell bytes
        return (
            copies.kind,
            str(copies.count),
            format_quantity(float(size), "B") if size > 0 else NOTHING,
            format_quantity(seconds, "s"),
            format_quantity(size / seconds, "B/s") if seconds > 0 and size > 0 else NOTHING,
            _memory_text(copies),
        )

    rows = list(map(row, sorted(trace.transfers, key=lambda copies: -copies.seconds)))
    titles = ("kind", "count", "bytes", "time", "rate", "host memory")
    return named_table(COPIED, titles, rows, words=("host memory",))


def _memory_text(transfer: Transfer) -> str:
    """`pinned`, or `pageable 90 %, pinned 10 %` of the time."""
    if len(transfer.memory) == 1 and transfer.memory[0].count == transfer.count:
        return transfer.memory[0].kind
    total = sum(memory.seconds for memory in transfer.memory) or 1.0
    parts = (f"{memory.kind} {format_percent(100 * memory.seconds / total)} %" for memory in transfer.memory)
    return ", ".join(parts) or NOTHING


def _notes(trace: GpuTrace) -> Iterator[str]:
    if trace.span is None:
        return
    if trace.marked:
        yield "Only what the marked region launched is counted."
    elif trace.repeats is not None:
        times = plural(trace.repeats, "time")
        yield f"No region is marked: the part that repeats counts as the workload ({times}), the rest as set-up."
    else:
        yield "No region is marked and no loop takes most of it: the whole trace counts, set-up included."
    if any(kernel.graph for kernel in trace.kernels):
        yield "Some kernels were launched by a CUDA graph: one launch call starts many of them."
