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
from profkit.core.formatting import format_percent, format_quantity, plural, shorten
from profkit.core.types import GpuTrace, Transfer
from profkit.reporting.view import DataTable
from profkit.reporting.views.summaries.parts import (
    NOTHING,
    TOP_ROWS,
    ConcernFacts,
    SummaryText,
    absence_notes,
    named_table,
    share_text,
    summary_text,
    unknown_text,
)

_LARGE = 0.1  # of the span: below, naming the largest part as the cause explains nothing
_AHEAD = 10  # times the cost of a launch call: a kernel that starts so much later waits in a queue
_MOST = 6  # ranges and calls in a table: the largest are what anybody looks for
_TOLD = 0.001  # of the traced time: less is nothing to speak of
# The parts of the time in which no kernel ran.
_WITHOUT_KERNELS = {
    HOST: "idle: the host had launched nothing",
    QUEUED: "idle with work queued",
    IDLE: "idle",
    COPIES: "only copies",
}


def gpu_text(facts: ConcernFacts) -> SummaryText | None:
    """How busy the devices were and what the rest was; launches, copies, ranges, the host's calls."""
    trace = facts.document.trace
    if trace is None or (lacks_timeline(trace) and not trace.transfers and not trace.api):
        is_run = facts.document.plan is not None or facts.document.passes
        return unknown_text("gpu", "Where the GPU's time goes is", facts.readings) if is_run else None
    timeline = named_table("Timeline", ("what", "value"), list(_timeline_rows(trace)), words=("value",))
    tables = [
        timeline,
        _limit_table(trace, facts.rows),
        _copies_table(trace),
        _range_table(trace),
        _call_table(trace),
    ]
    notes = (*_notes(trace), *absence_notes(facts.readings))
    headline = _headline(trace, facts.rows)
    return summary_text("gpu", headline, facts.readings, tables, notes)


def _headline(trace: GpuTrace, rows: Sequence[KernelRow]) -> str:
    if trace.span is None or trace.busy is None:
        if not trace.kernels:
            return "No kernel is in the report."
        counted = plural(len(trace.kernels), "launch configuration")
        total = format_quantity(sum(kernel.total for kernel in trace.kernels), "s")
        return f"{counted}, {total} in all; how busy the GPU was is not in the report."
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
    parts = time_by_limit(trace, rows) if trace.kernels else []
    if not parts:
        return f"{text}."
    name, part = parts[0]
    lost = [
        ("waiting for launches", starved_share(trace) if name != HOST else 0.0),
        ("only copying", (trace.copying or 0.0) / trace.span if name != COPIES else 0.0),
    ]
    told = "".join(f", {what} {format_percent(100 * one)} %" for what, one in lost if one >= _TOLD)
    return f"{text}{told}. {_largest_text(name, part)}"


def _largest_text(name: str, part: float) -> str:
    share = f"{format_percent(100 * part)} %"
    if part < _LARGE:
        return f"No single cause: the largest part, {name}, is {share}."
    words = {
        HOST: f"Host-bound: {share} of the time no work was queued.",
        QUEUED: f"For {share} of the time it waits although work is queued: for copies, events or other streams.",
        IDLE: f"{share} of the time it is idle; what it waits for is not in the report.",
        COPIES: f"Copies take the largest part of it, {share}.",
    }
    kernels = f"Kernels limited by {name} take" if name in BOTTLENECK_TITLES.values() else f"{name} takes"
    return words.get(name, f"{kernels} the largest part of it, {share}.")


def _timeline_rows(trace: GpuTrace) -> Iterator[tuple[str, str]]:
    span, busy = trace.span, trace.busy
    if span is not None and busy is not None:
        idle = max(0.0, span - busy)
        yield "Traced", format_quantity(span, "s")
        if trace.device_busy:
            yield "Devices", f"{len(trace.device_busy)}, busy {_device_shares(trace)}; below, their mean"
        copying = ""
        if trace.copying is not None and trace.kernels and trace.copying >= _TOLD * span:
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
        each = f", {launches / trace.repeats:.0f} in each repetition" if trace.repeats else ""
        yield "Kernels", f"{plural(launches, 'launch', 'launches')} in {total}{each}"
    if span is not None and trace.repeats:
        yield "A repetition", f"{format_quantity(span / trace.repeats, 's')} (mean, under the tracer)"
    if trace.launch_latency is not None:
        working = span and busy is not None and busy >= span / 2
        late = trace.launch_latency > _AHEAD * (trace.launch_call or 0.0)
        ahead = ": the host is that far ahead, no latency" if working and late else ""
        yield "Launch to start", f"{format_quantity(trace.launch_latency, 's')} (median){ahead}"
    if trace.launch_call is not None:
        yield "A launch call", f"{format_quantity(trace.launch_call, 's')} on the host (median)"
    if trace.setup_seconds:
        yield "Set-up", f"{format_quantity(trace.setup_seconds, 's')} of kernels before it, left out"


def _device_shares(trace: GpuTrace) -> str:
    """How busy the devices were: the least and the most."""
    shares = [
        format_percent(100 * min(1.0, share)) for share in (min(trace.device_busy), max(trace.device_busy))
    ]
    return f"{' to '.join(dict.fromkeys(shares))} %"


def _limit_table(trace: GpuTrace, rows: Sequence[KernelRow]) -> DataTable | None:
    """The whole traced time, by what limits it."""
    if not trace.span or not rows:
        return None
    parts = [
        (_WITHOUT_KERNELS.get(name, name), f"{format_percent(100 * share)} %")
        for name, share in time_by_limit(trace, rows)[:TOP_ROWS]
    ]
    return named_table("The GPU's time, by what limits it", ("what", "share"), parts)


def _range_table(trace: GpuTrace) -> DataTable:
    marked = sorted((one for one in trace.ranges if not one.operation), key=lambda one: -one.seconds)
    rows = [
        (
            shorten(entry.name, 60),
            str(entry.entries),
            format_quantity(entry.seconds, "s"),
            str(entry.kernels),
            format_quantity(entry.gpu_seconds, "s"),
        )
        for entry in marked[:_MOST]
    ]
    more = len(marked) - _MOST
    note = f"and {plural(more, 'further range')}" if more > 0 else ""
    return named_table("Marked ranges", ("range", "entries", "wall time", "kernels", "GPU time"), rows, note)


def _call_table(trace: GpuTrace) -> DataTable:
    rows = [
        (shorten(call.name, 40), str(call.calls), format_quantity(call.seconds, "s"))
        for call in sorted(trace.api, key=lambda call: -call.seconds)[:_MOST]
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
            ", ".join(memory.kind for memory in copies.memory) or NOTHING,
        )

    rows = list(map(row, sorted(trace.transfers, key=lambda copies: -copies.seconds)))
    titles = ("kind", "count", "bytes", "time", "rate", "host memory")
    return named_table("Copies", titles, rows, words=("host memory",))


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
