"""What ran when: one typical step of a device's work, and the threads of a program."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from profkit.analysis.kernel_names import short_name
from profkit.core.formatting import format_quantity, plural
from profkit.core.types import Lane, MarkKind, MarkLabel, RunDocument, Timeline
from profkit.reporting.charts.timeline import TimelineGraph
from profkit.reporting.view import (
    Block,
    DataTable,
    PageOnly,
    Paragraph,
    Section,
    Span,
    TableColumn,
    Text,
    between,
    joined,
)
from profkit.reporting.views.run_about import Extras
from profkit.reporting.views.run_insights import relative_path

ANCHOR = "timeline"
_WIDTH = 90  # characters of a kernel's name
_TRACES, _FLAMES = (".json", ".json.gz"), "speedscope"  # of files: those that Perfetto opens, but for these
_TOP = 4  # rows of the table for each lane
_KINDS: dict[MarkKind, str] = {
    "kernel": "kernel",
    "copy": "copy or memset",
    "range": "marked range",
    "line": "line of the program",
    "operation": "operation of the framework",
    "launch": "launches",
    "wait": "waits for the GPU",
    "memory": "allocates or frees memory",
    "call": "another call of the device's library",
    "program": "runs the program, in no call",
    "queued": "launched already: launch latency, or it waits for a copy or an event",
    "python": "runs Python, or what it calls",
    "native": "runs machine code",
    "processor-wait": "waits for a processor",
    "gpu": "waits for the GPU",
    "lock": "waits for a lock",
    "network": "waits for the network",
    "input": "waits for input or a timer (select, poll)",
    "file": "waits for a file",
    "pipe": "waits for a pipe",
    "sync": "waits until a device has stored what was written",
    "sleep": "sleeps",
    "child": "waits for a child process",
    "await": "awaits",
    "waiting": "waits; for what is not known",
}
# Of a program that ran already, why its threads have no lanes.
_WATCHED = ("watched-and-goes-on", "watched-to-its-end")
_NO_TIMES = {
    "py-spy": "No timeline: py-spy counts how often a thread of a running program was in each stack, and not when. "
    "A program that profkit starts itself has one."
}
_NO_SWITCHES = (
    "No timeline: when threads of this program waited was not recorded, or nothing of it ran in that time."
)
# Of a device that is idle: what the host does meanwhile.
_IDLE: dict[MarkKind, str] = {
    "launch": "idle: the host is in calls that launch",
    "wait": "idle: the host waits for the GPU",
    "copy": "idle: the host is in calls that copy",
    "memory": "idle: the host allocates or frees memory",
    "call": "idle: the host is in another call",
    "program": "idle: the host runs the program",
    "queued": "idle: the next work was launched already",
    "waiting": "idle: what the host did was not recorded",
}


def timeline_sections(document: RunDocument, extras: Extras) -> Iterator[Section]:
    """Yield one section with what was recorded: the device's step, then the program's threads."""
    graphs = [
        graph
        for timeline in (document.trace.timeline if document.trace is not None else None, document.timeline)
        if timeline is not None and timeline.lanes
        for graph in _graph(document, timeline, extras)
    ]
    if graphs:
        yield Section("Timeline", tuple(graphs), anchor=ANCHOR, repeats=True)
    elif any(note.code in _WATCHED for note in document.notes):
        why = _NO_TIMES.get(next((result.tool or "" for result in document.passes), ""), _NO_SWITCHES)
        yield Section("Timeline", (PageOnly((Paragraph(why),)),), anchor=ANCHOR, repeats=True)


def _graph(document: RunDocument, timeline: Timeline, extras: Extras) -> Iterator[Block]:
    folder = document.workload.folder
    idle = {number for lane in timeline.lanes if lane.kind == "idle" for number in lane.labels}
    mostly = _idle_hint(document) if idle else ""
    texts = tuple(
        _idle_texts(label, folder, mostly) if n in idle else _texts(label, folder)
        for n, label in enumerate(timeline.labels)
    )
    lanes = tuple(_lane_name(timeline, lane) for lane in timeline.lanes)
    there = {label.kind for label in timeline.labels}
    graph = TimelineGraph(
        timeline,
        texts,
        lanes,
        tuple(_owner(timeline, lane.process, lane.device) or lane.name for lane in timeline.activity),
        tuple((kind, word) for kind, word in _KINDS.items() if kind in there),
        f"Timeline of {_shown(timeline)}, {plural(len(lanes), 'lane')}. The same stands in the table below.",
        _table(timeline, texts, lanes),
        _note(timeline, document, extras),
    )
    shown = _shown(timeline)
    yield Section(_title(timeline), (graph,), f"{shown[:1].upper()}{shown[1:]}.", repeats=True)


def _title(timeline: Timeline) -> str:
    return {
        "step": "One step on the device",
        "region": "One entry of the region on the device",
        "trace": "The device's trace",
        "threads": "Threads of the program",
    }[timeline.kind]


def _shown(timeline: Timeline) -> str:
    """Return `one step of 32 alike, 10.2 ms, 5.61 s after the recording began`."""
    seconds = format_quantity(timeline.seconds, "s")
    if timeline.kind == "threads":
        return f"the whole run of {seconds}"
    begin = f"{format_quantity(timeline.begin, 's')} after the recording began"
    if timeline.kind == "trace":
        return f"all of the {seconds} in which the device had work: nothing in it repeats"
    of = f" of {timeline.name}" if timeline.name else ""
    single, several = ("step", "steps") if timeline.kind == "step" else ("entry", "entries")
    if timeline.of == 1:
        return f"the only {single}{of}: {seconds}, {begin}"
    return f"one of {timeline.of:,} {several}{of}, that of median length: {seconds}, {begin}"


# ------------------------------------------------------------ words


def _idle_texts(label: MarkLabel, folder: str, mostly: str) -> tuple[str, str]:
    """Return why a device is idle, and where the host is: where that stretch does not tell it, as most of them are."""
    known = (label.what, label.operation, _place(label, folder))
    return _IDLE.get(label.kind, "idle"), ", ".join(filter(None, known)) or (
        mostly if label.kind == "program" else ""
    )


def _idle_hint(document: RunDocument) -> str:
    """Return the place at which the account has most of the idle time; nothing where it has none."""
    rows = document.account.rows if document.account is not None else ()
    most = max((row for row in rows if row.kind == "idle"), key=lambda row: row.seconds, default=None)
    if most is None or most.where.file is None:
        return ""
    place = _place(
        MarkLabel("line", "", file=most.where.file, line=most.where.line, function=most.where.function),
        document.workload.folder,
    )
    return f"most of all idle time: {place}"


def _texts(label: MarkLabel, folder: str) -> tuple[str, str]:
    """Return what a mark is, and the line, the operation and the kernel that belong to it."""
    where = _place(label, folder)
    if label.kind == "kernel":
        return short_name(label.name, _WIDTH), ", ".join(filter(None, (label.operation, where)))
    if label.kind == "line":
        return where or label.name, ""
    if label.what and label.shape:  # a call that launches
        return label.name, ", ".join(filter(None, (f"launches {short_name(label.what, _WIDTH)}", where)))
    if label.kind in ("copy", "range", "operation", "launch", "wait", "memory", "call"):
        return label.name, ", ".join(filter(None, (label.what, label.operation, where)))
    named = f"{label.name}: {_KINDS[label.kind]}" if label.name else _KINDS[label.kind]
    return named, ", ".join(filter(None, (where, label.what)))


def _place(label: MarkLabel, folder: str) -> str:
    if label.file is None:
        return ""
    file = relative_path(label.file, folder)
    named = f" {label.function}" if label.function and label.function != label.name else ""
    return f"{file}:{label.line}{named}" if label.line else f"{file}{named}"


def _owner(timeline: Timeline, process: int, device: int | None) -> str:
    """Return `rank 1, GPU 0`; the process only where there are several."""
    several = len({lane.process for lane in timeline.lanes}) > 1
    named = timeline.processes[process] if process < len(timeline.processes) else ""
    alike = timeline.processes.count(named) > 1 or not named
    whose = f"{named} process {process + 1}".strip() if alike else named
    return ", ".join(filter(None, (whose if several else "", f"GPU {device}" if device is not None else "")))


def _lane_name(timeline: Timeline, lane: Lane) -> str:
    """Return `GPU 0, stream 7`, `host 1: calls`, `main`."""
    owner = _owner(timeline, lane.process, lane.device)
    number = f" {lane.number + 1}" if lane.number is not None else ""
    what = {
        "kernels": f"stream {lane.number}" if lane.number is not None else "kernels",
        "copies": "copies",
        "idle": "idle",
        "range": f"host{number}: ranges",
        "line": f"host{number}: lines",
        "operation": f"host{number}: operations",
        "calls": f"host{number}: calls",
        "task": f"coroutine {lane.name}",
    }.get(lane.kind, lane.name)
    parts = (what, owner) if lane.kind in ("thread", "task") else (owner, what)
    return ", ".join(filter(None, parts))


# ------------------------------------------------------------ the table, and what is below


def _table(timeline: Timeline, texts: Sequence[tuple[str, str]], lanes: Sequence[str]) -> DataTable:
    """Return a table with what takes most of each lane's time."""
    rows: list[tuple[Text, ...]] = []
    for lane, name in zip(timeline.lanes, lanes, strict=True):
        seconds, counts = Counter[str](), Counter[str]()
        many = lane.counts or (1,) * len(lane.labels)
        for number, length, count in zip(lane.labels, lane.busy or lane.lengths, many, strict=True):
            words = ", ".join(filter(None, texts[number]))
            seconds[words] += length
            counts[words] += count
        for words, spent in seconds.most_common(_TOP):
            share = format_quantity(1e-7 * spent / timeline.seconds, "%")
            rows.append((name, words, format_quantity(1e-9 * spent, "s"), share, f"{counts[words]:,}"))
    columns = (
        TableColumn("lane"),
        TableColumn("what takes most of it", wraps=True),
        TableColumn("time", numeric=True),
        TableColumn("share", numeric=True),
        TableColumn("marks", numeric=True),
    )
    return DataTable(columns, tuple(rows))


def _note(timeline: Timeline, document: RunDocument, extras: Extras) -> Text:
    """Return what is merged or left out, and where all of it is."""
    parts: list[Text] = []
    shortest = format_quantity(timeline.shortest, "s")
    if timeline.kind == "threads":
        parts.append(
            f"What a thread did within {shortest} stands there in no order. Waits are as they were sampled."
        )
    elif timeline.merged:
        parts.append(
            f"What takes less than {shortest} and lies next to the like is one mark: {timeline.merged:,} "
            f"{'is' if timeline.merged == 1 else 'are'} in another's."
        )
    if timeline.left_out:
        are = "is" if timeline.left_out == 1 else "are"
        parts.append(f"{plural(timeline.left_out, 'lane')} with less time {are} left out.")
    files = (path for result in document.passes if result.name == "trace" for path in result.artifacts)
    traces = [path for path in files if path.endswith(_TRACES) and _FLAMES not in path and extras.has(path)]
    if traces and timeline.kind != "threads":
        named = between(", ", (Span(path, link=path) for path in traces))
        parts.append(joined("All of it, for ui.perfetto.dev: ", *named, "."))
    return joined(*between(" ", iter(parts)))
