"""Where the GPU's time goes: how much of it the devices worked, what they waited for, launches, copies, ranges."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from profkit.analysis.metrics import metric
from profkit.analysis.summaries.cpu import is_sampled
from profkit.analysis.summaries.gpu_memory import copies_table
from profkit.analysis.summaries.kernels import BOTTLENECK_TITLES, KernelRow
from profkit.analysis.summaries.readings import absence_notes, share_text, unavailable_reading
from profkit.core.formatting import format_percent, format_quantity, joined, plural, shorten
from profkit.core.types import (
    RUN,
    GpuToolLines,
    GpuTrace,
    Profile,
    Reading,
    RunDocument,
    Source,
    StreamTime,
    Summary,
    Table,
)

DEVICES = 4  # of which each is told; of more the least and the most
LARGE_SHARE = 0.1  # of the span: below, naming the largest part as the cause explains nothing
AHEAD = 10  # times the cost of a launch call: a kernel that starts so much later waits in a queue
NAMED = 400  # kernels that are parts of the time by their short names: ten times what a chart names
TOP_RANGES = 6  # ranges and calls in a table: the largest are what anybody looks for
LEAST_STREAM = 0.01  # of the time on all streams: less is not shown
TRACE_METRICS = (
    "gpu.utilization",
    "gpu.mfu",
    "time.gpu",
    "time.gpu.idle",
    "gpu.starved",
    "gpu.copying",
    "launch.latency",
    "launch.count",
    "transfer.bytes",
    "transfer.seconds",
)
NO_TIMELINE = "the report has single kernels and no timeline"
NO_KERNEL = "no kernel is in the report"


def trace_readings(trace: GpuTrace, lines: GpuToolLines) -> tuple[Reading, ...]:
    """What a trace tells of the whole run: how busy, how long, how starved; launches and transfers.

    gpu.utilization (%), time.gpu, time.gpu.idle (s), gpu.starved (% of the idle time), gpu.copying (%),
    launch.latency (s), launch.count, transfer.bytes (B), transfer.seconds (s).
    """
    span, busy = trace.span, trace.busy

    def reading(name: str, value: float | None, formula: str, reason: str, fix: str | None = None) -> Reading:
        source = Source(trace.tool, formula=formula)
        if value is None:
            return unavailable_reading(name, RUN, reason, fix, source)
        return Reading(name, value, metric(name).unit, "measured", RUN, source)

    timeless = span is None and busy is None
    no_span, fix = (NO_TIMELINE, f"trace it: {lines.trace}") if timeless else ("it is not in the trace", None)
    if not trace.kernels and timeless:
        no_span, fix = NO_KERNEL, None
    idle = max(0.0, span - busy) if span is not None and busy is not None else None
    used = 100 * min(1.0, busy / span) if span and busy is not None else None
    if _has_only_copies(trace):
        used, no_span = None, NO_KERNEL  # the span is that of the copies: that they fill it says nothing
    waited = f"100 * share of the idle time in which nothing was launched ({trace.tool})"
    readings = [
        reading("gpu.utilization", used, "100 * union of kernels and copies / span", no_span, fix),
        reading("time.gpu", sum(k.total for k in trace.kernels), "sum of all kernels' times", ""),
        reading("time.gpu.idle", idle, "span - union of kernels and copies", no_span, fix),
        reading("gpu.starved", _as_percent(trace.starved), waited, no_span, fix),
        *_copying_readings(trace, reading),
        reading(
            "launch.latency", trace.launch_latency, "median from launch call to its kernel", no_span, fix
        ),
    ]
    if timeless:
        return tuple(readings)
    copies = [copy for copy in trace.transfers if "memset" not in copy.kind]
    sizes = sum(copy.bytes for copy in copies)
    moved = float(sizes) if sizes or not copies else None
    return (
        *readings,
        reading("launch.count", float(trace.launches), "kernels launched", ""),
        reading("transfer.bytes", moved, "bytes of all copies", "how much was copied is not in the trace"),
        reading(
            "transfer.seconds",
            sum(copy.seconds for copy in copies),
            "time of all copies, overlaps and all",
            "",
        ),
    )


def _copying_readings(trace: GpuTrace, reading: Callable[..., Reading]) -> list[Reading]:
    """The share of the span in which only copies ran; nothing where the trace does not tell it."""
    if trace.copying is None or not trace.span or not trace.kernels:
        return []
    share = 100 * min(1.0, trace.copying / trace.span)
    return [reading("gpu.copying", share, "100 * (busy - union of kernels) / span", "")]


def _has_only_copies(trace: GpuTrace) -> bool:
    """Whether copies and memsets are all that a trace has of the device; a graph traced as a whole is more."""
    moved = sum(copy.seconds for copy in trace.transfers)
    return not trace.kernels and trace.busy is not None and 0 < trace.busy <= moved * 1.000001


def lacks_timeline(trace: GpuTrace) -> bool:
    """Whether this is what a report of counters or of sums has instead of a trace: kernels one by one."""
    return trace.span is None and trace.busy is None and bool(trace.kernels)


def _as_percent(share: float | None) -> float | None:
    return 100 * share if share is not None else None


def summarize_gpu(trace: GpuTrace, readings: Sequence[Reading], rows: Sequence[KernelRow]) -> Summary:
    """How busy the devices were and what the rest was; launches, copies, ranges, the host's calls."""
    tables = [_timeline_table(trace), copies_table(trace), _range_table(trace), _call_table(trace)]
    return Summary(
        "gpu",
        _gpu_headline(trace, rows),
        tuple(readings),
        tuple(table for table in tables if table.rows),
        (*_gpu_notes(trace), *absence_notes(readings)),
    )


def time_by_limit(trace: GpuTrace, rows: Sequence[KernelRow]) -> list[tuple[str, float]]:
    """What the time of the span is made of, largest first: names and shares of the span (0..1).

    The host where the device had nothing to do, "idle" where it waited for something else ("nothing" where the trace
    cannot tell these two apart), copies that nothing hides, and kernels by what limits them, by name where that is not
    known. Kernels that run side by side share the time in which the device was busy.
    """
    if not trace.span or trace.busy is None:
        return []
    idle = max(0.0, trace.span - trace.busy) / trace.span
    starved = idle * (trace.starved or 0.0)
    parts = {"the host": starved, "idle" if trace.starved is not None else "nothing": idle - starved}
    briefs = _short_labels(rows)
    total = sum(row.time.total for row in rows if row.time is not None)
    copied = sum(copy.seconds for copy in trace.transfers)
    if total + copied > 0:
        busy = trace.busy / trace.span / (total + copied)
        parts["copies"] = copied * busy
        if trace.copying is not None and total > 0:
            parts["copies"] = trace.copying / trace.span
            busy = max(0.0, trace.busy - trace.copying) / trace.span / total
        for row in rows:
            if row.time is not None:
                bound = row.bound.bound if row.bound is not None else "unknown"
                name = BOTTLENECK_TITLES[bound] if bound != "unknown" else briefs.get(row.label, row.label)
                parts[name] = parts.get(name, 0.0) + row.time.total * busy
    return sorted(((name, part) for name, part in parts.items() if part > 0), key=lambda pair: -pair[1])


def _short_labels(rows: Sequence[KernelRow]) -> dict[str, str]:
    """Short names of those whose time may be told: of 10,000 kernels most are a part that nobody is shown."""
    unknown = [
        row for row in rows if row.time is not None and (row.bound is None or row.bound.bound == "unknown")
    ]
    largest = sorted(unknown, key=lambda row: -row.time.total if row.time is not None else 0.0)
    return {row.label: row.brief for row in largest[:NAMED]}


_TOLD = 0.001  # of the traced time: less is nothing to speak of


def _lost_time_text(trace: GpuTrace, largest: str) -> str:
    """`, waiting for launches 15.1 %, only copying 0.3 %`, but for what is the largest part and told as that."""
    if not trace.span or trace.busy is None:
        return ""
    starved = max(0.0, trace.span - trace.busy) * (trace.starved or 0.0) / trace.span
    parts = [("waiting for launches", starved if largest != "the host" else 0.0)]
    parts.append(("only copying", (trace.copying or 0.0) / trace.span if largest != "copies" else 0.0))
    return "".join(f", {what} {format_percent(100 * part)} %" for what, part in parts if part >= _TOLD)


def _gpu_headline(trace: GpuTrace, rows: Sequence[KernelRow]) -> str:
    if trace.span is None or trace.busy is None:
        if not trace.kernels:
            return f"{NO_KERNEL[0].upper()}{NO_KERNEL[1:]}."
        counted = plural(len(trace.kernels), "launch configuration")
        total = format_quantity(sum(kernel.total for kernel in trace.kernels), "s")
        what = "sums" if trace.transfers or trace.api else "counters"
        return f"{counted}, {total} in all; how busy the GPU was is not in a report of {what}."
    if _has_only_copies(trace):
        moved = format_quantity(sum(copy.seconds for copy in trace.transfers), "s")
        return f"{NO_KERNEL[0].upper()}{NO_KERNEL[1:]}, only copies and memsets: {moved} of them."
    if not trace.kernels and trace.busy == 0:
        return f"No kernel ran in the {format_quantity(trace.span, 's')} that were traced."
    if trace.span <= 0:
        return "How busy the GPU was is not known: the trace spans no time."
    share = (
        f"{format_percent(100 * min(1.0, trace.busy / trace.span))} % of {format_quantity(trace.span, 's')}"
    )
    busy = f"The GPU is busy {share}"
    if trace.device_busy:
        busy = f"The {len(trace.device_busy)} GPUs are busy {share} ({_device_shares(trace)})"
    if not trace.kernels:
        return f"{busy}; which kernels ran is not in the trace."
    parts = time_by_limit(trace, rows)
    if not parts:
        return f"{busy}."
    name, part = parts[0]
    busy += _lost_time_text(trace, name)
    share = f"{format_percent(100 * part)} %"
    if part < LARGE_SHARE:
        return f"{busy}. No single cause: the largest part, {name}, is {share}."
    if name == "the host":
        return f"{busy}. Host-bound: {share} of the time no work was queued."
    if name == "idle":
        return f"{busy}. For {share} of the time it waits although work is queued: for copies, events or other streams."
    if name == "nothing":
        return f"{busy}. {share} of the time it is idle; what it waits for is not in the report."
    if name == "copies":
        return f"{busy}. Copies take the largest part of it, {share}."
    if name in BOTTLENECK_TITLES.values():
        return f"{busy}. Kernels limited by {name} take the largest part of it, {share}."
    return f"{busy}. {name} takes the largest part of it, {share}."


def _timeline_table(trace: GpuTrace) -> Table:
    span, busy = trace.span, trace.busy
    rows: list[tuple[str, str]] = []

    def add(what: str, value: str | None) -> None:
        if value is not None:
            rows.append((what, value))

    if span is not None and busy is not None:
        idle = max(0.0, span - busy)
        copying = ""
        if trace.copying is not None and trace.kernels and trace.copying >= 0.001 * span:
            copying = f"; only copying {share_text(trace.copying, span)}"
        gap = (
            f"; longest gap {format_quantity(trace.largest_gap, 's')}"
            if trace.largest_gap is not None
            else ""
        )
        add("Traced", format_quantity(span, "s"))
        if trace.device_busy:
            add("Devices", f"{len(trace.device_busy)}, busy {_device_shares(trace)}; below, their mean")
        add("Busy", f"{format_quantity(busy, 's')} ({share_text(busy, span)}{copying})")
        add("Idle", f"{format_quantity(idle, 's')} ({share_text(idle, span)}){gap}")
        if trace.starved is not None and idle > 0:
            add(
                "Starved",
                f"{format_percent(100 * trace.starved)} % of the idle time: the host had launched nothing",
            )
    total = sum(kernel.total for kernel in trace.kernels)
    launches = trace.launches or sum(kernel.launches for kernel in trace.kernels)
    if launches:
        each = f", {_format_count(launches / trace.repeats)} in each repetition" if trace.repeats else ""
        add("Kernels", f"{plural(launches, 'launch', 'launches')} in {format_quantity(total, 's')}{each}")
    if span is not None and trace.repeats:
        add("A repetition", f"{format_quantity(span / trace.repeats, 's')} (mean, under the tracer)")
    for name, text in _stream_rows(trace):
        add(name, text)
    if trace.launch_latency is not None:
        add("Launch to start", f"{format_quantity(trace.launch_latency, 's')} (median){_queue_text(trace)}")
    if trace.launch_call is not None:
        add("A launch call", f"{format_quantity(trace.launch_call, 's')} on the host (median)")
    if trace.setup_seconds:
        add("Set-up", f"{format_quantity(trace.setup_seconds, 's')} of kernels before it, left out")
    if trace.compile_seconds:
        add("Compiling", f"{format_quantity(trace.compile_seconds, 's')} before it (just in time), left out")
    return Table("Timeline", ("what", "value"), tuple(rows), main=True)


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
            yield (
                f"Streams{of}",
                f"{len(streams)}; kernels of two or more run at once for {both} of the kernels' time",
            )
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


def _format_count(number: float) -> str:
    """Three digits, and whole where it is larger: launches are counted, not measured."""
    return f"{number:.3g}" if number < 100 else f"{number:.0f}"


def _queue_text(trace: GpuTrace) -> str:
    """What a long way from launch to start means: a full queue, where the device is busy meanwhile."""
    if not trace.span or trace.busy is None or trace.busy < trace.span / 2:
        return ""
    if (trace.launch_latency or 0.0) <= AHEAD * (trace.launch_call or 0.0):
        return ""
    return ": the host is that far ahead, no latency"


def _range_table(trace: GpuTrace) -> Table:
    marked = [entry for entry in trace.ranges if not entry.operation]
    several = len({entry.domain for entry in marked}) > 1  # a domain that all have tells nothing
    rows = tuple(
        (
            shorten(entry.name, 60) + (f" [{shorten(entry.domain, 12)}]" if entry.domain and several else ""),
            str(entry.entries),
            format_quantity(entry.seconds, "s"),
            str(entry.kernels),
            format_quantity(entry.gpu_seconds, "s"),
        )
        for entry in sorted(marked, key=lambda entry: -entry.seconds)[:TOP_RANGES]
    )
    more = len(marked) - TOP_RANGES
    note = f"and {plural(more, 'further range')}" if more > 0 else None
    return Table("Marked ranges", ("range", "entries", "wall time", "kernels", "GPU time"), rows, note)


def _call_table(trace: GpuTrace) -> Table:
    rows = tuple(
        (shorten(call.name, 40), str(call.calls), format_quantity(call.seconds, "s"))
        for call in sorted(trace.api, key=lambda call: -call.seconds)[:TOP_RANGES]
    )
    return Table("The host's calls", ("function", "calls", "time"), rows)


def _gpu_notes(trace: GpuTrace) -> list[str]:
    if trace.span is None:
        return []
    notes = []
    if trace.marked:
        notes.append("Only what the marked region launched is counted.")
    elif trace.repeats is not None:
        notes.append(
            f"No region is marked: the part that repeats counts as the workload ({plural(trace.repeats, 'time')}),"
            " the rest as set-up."
        )
    else:
        notes.append(
            "No region is marked and no loop takes most of it: the whole trace counts, set-up included."
        )
    if any(kernel.graph for kernel in trace.kernels):
        notes.append("Some kernels were launched by a CUDA graph: one launch call starts many of them.")
    return notes


def _device_shares(trace: GpuTrace) -> str:
    """How busy each device was: `84.9 and 80.2 %`, and of many the least and the most."""
    shares = [100 * min(1.0, share) for share in trace.device_busy]
    if len(shares) > DEVICES:
        return f"{format_percent(min(shares))} to {format_percent(max(shares))} %"
    return f"{joined([format_percent(share) for share in shares])} %"


MOST_PARTS = 40  # parts that are named; what is smaller than these goes together

# The parts of the time in which no kernel ran, as `time_by_limit` names them: title in a chart, and formula.
_IDLE = {
    "the host": (
        "the host had launched nothing",
        "(span - busy) / span * share of the idle time in which nothing was launched",
    ),
    "idle": (
        "idle with work queued",
        "(span - busy) / span * share of the idle time in which work was queued",
    ),
    "nothing": ("idle", "(span - busy) / span"),
}
_COPIES = ("only copies", "only copying / span")
_KERNELS = "(busy - only copying) / span * time of these kernels / time of all kernels"
# Of a trace that does not tell copies apart
_BUSY = "its time / time of all kernels and copies * busy / span"


@dataclass(frozen=True)
class TimePart:
    """A part of a time: `share` of the whole, 0..1, and `text`, which says it in one sentence.

    `idle`: nothing was done in it. `reading` is the share as a reading in %, with its formula.
    """

    name: str
    share: float
    text: str
    idle: bool = False
    reading: Reading | None = None


@dataclass(frozen=True)
class TimeBreakdown:
    """A time and what it is made of, the largest part first. `seconds` is None where samples or counts were added."""

    title: str
    seconds: float | None
    parts: tuple[TimePart, ...]


def time_breakdowns(document: RunDocument, rows: Sequence[KernelRow]) -> tuple[TimeBreakdown, ...]:
    """The wholes that a document tells of, the widest first; empty where it tells of none."""
    breakdowns = [_limits_breakdown(document, rows), _kernels_breakdown(document, rows)] if rows else []
    breakdowns += [_libraries_breakdown(profile) for profile in document.profiles]
    return tuple(whole for whole in breakdowns if whole is not None and whole.parts)


def _limits_breakdown(document: RunDocument, rows: Sequence[KernelRow]) -> TimeBreakdown | None:
    trace = document.trace
    if trace is None or not trace.span:
        return None
    parts = []
    for name, share in time_by_limit(trace, rows)[:MOST_PARTS]:
        title, formula = _COPIES if name == "copies" else _IDLE.get(name, (name, _KERNELS))
        if trace.copying is None and name not in _IDLE:
            formula = _BUSY
        text = f"{title}: {format_percent(100 * share)} % of {format_quantity(trace.span, 's')}"
        parts.append(TimePart(title, share, text, name in _IDLE, _share_reading(trace, share, formula)))
    return TimeBreakdown("The GPU's time, by what limits it", trace.span, tuple(parts))


def _share_reading(trace: GpuTrace, share: float, formula: str) -> Reading:
    """A share of the time as a reading: it leads to the tool that timed it and to how it was computed."""
    source = Source(trace.tool, formula=f"100 * {formula}")
    return Reading("GPU time, share", 100 * share, "%", "measured", RUN, source)


def _kernels_breakdown(document: RunDocument, rows: Sequence[KernelRow]) -> TimeBreakdown | None:
    timed = [row for row in rows if row.share]
    total = sum(row.time.total for row in timed if row.time is not None) or None
    trace = document.trace

    def part(name: str, text: str, share: float) -> TimePart:
        reading = (
            _share_reading(trace, share, "its time / the time of all kernels") if trace is not None else None
        )
        return TimePart(name, share, f"{text}: {format_percent(100 * share)} %", reading=reading)

    parts = [part(row.label, row.label, row.share or 0.0) for row in timed[:MOST_PARTS]]
    rest = sum(row.share or 0.0 for row in timed[MOST_PARTS:])
    if rest > 0:
        parts.append(part(f"{len(timed) - MOST_PARTS} smaller ones", "smaller ones", rest))
    return TimeBreakdown("The kernels' time, by kernel", total, tuple(parts)) if parts else None


def _libraries_breakdown(profile: Profile) -> TimeBreakdown | None:
    """Samples by library, of a profile of a CPU."""
    if not (is_sampled(profile) and profile.kind == "libraries") or profile.total <= 0:
        return None
    spots = [spot for spot in profile.hotspots if spot.own > 0]
    parts = [
        TimePart(
            spot.function,
            spot.own / profile.total,
            f"{spot.function}: {format_quantity(spot.own, profile.unit)}",
        )
        for spot in spots[:MOST_PARTS]
    ]
    seconds = profile.total if profile.unit == "s" else None
    return TimeBreakdown("The CPU's time, by library", seconds, tuple(parts))
